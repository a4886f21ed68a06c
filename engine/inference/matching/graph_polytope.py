"""Pseudomarginals over the matching polytope of any graph: degree constraints and odd sets.

    max <W, tau> + H_rho(tau)   with   d_i + f_i = 1   and   tau(E(U)) <= (|U| - 1) / 2, U odd

The optimum under the degree constraints comes first (``graph_newton``). Odd sets that it violates
are added round by round, and points stay in the interior of all added sets:

    max <W, tau> + H_mu(tau) + mu sum_U log r_U    r_U = (|U| - 1) / 2 - tau(E(U)),   mu -> 0

with H_mu >= H of counting numbers smaller by mu, whose optimum stays away from the vertices. A step
is one linear system in a multiplier y_U per set and those of the nodes, and must raise the value.
Some sets are tight: exactly one pair leaves them in every matching. One matching each identifies
them, and they hold with equality. For every s of the polytope and any y >= 0

    value(s) <= value(tau) + max_s <s - tau, R> + sum_U y_U r_U,

R the gradient less all multipliers, so that the bound holds wherever the search ends.

References
----------
Edmonds 1965 (the polytope); Padberg and Rao 1982 (odd cuts, also with singles); Nocedal and Wright
2006, chapter 19 (interior-point methods).
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray, read_only
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.graph_problem import GraphProblem, free_parts, solve_scaled
from engine.inference.matching.graph_sets import IDLE, HeldSets, bordered_matrix
from engine.inference.matching.newton_path import maximise
from engine.inference.matching.odd_cuts import find_odd_cuts
from engine.inference.matching.odd_sets import MOST_FOUND, TOLERANCE, examine_odd_sets
from engine.kernels.threads import one_blas_thread
from engine.oracles.sparse_matching import MatchingKind, max_weight_matching

MAX_ROUNDS = 60  # maximum number of rounds of finding and adding odd sets
STEPS_INSIDE = 40  # maximum number of steps without odd sets: ten are usual away from boundaries
STEPS_A_ROUND = 200  # maximum number of steps a round: 15 to 60 are usual
FIRST_MU = 0.1  # share of the largest score in size, at least this many nats
JOINING_MU = 1e-3  # largest mu, nats, at which sets are added to a nearly solved problem
VERTEX_MU = 1e-6  # nats: below, a best matching may prove more than multipliers
SHRINK = 0.1  # factor of mu once its problem is solved
LOOSE = 1e-4  # nats a node: gap at which odd sets are first examined
AWAY = 0.1  # share of the room at the centre that an added set gets
TIGHT = 1e-9  # room at the centre below which a set may be tight
LARGEST_EASE = 0.5  # largest reduction of the counting numbers
SPREAD = 1e6  # largest factor between a multiplier and mu / room


@dataclass(frozen=True, slots=True)
class GraphPolytopeSolution:
    """Pseudomarginals over the matching polytope with both bounds.

    Parameters
    ----------
    marginals : ndarray, shape (e,), read-only
    value : float, <W, tau> + H_rho(tau), nats
    upper_bound : float, certified, of its maximum over the matching polytope.
    sets : HeldSets, active odd sets for a warm start.
    is_feasible : bool, whether every odd-set constraint is proved.
    steps : int, linear systems solved.
    """

    marginals: FloatArray
    value: float
    upper_bound: float
    sets: HeldSets
    is_feasible: bool
    steps: int


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
    has_odd_sets : bool, False if the graph is bipartite: no odd set is then examined.
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
    marginals = np.array(interior, dtype=np.float64)
    value = bound = float(scores[interior >= 1.0].sum())
    steps, is_feasible = 0, True
    parts = free_parts(edges, interior, len(rho))
    kept: list[HeldSets] = []
    with one_blas_thread():
        for own in parts:
            problem = GraphProblem.build(scores[own], edges[own], rho, is_perfect)
            search = _Search(problem, interior[own], tolerance / len(parts), should_stop)
            x = search.centre if start is None else problem.complete(start[own])
            found = search.solve(x, search.renumber(held), has_odd_sets)
            marginals[own] = found.x[: len(own)]
            value, bound = value + found.value, bound + found.upper_bound
            steps, is_feasible = steps + found.steps, is_feasible and found.is_feasible
            kept.append(search.held())
    sets = HeldSets(
        tuple(nodes for part in kept for nodes in part.nodes),
        np.concatenate([np.empty(0), *(part.multipliers for part in kept)]),
        np.concatenate([np.empty(0), *(part.rooms for part in kept)]),
    )
    return GraphPolytopeSolution(read_only(marginals), value, bound, sets, is_feasible, steps)


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


@dataclass(frozen=True, slots=True)
class _Found:
    """Result of the search on one part."""

    x: FloatArray
    value: float
    upper_bound: float
    is_feasible: bool
    steps: int


class _Search:
    """Search on one part: its active odd sets, and interior-point steps towards the optimum."""

    def __init__(
        self,
        problem: GraphProblem,
        interior: FloatArray,
        tolerance: float,
        should_stop: StopCallback,
    ) -> None:
        self.problem, self.tolerance, self.should_stop = problem, tolerance, should_stop
        self.centre = problem.complete(interior)
        self.sets: list[IntArray] = []
        self.inside = np.empty((0, len(problem.edges)))
        self.limits, self.multipliers, self.rooms = np.empty(0), np.empty(0), np.empty(0)
        self.is_tight = np.empty(0, dtype=np.bool_)
        self.steps, self.bound = 0, np.inf

    def renumber(self, held: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """Return the graph's sets that lie in this part, in the part's own node numbers."""
        nodes = self.problem.nodes
        own = [one for one in held if np.isin(one, nodes).all()]
        return tuple(np.searchsorted(nodes, one) for one in own)

    def held(self) -> HeldSets:
        """Return the active sets at the solution, in the graph's node numbers."""
        kept = np.flatnonzero(self.is_tight | (self.multipliers > IDLE))
        nodes = tuple(self.problem.nodes[self.sets[k]] for k in kept)
        return HeldSets(nodes, self.multipliers[kept], self.rooms[kept])

    def solve(self, x: FloatArray, held: tuple[IntArray, ...], has_odd_sets: bool) -> _Found:
        """Solve under the degree constraints, then within odd sets that bind."""
        violated, is_feasible, mu = held, False, self.first_mu()
        if not held:
            x, value = self.solve_by_degrees(x)
            if has_odd_sets:
                violated, is_feasible = find_violated_sets(self.problem, x, self.should_stop)
            is_feasible = is_feasible or not has_odd_sets
            if not violated:
                return _Found(x, value, self.bound, is_feasible, self.steps)
        wanted = max(self.tolerance, LOOSE * len(self.problem.nodes))
        for _ in range(MAX_ROUNDS):
            x = self.join(x, violated)
            self.multipliers = np.where(self.is_tight, self.multipliers, mu / self.loose_rooms(x))
            x, mu = self.descend(x, mu, wanted)
            if has_odd_sets:
                violated, is_feasible = find_violated_sets(self.problem, x, self.should_stop)
            if violated:
                mu = max(mu, JOINING_MU)
            elif wanted <= self.tolerance:
                break
            else:
                wanted = self.tolerance
        self.rooms = np.where(self.is_tight, 0.0, self.loose_rooms(x))
        value = self.problem.value(x)
        return _Found(x, value, max(self.bound, value), is_feasible, self.steps)

    def first_mu(self) -> float:
        """Return a mu whose optimum is near the centre."""
        return FIRST_MU * max(float(np.abs(self.problem.scores).max(initial=0.0)), 1.0)

    def solve_by_degrees(self, x: FloatArray) -> tuple[FloatArray, float]:
        """Return the optimum under the degree constraints, and its value."""
        x = (1.0 - TOLERANCES.pull) * x + TOLERANCES.pull * self.centre
        found = maximise(
            self.problem, x, self.centre, self.tolerance, STEPS_INSIDE, should_stop=self.should_stop
        )
        self.steps, self.bound = found.steps, found.upper_bound
        return found.point, found.value

    def loose_rooms(self, x: FloatArray) -> FloatArray:
        """Return the room of every set, 1 for sets that hold with equality."""
        room = self.limits - self.inside @ x[: self.inside.shape[1]]
        return np.where(self.is_tight, 1.0, room)

    def join(self, x: FloatArray, violated: tuple[IntArray, ...]) -> FloatArray:
        """Add sets; return a point with room in all of them."""
        for nodes in violated:
            member = np.zeros(len(self.problem.nodes), dtype=np.bool_)
            member[nodes] = True
            inside = np.array(member[self.problem.edges].all(axis=1), dtype=np.float64)
            limit = (len(nodes) - 1) / 2.0
            room = limit - float(inside @ self.centre[: len(inside)])
            is_tight = room <= TIGHT and self.leaves_no_choice(member)
            self.sets.append(np.asarray(nodes))
            self.inside = np.concatenate([self.inside, inside[None]])
            self.limits = np.append(self.limits, limit)
            self.is_tight = np.append(self.is_tight, is_tight)
            self.multipliers = np.append(self.multipliers, 0.0)
            if is_tight:
                x = self.centre
        here, most = self.loose_rooms(x), self.loose_rooms(self.centre)
        wanted = AWAY * most
        short = here < wanted
        share = ((wanted - here)[short] / (most - here)[short]).max(initial=TOLERANCES.pull)
        return np.asarray((1.0 - share) * x + share * self.centre)

    def leaves_no_choice(self, member: BoolArray) -> bool:
        """Return True if one pair leaves a set in every matching; else move the centre inside."""
        problem = self.problem
        leaves = member[problem.edges].sum(axis=1) == 1
        best = max_weight_matching(
            len(problem.nodes), problem.edges, leaves.astype(np.float64), "perfect"
        ).edge_indices
        if leaves[best].sum() <= 1:
            return True
        vertex = np.zeros(len(self.centre))
        vertex[best] = 1.0
        self.centre = 0.5 * self.centre + 0.5 * vertex
        return False

    def descend(self, x: FloatArray, mu: float, wanted: float) -> tuple[FloatArray, float]:
        """Lower mu until the gap is ``wanted``; return the point and mu."""
        last = self.steps + STEPS_A_ROUND
        while self.steps < last:
            if self.should_stop():
                raise StoppedError("Cancelled.")
            self.steps += 1
            eased = self.problem.eased(min(mu, LARGEST_EASE))
            following, is_solved = self.step(eased, x, mu)
            if following is None:
                self.multipliers = np.where(
                    self.is_tight, self.multipliers, mu / self.loose_rooms(x)
                )
                following, is_solved = self.step(eased, x, mu)
            if following is not None:
                x = following
            if following is None or is_solved:
                value = self.problem.value(x)
                if mu <= VERTEX_MU and self.bound - value > wanted:
                    self.note_vertex(x, eased)
                if self.bound - value <= wanted or mu <= TOLERANCES.last_barrier:
                    break
                mu = max(SHRINK * mu, TOLERANCES.last_barrier)
        return x, mu

    def step(self, eased: GraphProblem, x: FloatArray, mu: float) -> tuple[FloatArray | None, bool]:
        """Return the next point, None if rounding allows no rise, and True if this mu is solved."""
        count, n_edges = len(self.problem.nodes), len(self.problem.edges)
        gradient, inverse = eased.gradient(x), eased.inverse_curvature(x)
        room = self.loose_rooms(x)
        weighted = self.inside * inverse[:n_edges]
        safe = np.where(self.is_tight, 1.0, self.multipliers)
        stiffness = np.where(self.is_tight, 0.0, room / safe)
        matrix = bordered_matrix(eased, inverse, self.inside, stiffness)
        missing = self.limits - self.inside @ x[:n_edges]
        right = np.concatenate(
            [
                eased.sums(inverse * gradient) + eased.excess(x),
                weighted @ gradient[:n_edges] + np.where(self.is_tight, -missing, mu / safe),
            ]
        )
        dual = solve_scaled(matrix, right[:, None])[:, 0]
        nodes, sets = dual[:count], dual[count:]
        reduced = gradient - eased.spread(nodes)
        barrier = reduced.copy()
        reduced[:n_edges] -= sets @ self.inside
        direction = inverse * reduced
        barrier[:n_edges] -= np.where(self.is_tight, sets, mu / room) @ self.inside
        slope = float(barrier @ direction)
        if not np.isfinite(slope):
            return None, True
        following = self.rise(eased, x, direction, slope, mu) if slope > 0.0 else None
        if following is None:
            return None, True
        self.note_bound(eased, x, nodes, sets)
        low, high = mu / SPREAD / room, mu * SPREAD / room
        self.multipliers = np.where(self.is_tight, sets, np.clip(sets, low, high))
        return following, slope <= mu

    def rise(
        self, eased: GraphProblem, x: FloatArray, direction: FloatArray, slope: float, mu: float
    ) -> FloatArray | None:
        """Return a point along the direction with a higher barrier value, None without one."""
        fall = self.inside @ direction[: self.inside.shape[1]]
        is_loose = ~self.is_tight & (fall > 0.0)
        of_rooms = float((self.loose_rooms(x)[is_loose] / fall[is_loose]).min(initial=np.inf))
        step = min(1.0, TOLERANCES.to_the_boundary * min(eased.room(x, direction), of_rooms))
        before = eased.value(x) + mu * float(np.log(self.loose_rooms(x)).sum())
        noise = TOLERANCES.noise * max(abs(before), 1.0)
        for _ in range(TOLERANCES.max_halvings):
            following = eased.move(x, step * direction)
            room = self.loose_rooms(following)
            if room.min(initial=1.0) > 0.0:
                value = eased.value(following) + mu * float(np.log(room).sum())
                if value >= before + TOLERANCES.armijo * step * slope - noise:
                    return following
            step *= 0.5
        return None

    def note_vertex(self, x: FloatArray, eased: GraphProblem) -> None:
        """Record the best matching's bound; near a vertex multipliers lose their digits."""
        constant, rewards = eased.tangent(x)
        n_edges = len(self.problem.edges)
        weights, alone = np.split(rewards, [n_edges])
        if len(alone):
            weights = weights - alone[self.problem.edges].sum(axis=1)
        kind: MatchingKind = "any" if len(alone) else "perfect"
        best = max_weight_matching(len(self.problem.nodes), self.problem.edges, weights, kind)
        self.bound = min(self.bound, constant + best.upper_bound + float(alone.sum()))

    def note_bound(
        self,
        eased: GraphProblem,
        x: FloatArray,
        nodes: FloatArray,
        sets: FloatArray,
    ) -> None:
        """Record the bound of a point and any multipliers if it is the best."""
        kept = np.where(self.is_tight, sets, np.maximum(sets, 0.0))
        bound = eased.bound(x, nodes, kept @ self.inside) + float(kept @ self.limits)
        self.bound = min(self.bound, bound)
