"""Order in which methods for pseudomarginals of perfect matchings on dense graphs are tried.

    max <W, tau> + H_rho(tau)   over the matching polytope

`solve` reads from top to bottom, the cheapest method first; a method that does not apply, or whose
answer is not proved, leaves the problem to the next one. Learning, calibration, proposals and
evaluation all call it. They differ in their `Aim` alone: learning needs bounds of the free energy
and a start for nearby scores, the others need the probabilities of pairs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray, read_only
from engine.core.errors import CertificateError, StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.frank_wolfe import compute_frank_wolfe_marginals
from engine.inference.matching.frontier_sums import connected_parts, sum_perfect_matchings
from engine.inference.matching.messages import solve_messages
from engine.inference.matching.newton import ActiveSetState, NewtonPoint, follow_path, uniform_point
from engine.inference.matching.odd_sets import (
    EXACT_UP_TO,
    OddSetProof,
    examine_cheaply,
    examine_odd_sets,
)
from engine.inference.matching.polytope import solve_inside_polytope, solve_over_polytope
from engine.inference.matching.potentials import DenseScores, PairScores, solve_potentials
from engine.objectives.interior_start import find_interior_start
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.solvers.barrier import Proof

ROW_TOLERANCE = 1e-9  # largest error of a row sum, far below printed digits
GUIDE_TOLERANCE = 1e-4  # of marginals that a Markov chain is compared with, and corrects
PENALTY = 40.0  # nats taken off a forbidden pair, whose marginal is then negligible
PATH_END = 1e-8  # residual at the end of that continuation, nats
REPAIRED_UP_TO = 400  # maximum number of nodes for which Frank-Wolfe comes near the optimum
CLAMPED_UP_TO = 500  # maximum number of nodes whose unusable pairs are found in about 5 s
NEGLIGIBLE_GAP = 1e-6  # nats: rounding of the bound
MAX_CALLS = 1_000  # of Frank-Wolfe's oracle: within 0.01 of known optima


PROVED = OddSetProof(np.empty(0))
UNEXAMINED = OddSetProof(np.zeros(1))


class Method(StrEnum):
    """Methods for the pseudomarginals of matchings, in the order in which they are tried."""

    EXACT_SUMS = "exact sums"
    POTENTIALS = "potentials"
    MESSAGES = "messages"
    ACTIVE_SET = "active set"
    BARRIER = "barrier"
    FRANK_WOLFE = "Frank-Wolfe"


class Aim(StrEnum):
    """Needs of the caller.

    ``FREE_ENERGY``: both bounds of its optimum, and a state from which to continue at nearby
    scores. ``PROBABILITIES``: the true marginals where they can be summed, else the optimum.
    ``GUIDE``: the same to 1e-4 without proof, for a Markov chain that corrects it.
    """

    FREE_ENERGY = "free energy"
    PROBABILITIES = "probabilities"
    GUIDE = "guide"


@dataclass(frozen=True, slots=True)
class Potentials:
    """Solution that one potential for each node determines: ``values`` (n,), nats."""

    values: FloatArray


@dataclass(frozen=True, slots=True)
class BarrierPoint:
    """Solution of the barrier method, near an ``active`` set that is no start for continuation.

    ``marginals`` (n, n) lie inside the matching polytope.
    """

    active: ActiveSetState
    marginals: FloatArray


State = Potentials | ActiveSetState | BarrierPoint


@dataclass(frozen=True, slots=True)
class Start:
    """Solution ``state`` of the problem with other ``scores`` that exclude the same pairs."""

    scores: PairScores
    state: State

    def point(self) -> NewtonPoint:
        """Return the solution in potentials and multipliers."""
        scores = self.scores.dense()
        if isinstance(self.state, Potentials):
            return NewtonPoint(scores, self.state.values)
        active = self.state.active if isinstance(self.state, BarrierPoint) else self.state
        return active.at(scores)


@dataclass(frozen=True, slots=True)
class MatchingProblem:
    """One problem on a connected graph.

    Parameters
    ----------
    scores : PairScores, nats; -inf excludes a pair.
    rho : float, reweighting in [0, 1].
    aim : Aim
    tolerance : float, largest error of a row sum.
    columns : ndarray, shape (n, k), or None
        If given, tau @ columns is computed instead of tau; for ``Aim.FREE_ENERGY``.
    exact_up_to : int, most nodes for which all odd cuts are examined if nothing else proves them.
    holds_new : bool, False if sets that are not active at the start need not be satisfied yet.
    buffer : ndarray, shape (n, n), optional work space.
    should_stop : called before every step.
    """

    scores: PairScores
    rho: float
    aim: Aim = Aim.PROBABILITIES
    tolerance: float = ROW_TOLERANCE
    columns: FloatArray | None = None
    exact_up_to: int = EXACT_UP_TO
    holds_new: bool = True
    buffer: FloatArray | None = None
    should_stop: StopCallback = never_stop

    @property
    def n_nodes(self) -> int:
        """Number of nodes n."""
        return self.scores.n_nodes

    @property
    def weights(self) -> FloatArray:
        """Reweighting of every node, shape (n,)."""
        return np.full(self.n_nodes, self.rho)

    @property
    def row_tolerance(self) -> float:
        """Largest error of a row sum that the aim accepts."""
        return GUIDE_TOLERANCE if self.aim is Aim.GUIDE else self.tolerance


@dataclass(frozen=True, slots=True)
class MatchingSolution:
    """Pseudomarginals with their bounds and the methods that computed them.

    Parameters
    ----------
    methods : tuple of Method, in their order; several if parts were solved apart.
    gap : float, nats, certified; 0 if the optimum is known to the last digits, inf if unproved.
    is_exact : ndarray, shape (n,), bool, whether a row is summed over all perfect matchings.
    tau : ndarray, shape (n, n), symmetric; tau @ columns, shape (n, k), if the problem has columns.
    value, upper_bound : float, nats; nan if the method does not compute them.
    proof : OddSetProof of tau; it proves nothing if odd sets were not examined.
    state : start for nearby scores, None if the method has none.
    steps : int, sweeps or linear systems.
    """

    methods: tuple[Method, ...]
    gap: float
    is_exact: BoolArray
    tau: FloatArray
    proof: Proof = PROVED
    value: float = np.nan
    upper_bound: float = np.nan
    state: State | None = None
    steps: int = 0

    def continuation(self) -> State:
        """Return the state from which a solve at nearby scores continues.

        Raises
        ------
        CertificateError
            If the method leaves none, which no aim that needs one accepts.
        """
        if self.state is None:
            raise CertificateError(f"No solve continues from the answer by {self.methods}.")
        return self.state


def solve(problem: MatchingProblem, start: Start | None = None) -> MatchingSolution:
    """Return the solution of the first method that applies and whose answer is proved.

    Raises
    ------
    InfeasibleError
        If the excluded pairs leave no perfect matching and that is detected.
    StoppedError
        If ``should_stop`` of the problem returned True.

    Notes
    -----
    O(n^2) a sweep of potentials and messages, O(n^3) a step of the active set and of the barrier.
    """
    is_learning, found, interior = problem.aim is Aim.FREE_ENERGY, None, None
    may_be_unusable = not is_learning and not _is_every_pair_usable(problem.scores.dense())
    if may_be_unusable and problem.aim is Aim.GUIDE:
        problem = replace(problem, aim=Aim.PROBABILITIES)

    # 1. True marginals, if there are at most 30 nodes or most pairs are excluded.
    if not is_learning and (found := _sum_exactly(problem)) is not None:
        return found

    # 2. One potential a node, while no pair is likelier than all others of its node together.
    if start is None or isinstance(start.state, Potentials):
        found = _by_potentials(problem, start)
        if found is not None:
            start = Start(problem.scores, found.continuation())

    # 3. Messages, where a pair is likelier. Learning could not continue from their solution.
    if found is None and not is_learning:
        found = _by_messages(problem)
    if found is not None and _is_accepted(problem, found):
        return found

    # 4. Pairs of no perfect matching are excluded, and the parts that remain solved apart.
    if may_be_unusable and problem.n_nodes <= CLAMPED_UP_TO:
        interior = _interior_point(problem)
        if (usable := _without_unusable(problem, interior)) is not None:
            return solve_in_parts(usable)

    # 5. Newton's method with active odd sets, by continuation from a solution; the barrier method
    #    where continuation stalls, or had stalled before.
    held = _by_active_set(problem, start)
    if held is not None and (is_learning or held.proof.holds):
        return held

    # 6. Frank-Wolfe (Tang 2015), whose oracle knows every odd set, for few nodes.
    if problem.n_nodes <= REPAIRED_UP_TO:
        return _by_frank_wolfe(problem, interior)

    # 7. Otherwise the optimum under the degree constraints, unproved.
    return replace(found or _by_messages(problem), gap=np.inf)


def solve_in_parts(problem: MatchingProblem) -> MatchingSolution:
    """Solve a problem of any graph: each connected part by itself.

    Raises
    ------
    InfeasibleError, StoppedError
        As ``solve``.
    """
    values = problem.scores.dense()
    n = len(values)
    tau, is_exact, gap, steps = np.zeros((n, n)), np.zeros(n, dtype=np.bool_), 0.0, 0
    methods: set[Method] = set()
    for part in connected_parts(_allowed(values)):
        own = np.ix_(part, part)
        found = solve(replace(problem, scores=DenseScores(values[own])))
        tau[own], is_exact[part] = found.tau, found.is_exact
        gap, steps = gap + found.gap, steps + found.steps
        methods.update(found.methods)
    return MatchingSolution(in_order(methods), gap, is_exact, tau, steps=steps)


def in_order(methods: Iterable[str]) -> tuple[Method, ...]:
    """Return methods by name, each once, in the order in which they are tried."""
    named = set(methods)
    return tuple(method for method in Method if method in named)


def _is_accepted(problem: MatchingProblem, found: MatchingSolution) -> bool:
    """Return True if nothing that the aim requires is missing.

    Learning mixes a point whose odd sets are undecided with an interior point.
    """
    if problem.aim is Aim.GUIDE:
        return _row_error(found) <= problem.row_tolerance
    if problem.aim is Aim.FREE_ENERGY:
        return not found.proof.violated
    return found.proof.holds and _row_error(found) <= problem.row_tolerance


def _sum_exactly(problem: MatchingProblem) -> MatchingSolution | None:
    """Sum over all perfect matchings; return None if there are too many."""
    summed = sum_perfect_matchings(problem.scores.dense(), should_stop=problem.should_stop)
    if summed is None:
        return None
    is_exact = np.ones(problem.n_nodes, dtype=np.bool_)
    found = MatchingSolution((Method.EXACT_SUMS,), 0.0, is_exact, summed.marginals)
    # false only if scores are 1e6 nats, where rounding dominates
    return found if _row_error(found) <= ROW_TOLERANCE else None


def _by_potentials(problem: MatchingProblem, start: Start | None) -> MatchingSolution | None:
    """Solve by potentials; return None if a pair is likelier than all others together.

    The bounds of the value allow for errors of row sums and rounding.
    """
    warm = start.state.values if start and isinstance(start.state, Potentials) else None
    solution = solve_potentials(
        problem.scores,
        problem.weights,
        warm,
        problem.row_tolerance,
        problem.buffer,
        should_stop=problem.should_stop,
    )
    if not solution.is_on_branch:
        return None
    n, columns = problem.n_nodes, problem.columns
    out = np.empty((n, n)) if columns is None else np.empty_like(columns)

    def take(first: int, last: int, panel: FloatArray) -> None:
        if columns is None:
            out[first:last] = panel
        else:
            np.matmul(panel, columns, out=out[first:last])

    logs, squares, top = solution.summarise(take)
    u, sums = solution.potentials, solution.row_sums
    slack = 2.0 * float(np.abs(u - problem.rho) @ np.abs(1.0 - sums))
    value = logs + float(u @ sums)
    slack += TOLERANCES.rounding * (3.0 * float(np.abs(u) @ sums) + 2.0 * abs(logs))
    found = MatchingSolution(
        (Method.POTENTIALS,),
        np.inf,
        np.zeros(n, dtype=np.bool_),
        out,
        UNEXAMINED,
        value=value - slack,
        upper_bound=value + slack,
        state=Potentials(u),
        steps=solution.sweeps,
    )
    if problem.aim is Aim.GUIDE:
        return found
    proof = examine_cheaply(n, squares, top)
    if not proof.holds:
        tau = out if columns is None else solution.marginals()
        proof = _examine(problem, tau)
    return replace(found, proof=proof, gap=_gap(proof, value - slack, value + slack))


def _examine(problem: MatchingProblem, tau: FloatArray) -> OddSetProof:
    return examine_odd_sets(tau, exact_up_to=problem.exact_up_to, should_stop=problem.should_stop)


def _gap(proof: Proof, value: float, upper_bound: float) -> float:
    """Return the certified gap, nats: inf without a proof, and 0 where it is rounding."""
    gap = max(upper_bound - value, 0.0) if proof.holds else np.inf
    return gap if gap > NEGLIGIBLE_GAP else 0.0


def _by_messages(problem: MatchingProblem) -> MatchingSolution:
    """Solve under the degree constraints by messages, which compute no bound of the value."""
    solution = solve_messages(
        problem.scores.dense(),
        problem.weights,
        None,
        problem.row_tolerance,
        should_stop=problem.should_stop,
    )
    found = MatchingSolution(
        (Method.MESSAGES,),
        np.inf,
        np.zeros(problem.n_nodes, dtype=np.bool_),
        solution.tau,
        UNEXAMINED,
        steps=solution.sweeps,
    )
    if problem.aim is Aim.GUIDE or _row_error(found) > problem.row_tolerance:
        return found
    proof = _examine(problem, solution.tau)
    return replace(found, proof=proof, gap=0.0 if proof.holds else np.inf)


def _by_active_set(problem: MatchingProblem, start: Start | None) -> MatchingSolution | None:
    """Solve over the matching polytope; return None if no solution is found to start from."""
    scores, rho = problem.scores.dense(), problem.weights
    if start is not None and isinstance(start.state, BarrierPoint):
        solution = solve_inside_polytope(
            scores,
            rho,
            start.state.active.sets,
            exact_up_to=problem.exact_up_to,
            should_stop=problem.should_stop,
        )
    else:
        point = _equal_scores(problem, scores) if start is None else start.point()
        if point is None:
            return None
        solution = solve_over_polytope(
            point,
            scores,
            rho,
            exact_up_to=problem.exact_up_to,
            holds_new=problem.holds_new,
            should_stop=problem.should_stop,
        )
    active = solution.point.state()
    is_from_inside = solution.is_from_inside
    return MatchingSolution(
        (Method.BARRIER if is_from_inside else Method.ACTIVE_SET,),
        _gap(solution.proof, solution.value, solution.upper_bound),
        np.zeros(problem.n_nodes, dtype=np.bool_),
        solution.tau if problem.columns is None else solution.tau @ problem.columns,
        solution.proof,
        solution.value,
        solution.upper_bound,
        state=BarrierPoint(active, solution.tau) if is_from_inside else active,
        steps=solution.steps,
    )


def _equal_scores(problem: MatchingProblem, scores: FloatArray) -> NewtonPoint | None:
    """Return the solution for equal scores of all allowed pairs, None if it is not found.

    Excluded pairs first lose ``PENALTY``, and are excluded once their marginals are negligible.
    """
    weights = problem.weights
    point = uniform_point(len(weights), weights)
    apart = ~(_allowed(scores) | np.eye(len(weights), dtype=np.bool_))
    if not apart.any():
        return point
    point = follow_path(
        point,
        np.where(apart, -PENALTY, 0.0),
        weights,
        PATH_END,
        should_stop=problem.should_stop,
    )
    equal = np.where(apart, -np.inf, 0.0)
    start = replace(point, scores=equal)
    point = follow_path(start, equal, weights, PATH_END, should_stop=problem.should_stop)
    return point if point.residual <= PATH_END else None


def _by_frank_wolfe(problem: MatchingProblem, interior: FloatArray | None) -> MatchingSolution:
    """Approximate the optimum by Frank-Wolfe, from a point above 0 on every usable pair."""
    values = problem.scores.dense()
    if interior is None and (values == -np.inf).any():
        interior = _interior_point(problem)
    result = compute_frank_wolfe_marginals(
        values,
        CompleteGraphMatcher(),
        rho=problem.rho,
        is_bipartite=False,
        max_iterations=MAX_CALLS,
        start=interior,
        should_stop=problem.should_stop,
    )
    if problem.should_stop():
        raise StoppedError("Cancelled.")
    return MatchingSolution(
        (Method.FRANK_WOLFE,),
        max(result.upper_bound - result.value, 0.0),
        np.zeros(problem.n_nodes, dtype=np.bool_),
        result.marginals,
        value=result.value,
        upper_bound=result.upper_bound,
        steps=result.oracle_calls,
    )


def _allowed(values: FloatArray) -> BoolArray:
    """Return a mask of the allowed pairs, (n, n), False on the diagonal."""
    allowed = values > -np.inf
    np.fill_diagonal(allowed, val=False)
    return allowed


def _row_error(found: MatchingSolution) -> float:
    """Return the largest error of a row sum."""
    return float(np.abs(found.tau.sum(axis=1) - 1.0).max())


def _is_every_pair_usable(values: FloatArray) -> bool:
    """Return True if every student may live with half of the group and one more.

    Dirac's condition then holds without any two, so that every allowed pair is in a matching.
    """
    allowed = (values > -np.inf).sum(axis=1) - 1  # the diagonal is never excluded
    return bool(allowed.min() >= len(values) / 2 + 1)


def _without_unusable(problem: MatchingProblem, interior: FloatArray) -> MatchingProblem | None:
    """Return the problem without allowed pairs that are 0 in the interior; None if all are used."""
    values = problem.scores.dense()
    is_never = (interior == 0.0) & _allowed(values)
    if not is_never.any():
        return None
    return replace(problem, scores=DenseScores(np.where(is_never, -np.inf, values)))


def _interior_point(problem: MatchingProblem) -> FloatArray:
    """Return an average of matchings (n, n), above 0 on every pair of a perfect matching."""
    values, matcher = problem.scores.dense(), CompleteGraphMatcher()
    first, second = np.nonzero(np.triu(values > -np.inf, 1))
    place = np.zeros(values.shape, dtype=np.int64)
    place[first, second] = np.arange(len(first))

    def oracle(weights: FloatArray) -> IntArray:
        if problem.should_stop():
            raise StoppedError("Cancelled.")
        dense = np.full(values.shape, -np.inf)
        dense[first, second] = dense[second, first] = weights
        partner = matcher.solve(dense).partner
        lower = np.flatnonzero(partner > np.arange(len(partner)))
        return place[lower, partner[lower]]

    tau = np.zeros(values.shape)
    tau[first, second] = tau[second, first] = find_interior_start(len(first), oracle).tau
    return tau


@dataclass(frozen=True, slots=True)
class GroupMarginals:
    """Probabilities of the pairs of a group, with their accuracy.

    Parameters
    ----------
    tau : ndarray, shape (m, m), symmetric, rows summing to 1, read-only.
    is_exact : ndarray, shape (m,), bool, read-only
        True for students whose probabilities are summed over all perfect matchings. Those of the
        others are approximate: the optimum of the Bethe free energy over the matching polytope.
    gap : float, nats
        Certified bound on the shortfall of the free energy from that optimum; 0 if the optimum is
        known to the last digits, inf if no bound could be computed.
    methods : tuple of Method, that computed them; several if parts were solved apart.
    """

    tau: FloatArray
    is_exact: BoolArray
    gap: float
    methods: tuple[Method, ...]

    @property
    def accuracy(self) -> Literal["exact", "bethe"]:
        """Accuracy of the whole group: "exact" if all probabilities are, else "bethe"."""
        return "exact" if bool(self.is_exact.all()) else "bethe"


def compute_group_marginals(
    scores: FloatArray,
    rho: float,
    forbidden: IntArray,
    *,
    is_guide: bool = False,
    should_stop: StopCallback = never_stop,
) -> GroupMarginals:
    """Return the marginals of perfect matchings that avoid the forbidden pairs.

    Parameters
    ----------
    scores : ndarray, shape (m, m), symmetric up to rounding, nats; the diagonal is ignored.
    rho : float, reweighting; groups that are summed exactly need none.
    forbidden : ndarray, shape (f, 2), indices of the students.
    is_guide : bool
        Whether approximate marginals only guide a Markov chain: they are then accurate to 1e-4
        under the degree constraints, and the gap is inf, since no odd set is examined. Only if
        every student may live with half of the group; else some pairs might have to be clamped.
    should_stop : called before every sweep and every call of an oracle.

    Raises
    ------
    InfeasibleError
        If the forbidden pairs leave no perfect matching and that is detected.
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    The methods and their order are those of ``engine.inference.matching.cascade``.
    """
    values = DenseScores(exclude_pairs(scores, forbidden))
    aim = Aim.GUIDE if is_guide else Aim.PROBABILITIES
    found = solve_in_parts(MatchingProblem(values, rho, aim, should_stop=should_stop))
    return GroupMarginals(read_only(found.tau), read_only(found.is_exact), found.gap, found.methods)


def exclude_pairs(scores: FloatArray, forbidden: IntArray) -> FloatArray:
    """Return symmetric scores (m, m) with -inf for the forbidden pairs (f, 2)."""
    values = np.minimum(scores, scores.T)  # matrix products are symmetric only up to rounding
    values[forbidden[:, 0], forbidden[:, 1]] = -np.inf
    values[forbidden[:, 1], forbidden[:, 0]] = -np.inf
    return values
