"""How many people the beds suffice for when only who may live where is counted."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.rooms.formulation import RoomLayout

SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class BedCount:
    """How many are left over at least, and where the shortage is.

    Parameters
    ----------
    n_left : int
    short_students : tuple of students who may only live in the rooms that are too few.
    short_kinds : ndarray of those kinds of rooms; short_beds : int, the beds in them.
    """

    n_left: int
    short_students: tuple[int, ...]
    short_kinds: IntArray
    short_beds: int


def count_beds(layout: RoomLayout, keys: IntArray, alone: BoolArray) -> BedCount:
    """Place as many people as the beds allow, without looking at who lives with whom.

    Parameters
    ----------
    keys : ndarray, shape (n,), students of different keys never share a room.
    alone : ndarray, shape (n,), students who live alone.

    Notes
    -----
    People of one size, key and choice of rooms are counted together: an integer programme of a few
    hundred numbers. How locked people of different sizes fit into one room is not looked at.
    """
    first = np.unique(layout.atom_of, return_index=True)[1]
    key = np.where(alone[first], -1 - layout.sizes, keys[first])
    rows = np.column_stack((layout.sizes, key, alone[first], layout.choices.T.astype(np.int64)))
    types, of_type, amount = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    model = _Model(layout, types, amount)
    n_left = model.n_left()
    if n_left == 0:
        return BedCount(0, (), np.empty(0, dtype=np.int64), 0)
    short, kinds = model.shortage()
    students = np.flatnonzero(short[of_type.ravel()[layout.atom_of]])
    beds = int((layout.capacity * layout.count)[kinds].sum())
    return BedCount(n_left, tuple(students.tolist()), kinds, beds)


class _Model:
    """People of a type in rooms of a kind (x), rooms of a kind given to a key (y)."""

    def __init__(self, layout: RoomLayout, types: IntArray, amount: IntArray) -> None:
        self._layout, self._types, self._amount = layout, types, amount
        key_of = np.unique(types[:, 1], return_inverse=True)[1]
        self._place, self._kind = np.nonzero(types[:, 3:])
        t = len(layout.count)
        n_x = len(self._place)
        size = types[self._place, 0].astype(np.float64)
        needs = np.where(types[self._place, 2] == 1, layout.capacity[self._kind], size)
        shared = key_of[self._place] * t + self._kind
        used, shared = np.unique(shared, return_inverse=True)
        y_kind = used % t
        x, y = np.arange(n_x), n_x + np.arange(len(used))
        supply = csr_array((np.ones(n_x), (self._place, x)), shape=(len(types), n_x + len(used)))
        beds = csr_array(
            (
                np.concatenate((needs, -layout.capacity[y_kind].astype(float))),
                (np.concatenate((shared, y - n_x)), np.concatenate((x, y))),
            ),
            shape=(len(used), n_x + len(used)),
        )
        rooms = csr_array((np.ones(len(used)), (y_kind, y)), shape=(t, n_x + len(used)))
        self._gain = np.concatenate((size, np.zeros(len(used))))
        self._parts = supply, beds, rooms

    def n_left(self) -> int:
        """Return how many people the best count leaves over."""
        supply, beds, rooms = self._parts
        low = 0.0 if self._layout.must_fill else -np.inf
        limits = [
            LinearConstraint(supply, -np.inf, self._amount.astype(float)),
            LinearConstraint(beds, low, 0.0),
            LinearConstraint(rooms, -np.inf, self._layout.count.astype(float)),
        ]
        total = int((self._amount * self._types[:, 0]).sum())
        if not len(self._gain):
            return total
        found = milp(
            -self._gain,
            constraints=limits,
            integrality=np.ones(len(self._gain), dtype=np.int64),
            bounds=Bounds(0.0, np.inf),
            options={"time_limit": SECONDS},
        )
        if found.status != 0:  # the count was not finished: nothing is proved
            return 0
        placed = -float(found.fun)
        return max(0, total - int(np.floor(placed + 1e-6)))

    def shortage(self) -> tuple[BoolArray, IntArray]:
        """Return the types that compete for too few beds, and the kinds of rooms they do it for.

        By the duals of the relaxation: more people of these types would find no bed. Where rounding
        alone is the cause, everybody counts.
        """
        supply, beds, rooms = self._parts
        amount, count = self._amount.astype(float), self._layout.count.astype(float)
        if not len(self._gain):
            return np.ones(len(self._types), dtype=bool), np.arange(len(self._layout.count))
        matrix = np.concatenate([part.toarray() for part in (supply, beds, rooms)])
        limits = np.concatenate((amount, np.zeros(beds.shape[0]), count))
        found = linprog(-self._gain, A_ub=matrix, b_ub=limits, method="highs")
        worth: FloatArray = -np.asarray(found.ineqlin.marginals)
        short = worth[: len(amount)] < 1e-9
        kinds = np.flatnonzero(worth[-len(count) :] > 1e-9)
        if not short.any() or not len(kinds):
            return np.ones(len(self._types), dtype=bool), np.arange(len(self._layout.count))
        return short, kinds.astype(np.int64)
