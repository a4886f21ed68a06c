"""Pricing: find the groups whose values exceed the prices of their atoms and room.

An exact search proves a bound: no group is worth more than its prices once every atom's price is
raised by the largest share, reduced value over number of atoms, of the groups that it is in.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.rounding import sum_allowance
from engine.kernels.room_groups import KEPT, Effort, FoundGroups, GroupShape, extend_pairs
from engine.kernels.room_pairs import largest_sums, positive_pairs, positive_stays
from engine.kernels.room_tables import PairValues
from engine.rooms.clock import SearchClock
from engine.rooms.greedy_pricing import GreedyPricer, node_prices
from engine.rooms.prices import Prices
from engine.rooms.pricing_run import MOST_WORK, PricingRun
from engine.rooms.problem import LARGEST_ROOM, Groups, RoomProblem
from engine.rooms.stays import Stays

SLICE = 20_000_000  # entries read between two checks of the clock
MAX_PAIRS = 1_500_000
MOST_PAIRS_READ = 100_000_000  # of all views, for the bound from pairs alone
MAX_GROUPS = 200_000
SECONDS_AN_ENTRY = 1.2e-9  # measured: per score searched for pairs,
SECONDS_A_PAIR = 1.2e-8  # per pair priced in a view,
SECONDS_A_READ = 1.7e-9  # and per entry read by the search for larger groups


@dataclass(frozen=True, slots=True)
class Priced:
    """Result of a pricing search.

    Parameters
    ----------
    members (g, 8), kind (g,), row (g,) : the groups, to add to the master.
    reduced : (g,) their values above prices.
    bound : upper bound on the value of every placement; inf if the search was not exact.
    estimate : the same if the search was exact, otherwise a lower estimate of it.
    is_whole : whether every group worth more than its prices was found. If not, the prices are
        too low for an exact search, and the bound uses pairs only.
    feasible : the prices raised so that no group is worth more; the bound is their sum.
    """

    members: IntArray
    kind: IntArray
    row: IntArray
    reduced: FloatArray
    bound: float
    estimate: float
    is_whole: bool
    feasible: Prices


class Pricer:
    """Pricing of one problem at changing prices, with reused large buffers."""

    def __init__(
        self, problem: RoomProblem, clock: SearchClock | None = None, room_for: int = MAX_GROUPS
    ) -> None:
        self._problem, self._most = problem, room_for
        self._clock = clock or SearchClock(None)
        n_pairs = min(MAX_PAIRS, problem.n_atoms * max(problem.n_atoms - 1, 0) // 2)
        self._pairs = np.empty((n_pairs, 2), dtype=np.int64)
        self._groups = np.empty((room_for, LARGEST_ROOM + 1), dtype=np.int64)
        self._values = np.empty(room_for)
        n_stays = min(MAX_PAIRS, len(problem.stay_atom) * problem.n_atoms)
        self._stay_roots = np.empty((n_stays, 3), dtype=np.int64)
        self._stay_values = np.empty(n_stays)
        self._largest = problem.largest_entry
        self._shapes = problem.group_shapes()
        self._greedy = GreedyPricer(problem)

    def search(
        self,
        prices: Prices,
        *,
        is_exact: bool,
        tolerance: float,
        most_work: int = MOST_WORK,
    ) -> Priced:
        """Search for groups worth more than ``tolerance`` per atom above their prices.

        An exact search checks all of them, or stops after ``most_work`` entries; a heuristic search
        completes each atom greedily.
        """
        n = self._problem.n_atoms
        run = PricingRun(prices, tolerance, self._clock, np.full(n, tolerance), most_work=most_work)
        if is_exact:
            self._run(run)
        else:
            self._search_greedily(run)
        share = run.share
        if is_exact and not run.is_whole:
            share = self._pair_shares(prices)
        feasible = Prices(self._raised(prices, share), prices.kinds, prices.rows)
        estimate = self.bound_of(prices, share)
        bound = estimate if is_exact else np.inf
        return Priced(*run.found(), bound, estimate, run.is_whole, feasible)

    def all_within(self, prices: Prices, shortfall: float) -> Groups | None:
        """Return every group worth at least its prices minus ``shortfall``, in every kind of room.

        Return None if there are too many to list.
        """
        problem = self._problem
        n = problem.n_atoms
        run = PricingRun(prices, 0.0, self._clock, np.full(n, -np.inf), shortfall)
        self._run(run)
        members, kind, row, reduced = run.found()
        if not run.is_whole or len(kind) > self._most:
            return None
        people = np.where(members >= 0, problem.sizes[members], 0).sum(axis=1)
        rows = [(members, kind, row)]
        for t in range(problem.n_kinds):
            fits = (people == problem.capacity[t]) | (
                (people < problem.capacity[t]) & (not problem.must_fill)
            )
            fits &= (problem.view[kind] == problem.view[t]) & (kind != t) & (row < 0)
            costs = prices.kinds[t] - prices.kinds[kind]
            costs += problem.extra_price * (
                np.maximum(people - problem.normal[t], 0)
                - np.maximum(people - problem.normal[kind], 0)
            )
            fits &= reduced - costs >= -shortfall
            other = np.full(int(fits.sum()), t, dtype=np.int64)
            rows.append((members[fits], other, row[fits]))
        joined = [np.concatenate(column) for column in zip(*rows, strict=True)]
        return joined[0], joined[1], joined[2]

    def _run(self, run: PricingRun) -> None:
        """Search all numbers of atoms and people."""
        self._search_lone_atoms(run)
        for m, s in self._shapes:
            if m > 1:
                self._search_shape(run, m, s)
            if run.is_over:
                run.is_whole = False
                return

    def _search_greedily(self, run: PricingRun) -> None:
        """Price groups that each atom completes greedily, in rooms that are cheap for it."""
        for s in np.unique([s for _, s in self._shapes]).tolist():
            views = list(self._views(s))
            if views and not run.is_over:
                self._greedy.search(run, [m for m, t in self._shapes if t == s], s, views)

    def _views(self, s: int) -> Iterator[tuple[int, IntArray]]:
        """Yield the views that have rooms for s people, and the kinds of those rooms."""
        problem = self._problem
        fits = (problem.capacity == s) if problem.must_fill else (problem.capacity >= s)
        fits &= problem.count > 0
        for view in np.unique(problem.view[fits]):
            yield int(view), np.flatnonzero(fits & (problem.view == view))

    def _search_lone_atoms(self, run: PricingRun) -> None:
        """Price groups of one atom."""
        problem, prices = self._problem, run.prices
        least = run.least(1)
        for s in np.unique(problem.sizes):
            atoms = np.flatnonzero(problem.sizes == s)
            for view, kinds in self._views(int(s)):
                here = atoms[problem.allowed[view, atoms]]
                value = problem.own_score[here] / max(s - 1, 1) + problem.own_bonus[here]
                value = value + problem.preference[view, here] - prices.atoms[here]
                asked = prices.kinds + problem.extra_costs(int(s))
                cheapest = kinds[np.argmin(asked[kinds])]
                self._put_lone(run, here, value - asked[cheapest], cheapest, -1, least)
                kind = problem.row_kind[problem.stay_row]
                e = np.flatnonzero(np.isin(problem.stay_atom, here) & np.isin(kind, kinds))
                place, row, kind = (
                    np.searchsorted(here, problem.stay_atom[e]),
                    problem.stay_row[e],
                    kind[e],
                )
                gain = value[place] + problem.stay_refund[e]
                gain -= asked[kind] + prices.rows[row]
                self._put_lone(run, here[place], gain, kind, row, least)

    def _put_lone(
        self,
        run: PricingRun,
        atoms: IntArray,
        reduced: FloatArray,
        kind: IntArray | np.int64,
        row: IntArray | int,
        least: float,
    ) -> None:
        good = reduced > least - self._slack
        kinds, rows = np.broadcast_to(kind, good.shape), np.broadcast_to(row, good.shape)
        run.put(atoms[good, np.newaxis], kinds[good], rows[good], reduced[good])

    def _search_shape(self, run: PricingRun, m: int, s: int) -> None:
        """Price groups of m atoms and s people in every view."""
        views = list(self._views(s))
        if not views:
            return
        costs = [node_prices(self._problem, run.prices.atoms, view, s) for view, _ in views]
        asked = run.prices.kinds + self._problem.extra_costs(s)
        bases = [float(asked[kinds].min()) for _, kinds in views]
        pairs = self._positive_pairs(run, np.min(costs, axis=0), min(bases), m, s)
        worth = self._pair_values(pairs[:, 0], pairs[:, 1], 1.0 / (s - 1))
        for (view, kinds), cost, base in zip(views, costs, bases, strict=True):
            if run.is_over:
                run.is_whole = False
                return
            stays = Stays.of(self._problem, view, kinds, asked, run.prices.rows, base)
            roots, values = self._roots(run, cost, base, m, s, pairs, worth, stays)
            if m == 2:
                fits = self._problem.sizes[roots[:, :2]].sum(axis=1) == s
                groups, values = roots[fits], values[fits]
            else:
                groups, values = self._extend(run, cost, base, m, s, roots, stays)
            self._put(run, groups, values, kinds[np.argmin(asked[kinds])], stays)

    def _positive_pairs(
        self, run: PricingRun, price: FloatArray, base: float, m: int, s: int
    ) -> IntArray:
        """List the pairs that may be positive in some view."""
        problem = self._problem
        self._clock.charge(SECONDS_AN_ENTRY * problem.n_atoms**2)
        threshold = (run.least(m) + base) / (m * (m - 1) / 2) - self._slack
        count = positive_pairs(
            problem.scores, problem.bonus, price / (m - 1), 1.0 / (s - 1), threshold, self._pairs
        )
        if count > len(self._pairs):
            run.is_whole = False
        return self._pairs[: min(count, len(self._pairs))].copy()

    @property
    def _slack(self) -> float:
        return sum_allowance(4 * LARGEST_ROOM**2, self._largest)

    def _extend(
        self,
        run: PricingRun,
        cost: FloatArray,
        base: float,
        m: int,
        s: int,
        roots: IntArray,
        stays: Stays,
    ) -> tuple[IntArray, FloatArray]:
        """Extend pairs to complete groups: (g, m + 1) with their room, and values (g,)."""
        problem = self._problem
        top = np.repeat((run.share * m)[:, np.newaxis], KEPT, axis=1)
        progress = np.zeros(4, dtype=np.int64)
        pairs = PairValues(problem.scores, problem.bonus, 1.0 / (s - 1))
        shape = GroupShape(m, s, run.least(m), base, self._slack * m * (m - 1) / 2)
        keeps_all = run.shortfall is not None
        found = FoundGroups(top, self._groups, self._values, progress)
        while progress[0] < len(roots):
            before = progress[2]
            effort = Effort(keeps_all, SLICE, run.work_left)
            extend_pairs(
                pairs,
                problem.sizes,
                cost,
                stays.tables,
                stays.base,
                shape,
                roots,
                effort,
                found,
            )
            run.work += int(progress[2] - before)
            self._clock.charge(SECONDS_A_READ * float(progress[2] - before))
            if progress[3] or run.is_over:
                run.is_whole = False
                break
        run.share = np.maximum(run.share, top[:, -1] / m)
        count = int(progress[1])
        values, groups = self._values[:count].copy(), self._groups[:count, : m + 1].copy()
        if keeps_all:
            return groups, values
        # A group that was among the best when it was found may no longer be.
        good = (values[:, np.newaxis] >= top[groups[:, :m], 0]).any(axis=1)
        return groups[good], values[good]

    def _roots(
        self,
        run: PricingRun,
        cost: FloatArray,
        base: float,
        m: int,
        s: int,
        pairs: IntArray,
        worth: FloatArray,
        stays: Stays,
    ) -> tuple[IntArray, FloatArray]:
        """Return the pairs positive in a view with their room (r, 3), and their values (r,)."""
        scale = 1.0 / (s - 1)
        whole = m * (m - 1) / 2
        first, second = pairs[:, 0], pairs[:, 1]
        self._clock.charge(SECONDS_A_PAIR * len(pairs))
        value = worth - (cost[first] + cost[second]) / (m - 1) - base / whole
        bar = run.least(m) / whole - self._slack
        good = value > bar
        roots = np.column_stack((pairs[good], np.full(int(good.sum()), -1)))
        if not len(stays.tables.room):
            return roots.astype(np.int64), value[good]
        count = positive_stays(
            PairValues(self._problem.scores, self._problem.bonus, scale),
            cost,
            1.0 / (m - 1),
            stays.tables,
            (base + stays.base) / whole,
            bar,
            self._stay_roots,
            self._stay_values,
        )
        if count > len(self._stay_roots):
            run.is_whole = False
            count = len(self._stay_roots)
        return (
            np.concatenate((roots, self._stay_roots[:count])).astype(np.int64),
            np.concatenate((value[good], self._stay_values[:count])),
        )

    def _pair_values(self, first: IntArray, second: IntArray, scale: float) -> FloatArray:
        problem = self._problem
        value: FloatArray = problem.scores[first, second] * scale
        return value + problem.bonus[first, second] if len(problem.bonus) else value

    def _put(
        self, run: PricingRun, groups: IntArray, values: FloatArray, cheapest: int, stays: Stays
    ) -> None:
        """Store groups whose last column is the room in which they stay, -1 for none."""
        fixed = groups[:, -1] >= 0
        row = np.where(fixed, np.append(stays.rows, -1)[groups[:, -1]], -1)
        kind = np.where(fixed, np.append(self._problem.row_kind, -1)[row], cheapest)
        run.put(groups[:, :-1], kind, row, values)

    def bound_of(self, prices: Prices, share: FloatArray) -> float:
        """Return the dual value with the price of every atom raised by its share."""
        problem = self._problem
        kinds, rows = np.maximum(prices.kinds, 0.0), np.maximum(prices.rows, 0.0)
        terms = np.concatenate((self._raised(prices, share), problem.count * kinds, rows))
        size = float(np.abs(terms).sum()) + self._largest
        return float(terms.sum()) + sum_allowance(len(terms), size)

    def _raised(self, prices: Prices, share: FloatArray) -> FloatArray:
        """Return the prices of atoms plus their shares; at least the value of leaving each out."""
        return np.maximum(prices.atoms + share, -self._problem.penalty)

    def _pair_shares(self, prices: Prices) -> FloatArray:
        """Return half the sum of the best pairs of each atom, a share that covers every group."""
        problem = self._problem
        run = PricingRun(prices, 0.0, self._clock, np.zeros(problem.n_atoms))
        self._search_lone_atoms(run)
        share = run.share
        out = np.empty(problem.n_atoms)
        for m, s in self._shapes:
            if m == 1:
                continue
            nodes = []
            asked = prices.kinds + problem.extra_costs(s)
            for view, kinds in self._views(s):
                price = node_prices(problem, prices.atoms, view, s)
                stays = Stays.of(problem, view, kinds, asked, prices.rows, 0.0)
                np.subtract.at(price, stays.tables.room_atom, stays.tables.room_refund)
                base = float(asked[kinds].min())
                nodes.append(price / (m - 1) + base / (m * (m - 1)))
            if len(nodes) * problem.n_atoms**2 > MOST_PAIRS_READ:  # weaker, but only one pass
                nodes = [np.min(nodes, axis=0)]
            for node in nodes:
                self._clock.charge(SECONDS_AN_ENTRY * problem.n_atoms**2)
                largest_sums(problem.scores, problem.bonus, node, 1 / (s - 1), m - 1, out)
                share = np.maximum(share, out + self._slack * m)
        return share
