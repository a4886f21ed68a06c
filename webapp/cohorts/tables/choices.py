"""What staff chose about the columns and rows of a draft: plain data, stored as JSON."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

MAX_LEVELS = 15


class Role(StrEnum):
    """What a column is used as."""

    ID = "id"
    QUESTION = "question"
    CONSTRAINT = "constraint"
    IGNORE = "ignore"


class Kind(StrEnum):
    """How the answers of a question relate to each other."""

    BINARY = "binary"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The use of one column, its answers in order, and why it was preset so."""

    role: Role
    kind: Kind = Kind.NOMINAL
    levels: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """Everything staff decided about one table.

    ``left_out`` holds row numbers; ``meanings`` maps a column index to {answer: what it counts as},
    where the empty text means a blank.
    """

    columns: tuple[ColumnChoice, ...]
    left_out: frozenset[int] = frozenset()
    meanings: dict[int, dict[str, str]] = field(default_factory=dict)

    def with_column(self, index: int, **changes: Any) -> "Choices":
        """Return the choices with one column changed."""
        columns = list(self.columns)
        columns[index] = replace(columns[index], **changes)
        return replace(self, columns=tuple(columns))

    def with_role(self, indices: list[int], role: Role) -> "Choices":
        """Return the choices with the columns used as ``role``; a new id replaces the old one."""
        columns = list(self.columns)
        if role is Role.ID:
            columns = [
                replace(column, role=Role.IGNORE) if column.role is Role.ID else column
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

    def without_row(self, number: int) -> "Choices":
        """Return the choices with one row left out."""
        return replace(self, left_out=self.left_out | {number})

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a JSON field."""
        return {
            "columns": [
                {
                    "role": c.role.value,
                    "kind": c.kind.value,
                    "levels": list(c.levels),
                    "reason": c.reason,
                }
                for c in self.columns
            ],
            "left_out": sorted(self.left_out),
            "meanings": {str(key): value for key, value in self.meanings.items()},
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Choices":
        """Return the choices that ``to_json`` wrote."""
        columns = tuple(
            ColumnChoice(Role(c["role"]), Kind(c["kind"]), tuple(c["levels"]), c["reason"])
            for c in data["columns"]
        )
        meanings = {int(key): dict(value) for key, value in data["meanings"].items()}
        return cls(columns, frozenset(data["left_out"]), meanings)


def move_level(levels: tuple[str, ...], position: int, step: int) -> tuple[str, ...]:
    """Return ``levels`` with the one at ``position`` moved by ``step``; the ends hold it."""
    target = position + step
    if not (0 <= position < len(levels) and 0 <= target < len(levels)):
        return levels
    moved = list(levels)
    moved.insert(target, moved.pop(position))
    return tuple(moved)
