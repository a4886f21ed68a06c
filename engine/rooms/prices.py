"""What atoms and rooms cost: the duals of the master."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.rooms.problem import Groups, RoomProblem


@dataclass(frozen=True, slots=True)
class Prices:
    """Duals of the master: what an atom costs, what a room of a kind and a single room do."""

    atoms: FloatArray
    kinds: FloatArray
    rows: FloatArray

    def toward(self, other: "Prices", share: float) -> "Prices":
        """Return the prices a share of the way to others."""
        return Prices(
            self.atoms + share * (other.atoms - self.atoms),
            self.kinds + share * (other.kinds - self.kinds),
            self.rows + share * (other.rows - self.rows),
        )

    def of_groups(self, members: IntArray, kind: IntArray, row: IntArray) -> FloatArray:
        """Return what groups are asked for their atoms, kind and room, shape (g,)."""
        atoms = np.append(self.atoms, 0.0)[members].sum(axis=1)
        asked: FloatArray = atoms + self.kinds[kind] + np.append(self.rows, 0.0)[row]
        return asked

    @staticmethod
    def zero(problem: RoomProblem) -> "Prices":
        """Return prices at which everything is free."""
        return Prices(
            np.zeros(problem.n_atoms), np.zeros(problem.n_kinds), np.zeros(len(problem.row_kind))
        )

    @staticmethod
    def shared_worth(problem: RoomProblem, groups: Groups) -> "Prices":
        """Return prices at which each atom of a placement costs its part of its group's worth."""
        members = groups[0]
        part = problem.group_values(*groups) / np.maximum((members >= 0).sum(axis=1), 1)
        prices = Prices.zero(problem)
        for k in range(members.shape[1]):
            there = members[:, k] >= 0
            prices.atoms[members[there, k]] = part[there]
        return prices
