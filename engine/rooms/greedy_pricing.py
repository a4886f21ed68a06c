"""Heuristic pricing: groups that each atom completes greedily from its best candidates."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.greedy_groups import KEPT, best_candidates, find_greedily
from engine.rooms.pricing_run import PricingRun
from engine.rooms.problem import RoomProblem

CANDIDATES = 40  # roommates tried for each atom
VIEWS = 12  # kinds of rooms tried for each atom: those cheapest for it
SECONDS_AN_ENTRY = 1.5e-9  # measured: per score read in the choice of candidates,
SECONDS_A_CANDIDATE = 3e-9  # and per candidate read in the completion of groups


class GreedyPricer:
    """Heuristic pricing of one problem at changing prices."""

    def __init__(self, problem: RoomProblem) -> None:
        self._problem = problem
        width = max(min(CANDIDATES, problem.n_atoms - 1), 0)
        self._near = np.full((problem.n_atoms, width), -1, dtype=np.int64)
        by_atom = np.argsort(problem.stay_atom, kind="stable")
        by_row = np.argsort(problem.stay_row, kind="stable")
        starts = np.arange(problem.n_atoms + 1), np.arange(len(problem.row_kind) + 1)
        self._stays = (
            np.searchsorted(problem.stay_atom[by_atom], starts[0]).astype(np.int64),
            problem.stay_row[by_atom],
            np.searchsorted(problem.stay_row[by_row], starts[1]).astype(np.int64),
            problem.stay_atom[by_row],
            problem.stay_refund[by_row],
        )

    def search(
        self, run: PricingRun, members: list[int], people: int, views: list[tuple[int, IntArray]]
    ) -> None:
        """Add groups of ``people``, of each number of ``members``, in views with these kinds."""
        problem, prices, near = self._problem, run.prices, self._near
        cost = np.stack([node_prices(problem, prices.atoms, view, people) for view, _ in views])
        asked = prices.kinds + problem.extra_costs(people)
        cheapest = np.array([kinds[np.argmin(asked[kinds])] for _, kinds in views])
        scale = 1.0 / max(people - 1, 1)
        if members[-1] > 1:
            best_candidates(problem.scores, problem.bonus, cost.min(axis=0), scale, near)
            run.clock.charge(SECONDS_AN_ENTRY * problem.n_atoms**2)
        row_view = np.full(len(problem.row_kind), -1, dtype=np.int64)
        for place, (_, kinds) in enumerate(views):
            row_view[np.isin(problem.row_kind, kinds)] = place
        row_base = asked[problem.row_kind] + prices.rows
        for m in members:
            groups = np.empty((problem.n_atoms, KEPT, m + 2), dtype=np.int64)
            values = np.empty((problem.n_atoms, KEPT))
            find_greedily(
                problem.scores, problem.bonus, problem.sizes, cost, asked[cheapest],
                near, scale, m, people, run.least(m), VIEWS,
                *self._stays, row_view, row_base, groups, values,
            )  # fmt: skip
            run.clock.charge(SECONDS_A_CANDIDATE * near.size * VIEWS * max(3 * m - 5, 1))
            self._put(run, groups, values, cheapest)

    def _put(
        self, run: PricingRun, groups: IntArray, values: FloatArray, cheapest: IntArray
    ) -> None:
        """Add the groups, each once."""
        good = values > -np.inf
        chosen, reduced = groups[good], values[good]
        members = np.sort(chosen[:, :-2], axis=1)
        row = chosen[:, -1]
        kind = np.where(
            row >= 0, np.append(self._problem.row_kind, -1)[row], cheapest[chosen[:, -2]]
        )
        keys = np.column_stack((members, kind, row))
        first = np.unique(keys, axis=0, return_index=True)[1]
        run.put(members[first], kind[first], row[first], reduced[first])


def node_prices(problem: RoomProblem, prices: FloatArray, view: int, people: int) -> FloatArray:
    """Return prices less what atoms contribute alone to a group in a view, inf if not allowed."""
    own = problem.own_score / max(people - 1, 1) + problem.own_bonus + problem.preference[view]
    return np.where(problem.allowed[view], prices - own, np.inf)
