"""Simulated annealing: random moves between rooms that keep every bed and every rule.

References
----------
Kirkpatrick, Gelatt and Vecchi 1983 (simulated annealing).
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from engine.core.arguments import IntArray
from engine.core.progress import StopCallback
from engine.kernels.room_annealing import anneal_rooms
from engine.rooms.exchange import Exchange
from engine.rooms.problem import RoomProblem

NEAR = 30  # good roommates of each atom, into whose rooms it moves
HOT, WARM, COLD = 0.25, 0.06, 0.025  # losses accepted, times the standard deviation of the scores
MOVES, MOST_MOVES = 6_000, 15_000_000  # from hot to cold: for each atom, and in total
STEPS = 60  # temperatures; the placement is looked at after each
SECONDS_A_MOVE = 3.0e-7  # measured


class Annealing:
    """Annealing of placements of one problem: ``deviation`` is that of the scores."""

    def __init__(self, problem: RoomProblem) -> None:
        usual = problem.scores[np.isfinite(problem.scores)]
        self.deviation = float(usual.std()) if len(usual) else 0.0
        self._near = good_roommates(problem)
        self._n_moves = min(MOVES * problem.n_atoms, MOST_MOVES) // STEPS

    def run(
        self,
        exchange: Exchange,
        rng: np.random.Generator,
        is_over: StopCallback,
        *,
        start: float = HOT,
        on_step: Callable[[], object] = lambda: None,
    ) -> bool:
        """Improve a placement; return whether it improved.

        Parameters
        ----------
        exchange : Exchange, with as many people placed as possible. Nobody loses a bed.
        rng : Generator
        is_over : called after every step.
        start : float, first temperature, in deviations of the scores.
        on_step : called after every step, with the exchange at its current placement.
        """
        if not self._near.size or self.deviation <= 0.0:
            return False
        before = value = exchange.value
        best_of, now = exchange.room_of.copy(), before
        seed = rng.integers(1, 2**62, size=1)
        warmth = self.deviation * np.geomspace(start, COLD, STEPS + 1)
        for hot, cold in pairwise(warmth):
            now += anneal_rooms(
                exchange.objective,
                exchange.occupancy,
                self._n_moves,
                float(hot),
                float(cold),
                self._near,
                seed,
            )
            exchange.clock.charge(SECONDS_A_MOVE * self._n_moves)
            if now > value:
                best_of, value = exchange.room_of.copy(), now
            on_step()
            if is_over():
                break
        exchange.start(best_of)
        return value > before


def good_roommates(problem: RoomProblem) -> IntArray:
    """Return the atoms that each atom likes most beyond how they are liked by all, (n, k).

    Atoms that may share with fewer than k others get some with whom they never share.
    """
    scores = problem.scores + problem.bonus if len(problem.bonus) else problem.scores.copy()
    may_share = np.isfinite(scores)
    np.fill_diagonal(may_share, False)
    scores[~may_share] = 0.0
    scores -= scores.sum(axis=0) / np.maximum(may_share.sum(axis=0), 1)
    scores[~may_share] = -np.inf
    width = min(NEAR, problem.n_atoms - 1)
    if width < 1:
        return np.empty((problem.n_atoms, 0), dtype=np.int64)
    return np.ascontiguousarray(np.argpartition(-scores, width - 1, axis=1)[:, :width])
