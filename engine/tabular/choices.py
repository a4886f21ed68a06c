"""Staff's choices about the columns and rows of a draft: plain data, stored as JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from engine.tabular.layout import SheetLayout
from engine.tabular.multiple_answers import Part
from engine.tabular.numerals import Groups

MAX_LEVELS = 15
BY_HAND = "hand"


class Role(StrEnum):
    """Use of a column."""

    ID = "id"
    QUESTION = "question"
    CONSTRAINT = "constraint"
    NEED = "need"
    EMAIL = "email"
    NAME = "name"
    PREFERRED = "preferred"
    PRONOUNS = "pronouns"
    IGNORE = "ignore"


SINGLE = (Role.ID, Role.EMAIL, Role.PREFERRED, Role.PRONOUNS)  # for one column at most


class Keep(StrEnum):
    """Rule for people who answered more than once: which answer counts."""

    ALL = ""
    LATEST = "latest"
    FIRST = "first"
    JOINED = "joined"  # their rows hold different questions and are joined into one


class Kind(StrEnum):
    """Relation between the answers of a question."""

    BINARY = "binary"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Use of one column, its answers in order, and the reason for its preset.

    ``name``, if not empty, replaces the name in the header; ``groups`` reads numbers as groups; a
    column with a ``part`` is not in the file but made of one option of another column.
    """

    role: Role
    kind: Kind = Kind.NOMINAL
    levels: tuple[str, ...] = ()
    reason: str = ""
    name: str = ""
    groups: Groups | None = None
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Choices:
    """All decisions of staff about one table.

    ``left_out`` maps row numbers to the reason for leaving them out; ``meanings`` maps a column
    index to {answer: the answer it counts as}, with empty text for a blank; ``settled`` holds the
    keys of the proposals that staff declined; columns made of others come after those of the file.
    """

    columns: tuple[ColumnChoice, ...]
    left_out: dict[int, str] = field(default_factory=dict)
    meanings: dict[int, dict[str, str]] = field(default_factory=dict)
    keep: Keep = Keep.ALL
    settled: frozenset[str] = frozenset()
    layout: SheetLayout = field(default_factory=SheetLayout)
    recipe: str = ""

    def with_column(self, index: int, **changes: Any) -> "Choices":
        """Return the choices with one column changed."""
        columns = list(self.columns)
        columns[index] = replace(columns[index], **changes)
        return replace(self, columns=tuple(columns))

    def with_role(self, indices: list[int], role: Role) -> "Choices":
        """Return the choices with the columns used as ``role``.

        A new id column replaces the old one; so does a new column of e-mails, preferred names or
        pronouns. Several columns of names are parts of one name.
        """
        columns = list(self.columns)
        if role in SINGLE:
            columns = [
                replace(column, role=Role.IGNORE) if column.role is role else column
                for column in columns
            ]
        for index in indices:
            columns[index] = replace(columns[index], role=role)
        return replace(self, columns=tuple(columns))

    def with_meaning(self, index: int, answer: str, meaning: str) -> "Choices":
        """Return the choices with one answer of a column read as another, or as a blank."""
        before = self.meanings.get(index, {})
        column = {other: meaning if meant == answer else meant for other, meant in before.items()}
        column[answer] = meaning
        return replace(self, meanings={**self.meanings, index: column})

    def without_rows(self, numbers: Iterable[int], why: str = BY_HAND) -> "Choices":
        """Return the choices with some rows left out."""
        return replace(self, left_out={**dict.fromkeys(numbers, why), **self.left_out})

    def with_rows_of(self, why: str) -> "Choices":
        """Return the choices with the rows that were left out for one reason put back."""
        left = {number: reason for number, reason in self.left_out.items() if reason != why}
        return replace(self, left_out=left)

    def with_parts(self, parent: int, parts: Iterable[ColumnChoice]) -> "Choices":
        """Return the choices with columns made of ``parent``, which then is not used itself."""
        columns = list(self.columns)
        columns[parent] = replace(columns[parent], role=Role.IGNORE)
        return replace(self, columns=(*columns, *parts))

    def without_parts(self, parent: int) -> "Choices":
        """Return the choices without the columns made of ``parent``."""
        kept = [k for k, c in enumerate(self.columns) if c.part is None or c.part.parent != parent]
        position = {old: new for new, old in enumerate(kept)}
        meanings = {position[k]: m for k, m in self.meanings.items() if k in position}
        return replace(self, columns=tuple(self.columns[k] for k in kept), meanings=meanings)

    def with_meanings(self, index: int, meanings: Mapping[str, str]) -> "Choices":
        """Return the choices with several answers of a column read as others."""
        own = {**self.meanings.get(index, {}), **meanings}
        return replace(self, meanings={**self.meanings, index: own})

    def without_meanings(self, index: int, answers: Iterable[str]) -> "Choices":
        """Return the choices with some answers of a column read literally again."""
        gone = set(answers)
        own = {
            said: means for said, means in self.meanings.get(index, {}).items() if said not in gone
        }
        return replace(self, meanings={**self.meanings, index: own})

    def settle(self, *keys: str) -> "Choices":
        """Return the choices with proposals declined."""
        return replace(self, settled=self.settled | set(keys))

    def reopen(self, *keys: str) -> "Choices":
        """Return the choices with proposals open again."""
        return replace(self, settled=self.settled - set(keys))

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a JSON field."""
        return {
            "columns": [column_to_json(column) for column in self.columns],
            "left_out": {str(number): why for number, why in sorted(self.left_out.items())},
            "meanings": {str(key): value for key, value in self.meanings.items()},
            "keep": self.keep.value,
            "settled": sorted(self.settled),
            "layout": self.layout.to_json(),
            "recipe": self.recipe,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Choices":
        """Return the choices that ``to_json`` wrote; older drafts lack some keys."""
        left_out = data["left_out"]
        if isinstance(left_out, list):
            left_out = dict.fromkeys(left_out, BY_HAND)
        return cls(
            tuple(column_from_json(column) for column in data["columns"]),
            {int(number): why for number, why in left_out.items()},
            {int(key): dict(value) for key, value in data["meanings"].items()},
            Keep(data.get("keep", "")),
            frozenset(data.get("settled", ())),
            SheetLayout.from_json(data.get("layout")) or SheetLayout(),
            data.get("recipe", ""),
        )


def column_to_json(column: ColumnChoice) -> dict[str, Any]:
    """Return one column as plain data."""
    data: dict[str, Any] = {
        "role": column.role.value,
        "kind": column.kind.value,
        "levels": list(column.levels),
        "reason": column.reason,
    }
    if column.name:
        data["name"] = column.name
    if column.groups:
        data["groups"] = column.groups.to_json()
    if column.part:
        part = column.part
        data["part"] = [part.parent, part.separator, part.option, list(part.options)]
    return data


def column_from_json(data: dict[str, Any]) -> ColumnChoice:
    """Return the choice that :func:`column_to_json` wrote."""
    part = data.get("part")
    return ColumnChoice(
        Role(data["role"]),
        Kind(data["kind"]),
        tuple(data["levels"]),
        data["reason"],
        data.get("name", ""),
        Groups.from_json(data.get("groups")),
        Part(part[0], part[1], part[2], tuple(part[3])) if part else None,
    )


def move_level(levels: tuple[str, ...], position: int, step: int) -> tuple[str, ...]:
    """Return ``levels`` with the one at ``position`` moved by ``step``, at most to an end."""
    target = position + step
    if not (0 <= position < len(levels) and 0 <= target < len(levels)):
        return levels
    moved = list(levels)
    moved.insert(target, moved.pop(position))
    return tuple(moved)
