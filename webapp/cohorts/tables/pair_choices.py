"""How a file of past roommates is read: two people a row, or one person and a room a row."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from webapp.cohorts.tables.layout import SheetLayout
from webapp.cohorts.tables.people import By, People, match_columns
from webapp.cohorts.tables.table import Table

_SECOND = re.compile(
    r"room ?mate|partner|second|other|mitbewohner|compañer|\b(?:2|b)\b|_(?:2|b)$", re.I
)
_ROOM = re.compile(
    r"^(?:room|zimmer|raum|habitaci[oó]n|chambre|stanza|kamer|rm|suite|apartment|apt|flat|unit)\b"
    r"|\broom(?: ?(?:no|nr|number|name|id|#))?\.?$|zimmernummer", re.I
)  # fmt: skip
_HALL = re.compile(
    r"^(?:hall|residence|building|house|dorm|wohnheim|haus|geb[aä]ude|residencia|edificio|complex|"
    r"campus|block)", re.I
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PairChoices:
    """What staff chose about a file of roommates.

    ``columns`` are the two columns of people; for a roster, the one column of people and then the
    columns that together name the room. ``same`` maps a cell to the position of the student whom
    it means; ``without`` says that rows with unknown people are left out.
    """

    columns: tuple[int, ...]
    is_roster: bool = False
    same: dict[str, int] = field(default_factory=dict)
    without: bool = False
    layout: SheetLayout = field(default_factory=SheetLayout)

    def with_same(self, same: dict[str, int]) -> "PairChoices":
        """Return the choices with further cells settled."""
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
        """Return what ``to_json`` wrote; older drafts say less."""
        return cls(
            tuple(data["columns"]),
            data.get("is_roster", False),
            dict(data.get("same", {})),
            data.get("without", False),
            SheetLayout.from_json(data.get("layout")) or SheetLayout(),
        )


def guess_pair_choices(table: Table, people: People) -> PairChoices:
    """Return how a file of roommates is read, told from whom its columns name.

    Two columns that name people by the same kind are pairs; one column of people beside a room is
    a roster. Of two columns the first roommate is the one whose name does not say "roommate", else
    the left one: told the same way in every file.
    """
    hits = match_columns(table.columns, people)
    kind = max(By, key=lambda kind: (sum(sorted(hits[kind])[-2:]), -list(By).index(kind)))
    order = sorted(range(table.n_columns), key=lambda k: (-hits[kind][k], k))
    best = order[0]
    rooms = room_columns(table, best)
    second = hits[kind][order[1]] if table.n_columns > 1 else 0
    is_pairs = 2 * second >= hits[kind][best] and second > 0
    if rooms and hits[kind][best] and not is_pairs:
        return PairChoices((best, *rooms), is_roster=True, layout=table.layout)
    if not any(hits[kind]) and rooms and table.n_columns > len(rooms):
        person = next(k for k in range(table.n_columns) if k not in rooms)
        return PairChoices((person, *rooms), is_roster=True, layout=table.layout)
    one, other = sorted(order[:2])
    if _SECOND.search(table.header[one]) and not _SECOND.search(table.header[other]):
        one, other = other, one
    return PairChoices((one, other), layout=table.layout)


def room_columns(table: Table, person: int) -> tuple[int, ...]:
    """Return the columns that name a room, its hall first; none where no room is told."""
    named = [k for k in range(table.n_columns) if k != person]
    rooms = [k for k in named if _ROOM.search(table.header[k])]
    rooms = [k for k in rooms if len(set(table.column(k))) < table.n_rows]
    if not rooms:
        return ()
    halls = [k for k in named if _HALL.search(table.header[k]) and k not in rooms]
    return (*halls[:1], rooms[0])
