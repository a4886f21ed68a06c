"""Choices for reading a file of past roommates: roommates in one row, or people with rooms."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.tabular.identity import columns_by_person
from engine.tabular.layout import SheetLayout, find_layout
from engine.tabular.person_search import By, People, match_columns
from engine.tabular.source import Source
from engine.tabular.table import Table
from engine.tabular.text import title_words

_SECOND = re.compile(
    r"room ?mate|partner|second|other|mitbewohner|compañer|\b(?:2|b)\b|_(?:2|b)$", re.I
)
_FURTHER = re.compile(
    r"room ?mate|resident|student|occupant|bewohner|\b(?:3|4|c|d)\b|_(?:3|4|c|d)$", re.I
)
MAX_RESIDENTS = 8  # people of one room named side by side
_ROOM = re.compile(
    r"^(?:room(?! ?mate)|zimmer|raum|habitaci[oó]n|chambre|stanza|kamer|rm|suite|apartment|apt|flat"
    r"|unit)\b|^(?:room ?mate )?(?:group|pair)(?: ?(?:no|nr|number|name|id|#))?\.?$"
    r"|\broom(?: ?(?:no|nr|number|name|id|#))?\.?$|zimmernummer", re.I
)  # fmt: skip
_HALL = re.compile(
    r"^(?:hall|residence|building|bldg|student residence|house|dorm|wohnheim|haus|geb[aä]ude|"
    r"residencia|edificio|complex|campus|block)", re.I
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PairChoices:
    """Staff's choices about a file of roommates.

    ``columns`` are the columns of people who share a room, two or more; for a roster, the one
    column of people and then the columns that together name the room. ``same`` maps a cell, or the
    cell of one row (:func:`in_row`), to the position of the student meant; ``without`` is true if
    rows with unknown people are left out.
    """

    columns: tuple[int, ...]
    is_roster: bool = False
    same: dict[str, int] = field(default_factory=dict)
    without: bool = False
    layout: SheetLayout = field(default_factory=SheetLayout)

    def with_same(self, same: Mapping[str, int]) -> "PairChoices":
        """Return the choices with further cells assigned to students."""
        return replace(self, same={**self.same, **same})

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a JSON field."""
        return {
            "columns": list(self.columns),
            "is_roster": self.is_roster,
            "same": self.same,
            "without": self.without,
            "layout": self.layout.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "PairChoices":
        """Return the choices that ``to_json`` wrote; older drafts lack some keys."""
        return cls(
            tuple(data["columns"]),
            data.get("is_roster", False),
            dict(data.get("same", {})),
            data.get("without", False),
            SheetLayout.from_json(data.get("layout")) or SheetLayout(),
        )


def in_row(cell: str, row: int) -> str:
    """Return the key of one row's cell alone, for rows that may mean two namesakes."""
    return f"{row}: {cell}"


def find_pairs_layout(source: Source, people: People) -> SheetLayout:
    """Return the best layout of a file of roommates, which need not have a header.

    The first row holds people if one of its cells names a student, or if its cells have the form of
    the ids below them.
    """
    layout = find_layout(source)
    lines = source.sheets[layout.sheet].lines
    first = lines[0]
    if layout.header_row != first.number or layout.maker or layout.joined_rows:
        return layout
    names_somebody = any(people.find(cell) is not None for cell in first.cells)
    ids = {_shape(label) for label in people.labels if any(c.isdigit() for c in label)}
    looks_alike = sum(_shape(cell) in ids for cell in first.cells) > 1
    return replace(layout, header_row=0) if names_somebody or looks_alike else layout


def _shape(text: str) -> str:
    """Return the form of an id: 9 for every digit and a for every letter."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text))


def with_whole_names(table: Table) -> Table:
    """Return a table with whole names where given and family names have columns of their own.

    The column of given names gets the whole name and both titles; the other stays as it is.
    """
    people = [one for one in columns_by_person(dict(enumerate(table.header))) if len(one) == 2]
    if not people:
        return table
    header, rows = list(table.header), [list(row) for row in table.rows]
    for given, family in people:
        header[given] = f"{table.header[given]} {table.header[family]}"
        for row in rows:
            row[given] = f"{row[given]} {row[family]}".strip()
    return replace(table, header=tuple(header), rows=tuple(map(tuple, rows)), memo={})


def guess_pair_choices(table: Table, people: People) -> PairChoices:
    """Return how to read a file of roommates, derived from the people that its columns name.

    Columns that name people by the same kind share a room; one column of people beside a room is
    a roster. Of two columns, the first roommate is the one whose name does not say "roommate", else
    the left one. The rule is the same in every file.
    """
    hits = match_columns(table.columns, people)
    kind = max(By, key=lambda kind: (sum(sorted(hits[kind])[-2:]), -list(By).index(kind)))
    order = sorted(range(table.n_columns), key=lambda k: (-hits[kind][k], k))
    best = order[0]
    second = hits[kind][order[1]] if table.n_columns > 1 else 0
    rooms = room_columns(table, best, may_be_alone=bool(hits[kind][best]) and not second)
    is_pairs = 2 * second >= hits[kind][best] and second > 0
    if rooms and hits[kind][best] and not is_pairs:
        return PairChoices((best, *rooms), is_roster=True, layout=table.layout)
    if not any(hits[kind]) and rooms and table.n_columns > len(rooms):
        person = next(k for k in range(table.n_columns) if k not in rooms)
        return PairChoices((person, *rooms), is_roster=True, layout=table.layout)
    further = [k for k in order[2:] if is_pairs and _is_roommate(table, k, hits[kind], order[1])]
    if further and len(further) + 2 <= MAX_RESIDENTS:
        return PairChoices(tuple(sorted([*order[:2], *further])), layout=table.layout)
    one, other = sorted(order[:2])
    if _SECOND.search(table.header[one]) and not _SECOND.search(table.header[other]):
        one, other = other, one
    return PairChoices((one, other), layout=table.layout)


def _is_roommate(table: Table, index: int, hits: Sequence[int], second: int) -> bool:
    """Return True if a further column names people who share the room of the first two."""
    filled = sum(bool(cell) for cell in table.column(index))
    is_named = _FURTHER.search(table.header[index]) is not None
    return (
        hits[index] > 0
        and 2 * hits[index] >= filled
        and (is_named or 2 * hits[index] > hits[second])
    )


def room_columns(table: Table, person: int, *, may_be_alone: bool = False) -> tuple[int, ...]:
    """Return the columns that name a room, its hall first; none if there is no room.

    A column whose cells all differ names a room only if everybody ``may_be_alone``.
    """
    named = [k for k in range(table.n_columns) if k != person]
    rooms = [k for k in named if _ROOM.search(title_words(table.header[k]))]
    rooms = [k for k in rooms if may_be_alone or len(set(table.column(k))) < table.n_rows]
    if not rooms:
        return ()
    halls = [k for k in named if _HALL.search(title_words(table.header[k])) and k not in rooms]
    return (*halls[:1], rooms[0])
