"""Column generation: bounds from prices above, whole placements below, until they meet."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import BoolArray, IntArray
from engine.core.checkpoint import SavedState, State
from engine.core.gap import relative_gap
from engine.rooms.alike import place_by_types
from engine.rooms.annealing import anneal
from engine.rooms.clock import SearchClock
from engine.rooms.closing import solve_whole
from engine.rooms.columns import Columns
from engine.rooms.cuts import NONE, violated_cuts
from engine.rooms.descent import descend
from engine.rooms.dive import dive
from engine.rooms.doubles import is_matching, solve_matching
from engine.rooms.ejection import place_by_chains
from engine.rooms.exchange import Exchange, improve
from engine.rooms.master import INTERIOR_TOLERANCE, SMALL, Master
from engine.rooms.polish import Polish
from engine.rooms.prices import Prices
from engine.rooms.pricing import Priced, Pricer
from engine.rooms.pricing_run import MOST_WORK
from engine.rooms.problem import Groups, RoomProblem
from engine.rooms.rounding import first_fit
from engine.rooms.seating import seat_groups
from engine.rooms.tightening import price_with_cuts

SMOOTHING = 0.8  # share of the way from the master's prices to the best ones so far, at first
LEAST_SMOOTHING = 0.1
LP_SHARE = 0.2  # of the wanted gap: how near the master's value its bound must come
COLUMNS_A_ROUND = 6_000
FEW_COLUMNS = 0.1  # an atom, from a heuristic search: then an exact one is tried
MOST_COLUMNS, KEPT_COLUMNS = 12, 8  # an atom: beyond the first only so many of the best stay
DIVE_COLUMNS = 12  # an atom that a dive begins with
CUT_ROUNDS = 12
LEAST_CUT_PRICE = 1e-7  # nats; a cut that costs less is given up
FIRST_REASSIGNMENTS = 30
SLOWEST = 2  # later tries of annealing, each slower than the one before
ANNEALING_SHARE = 0.15  # of the time left, for these
CLOSED_ANYWAY = 60  # atoms up to which the gap is closed after every dive
CLOSING_SECONDS = 10.0
TYPED_SHARE = 0.5  # of the time, for the programme of students who are alike
IDLE_STEPS = 25  # fillings in a row that gain nothing, at least
IDLE_SHARE = 0.05  # of the atoms, where they are many: some rooms were not looked at by then
QUIET_DIVES = 3  # dives without a better placement before the search gives up

Report = Callable[[str, float, float], None]  # sentence, value of the best placement, bound: told


@dataclass(slots=True)
class Best:
    """The best whole placement so far, and the bound: values of the problem, penalties included.

    Gaps are told without them: ``outside`` is what those without a room cost (at most 0), and
    ``offset`` what is added to the value of every placement, minus the price of all moves.
    """

    room_of: IntArray
    value: float
    bound: float = np.inf
    outside: float = 0.0
    offset: float = 0.0

    def take(self, exchange: Exchange) -> bool:
        """Keep a placement that is better; whether it was.

        Its worth is added up anew: sums that much was added to and taken from are a little off.
        """
        if exchange.value <= self.value:
            return False
        exchange.start(exchange.room_of)
        value = exchange.value
        if value <= self.value:
            return False
        self.room_of, self.value = exchange.room_of.copy(), value
        self.outside = exchange.value_outside
        return True

    @property
    def gap(self) -> float:
        """Relative gap between the two."""
        return self.gap_to(self.value)

    def gap_to(self, value: float) -> float:
        """Relative gap between the bound and a value, both as they are told."""
        return relative_gap(self.as_told(self.bound), self.as_told(value))

    def as_told(self, value: float) -> float:
        """Return a value without what those outside cost, and with the price of moves."""
        return value - self.outside + self.offset


class Search:
    """One run over one problem; holds what a later run can go on from."""

    def __init__(
        self,
        problem: RoomProblem,
        *,
        penalty: float,
        gap: float,
        rng: np.random.Generator,
        clock: SearchClock,
        report: Report,
        on_round: Callable[["Search"], None] = lambda search: None,
        offset: float = 0.0,
    ) -> None:
        self._on_round = on_round
        self.problem, self._rng, self._clock, self._report = problem, rng, clock, report
        self._wanted, self._penalty = gap, penalty
        self._feasible: Prices | None = None
        self._asked = np.inf  # the bound that these prices prove by themselves, without cuts
        self.exchange = Exchange(problem, penalty)
        self.columns = Columns(problem)
        self._pricer = Pricer(problem)
        self._master = Master(problem, self.columns, penalty)
        self._cuts = NONE
        self.best = Best(
            self.exchange.room_of.copy(),
            self.exchange.value,
            outside=self.exchange.value_outside,
            offset=offset,
        )
        self.prices = Prices.zero(problem)
        self._duals = self.prices  # of the last master that was solved
        self._work = MOST_WORK  # of one exact search; more where less proved nothing

    @property
    def is_done(self) -> bool:
        """Whether the gap is small enough."""
        return self.best.gap <= self._wanted

    @property
    def _size_told(self) -> float:
        """What relative gaps are shares of, nats."""
        return max(abs(self.best.as_told(self.best.value)), 1.0)

    def run(self, start: IntArray | None = None, saved: SavedState | None = None) -> None:
        """Search until the gap is reached, nothing more is found, or time is up.

        ``start`` (n,) is a placement to begin from; ``saved`` the state of an earlier run.
        """
        if (is_matching(self.problem) and self._match()) or self._place_by_types():
            return
        if saved is None:
            self._start(start)
            self._descend()
        else:
            self._go_on_from(saved)
        target = self._wanted * LP_SHARE
        quiet = 0
        while not self._clock.is_over() and not self.is_done and quiet < QUIET_DIVES:
            is_optimal = self._generate(target)
            if self._clock.is_over() or self.is_done:
                return
            self._tighten()
            if self._clock.is_over() or self.is_done:
                return
            quiet = 0 if self._dive() else quiet + 1
            if not is_optimal:
                quiet = 0
            target /= 2.0
            if self.problem.n_atoms <= CLOSED_ANYWAY or quiet == QUIET_DIVES:
                self._close()

    def _match(self) -> bool:
        """Solve doubles by the matching oracle; False where no perfect matching exists."""
        found = solve_matching(self.problem)
        if found is None:
            return False
        self.exchange.start(found[0])
        self.best.take(self.exchange)
        self.best.bound = max(found[1], self.best.value)
        self._tell("Pairing everybody")
        return True

    def _place_by_types(self) -> bool:
        """Place students of few types by an integer programme; whether nothing is left to do."""
        limit = TYPED_SHARE * self._clock.left
        found = place_by_types(
            self.problem, self._penalty, self._wanted, limit, self._clock.is_over
        )
        if found is None:
            return False
        self._place(found.groups)
        self.best.take(self.exchange)
        self.columns.add(*found.groups)
        self.best.bound = max(found.bound, self.best.value)
        self._tell("Comparing placements of students who are alike")
        return found.is_best or self.is_done

    def state(self) -> State:
        """Return what a later run goes on from: placement, prices and groups."""
        prices, columns = self.prices, self.columns
        return {
            "room_of": self.best.room_of,
            "atoms": prices.atoms,
            "kinds": prices.kinds,
            "rows": prices.rows,
            "members": columns.members.astype(np.int32),
            "kind": columns.kind.astype(np.int32),
            "row": columns.row.astype(np.int32),
        }

    def _go_on_from(self, saved: SavedState) -> None:
        """Take up a state; its bound is proved anew."""
        self.exchange.start(np.asarray(saved["room_of"], dtype=np.int64))
        self.best.take(self.exchange)
        groups = (np.asarray(saved[x], dtype=np.int64) for x in ("members", "kind", "row"))
        self.columns.add(*groups)
        self.columns.add(*self._groups_of_best())
        self.prices = Prices(*(np.asarray(saved[x]) for x in ("atoms", "kinds", "rows")))
        self.best.bound = min(self.best.bound, self._pricer.quick_bound(self.prices))
        self._tell("Going on from where it was left")

    def _start(self, start: IntArray | None) -> None:
        """Find a first placement by exchange; every one on the way gives columns."""
        if start is None:
            start = np.full(self.problem.n_atoms, self.exchange.outside, dtype=np.int64)
        self.exchange.start(start)
        self._seat_the_rest()
        self.best.take(self.exchange)
        self.columns.add(*self.exchange.groups())
        while self.exchange.swap(self._rng) > 0.0:
            self.columns.add(*self.exchange.groups())
            if self._clock.is_over():
                break
        for _ in range(FIRST_REASSIGNMENTS):
            self.exchange.reassign(self._rng)
            self.columns.add(*self.exchange.groups())
            if self._clock.is_over():
                break
        if anneal(self.exchange, self._rng, self._clock.is_over):
            self.columns.add(*self.exchange.groups())
        self.best.take(self.exchange)
        self._tell("Looking for a first placement")
        self._anneal()

    def _seat_the_rest(self) -> None:
        """Give those who are outside a bed if there is a way."""
        self.exchange.place_greedily(self._rng)
        place_by_chains(self.exchange, self._rng, self._clock.is_over)

    def _descend(self) -> None:
        """Let prices descend from each atom's part of its room, and prove what they are worth."""
        start = Prices.shared_worth(self.problem, self._groups_of_best())
        seen = Columns(self.problem)
        prices = descend(self.problem, self._pricer, seen, start, self._clock.is_over)
        few = seen.best(prices, KEPT_COLUMNS)
        self.columns.add(few.members, few.kind, few.row)
        found = self._pricer.search(
            prices, is_exact=True, tolerance=1e-9, should_stop=self._clock.is_over
        )
        self._add_best(found)
        self.prices, self._feasible, self._asked = prices, found.feasible, found.bound
        pairs = self._pricer.quick_bound(prices)
        self.best.bound = min(self.best.bound, found.bound, pairs)
        self._round(prices)

    def _round(self, prices: Prices) -> None:
        """Make a whole placement of the groups that are worth most above their prices."""
        self._place(self.columns.among(first_fit(self.problem, self.columns, prices)))
        self._seat_the_rest()
        while self.exchange.swap(self._rng) > 0.0 and not self._clock.is_over():
            self.columns.add(*self.exchange.groups())
        self.best.take(self.exchange)
        self._tell("Seating groups at first prices")

    def _groups_of_best(self) -> Groups:
        self.exchange.start(self.best.room_of)
        return self.exchange.groups()

    def _generate(self, target: float) -> bool:
        """Add columns until the master's value is proved to ``target``; whether it was."""
        smoothing, is_near, is_barren = SMOOTHING, True, False
        while not self._clock.is_over():
            self._master.add_new_columns()
            at_corner = target * self._size_told < 10.0 * INTERIOR_TOLERANCE * abs(self.best.value)
            if not self._master.solve(self._clock.left, self._clock.is_over, at_corner=at_corner):
                return False
            value, self._duals = self._master.value, self._master.prices()
            if self.best.gap_to(value) <= target or self.is_done:
                return True
            self._drop_poor_columns()
            prices = self._duals.toward(self.prices, smoothing)
            floor = target * self._size_told / (4.0 * max(self.problem.n_atoms, 1))
            found = self._price(prices, floor, is_exact=is_near)
            added = self._add_best(found)
            self._tell("Proving how good a placement can be")
            if not is_near:
                is_barren, is_near = added == 0, added < FEW_COLUMNS * self.problem.n_atoms
            elif not found.is_whole:
                # Too far for a proof. A few groups of everybody bring the prices nearer.
                self._work *= 2
                if is_barren and added == 0:
                    return False
                is_near, smoothing = False, (1.0 + smoothing) / 2.0
            elif added > 0:
                smoothing = max(0.6 * smoothing, LEAST_SMOOTHING)
            elif smoothing > 0.0:
                smoothing = 0.0
            else:
                return True
        return False

    def _price(self, prices: Prices, floor: float, *, is_exact: bool) -> Priced:
        """Search at given prices, and keep the bound that this proves."""
        found = self._pricer.search(
            prices,
            is_exact=is_exact,
            tolerance=floor,
            should_stop=self._clock.is_over,
            most_work=self._work,
        )
        if found.bound < self.best.bound:
            self.best.bound, self.prices = found.bound, prices
            self._feasible, self._asked = found.feasible, found.bound
        return found

    def _tighten(self) -> None:
        """Cut off mixtures that no placement comes near, and prove the bound that is left."""
        problem = self.problem
        if problem.n_atoms <= CLOSED_ANYWAY:
            return  # all placements that could be better are compared after the dive
        for _ in range(CUT_ROUNDS):
            master = Master(problem, self.columns, self._penalty, cuts=self._cuts)
            master.add_new_columns()
            if not master.solve(self._clock.left, self._clock.is_over, at_corner=False):
                return
            prices = master.cut_prices()
            found = price_with_cuts(
                problem, self._pricer, master.prices(), self._cuts, prices, self._clock.is_over
            )
            if found is None:
                return
            self.best.bound = min(self.best.bound, found.bound)
            shares = master.shares()[1]
            new = violated_cuts(self.columns.members, shares, problem.n_atoms)
            few = slice(0, COLUMNS_A_ROUND)
            added = self.columns.add(found.members[few], found.kind[few], found.row[few])
            self._tell("Proving how good a placement can be")
            if self.is_done or not (added or len(new)):
                return
            self._cuts = np.concatenate((self._cuts[prices > LEAST_CUT_PRICE], new))

    def _drop_poor_columns(self) -> None:
        """Forget groups that prices rule out: a master's time grows with what it never uses.

        Those that its solution mixes are worth their prices, and stay.
        """
        n = self.problem.n_atoms
        if n <= SMALL or len(self.columns) <= MOST_COLUMNS * n:
            return
        self.columns = self.columns.best(self._duals, KEPT_COLUMNS)
        self.columns.add(*self._groups_of_best())
        self._master = Master(self.problem, self.columns, self._penalty)

    def _add_best(self, found: Priced) -> int:
        """Add the groups worth most above their prices; return how many were new."""
        order = np.argsort(-found.reduced, kind="stable")[:COLUMNS_A_ROUND]
        return self.columns.add(found.members[order], found.kind[order], found.row[order])

    def _anneal(self) -> None:
        """Swap at random again, slower each time, before any proof takes the time."""
        is_over = self._clock.part(ANNEALING_SHARE * self._clock.left)
        for tries in range(1, SLOWEST + 1):
            if anneal(self.exchange, self._rng, is_over, tries):
                self.best.take(self.exchange)
                self.columns.add(*self.exchange.groups())
                self._tell("Swapping at random")

    def _dive(self) -> bool:
        """Make a whole placement of the mixture, improve it, keep it if better."""
        few = self.columns.best(self._duals, DIVE_COLUMNS)
        groups = dive(
            self.problem, few, self._penalty, self._find_groups, self._clock.is_over, self._cuts
        )
        self.columns.add(few.members, few.kind, few.row)
        self._place(groups)
        self._seat_the_rest()
        improve(self.exchange, self._rng, should_stop=self._clock.is_over)
        self.columns.add(*self.exchange.groups())
        is_better = self.best.take(self.exchange)
        self._drop_poor_columns()  # goes back to the best placement
        self._tell("Making a whole placement")
        return self._polish() or is_better

    def _find_groups(self, is_taken: BoolArray, prices: Prices) -> Groups:
        """Price for a dive: groups of the atoms that are left."""
        open_ = Prices(np.where(is_taken, np.inf, prices.atoms), prices.kinds, prices.rows)
        found = self._pricer.search(open_, is_exact=False, tolerance=1e-7)
        order = np.argsort(-found.reduced, kind="stable")[:COLUMNS_A_ROUND]
        return found.members[order], found.kind[order], found.row[order]

    def _polish(self) -> bool:
        """Fill a few rooms anew, again and again, while that pays; whether it ever did."""
        if self._feasible is None or self._clock.is_over():
            return False
        self.exchange.start(self.best.room_of)
        polish = Polish(self.exchange, self.columns, self._feasible, self._penalty)
        idle, is_better = 0, False
        most_idle = max(IDLE_STEPS, round(IDLE_SHARE * self.problem.n_atoms))
        while idle < most_idle and not self._clock.is_over() and not self.is_done:
            idle = 0 if polish.step(self._rng) > 0.0 else idle + 1
            if self.best.take(self.exchange):
                is_better = True
                self._tell("Filling some rooms again")
        return is_better

    def _close(self) -> None:
        """Solve the whole model over all groups that a better placement could use, if few."""
        if self._feasible is None or self._clock.is_over():
            return
        is_cut = self.problem.n_atoms > CLOSED_ANYWAY  # then the bound may lie below the prices'
        shortfall = (self._asked if is_cut else self.best.bound) - self.best.value
        groups = self._pricer.all_within(self._feasible, shortfall, self._clock.is_over)
        if groups is None:
            return
        limit = min(self._clock.left, CLOSING_SECONDS)
        chosen, bound = solve_whole(self.problem, groups, self._penalty, limit)
        if len(chosen):
            members, kind, row = (column[chosen] for column in groups)
            self.columns.add(members, kind, row)
            self._place((members, kind, row))
            self.best.take(self.exchange)
        self.best.bound = min(self.best.bound, max(bound, self.best.value))
        self._tell("Comparing all placements that could be better")

    def _place(self, groups: Groups) -> None:
        """Go on from groups in rooms of their kinds; the rest is outside."""
        outside = self.exchange.outside
        room_of = np.full(self.problem.n_atoms, outside, dtype=np.int64)
        seat_groups(self.exchange, room_of, np.arange(outside), groups)
        self.exchange.start(room_of)

    def _tell(self, sentence: str) -> None:
        best = self.best
        self._report(sentence, best.as_told(best.value), best.as_told(best.bound))
        self._on_round(self)
