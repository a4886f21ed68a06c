"""A building list: rooms, how many beds each has, and what else is known of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import IntArray, read_only
from engine.core.errors import InvalidProblemError

LARGEST_CAPACITY = 8
OWN_COLUMNS = ("room", "capacity")  # what rules may name beside the attributes

_YES = {"yes", "y", "true", "t", "1", "x"}
_NO = {"", "no", "n", "false", "f", "0"}


@dataclass(frozen=True, slots=True)
class Rooms:
    """Rooms with their beds.

    Parameters
    ----------
    ids : tuple of str, length r, all different
    capacities : ndarray, shape (r,), int64, beds of each, 1 to 8. Kept as a read-only copy.
    attributes : mapping of str to tuple of str, each of length r
        Columns that rules may name (hall, floor, accessible, ...).

    Raises
    ------
    InvalidProblemError
        If an id repeats, a capacity is out of range, or the lengths disagree.

    Examples
    --------
    >>> rooms = Rooms(("A-101", "A-102"), np.array([3, 2]), {"hall": ("Alder", "Alder")})
    >>> int(rooms.capacities.sum())
    5
    """

    ids: tuple[str, ...]
    capacities: IntArray
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = np.asarray(self.capacities)
        capacities = np.array(given, dtype=np.int64, copy=True)
        if capacities.shape != (len(self.ids),):
            raise InvalidProblemError(
                f"capacities: expected {len(self.ids)} numbers, received {given.shape}."
            )
        seen: dict[str, int] = {}
        for row, name in enumerate(self.ids, start=1):
            if name in seen:
                raise InvalidProblemError(
                    f"Row {row}: room {name} appears twice, first in row {seen[name]}."
                )
            seen[name] = row
        bad = (capacities < 1) | (capacities > LARGEST_CAPACITY) | (capacities != given)
        if bad.any():
            k = int(np.argmax(bad))
            raise InvalidProblemError(
                f"Room {self.ids[k]}: expected 1 to {LARGEST_CAPACITY} beds, received {given[k]}."
            )
        for name, column in self.attributes.items():
            if len(column) != len(self.ids):
                raise InvalidProblemError(
                    f"{name}: expected {len(self.ids)} values, received {len(column)}."
                )
        object.__setattr__(self, "capacities", read_only(capacities))

    @property
    def n_rooms(self) -> int:
        """Number of rooms r."""
        return len(self.ids)

    @property
    def n_beds(self) -> int:
        """Beds in all rooms together."""
        return int(self.capacities.sum())

    def column(self, name: str) -> tuple[str, ...]:
        """Return what every room has in a column: an attribute, ``capacity`` or ``room``.

        Raises
        ------
        InvalidProblemError
            If there is no such column.
        """
        if name in self.attributes:
            return self.attributes[name]
        if name == "capacity":
            return tuple(str(c) for c in self.capacities.tolist())
        if name == "room":
            return self.ids
        known = ", ".join([*self.attributes, *OWN_COLUMNS])
        raise InvalidProblemError(f"{name} names no column of the rooms; there are: {known}.")


def plain_value(text: str) -> str:
    """Return a cell as rules compare it: without case, and every word for yes or no as that.

    Examples
    --------
    >>> plain_value("TRUE"), plain_value(" "), plain_value("East Hall")
    ('yes', 'no', 'east hall')
    """
    word = text.strip().lower()
    return "yes" if word in _YES else "no" if word in _NO else word


def reader_of(column: Sequence[str]) -> Callable[[str], str]:
    """Return how the cells of a column are compared.

    As yes and no where that keeps its words apart; else as they stand: halls may be called F and N.

    Examples
    --------
    >>> reader_of(("TRUE", "no", ""))("y"), reader_of(("F", "N", "East"))("F")
    ('yes', 'f')
    """
    words = {cell.strip().lower() for cell in column} - {""}
    is_apart = len({plain_value(word) for word in words}) == len(words)
    return plain_value if is_apart else _lowered


def _lowered(text: str) -> str:
    return text.strip().lower()
