"""Pseudomarginals over the matching polytope of any graph: degree constraints and odd sets.

    max <W, tau> + H_rho(tau)   with   d_i + f_i = 1   and   tau(E(U)) <= (|U| - 1) / 2, U odd

The optimum under the degree constraints comes first, by Newton's method (``graph_problem``). If it
violates odd sets, or is not found in a few steps, as near the boundary, the barrier method solves
the problem from the inside of its odd sets (``barrier``). Odd sets may also be left out. For every
s of the polytope and any y >= 0

    value(s) <= value(tau) + max_s <s - tau, R> + sum_U y_U r_U,

R the gradient less all multipliers, so that the bound holds wherever the search ends.

References
----------
Edmonds 1965 (the polytope); Padberg and Rao 1982 (odd cuts, also with singles).
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray, read_only
from engine.core.progress import StopCallback, never_stop
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.graph_problem import GraphProblem, free_parts, solve_scaled
from engine.inference.matching.graph_sets import IDLE, HeldSets, bordered_matrix
from engine.inference.matching.newton_ascent import ascend
from engine.inference.matching.odd_cuts import find_odd_cuts
from engine.inference.matching.odd_sets import MOST_FOUND, TOLERANCE, OddSetProof, examine_odd_sets
from engine.kernels.threads import one_blas_thread
from engine.oracles.sparse_matching import MatchingKind, max_weight_matching
from engine.solvers.barrier import (
    LOOK_EVERY,
    BarrierSolution,
    BarrierState,
    Solve,
    largest_step,
    solve_by_barrier,
)

STEPS_INSIDE = 40  # maximum number of steps without odd sets: ten are usual away from boundaries
TIGHT = 1e-9  # room at the centre below which a set may be tight


@dataclass(frozen=True, slots=True)
class GraphPolytopeSolution:
    """Pseudomarginals over the matching polytope with both bounds.

    Parameters
    ----------
    marginals : ndarray, shape (e,), read-only
    value : float, <W, tau> + H_rho(tau), nats
    upper_bound : float, certified, of its maximum over the matching polytope.
    sets : HeldSets, active odd sets for a warm start.
    is_feasible : bool, whether every odd-set constraint is proved, or left out.
    steps : int, linear systems solved.
    singles : ndarray, shape (n,), probabilities of staying single, read-only
    """

    marginals: FloatArray
    value: float
    upper_bound: float
    sets: HeldSets
    is_feasible: bool
    steps: int
    singles: FloatArray


def solve_over_graph_polytope(
    scores: FloatArray,
    edges: IntArray,
    rho: FloatArray,
    interior: FloatArray,
    *,
    is_perfect: bool = True,
    has_odd_sets: bool = True,
    tolerance: float = 1e-9,
    start: FloatArray | None = None,
    held: tuple[IntArray, ...] = (),
    should_stop: StopCallback = never_stop,
) -> GraphPolytopeSolution:
    """Maximise <W, tau> + H_rho(tau) over the matching polytope of a graph.

    Parameters
    ----------
    scores, edges, rho, interior, is_perfect, tolerance : see ``compute_graph_pseudomarginals``;
        the interior point is a mean of matchings.
    has_odd_sets : bool
        False if the graph is bipartite, or to maximise under the degree constraints alone: no odd
        set is then examined.
    start, held : marginals (e,) and odd sets of a solution for nearby scores.
    should_stop : called before every step.

    Returns
    -------
    GraphPolytopeSolution

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.

    Examples
    --------
    >>> triangle = np.array([[0, 1], [1, 2], [0, 2]])
    >>> found = solve_over_graph_polytope(
    ...     np.full(3, 9.0), triangle, np.ones(3), np.full(3, 0.25), is_perfect=False
    ... )
    >>> found.marginals.round(4).tolist(), [nodes.tolist() for nodes in found.sets.nodes]
    ([0.3333, 0.3333, 0.3333], [[0, 1, 2]])
    """
    marginals, singles = np.array(interior, dtype=np.float64), np.zeros(len(rho))
    if not is_perfect:
        singles[:] = 1.0  # of nodes without a choice; the others' are overwritten
        singles[edges[interior >= 1.0]] = 0.0
    value = bound = float(scores[interior >= 1.0].sum())
    steps, is_feasible = 0, True
    parts = free_parts(edges, interior, len(rho))
    kept: list[HeldSets] = []
    with one_blas_thread():
        for own in parts:
            problem = GraphProblem.build(scores[own], edges[own], rho, is_perfect)
            polytope = EdgePolytope(
                problem, interior[own], tolerance / len(parts), has_odd_sets, should_stop
            )
            near = None if start is None else start[own]
            found = _solve_part(polytope, near, _renumber(problem, held))
            marginals[own] = found.x[: len(own)]
            singles[problem.nodes] = found.x[len(own) :] if not is_perfect else 0.0
            value, bound = value + found.value, bound + found.upper_bound
            steps, is_feasible = steps + found.steps, is_feasible and found.is_feasible
            kept.append(_held(problem, found.state))
    sets = HeldSets(
        tuple(nodes for part in kept for nodes in part.nodes),
        np.concatenate([np.empty(0), *(part.multipliers for part in kept)]),
        np.concatenate([np.empty(0), *(part.rooms for part in kept)]),
    )
    return GraphPolytopeSolution(
        read_only(marginals), value, bound, sets, is_feasible, steps, read_only(singles)
    )


def find_violated_sets(
    problem: GraphProblem, x: FloatArray, should_stop: StopCallback = never_stop
) -> tuple[tuple[IntArray, ...], bool]:
    """Return disjoint odd sets of the part that x violates, and True if there are provably none.

    The result is empty and False if nothing was found or proved. If nodes may stay single, each is
    joined by that probability to an extra node on the other side of every set.
    """
    count = len(problem.nodes)
    first, second = problem.edges.T
    tau = np.zeros((count + 1, count + 1))
    np.add.at(tau, (first, second), x[: len(problem.edges)])
    if not len(problem.rho):
        tau = tau[:count, :count] + tau[:count, :count].T
        proof = examine_odd_sets(tau, should_stop=should_stop)
        return proof.violated, proof.holds
    tau[:count, count] = x[len(problem.edges) :]
    tau += tau.T
    is_odd = np.ones(count + 1, dtype=np.bool_)
    is_odd[count] = count % 2 == 1
    sides, _ = find_odd_cuts(tau, is_odd, 1.0 - TOLERANCE, MOST_FOUND, should_stop)
    chosen: list[IntArray] = []
    is_taken = np.zeros(count, dtype=np.bool_)
    for side in sides:
        nodes = np.flatnonzero(side[:count] != side[count])
        if len(nodes) >= 3 and not is_taken[nodes].any():
            is_taken[nodes] = True
            chosen.append(nodes)
    return tuple(chosen), not chosen  # a set of one node only means that its sum falls short


class EdgePolytope:
    """Matchings of one part of a graph; see ``engine.solvers.barrier.Polytope``.

    Points are the edges' marginals followed by those of singles.
    """

    room_weight = 1.0
    refinements = 0
    splits_steps = False
    look_every = LOOK_EVERY

    def __init__(
        self,
        problem: GraphProblem,
        interior: FloatArray,
        accuracy: float,
        has_odd_sets: bool,
        should_stop: StopCallback,
    ) -> None:
        self.problem, self.accuracy = problem, accuracy
        self.has_odd_sets, self.should_stop = has_odd_sets, should_stop
        self.centre = problem.complete(interior)
        self.allowed: BoolArray = np.ones(len(self.centre), dtype=np.bool_)

    @property
    def n_nodes(self) -> int:
        """Number of nodes n."""
        return len(self.problem.nodes)

    def tolerance(self, value: float) -> float:
        """Return the target gap in nats."""
        return self.accuracy

    def start(self) -> tuple[FloatArray, float]:
        """Return the interior point and a first mu."""
        size = max(float(np.abs(self.problem.scores).max(initial=0.0)), 1.0)
        return self.centre, size * self.n_nodes / (2.0 * len(self.problem.edges))

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return W + grad H."""
        return self.problem.gradient(x)

    def curvature(self, x: FloatArray) -> FloatArray:
        """Return minus the diagonal of the Hessian of H."""
        return self.problem.curvature(x)

    def bordered(
        self, x: FloatArray, rate: FloatArray, member: FloatArray, slack: FloatArray
    ) -> Solve | None:
        """Return the solve by least squares: the system is singular if the part has two sides."""
        matrix = bordered_matrix(self.problem, rate, self._pairs(member), slack)
        if not np.isfinite(matrix).all():
            return None

        def solve(right: FloatArray) -> FloatArray | None:
            return solve_scaled(matrix, right[:, None])[:, 0] if np.isfinite(right).all() else None

        return solve

    def missing(self, x: FloatArray) -> FloatArray:
        """Return 1 less the sums at nodes, (n,)."""
        return -self.problem.excess(x)

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sums at nodes, (n,)."""
        return self.problem.sums(values)

    def inside(self, member: FloatArray, values: FloatArray) -> FloatArray:
        """Return the sums over the edges inside sets, (m,)."""
        return np.asarray(self._pairs(member) @ values[: len(self.problem.edges)])

    def spread(self, nu: FloatArray, member: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the multipliers that apply to every edge and single."""
        total = self.problem.spread(nu)
        total[: len(self.problem.edges)] += multipliers @ self._pairs(member)
        return total

    def room_above(self, x: FloatArray, move: FloatArray) -> float:
        """Return the largest step that keeps edges below 1."""
        return largest_step(self.problem.rest(x), -move[: len(self.problem.edges)])

    def settle(self, x: FloatArray) -> FloatArray:
        """Return x with positive entries, likely edges the remainders of their sums."""
        return self.problem.settle(x)

    def find_tight(self, member: FloatArray) -> BoolArray:
        """Return which sets one edge leaves in every matching, by one matching each."""
        room = (member.sum(axis=1) - 1.0) / 2.0 - self.inside(member, self.centre)
        return np.array(
            [
                left <= TIGHT and self._leaves_no_choice(row > 0.0)
                for left, row in zip(room, member, strict=True)
            ],
            dtype=np.bool_,
        )

    def _leaves_no_choice(self, member: BoolArray) -> bool:
        problem = self.problem
        leaves = member[problem.edges].sum(axis=1) == 1
        best = max_weight_matching(
            len(problem.nodes), problem.edges, leaves.astype(np.float64), "perfect"
        )
        return int(leaves[best.edge_indices].sum()) <= 1

    def _pairs(self, member: FloatArray) -> FloatArray:
        """Return 1 for the edges inside every set, (m, e)."""
        first, second = self.problem.edges.T
        return np.asarray(member[:, first] * member[:, second])

    def judge(self, state: BarrierState, *, is_last: bool) -> BarrierSolution:
        """Return the solution that a state proves; near a vertex the best matching may bound it."""
        problem, x = self.problem, self.problem.repair(state.x)
        value = problem.value(x) if problem.is_feasible(x) else -np.inf
        kept = np.where(state.is_tight, state.multipliers, np.maximum(state.multipliers, 0.0))
        limits = (state.member.sum(axis=1) - 1.0) / 2.0
        prices = kept @ self._pairs(state.member)
        bound = problem.bound(x, state.nu, prices) + float(kept @ limits)
        if is_last and bound - value > self.accuracy:
            bound = min(bound, self._vertex_bound(x))
        violated: tuple[IntArray, ...] = ()
        is_feasible = not self.has_odd_sets
        if self.has_odd_sets:
            violated, is_feasible = find_violated_sets(problem, x, self.should_stop)
        proof = OddSetProof(np.full(1, 1.0 if is_feasible else 0.0), violated)
        return BarrierSolution(x, value, max(bound, value), proof, state)

    def _vertex_bound(self, x: FloatArray) -> float:
        """Return the best vertex's bound; near a vertex multipliers lose their digits.

        Vertices are matchings. Without odd sets they are halves of matchings of two copies of the
        nodes, in which every edge joins each of its nodes to the other copy of its other node.
        """
        problem, edges, count = self.problem, self.problem.edges, self.n_nodes
        constant, rewards = problem.tangent(x)
        weights, alone = np.split(rewards, [len(edges)])
        if len(alone):
            weights = weights - alone[edges].sum(axis=1)
        kind: MatchingKind = "any" if len(alone) else "perfect"
        if not self.has_odd_sets:
            copies = np.array([0, count])
            edges = np.concatenate([edges + copies, edges[:, ::-1] + copies])
            count, weights = 2 * count, np.tile(weights / 2.0, 2)
        best = max_weight_matching(count, edges, weights, kind)
        return constant + best.upper_bound + float(alone.sum())


@dataclass(frozen=True, slots=True)
class _Found:
    """Result on one part; ``state`` of the barrier method if it was needed."""

    x: FloatArray
    value: float
    upper_bound: float
    is_feasible: bool
    steps: int
    state: BarrierState | None = None


def _solve_part(
    polytope: EdgePolytope, start: FloatArray | None, held: tuple[IntArray, ...]
) -> _Found:
    """Solve under the degree constraints by Newton's method; within odd sets by the barrier."""
    problem, centre = polytope.problem, polytope.centre
    violated, bound, steps = held, np.inf, 0
    if not held:
        x = centre if start is None else problem.complete(start)
        x = (1.0 - TOLERANCES.pull) * x + TOLERANCES.pull * centre
        newton = ascend(problem, x, polytope.accuracy, STEPS_INSIDE, polytope.should_stop)
        bound, steps = newton.upper_bound, newton.steps
        if newton.status.is_converged and problem.is_feasible(newton.point):
            is_feasible = not polytope.has_odd_sets
            if polytope.has_odd_sets:
                violated, is_feasible = find_violated_sets(
                    problem, newton.point, polytope.should_stop
                )
            if not violated:
                return _Found(newton.point, newton.value, bound, is_feasible, steps)
    found = solve_by_barrier(polytope, violated, polytope.should_stop)
    return _Found(
        found.x,
        found.value,
        max(min(bound, found.upper_bound), found.value),
        found.proof.holds,
        steps + found.steps,
        found.state,
    )


def _held(problem: GraphProblem, state: BarrierState | None) -> HeldSets:
    """Return the active sets at a solution, in the graph's node numbers."""
    if state is None:
        return HeldSets()
    kept = np.flatnonzero(state.is_tight | (state.multipliers > IDLE))
    nodes = tuple(problem.nodes[state.sets[k]] for k in kept)
    rooms = np.where(state.is_tight, 0.0, state.room)[kept]
    return HeldSets(nodes, state.multipliers[kept], rooms)


def _renumber(problem: GraphProblem, held: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
    """Return the graph's sets that lie in a part, in the part's own node numbers."""
    own = [one for one in held if np.isin(one, problem.nodes).all()]
    return tuple(np.searchsorted(problem.nodes, one) for one in own)
