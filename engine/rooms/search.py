"""Column generation: upper bounds from prices, lower bounds from placements, until they meet."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.checkpoint import SavedState, State
from engine.rooms.alike import place_by_types
from engine.rooms.annealing import HOT, WARM, Annealing
from engine.rooms.beds import Beds
from engine.rooms.best import Best
from engine.rooms.clock import SearchClock
from engine.rooms.closing import solve_whole
from engine.rooms.columns import Columns
from engine.rooms.cuts import NONE, violated_cuts
from engine.rooms.dive import dive
from engine.rooms.doubles import is_matching, solve_matching
from engine.rooms.exchange import Exchange, improve
from engine.rooms.master import INTERIOR_TOLERANCE, SMALL, Master
from engine.rooms.polish import Polish, PolishSize
from engine.rooms.prices import Prices
from engine.rooms.pricing import Priced, Pricer
from engine.rooms.pricing_run import MOST_WORK
from engine.rooms.problem import Groups, RoomProblem
from engine.rooms.rounding import first_fit
from engine.rooms.seating import seat_groups
from engine.rooms.tightening import price_with_cuts

SMOOTHING = 0.5  # initial share of the step from the master's prices to the best ones so far
FIRST_STRAY = 1.0  # deviations of the scores by which first prices may be below shares of a room
UNPLACED = 1e-3  # share of an atom from which its price may fall further
LEAST_SMOOTHING = 0.1
LP_SHARE = 0.2  # of the requested gap: how near the bound must come to the master's value
COLUMNS_A_ROUND = 6_000
LONGEST = 64  # factor on the work of the first exact search, up to which later ones are longer
FEW_COLUMNS = 0.4  # per atom, from a heuristic search: with fewer, an exact search follows
MOST_COLUMNS, KEPT_COLUMNS = 12, 8  # per atom: above the first, drop all but the second
DIVE_COLUMNS = 12  # per atom at the start of a dive
CUT_ROUNDS = 12
MANY = 1_000  # atoms from which cuts, which take a second a round, wait until the gap is small
NEAR_FOR_CUTS = 0.01  # relative gap: cuts close less than that
LEAST_CUT_PRICE = 1e-7  # nats; cheaper cuts are dropped
BEDS_SECONDS = 10.0  # counted seconds, to find beds if pairs who never share break the plan
CLOSE = 1e-6  # tolerance on whole numbers of people
CLOSED_ANYWAY = 60  # number of atoms up to which the gap is closed after every dive
FEW_GROUPS = 10_000  # with more atoms: groups up to which it is; 8,000 took 3 counted seconds
CLOSING_SECONDS = 10.0  # counted seconds
TYPED_SHARE = 0.5  # of the time limit, for the programme over types of students
POLISH_STEPS = 10  # in one stage
IDLE_STEPS = 25  # least number of fillings in a row without gain before polishing ends
IDLE_SHARE = 0.05  # of the atoms, for large problems: fewer fillings would miss some rooms
QUIET_DIVES = 3  # dives without a better placement before the search gives up

STATE_VERSION = 2  # of saved states: raise it when a stage or a field of them gets another name
END = ""  # in place of the name of a stage: none is left
Report = Callable[[str, float, float], None]  # sentence, value of the best placement, bound


@dataclass(slots=True)
class Course:
    """State of a search between two stages, without placements, prices and groups.

    Parameters
    ----------
    stage : str, name of the next stage, or END.
    target : float, relative gap to which the relaxation is solved next.
    price_bound : float, bound that the feasible prices prove by themselves, without cuts.
    most_work : int, entries read in one exact pricing; doubled if that proved nothing.
    smoothing, is_near, is_barren : settings for pricing the next round of columns.
    estimate : float, least bound estimated by heuristic pricing.
    is_optimal : whether the last relaxation was solved to its target.
    cut_rounds : int, rounds of cuts since.
    is_better, idle_steps : whether this dive improved the placement; fillings without gain.
    quiet : int, dives in a row without a better placement.
    compared : float, shortfall of the last programme over all groups; it would end the same again.
    """

    stage: str
    target: float
    price_bound: float = np.inf
    most_work: int = MOST_WORK
    smoothing: float = SMOOTHING
    is_near: bool = False
    is_barren: bool = False
    estimate: float = np.inf
    is_optimal: bool = False
    cut_rounds: int = 0
    is_better: bool = False
    idle_steps: int = 0
    quiet: int = 0
    compared: float = np.inf


class Search:
    """One run over one problem, as a list of stages.

    Between two stages, `state` holds everything that later stages depend on: a resumed search takes
    the same steps as one that was never interrupted.
    """

    def __init__(
        self,
        problem: RoomProblem,
        *,
        gap: float,
        rng: np.random.Generator,
        clock: SearchClock,
        report: Report,
        on_stage: Callable[["Search"], None] = lambda search: None,
        offset: float = 0.0,
        scores_count: bool = True,
    ) -> None:
        self._on_stage, self._scores_count = on_stage, scores_count
        self.problem, self._rng, self.clock, self._report = problem, rng, clock, report
        self._wanted = gap
        self.exchange = Exchange(problem, clock)
        self.columns = Columns(problem)
        self._pricer = Pricer(problem, clock)
        self._cuts = NONE
        self.best = Best.of(self.exchange, offset)
        with clock.without_limit():
            self.beds = Beds(self.exchange)
        self.prices = Prices.zero(problem)
        self._duals = self.prices  # of the last master that was solved
        self._feasible: Prices | None = None
        self._penalty = problem.penalty.copy()  # of the master; see `Master.set_penalties`
        self._stray = np.zeros(problem.n_atoms)
        self._size = PolishSize.of(problem)
        self._course = Course("pair", gap * LP_SHARE)
        self._kept: Best | None = None  # found by an interrupted run after its last complete stage

    @property
    def is_done(self) -> bool:
        """Return True if as many people as possible have a bed, and the gap is small enough."""
        best, beds = self.best, self.beds
        is_full = beds.holds(best.n_outside) and beds.holds_levels(best.levels)
        return (is_full or not self._scores_count) and best.gap <= self._wanted

    @cached_property
    def _annealing(self) -> Annealing:
        return Annealing(self.problem)

    @property
    def _size_told(self) -> float:
        """Denominator of relative gaps, nats."""
        return max(abs(self.best.as_told(self.best.value)), 1.0)

    def run(self, start: IntArray | None = None, saved: SavedState | None = None) -> None:
        """Search until the gap is reached, nothing more is found, or a limit is reached.

        ``start`` (n,) is an initial placement; ``saved`` the state of an interrupted run. Stages
        follow each other in the order of the list, unless one returns the name of the next.
        """
        stages: dict[str, Callable[[], str | None]] = {
            "pair": self._pair,
            "beds": self._seat_everybody,
            "types": self._place_by_types,
            "exchange": self._improve_by_exchange,
            "price": self._set_first_prices,
            "generate": self._generate,
            "round": self._round,
            "tighten": self._tighten,
            "dive": self._dive,
            "polish": self._polish,
            "close": self._close,
        }
        after = dict(pairwise([*stages, END]))
        if saved is not None:
            self._restore(saved)
        elif start is not None:
            self.exchange.start(start)
            if self.problem.must_fill:
                self.exchange.empty_rooms_with_free_beds()
            self.best.take(self.exchange)
        while not self.is_at_end:
            self._on_stage(self)
            chosen = stages[self._course.stage]()
            following = after[self._course.stage] if chosen is None else chosen
            if following != "beds" and self.clock.is_over():
                break
            self._course.stage = END if self.is_done else following
        if self._kept is not None and not self._kept.is_as_good_as(self.best):
            self.exchange.start(self._kept.room_of)
            self.best.take(self.exchange)

    @property
    def is_at_end(self) -> bool:
        """Return True if no stage is left."""
        return self._course.stage == END

    def state(self) -> State:
        """Return the state from which an interrupted run resumes, between two stages."""
        best, columns = self.best, self.columns
        room_of = np.array(best.room_of, dtype=np.int32)
        return {
            "room_of": room_of,
            "bound": np.array(best.bound),
            "members": columns.members.astype(np.int32),
            "kind": columns.kind.astype(np.int32),
            "row": columns.row.astype(np.int32),
            "cuts": self._cuts,
            **self.prices.state("prices"),
            **self._duals.state("duals"),
            **({} if self._feasible is None else self._feasible.state("feasible")),
            "penalty": self._penalty.copy(),
            "stray": self._stray.copy(),
            "course": np.array(json.dumps([asdict(self._course), asdict(self._size)])),
            "beds": np.array([self.beds.most_with_needs, self.beds.most_people]),
            "random": np.array(json.dumps(self._rng.bit_generator.state)),
            "spent": np.array([self.clock.work, self.clock.seconds]),
        }

    def _restore(self, saved: SavedState) -> None:
        """Restore a saved state, and compute the value of its placement again."""
        self.exchange.start(np.asarray(saved["room_of"], dtype=np.int64))
        self.best.take(self.exchange)
        self.best.bound = float(saved["bound"])
        groups = (np.asarray(saved[x], dtype=np.int64) for x in ("members", "kind", "row"))
        self.columns.add(*groups)
        self._cuts = np.asarray(saved["cuts"], dtype=np.int64)
        self.prices = Prices.restore(saved, "prices")
        self._duals = Prices.restore(saved, "duals")
        if "feasible_atoms" in saved:
            self._feasible = Prices.restore(saved, "feasible")
        self._penalty = np.asarray(saved["penalty"], dtype=np.float64)
        self._stray = np.asarray(saved["stray"], dtype=np.float64)
        course, size = json.loads(str(saved["course"]))
        self._course, self._size = Course(**course), PolishSize(**size)
        self.beds.most_with_needs, self.beds.most_people = np.asarray(saved["beds"]).tolist()
        self._rng.bit_generator.state = json.loads(str(saved["random"]))
        self.clock.restore(*np.asarray(saved["spent"]).tolist())
        if "kept" in saved:
            self.exchange.start(np.asarray(saved["kept"], dtype=np.int64))
            self._kept = replace(self.best)
            self._kept.take(self.exchange)
        self._tell("Going on from where it was left")

    def _pair(self) -> str | None:
        """Solve a problem of doubles by the matching oracle, if a perfect matching exists."""
        if is_matching(self.problem):
            found = solve_matching(self.problem)
            if found is not None:
                self.exchange.start(found[0])
                self.best.take(self.exchange)
                self.best.bound = max(found[1], self.best.value)
                self._tell("Pairing everybody")
                return END
        return None

    def _seat_everybody(self) -> None:
        """Give a bed to everybody who can have one, by the plan or by a separate search.

        The plan is seated without a limit: it takes seconds for thousands of students.
        """
        self.exchange.start(self.best.room_of)
        with self.clock.without_limit():
            if self.best.n_outside[1] == self.problem.sizes.sum():
                self.beds.begin(self._rng)
            else:
                self.beds.complete(self._rng)
            self.best.take(self.exchange)
            if not self.beds.holds_levels(self.best.levels):
                self.beds.begin(self._rng)
        self.best.take(self.exchange)
        self._tell("Finding a bed for everybody")
        if not self.beds.holds(self.best.n_outside) and self._scores_count:
            self._search_beds()

    def _search_beds(self) -> None:
        """Seat more people if pairs who never share break the plan, or prove that it is impossible.

        A proof without scores holds with scores too.
        """
        is_small = self.problem.n_atoms <= CLOSED_ANYWAY
        clock = self.clock.child(None if is_small else BEDS_SECONDS)
        found = search_beds(self.problem, self.best.room_of, self._rng.spawn(1)[0], clock)
        self.exchange.start(found.best.room_of)
        self.best.take(self.exchange)
        if found.best.bound < found.best.value + 1.0 - CLOSE:  # no whole number is between
            needs, people = self.best.n_outside
            self.beds.most_with_needs = int(self.problem.with_needs.sum()) - needs
            self.beds.most_people = int(self.problem.sizes.sum()) - people
        self._tell("Finding a bed for everybody")

    def _place_by_types(self) -> str | None:
        """Place students of few types by an integer programme."""
        limit = TYPED_SHARE * self.clock.limit
        found = place_by_types(self.problem, self._wanted, self.clock, limit)
        if found is None:
            return None
        self._place(found.groups)
        self.best.take(self.exchange)
        self.columns.add(*found.groups)
        self.best.bound = min(self.best.bound, max(found.bound, self.best.value))
        self._tell("Comparing placements of students who are alike")
        return END if found.is_best else None

    def _improve_by_exchange(self) -> None:
        """Improve the first placement by exchanges; add the groups of every step to the columns."""
        self.exchange.start(self.best.room_of)
        self.columns.add(*self.exchange.groups())
        while self.exchange.swap(self._rng) > 0.0:
            self.columns.add(*self.exchange.groups())
            if self.clock.is_over():
                break
        self.best.take(self.exchange)
        self._tell("Looking for a first placement")
        self._anneal(HOT)

    def _anneal(self, start: float) -> None:
        """Anneal, improve the result by exchanges, and keep the groups on the way as columns."""

        def note() -> None:
            self.columns.add(*self.exchange.groups())

        self._annealing.run(self.exchange, self._rng, self.clock.is_over, start=start, on_step=note)
        while self.exchange.swap(self._rng) > 0.0 and not self.clock.is_over():
            pass
        self.exchange.assign_rooms()
        note()
        self.best.take(self.exchange)
        self._tell("Swapping at random")

    def _set_first_prices(self) -> None:
        """Start from each atom's share of its room's value, and let first prices stray little."""
        self.prices = Prices.shared_worth(self.problem, self._groups_of_best())
        if not self.best.n_outside[1] and self._annealing.deviation > 0.0:
            self._stray[:] = FIRST_STRAY * self._annealing.deviation
            self._soften()
        if self.problem.n_atoms == 1:  # at these prices the bound of one atom is exact
            self._price(self.prices, 1e-12, is_exact=True)

    def _soften(self) -> None:
        """Compute the master's penalties: less than the true ones where prices may not stray."""
        first = Prices.shared_worth(self.problem, self._groups_of_best()).atoms
        self._penalty = np.minimum(self.problem.penalty, self._stray - first)

    def _generate(self) -> str | None:
        """Add columns until the master's value is proved to the target, by one round or all rounds.

        If the master keeps its basis between rounds, all rounds are one stage.
        """
        course = self._course
        master = Master(self.problem, self.columns, self.clock)
        is_small = self.problem.n_atoms <= SMALL
        while True:
            is_over = self._generate_round(master)
            if is_over is not None:
                course.is_optimal, course.cut_rounds = is_over, 0
                course.smoothing, course.is_near, course.is_barren = SMOOTHING, True, False
                return None
            if not is_small or self.clock.is_over():
                return "generate"

    def _generate_round(self, master: Master) -> bool | None:
        """Solve the master and price; return whether the target is reached, None to continue."""
        course = self._course
        master.add_new_columns()
        master.set_penalties(self._penalty)
        share = course.target * self._size_told
        at_corner = share < 10.0 * INTERIOR_TOLERANCE * abs(self.best.value)
        if not master.solve(at_corner=at_corner):
            return False
        value, self._duals = master.value, master.prices()
        is_soft = self._harden(master.shares()[0])
        if (not is_soft and self.best.gap_to(value) <= course.target) or self.is_done:
            return True
        self._drop_poor_columns()
        prices = self._duals.toward(self.prices, course.smoothing)
        floor = share / (4.0 * max(self.problem.n_atoms, 1))
        found = self._price(prices, floor, is_exact=course.is_near)
        added = self._add_best(found)
        self._tell("Proving how good a placement can be")
        if is_soft and course.is_near and found.is_whole:
            return None
        if not course.is_near:
            course.is_barren = added == 0
            course.is_near = added < FEW_COLUMNS * self.problem.n_atoms
        elif not found.is_whole:
            # Too far for a proof. A few groups of every atom improve the prices.
            is_vain = added == 0 or course.most_work >= LONGEST * MOST_WORK
            if course.is_barren and is_vain:
                return False
            course.most_work = min(2 * course.most_work, LONGEST * MOST_WORK)
            course.is_near, course.smoothing = False, (1.0 + course.smoothing) / 2.0
        elif added > 0:
            course.smoothing = max(0.6 * course.smoothing, LEAST_SMOOTHING)
        elif course.smoothing > 0.0:
            course.smoothing = 0.0
        else:
            return True
        return None

    def _harden(self, unplaced: FloatArray) -> bool:
        """Let prices of atoms that the master leaves out fall further; return whether any are."""
        short = (unplaced > UNPLACED) & (self._penalty < self.problem.penalty)
        self._stray[short] *= 2.0
        self._penalty[short] = np.minimum(
            self.problem.penalty[short], self._penalty[short] + self._stray[short] / 2.0
        )
        return bool(short.any())

    def _price(self, prices: Prices, floor: float, *, is_exact: bool) -> Priced:
        """Search at given prices, and keep the bound that this proves."""
        work = self._course.most_work
        found = self._pricer.search(prices, is_exact=is_exact, tolerance=floor, most_work=work)
        if found.bound < self.best.bound:
            self.best.bound, self.prices = found.bound, prices
            self._feasible, self._course.price_bound = found.feasible, found.bound
        if not is_exact and found.estimate < self._course.estimate:
            self._course.estimate, self.prices = found.estimate, prices
        return found

    def _tighten(self) -> str | None:
        """Add cuts against mixtures that no placement attains, and prove the remaining bound."""
        problem, course = self.problem, self._course
        is_far = problem.n_atoms >= MANY and self.best.gap > NEAR_FOR_CUTS
        if problem.n_atoms <= CLOSED_ANYWAY or course.cut_rounds == CUT_ROUNDS or is_far:
            return None  # for few atoms, all better placements are compared after the dive
        course.cut_rounds += 1
        master = Master(problem, self.columns, self.clock, cuts=self._cuts)
        master.add_new_columns()
        if not master.solve(at_corner=False):
            return None
        prices = master.cut_prices()
        found = price_with_cuts(problem, self._pricer, master.prices(), self._cuts, prices)
        if found is None:
            return None
        self.best.bound = min(self.best.bound, found.bound)
        shares = master.shares()[1]
        new = violated_cuts(self.columns.members, shares, problem.n_atoms)
        few = slice(0, COLUMNS_A_ROUND)
        added = self.columns.add(found.members[few], found.kind[few], found.row[few])
        self._tell("Proving how good a placement can be")
        if not (added or len(new)):
            return None
        self._cuts = np.concatenate((self._cuts[prices > LEAST_CUT_PRICE], new))
        return "tighten"

    def _drop_poor_columns(self) -> None:
        """Drop groups that prices rule out, because unused columns slow the master.

        The groups in the master's solution are worth their prices, and stay.
        """
        n = self.problem.n_atoms
        if n <= SMALL or len(self.columns) <= MOST_COLUMNS * n:
            return
        self.columns = self.columns.best(self._duals, KEPT_COLUMNS)
        self.columns.add(*self._groups_of_best())

    def _add_best(self, found: Priced) -> int:
        """Add the groups with the highest values above prices; return the number of new groups."""
        order = np.argsort(-found.reduced, kind="stable")[:COLUMNS_A_ROUND]
        return self.columns.add(found.members[order], found.kind[order], found.row[order])

    def _round(self) -> None:
        """Seat the groups that the mixture uses most, complete the placement, and anneal it."""
        master = Master(self.problem, self.columns, self.clock)
        master.add_new_columns()
        if master.solve(at_corner=False):
            chosen = first_fit(self.problem, self.columns, self._duals, master.shares()[1])
            self._place(self.columns.among(chosen))
            self.beds.complete(self._rng)
            self.columns.add(*self.exchange.groups())
            self._anneal(WARM)

    def _dive(self) -> None:
        """Build a complete placement from the mixture, improve it, and keep it if better."""
        few = self.columns.best(self._duals, DIVE_COLUMNS)
        groups = dive(self.problem, few, self._find_groups, self.clock, self._cuts)
        self.columns.add(few.members, few.kind, few.row)
        self._place(groups)
        self.beds.complete(self._rng)
        improve(self.exchange, self._rng, should_stop=self.clock.is_over)
        self.columns.add(*self.exchange.groups())
        self._course.is_better = self.best.take(self.exchange)
        self._course.idle_steps, self._size = 0, PolishSize.of(self.problem)
        self._drop_poor_columns()  # returns to the best placement
        self._tell("Making a whole placement")

    def _find_groups(self, is_taken: BoolArray, prices: Prices) -> Groups:
        """Search groups of the remaining atoms for a dive."""
        open_ = Prices(np.where(is_taken, np.inf, prices.atoms), prices.kinds, prices.rows)
        found = self._pricer.search(open_, is_exact=False, tolerance=1e-7)
        order = np.argsort(-found.reduced, kind="stable")[:COLUMNS_A_ROUND]
        return found.members[order], found.kind[order], found.row[order]

    def _polish(self) -> str | None:
        """Fill a few rooms again, several times, until enough fillings in a row gain nothing."""
        course = self._course
        most_idle = max(IDLE_STEPS, round(IDLE_SHARE * self.problem.n_atoms))
        self.exchange.start(self.best.room_of)
        if self._feasible is not None and len(self.exchange.groups()[0]):
            polish = Polish(self.exchange, self.columns, self._feasible, self._size)
            for _ in range(POLISH_STEPS):
                course.idle_steps = 0 if polish.step(self._rng) > 0.0 else course.idle_steps + 1
                if self.best.take(self.exchange):
                    course.is_better = True
                    self._tell("Filling some rooms again")
                if course.idle_steps >= most_idle or self.clock.is_over() or self.is_done:
                    break
            if course.idle_steps < most_idle:
                return "polish"
        course.quiet = 0 if course.is_better or not course.is_optimal else course.quiet + 1
        course.target /= 2.0
        return None

    def _close(self) -> str:
        """Solve the problem over all groups that a better placement could use, if they are few.

        They may be more if there are few atoms, and once dives find nothing better.
        """
        is_last = self._course.quiet == QUIET_DIVES
        following = END if is_last else "generate"
        if self._feasible is None:
            return following
        pricer = self._pricer
        if not is_last and self.problem.n_atoms > CLOSED_ANYWAY:
            pricer = Pricer(self.problem, self.clock, room_for=FEW_GROUPS)
        shortfall = self._course.price_bound - self.best.value
        if shortfall >= self._course.compared:
            return following
        groups = pricer.all_within(self._feasible, shortfall)
        if groups is None:
            return following
        self._course.compared = shortfall
        may_be_out = self._feasible.atoms + self.problem.penalty <= shortfall
        chosen, bound = solve_whole(self.problem, groups, self.clock, CLOSING_SECONDS, may_be_out)
        if len(chosen):
            members, kind, row = (column[chosen] for column in groups)
            self.columns.add(members, kind, row)
            self._place((members, kind, row))
            self.best.take(self.exchange)
        self.best.bound = min(self.best.bound, max(bound, self.best.value))
        self._tell("Comparing all placements that could be better")
        return following

    def _groups_of_best(self) -> Groups:
        self.exchange.start(self.best.room_of)
        return self.exchange.groups()

    def _place(self, groups: Groups) -> None:
        """Start from groups in rooms of their kinds; other atoms are unplaced."""
        outside = self.exchange.outside
        room_of = np.full(self.problem.n_atoms, outside, dtype=np.int64)
        seat_groups(self.exchange, room_of, np.arange(outside), groups)
        self.exchange.start(room_of)

    def _tell(self, sentence: str) -> None:
        best = self.best
        if self._kept is not None and self._kept.is_better_than(best):
            best = self._kept
        self._report(sentence, best.as_told(best.value), best.as_told(self.best.bound))


def search_beds(
    problem: RoomProblem, start: IntArray | None, rng: np.random.Generator, clock: SearchClock
) -> Search:
    """Search for beds for as many people as can have one, ignoring the scores.

    Leaving out a person costs 1, and a person with a need more than all people together. The bound
    is minus the least possible cost.
    """
    n, people = problem.n_atoms, int(problem.sizes.sum())
    none = np.empty(0, dtype=np.int64)
    bare = replace(
        problem,
        scores=np.where(np.isfinite(problem.scores), 0.0, -np.inf),
        bonus=np.empty((0, 0)),
        own_score=np.zeros(n),
        own_bonus=np.zeros(n),
        preference=np.zeros_like(problem.preference),
        penalty=problem.sizes + (people + 1.0) * problem.with_needs,
        extra_price=0.0,
        rank_price=0.0,
        stay_atom=none,
        stay_row=none,
        stay_refund=np.empty(0),
        row_kind=none,
    )
    search = Search(
        bare,
        gap=1.0 - 2.0 * CLOSE,
        rng=rng,
        clock=clock,
        report=lambda sentence, value, bound: None,
        scores_count=False,
    )
    search.run(start)
    return search
