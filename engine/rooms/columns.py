"""Groups found so far, with the kind of room each takes: the columns of the master."""

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.rooms.prices import Prices
from engine.rooms.problem import LARGEST_ROOM, Groups, RoomProblem


class Columns:
    """Growing list of distinct groups.

    ``members`` (g, 8) atoms, ascending, padded with -1; ``kind`` (g,); ``row`` (g,) the room that
    some of them stay in, or -1; ``value`` (g,) the value of the group there.
    """

    def __init__(self, problem: RoomProblem) -> None:
        self._problem = problem
        self._seen: set[bytes] = set()
        self.members = np.empty((0, LARGEST_ROOM), dtype=np.int64)
        self.kind = np.empty(0, dtype=np.int64)
        self.row = np.empty(0, dtype=np.int64)
        self.value = np.empty(0)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.kind)

    def add(self, members: IntArray, kind: IntArray, row: IntArray) -> int:
        """Add the groups that are new; return the number added."""
        members = pad(members)
        keys = np.column_stack((members, kind, row)).astype(np.int32)
        fresh = np.zeros(len(keys), dtype=bool)
        for k, key in enumerate(keys.view(f"V{keys.itemsize * keys.shape[1]}").ravel().tolist()):
            if key not in self._seen:
                self._seen.add(key)
                fresh[k] = True
        members, kind, row = members[fresh], kind[fresh], row[fresh]
        self.members = np.concatenate((self.members, members))
        self.kind = np.concatenate((self.kind, kind))
        self.row = np.concatenate((self.row, row))
        values = self._problem.group_values(members, kind, row)
        self.value = np.concatenate((self.value, values))
        return len(kind)

    def among(self, chosen: IntArray) -> Groups:
        """Return members, kinds and rows of the chosen groups."""
        return self.members[chosen], self.kind[chosen], self.row[chosen]

    def without(self, is_taken: BoolArray) -> "Columns":
        """Return the groups without any taken atom."""
        free = ~np.append(is_taken, False)[self.members].any(axis=1)
        rest = Columns(self._problem)
        rest.add(self.members[free], self.kind[free], self.row[free])
        return rest

    def reduced_values(self, prices: Prices) -> FloatArray:
        """Return the value of every group less the prices of its atoms, kind and room."""
        return np.asarray(self.value - prices.of_groups(self.members, self.kind, self.row))

    def best(self, prices: Prices, per_atom: int) -> "Columns":
        """Return the columns that are among the best ``per_atom`` of one of their atoms."""
        reduced = self.reduced_values(prices)
        order = np.argsort(-reduced, kind="stable")
        members = self.members[order]
        column, place = np.nonzero(members >= 0)
        atoms = members[column, place]
        by_atom = np.argsort(atoms, kind="stable")  # best first within an atom
        first = np.searchsorted(atoms[by_atom], np.arange(self._problem.n_atoms))
        rank = np.arange(len(atoms)) - first[atoms[by_atom]]
        chosen = order[np.unique(column[by_atom[rank < per_atom]])]
        few = Columns(self._problem)
        few.add(self.members[chosen], self.kind[chosen], self.row[chosen])
        return few


def pad(members: IntArray) -> IntArray:
    """Return groups of up to 8 atoms as rows of 8, ascending, padded with -1 at the end."""
    out = np.full((len(members), LARGEST_ROOM), -1, dtype=np.int64)
    out[:, : members.shape[1]] = members
    out[out < 0] = np.iinfo(np.int64).max
    out.sort(axis=1)
    out[out == np.iinfo(np.int64).max] = -1
    return out
