"""Prices of atoms and rooms: the duals of the master."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.checkpoint import SavedState, State
from engine.rooms.problem import Groups, RoomProblem


@dataclass(frozen=True, slots=True)
class Prices:
    """Duals of the master: prices of atoms, of rooms of each kind, and of single rooms."""

    atoms: FloatArray
    kinds: FloatArray
    rows: FloatArray

    def toward(self, other: "Prices", share: float) -> "Prices":
        """Interpolate: return these prices, moved by a share of the distance towards others."""
        return Prices(
            self.atoms + share * (other.atoms - self.atoms),
            self.kinds + share * (other.kinds - self.kinds),
            self.rows + share * (other.rows - self.rows),
        )

    def of_groups(self, members: IntArray, kind: IntArray, row: IntArray) -> FloatArray:
        """Return the sum of the prices of each group's atoms, kind and room, shape (g,)."""
        atoms = np.append(self.atoms, 0.0)[members].sum(axis=1)
        asked: FloatArray = atoms + self.kinds[kind] + np.append(self.rows, 0.0)[row]
        return asked

    def state(self, name: str) -> State:
        """Return the prices as arrays to save."""
        return {f"{name}_{part}": getattr(self, part) for part in ("atoms", "kinds", "rows")}

    @staticmethod
    def restore(saved: SavedState, name: str) -> "Prices":
        """Restore prices from a saved state."""
        return Prices(*(np.asarray(saved[f"{name}_{p}"]) for p in ("atoms", "kinds", "rows")))

    @staticmethod
    def zero(problem: RoomProblem) -> "Prices":
        """Return prices of 0 for everything."""
        return Prices(
            np.zeros(problem.n_atoms), np.zeros(problem.n_kinds), np.zeros(len(problem.row_kind))
        )

    @staticmethod
    def shared_worth(problem: RoomProblem, groups: Groups) -> "Prices":
        """Return prices at which each atom of a placement costs its share of its group's value."""
        members = groups[0]
        part = problem.group_values(*groups) / np.maximum((members >= 0).sum(axis=1), 1)
        prices = Prices.zero(problem)
        for k in range(members.shape[1]):
            there = members[:, k] >= 0
            prices.atoms[members[there, k]] = part[there]
        return prices
