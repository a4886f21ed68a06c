"""Primal-dual barrier method over a polytope with cuts, for fixed scores and learned weights alike.

    max <W, tau> + H_rho(tau) + mu sum log tau + mu w sum_U log r_U     A tau = 1
    r_U = (|U| - 1) / 2 - tau(E(U)),   mu -> 0

Here no odd set is an equality constraint and no marginal reaches 0, so that the method closes where
the continuation of Newton's method stalls. A step is one linear system with one unknown for each
node and set. Violated odd sets are added during the search, and the cost of mu is known. A set that
exactly one pair leaves in every matching has no interior: it holds with equality.

A polytope supplies curvature, bordered solve, odd sets and bound; this module has the loop.

Where scores are A theta and theta is learned, the statistics are one more border of the system:

    lambda theta + phi(tau) = phi(Y)

is met to the ridge's share only, as odd sets are to their room. Marginals and weights then move
together, and kinks of the likelihood, where its optimum jumps from one matching to another, cost
no more steps than other problems.

References
----------
Nocedal and Wright 2006, chapter 19 (interior-point methods).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.core.tolerances import TOLERANCES

MAX_STEPS = 400  # linear systems: 30 to 120 where continuation stalled
SHRINK = 0.2  # factor of mu after a nearly full step
PATIENCE = 15  # steps without gain at the last mu
LOOK_EVERY = 5.0  # factor of mu after which odd sets are examined again
SHORT = 1e-3  # length of a short step; after PATIENCE short steps in a row the search ends
ROOM = 0.05  # room given to an added set that has none
REPORT_EVERY = 5  # steps after which weights are reported, wherever they stand
MAX_RECENT = 8  # points kept since the last examined one, 2 n^2 numbers each
REFINEMENTS = 2  # of the change of the weights, whose system may leave out small rates


class Proof(Protocol):
    """Examination of the odd sets of a point of n nodes."""

    @property
    def holds(self) -> bool:
        """Return True if every odd-set constraint is proved to hold."""

    @property
    def violated(self) -> tuple[IntArray, ...]:
        """Nodes of violated odd sets."""

    def share_of_interior(self, n_nodes: int) -> float:
        """Return the share of the uniform point in a mixture that satisfies every odd set."""


@dataclass(frozen=True, slots=True)
class _NoSets:
    """Proof for a polytope without odd sets."""

    violated: tuple[IntArray, ...] = ()
    holds: bool = True

    def share_of_interior(self, n_nodes: int) -> float:
        """Return 0."""
        return 0.0


NO_SETS: Proof = _NoSets()


@dataclass(frozen=True, slots=True)
class BarrierState:
    """Point of the search with its duals.

    ``x`` and ``z`` = mu / x, of the polytope's shape; ``nu`` (n,) of the sums at nodes; ``member``
    (m, n) of nodes in sets, their ``room``, ``multipliers`` and whether they are equalities;
    ``theta`` (K,), the weights, if they are learned.
    """

    x: FloatArray
    z: FloatArray
    nu: FloatArray
    member: FloatArray
    room: FloatArray
    multipliers: FloatArray
    is_tight: BoolArray
    theta: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def sets(self) -> tuple[IntArray, ...]:
        """Nodes of every set."""
        return tuple(np.flatnonzero(row) for row in self.member)


@dataclass(frozen=True, slots=True)
class BarrierSolution:
    """Bounds and proof that a point of the search gives.

    ``x`` with its ``value`` and the ``upper_bound`` of the maximum, nats; ``proof`` of its odd
    sets; ``state`` with the multipliers; ``steps``, linear systems solved.
    """

    x: FloatArray
    value: float
    upper_bound: float
    proof: Proof
    state: BarrierState
    steps: int = 0

    @property
    def gap(self) -> float:
        """Return the difference of the bounds, nats."""
        return self.upper_bound - self.value


Solve = Callable[[FloatArray], FloatArray | None]


class Polytope(Protocol):
    """Problem under degree constraints, with the sums over odd sets of its points.

    Points have any shape; ``member`` (m, n) are the nodes of odd sets. ``allowed``, of the shape of
    a point, is False at entries that stay 0.
    """

    @property
    def n_nodes(self) -> int:
        """Number of nodes n."""

    @property
    def room_weight(self) -> float:
        """Weight w of the logarithm of an odd set's room, at least 1, the weight of an entry's."""

    @property
    def allowed(self) -> BoolArray:
        """Mask of the entries that may be above 0."""

    @property
    def splits_steps(self) -> bool:
        """True if the dual z takes a step length of its own, which saves steps.

        Polytopes with odd sets keep one length for all variables: two lengths cost a certificate.
        """

    @property
    def look_every(self) -> float:
        """Factor of mu after which a point is judged again, at least 1."""

    @property
    def refinements(self) -> int:
        """Number of refinements of a step's multipliers, where entries near 1 cost digits."""

    def tolerance(self, value: float) -> float:
        """Return the target gap at a value, nats."""

    def start(self) -> tuple[FloatArray, float]:
        """Return a clearly interior point and a first mu."""

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return W + grad H at an interior point."""

    def curvature(self, x: FloatArray) -> FloatArray:
        """Return minus the diagonal of the Hessian of H, of any sign."""

    def bordered(
        self, x: FloatArray, rate: FloatArray, member: FloatArray, slack: FloatArray
    ) -> Solve | None:
        """Return the solve of B diag(rate) B^T + diag(0, slack), None if there is no factor.

        B are the sums at nodes and in sets, so that right sides have shape (n + m,); where weights
        are learned, (n + m, k) too. The solve returns None where a number is not finite.
        """

    def missing(self, x: FloatArray) -> FloatArray:
        """Return 1 less the sums at nodes, (n,), accurate beside entries near 1."""

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sums at nodes, (n,)."""

    def inside(self, member: FloatArray, values: FloatArray) -> FloatArray:
        """Return the sums over the pairs inside sets, (m,)."""

    def spread(self, nu: FloatArray, member: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the multipliers that apply to every entry."""

    def room_above(self, x: FloatArray, move: FloatArray) -> float:
        """Return the largest step that keeps entries below 1."""

    def settle(self, x: FloatArray) -> FloatArray:
        """Return x with positive entries, those near 1 the remainders of their sums."""

    def find_tight(self, member: FloatArray) -> BoolArray:
        """Return which sets exactly one pair leaves in every matching."""

    def judge(self, state: BarrierState, *, is_last: bool) -> BarrierSolution:
        """Return what a state proves; unless it may be the last, costly proofs may be left out."""


@runtime_checkable
class WeightedPolytope(Polytope, Protocol):
    """Polytope whose scores are A theta, with theta learned at the same time.

    The objective is H(tau) - ||phi(Y) - phi(tau)||^2 / (2 lambda): minus that of learning.
    """

    @property
    def ridge(self) -> float:
        """Lambda > 0."""

    @property
    def observed(self) -> FloatArray:
        """Observed statistics phi(Y), shape (K,)."""

    def weigh(self, theta: FloatArray) -> None:
        """Use the scores A theta from now on."""

    def scores_of(self, theta: FloatArray) -> FloatArray:
        """Return A theta in the shape of a point, 0 at entries that stay 0."""

    def statistics(self, values: FloatArray) -> FloatArray:
        """Return phi, shape (K,)."""

    def border(self, rate: FloatArray, member: FloatArray) -> FloatArray:
        """Return B diag(rate) A, shape (n + m, K)."""

    def information(self, rate: FloatArray) -> FloatArray:
        """Return A^T diag(rate) A, (K, K); rates negligible beside lambda may be left out."""


def ignore_solution(_: BarrierSolution) -> None:
    """Do nothing with an intermediate solution."""


def solve_by_barrier(
    polytope: Polytope,
    known: tuple[IntArray, ...] = (),
    should_stop: StopCallback = never_stop,
    on_solution: Callable[[BarrierSolution], None] = ignore_solution,
) -> BarrierSolution:
    """Maximise over the polytope, from its inside.

    Parameters
    ----------
    polytope : Polytope
    known : tuple of ndarray, odd sets that may bind: sets found during the search cost steps.
    should_stop : called before every step.
    on_solution : called with the bounds and the proof of every examined point; where weights are
        learned, one of every few points is examined, so that a search cut short has some to return.

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.
    """
    search = _Search(polytope)
    state, mu = first_state(polytope)
    state = search.join(state, _rows(known, polytope.n_nodes), mu)
    trail, recent = [(state, mu)], list[tuple[BarrierState, float]]()
    best: BarrierSolution | None = None
    looked_at, improved_at, last = mu, 0, TOLERANCES.last_barrier
    n_short = 0
    reported_at = 0 if isinstance(polytope, WeightedPolytope) else MAX_STEPS
    for step in range(1, MAX_STEPS + 1):
        if should_stop():
            raise StoppedError("Cancelled.")
        following = search.step(state, mu)
        if following is None:
            break
        state, length = following
        n_short = n_short + 1 if length < SHORT else 0
        if n_short > PATIENCE:
            break
        recent = [*recent[1 - MAX_RECENT :], (state, mu)]
        if length > 0.5 and (mu * polytope.look_every <= looked_at or mu <= last):
            looked_at = mu
            found = replace(polytope.judge(state, is_last=mu <= last), steps=step)
            on_solution(found)
            reported_at = max(reported_at, step)
            before = np.inf if best is None else best.gap
            best = replace(found if best is None else _better(best, found), steps=step)
            if best.proof.holds and best.gap <= polytope.tolerance(best.value):
                break
            if best.gap < 0.9 * before:
                improved_at = step
            new = _others(_rows(found.proof.violated, polytope.n_nodes), state.member)
            if len(new):
                trail = search.go_back([*trail, *recent], np.concatenate([state.member, new]))
                (state, mu), recent = trail[-1], []
                looked_at, improved_at = mu, step
                continue
            trail, recent = [*trail, (state, mu)], []
        if step - reported_at >= REPORT_EVERY:
            on_solution(replace(polytope.judge(state, is_last=False), steps=step))
            reported_at = step
        if mu <= last and step - improved_at > PATIENCE:
            break
        if length > 0.8:
            mu = max(SHRINK * mu, last)
    if best is None or best.value == -np.inf:
        return replace(polytope.judge(state, is_last=True), steps=step)
    return best


def first_state(polytope: Polytope) -> tuple[BarrierState, float]:
    """Return the interior point without sets, of weights 0, and a first mu."""
    x, mu = polytope.start()
    theta = np.empty(0)
    if isinstance(polytope, WeightedPolytope):
        theta = np.zeros(len(polytope.observed))
    safe = np.maximum(x, TOLERANCES.smallest_entry)
    z = np.where(polytope.allowed, mu / safe, 0.0)
    n, none = polytope.n_nodes, np.empty(0)
    is_tight = np.empty(0, dtype=np.bool_)
    return BarrierState(x, z, np.zeros(n), np.empty((0, n)), none, none, is_tight, theta), mu


def _better(one: BarrierSolution, other: BarrierSolution) -> BarrierSolution:
    """Return the proved point, the better one if both are, with the closer of both bounds.

    Its state is its own: the state of the closer bound went to ``on_solution``.
    """
    bound = min(one.upper_bound, other.upper_bound)
    kept = max(one, other, key=lambda found: (found.proof.holds, found.value))
    return replace(kept, upper_bound=max(bound, kept.value))


class _Search:
    """Primal-dual steps towards the optimum of one problem."""

    def __init__(self, polytope: Polytope) -> None:
        self.polytope = polytope

    def go_back(
        self, trail: list[tuple[BarrierState, float]], member: FloatArray
    ) -> list[tuple[BarrierState, float]]:
        """Return the trail, of states and their mu, up to the last with room for all these sets.

        The room is above mu w, so that the added sets' multipliers are below one nat and the point
        stays near the centre. From a point that violates them even slightly, many steps lead back.
        """
        last = len(trail) - 1
        while last > 0 and not self._has_room(*trail[last], member):
            last -= 1
        state, mu = trail[last]
        return [*trail[:last], (self.join(state, _others(member, state.member), mu), mu)]

    def _has_room(self, state: BarrierState, mu: float, member: FloatArray) -> bool:
        """Return whether the sets that are not yet in the state have room in it."""
        new = _others(member, state.member)
        return bool((self._room(state.x, new) > self.polytope.room_weight * mu).all())

    def join(self, state: BarrierState, new: FloatArray, mu: float) -> BarrierState:
        """Return the state with added sets (m, n)."""
        is_tight = self.polytope.find_tight(new)
        room, cost = self._room(state.x, new), self.polytope.room_weight * mu
        room = np.where(is_tight, 1.0, np.where(room > cost, room, ROOM))
        return replace(
            state,
            member=np.concatenate([state.member, new]),
            room=np.concatenate([state.room, room]),
            multipliers=np.concatenate([state.multipliers, np.where(is_tight, 0.0, cost / room)]),
            is_tight=np.concatenate([state.is_tight, is_tight]),
        )

    def _room(self, x: FloatArray, member: FloatArray) -> FloatArray:
        """Return the room that the pairs inside leave in every set, shape (m,)."""
        return np.asarray((member.sum(axis=1) - 1.0) / 2.0 - self.polytope.inside(member, x))

    def step(self, state: BarrierState, mu: float) -> tuple[BarrierState, float] | None:
        """Return the next state and the share of the step taken, None if no step is possible."""
        polytope, x, member = self.polytope, state.x, state.member
        n, loose = polytope.n_nodes, ~state.is_tight
        if isinstance(polytope, WeightedPolytope):
            polytope.weigh(state.theta)
        safe = np.where(polytope.allowed, x, 1.0)
        curvature = polytope.curvature(x) + state.z / safe
        flattest = np.maximum(np.abs(curvature), TOLERANCES.smallest_curvature)
        rate = np.where(polytope.allowed, np.where(curvature < 0, -1.0, 1.0) / flattest, 0.0)
        pull = polytope.gradient(x) + mu / safe
        pulled = rate * pull
        left = self._room(x, member)
        crowding, safe_multipliers = state.room - left, np.where(loose, state.multipliers, 1.0)
        slack = np.where(loose, state.room / safe_multipliers, 0.0)
        solve = polytope.bordered(x, rate, member, slack)
        if solve is None:
            return None
        cost = polytope.room_weight * mu
        of_sets = np.where(loose, crowding + cost / safe_multipliers, -left)
        missing = polytope.missing(x)
        right = np.concatenate(
            [polytope.sums(pulled) - missing, polytope.inside(member, pulled) + of_sets]
        )
        if isinstance(polytope, WeightedPolytope):
            weighed = self._weigh(polytope, state, rate, pull, solve, right)
            if weighed is None:
                return None
            dual, of_theta, pull = weighed
        else:
            solved = solve(right)
            if solved is None:
                return None
            dual, of_theta = solved, state.theta
        move = rate * (pull - polytope.spread(dual[:n], member, dual[n:]))
        for _ in range(polytope.refinements):
            of_rooms = polytope.inside(member, move) + of_sets - slack * dual[n:]
            solved = solve(np.concatenate([polytope.sums(move) - missing, of_rooms]))
            if solved is None:
                break
            dual = dual + solved
            move = rate * (pull - polytope.spread(dual[:n], member, dual[n:]))
        nu, multipliers = dual[:n], dual[n:]
        of_z = np.where(polytope.allowed, mu / safe - state.z - state.z / safe * move, 0.0)
        of_room = np.where(loose, -crowding - polytope.inside(member, move), 0.0)
        of_multipliers = multipliers - state.multipliers
        share_of_z = largest_step(state.z, of_z)
        length = min(
            1.0,
            TOLERANCES.to_the_boundary
            * min(
                largest_step(safe, np.where(polytope.allowed, move, 0.0)),
                polytope.room_above(x, move),
                np.inf if polytope.splits_steps else share_of_z,
                largest_step(state.room, of_room),
                largest_step(state.multipliers[loose], of_multipliers[loose]),
            ),
        )
        # Nothing but the next curvature depends on z.
        far = min(1.0, TOLERANCES.to_the_boundary * share_of_z)
        of_z *= far if polytope.splits_steps else length
        following = BarrierState(
            polytope.settle(x + length * move),
            state.z + of_z,
            state.nu + length * (nu - state.nu),
            member,
            state.room + length * of_room,
            state.multipliers + length * of_multipliers,
            state.is_tight,
            state.theta + length * of_theta,
        )
        return following, length

    def _weigh(
        self,
        polytope: WeightedPolytope,
        state: BarrierState,
        rate: FloatArray,
        pull: FloatArray,
        solve: Solve,
        right: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return multipliers, the change of theta and the pull with it; None if that is singular.

        The change solves lambda (theta + change) + phi(x + move) = phi(Y); its remainder is refined
        away.
        """
        n, member, ridge = polytope.n_nodes, state.member, polytope.ridge
        border = polytope.border(rate, member)
        solved = solve(np.column_stack([right, border]))
        if solved is None:
            return None
        base, follows = solved[:, 0], solved[:, 1:]
        hessian = polytope.information(rate) - border.T @ follows
        hessian[np.diag_indices(len(hessian))] += ridge
        factor = factor_semidefinite((hessian + hessian.T) / 2.0)
        if factor is None:
            return None
        apart = polytope.observed - polytope.statistics(state.x) - ridge * state.theta
        change = cho_solve(factor, apart - polytope.statistics(rate * pull) + border.T @ base)
        for _ in range(REFINEMENTS):
            dual = base + follows @ change
            pushed = pull + polytope.scores_of(change)
            move = rate * (pushed - polytope.spread(dual[:n], member, dual[n:]))
            change = change + cho_solve(factor, apart - ridge * change - polytope.statistics(move))
        return base + follows @ change, change, pull + polytope.scores_of(change)


def largest_step(value: FloatArray, move: FloatArray) -> float:
    """Return the largest multiple of ``move`` that keeps every value at 0 or above."""
    falls = move < 0.0
    return float((value[falls] / -move[falls]).min(initial=np.inf))


def _rows(sets: tuple[IntArray, ...], n_nodes: int) -> FloatArray:
    """Return membership of nodes in sets, shape (m, n), 0 or 1."""
    member = np.zeros((len(sets), n_nodes))
    for row, nodes in zip(member, sets, strict=True):
        row[nodes] = 1.0
    return member


def _others(member: FloatArray, known: FloatArray) -> FloatArray:
    """Return the rows that are not among the known ones."""
    seen = {row.tobytes() for row in known}
    return member[[row.tobytes() not in seen for row in member]]


def factor_semidefinite(matrix: FloatArray) -> tuple[FloatArray, bool] | None:
    """Return a Cholesky factor; enlarge the diagonal if rounding requires it."""
    if not np.isfinite(matrix).all():
        return None
    size = float(np.abs(np.diag(matrix)).max())
    for boost in TOLERANCES.boosts:
        raised = matrix.copy().T  # in the order of the columns, so that it is factored in place
        raised[np.diag_indices(len(raised))] += boost * size
        try:
            factor, lower = cho_factor(raised, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return factor, bool(lower)
    return None
