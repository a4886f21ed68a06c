"""Building list: rooms, their numbers of beds, and their other attributes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.core.arguments import IntArray, read_only
from engine.core.errors import InvalidProblemError

LARGEST_CAPACITY = 8
OWN_COLUMNS = ("room", "capacity")  # columns that rules may name in addition to the attributes

_YES = {"yes", "y", "true", "t", "1", "x"}
_NO = {"", "no", "n", "false", "f", "0"}


@dataclass(frozen=True, slots=True)
class Rooms:
    """Rooms with their beds and attributes.

    Parameters
    ----------
    ids : tuple of str, length r, all different
    capacities : ndarray, shape (r,), int64, beds of each, 1 to 8. Kept as a read-only copy.
    attributes : mapping of str to tuple of str, each of length r
        Columns that rules may name (hall, floor, accessible, ...).
    max_capacities : ndarray, shape (r,), int64, at least the capacities and at most 8
        Beds with the extra beds, which are used last. By default there are no extra beds.

    Raises
    ------
    InvalidProblemError
        If an id repeats, a capacity is out of range or above the largest one of its room, or the
        lengths disagree.

    Examples
    --------
    >>> rooms = Rooms(("A-101", "A-102"), np.array([3, 2]), {"hall": ("Alder", "Alder")})
    >>> int(rooms.capacities.sum())
    5
    """

    ids: tuple[str, ...]
    capacities: IntArray
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_capacities: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

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
        object.__setattr__(self, "max_capacities", read_only(self._checked_maxima()))

    def _checked_maxima(self) -> IntArray:
        given = np.asarray(self.max_capacities)
        if not given.size:
            return self.capacities.copy()
        largest = np.array(given, dtype=np.int64, copy=True)
        if largest.shape != self.capacities.shape:
            raise InvalidProblemError(
                f"max_capacities: expected {len(self.ids)} numbers, received {given.shape}."
            )
        bad = (largest < self.capacities) | (largest > LARGEST_CAPACITY) | (largest != given)
        if bad.any():
            k = int(np.argmax(bad))
            raise InvalidProblemError(
                f"Room {self.ids[k]}: expected at most {self.capacities[k]} to {LARGEST_CAPACITY} "
                f"beds with extra beds, received {given[k]}."
            )
        return largest

    @property
    def n_rooms(self) -> int:
        """Number of rooms r."""
        return len(self.ids)

    @property
    def n_beds(self) -> int:
        """Number of beds in all rooms together, without extra beds."""
        return int(self.capacities.sum())

    @property
    def n_extra_beds(self) -> int:
        """Number of extra beds in all rooms together."""
        return int((self.max_capacities - self.capacities).sum())

    def with_beds_in_use(self, room: IntArray) -> "Rooms":
        """Return the rooms whose only extra beds are those that a placement (n,) uses."""
        place = np.asarray(room)
        used = np.bincount(place[place >= 0], minlength=self.n_rooms)
        most = np.maximum(self.capacities, np.minimum(used, self.max_capacities))
        return replace(self, max_capacities=most)

    def column(self, name: str) -> tuple[str, ...]:
        """Return the values of a column: an attribute, ``capacity`` or ``room``.

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
    """Return a cell in the form that rules compare: lower case, and "yes" or "no" for synonyms.

    Examples
    --------
    >>> plain_value("TRUE"), plain_value(" "), plain_value("East Hall")
    ('yes', 'no', 'east hall')
    """
    word = text.strip().lower()
    return "yes" if word in _YES else "no" if word in _NO else word


def reader_of(column: Sequence[str]) -> Callable[[str], str]:
    """Return the function that prepares the cells of a column for comparison.

    It converts to yes and no only if that keeps all words apart: halls may be called F and N.

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
