"""Heuristic pricing: groups that each atom completes greedily from its best candidates."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.greedy_groups import KEPT, Market, best_candidates, find_greedily
from engine.kernels.room_tables import PairValues
from engine.rooms.pricing_run import PricingRun
from engine.rooms.problem import RoomProblem
from engine.rooms.stays import stay_tables

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
        self._stays = stay_tables(
            *(problem.stay_atom, problem.stay_row, problem.stay_refund),
            *(problem.n_atoms, len(problem.row_kind)),
        )

    def search(
        self, run: PricingRun, members: list[int], people: int, views: list[tuple[int, IntArray]]
    ) -> None:
        """Add groups of ``people``, of each number of ``members``, in views with these kinds."""
        problem, prices, near = self._problem, run.prices, self._near
        cost = np.stack([node_prices(problem, prices.atoms, view, people) for view, _ in views])
        asked = prices.kinds + problem.extra_costs(people)
        cheapest = np.array([kinds[np.argmin(asked[kinds])] for _, kinds in views])
        pairs = PairValues(problem.scores, problem.bonus, 1.0 / max(people - 1, 1))
        if members[-1] > 1:
            best_candidates(pairs, cost.min(axis=0), near)
            run.clock.charge(SECONDS_AN_ENTRY * problem.n_atoms**2)
        row_view = np.full(len(problem.row_kind), -1, dtype=np.int64)
        for place, (_, kinds) in enumerate(views):
            row_view[np.isin(problem.row_kind, kinds)] = place
        row_base = asked[problem.row_kind] + prices.rows
        market = Market(pairs, problem.sizes, cost, asked[cheapest], near)
        for m in members:
            groups = np.empty((problem.n_atoms, KEPT, m + 2), dtype=np.int64)
            values = np.empty((problem.n_atoms, KEPT))
            find_greedily(
                market,
                self._stays,
                row_view,
                row_base,
                people,
                run.least(m),
                VIEWS,
                groups,
                values,
            )
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
