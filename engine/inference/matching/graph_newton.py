"""Pseudomarginals of matchings of any graph under its degree constraints, by Newton's method.

    max <W, tau> + H_rho(tau)   with   d_i + f_i = 1,   f_i = 0 if perfect, f_i >= 0 if not

The chance f_i of staying single enters as a variable of its own, which makes the entropy a sum over
variables, its Hessian diagonal, and a step one linear system in a multiplier per node. An edge's
second derivative may be positive (tau above 1 / (1 + c)); on the constraints the objective is
concave all the same (Tang 2015, theorem 1), which is all that the step needs.

Odd-set inequalities are not part of the problem: the value is a bound from above over the matching
polytope, and whether the answer lies in it is another question (``odd_sets``).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from engine.core.arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_finite_array,
    check_shape,
    read_only,
)
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.inference.matching.newton_path import (
    NewtonStep,
    as_semidefinite,
    inverse_curvature,
    maximise,
)
from engine.kernels.threads import one_blas_thread

MAX_STEPS = 200
PULL = 1e-3  # share of the interior start that a warm start is mixed with
TINY = 1e-40  # least entry: beside a vertex, far below what any sum can see


@dataclass(frozen=True, slots=True)
class GraphSolution:
    """Pseudomarginals with their certificate.

    ``marginals`` (e,) and ``singles`` (n,), the chance of every node to stay single, read-only;
    ``value`` <W, tau> + H_rho(tau), nats; ``upper_bound``, certified, of its maximum under the
    degree constraints; ``iterations`` Newton steps; ``status`` converged if both are close enough.
    """

    marginals: FloatArray
    singles: FloatArray
    value: float
    upper_bound: float
    iterations: int
    status: Status


def compute_graph_pseudomarginals(
    scores: FloatArray,
    edges: IntArray,
    rho: FloatArray,
    interior: FloatArray,
    *,
    is_perfect: bool = True,
    tolerance: float = 1e-9,
    start: FloatArray | None = None,
) -> GraphSolution:
    """Maximise <W, tau> + H_rho(tau) under the degree constraints of a graph.

    Parameters
    ----------
    scores : ndarray, shape (e,), nats
    edges : ndarray, shape (e, 2), nodes 0 .. n - 1
    rho : ndarray, shape (n,), in [0, 1]; above 0 where nodes may stay single
    interior : ndarray, shape (e,)
        A feasible point; edges at exactly 0 or 1 stay there, the others lie strictly between.
    is_perfect : bool
    tolerance : float, nats, wanted certified gap
    start : ndarray, shape (e,), optional, a solution for scores nearby

    Returns
    -------
    GraphSolution
        Marginals of the edges and of staying single, with both bounds.

    Raises
    ------
    InvalidProblemError
        If the scores are not finite, or a node that may stay single has rho = 0.

    Notes
    -----
    O(n^3 + e) a step and O(n^2) memory; about ten steps, more where the optimum is near a vertex.

    Examples
    --------
    >>> path = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    >>> found = compute_graph_pseudomarginals(np.zeros(4), path, np.ones(4), np.full(4, 0.5))
    >>> found.marginals.round(6).tolist(), round(found.value, 6)
    ([0.5, 0.5, 0.5, 0.5], 0.0)
    """
    scores = as_finite_array("scores", scores, shape=(len(edges),))
    check_shape("interior", interior, (len(edges),))
    if not is_perfect and not (rho > 0.0).all():
        raise InvalidProblemError("rho: expected numbers above 0 where nodes may stay single.")
    marginals, singles = np.array(interior, dtype=np.float64), np.zeros(len(rho))
    if not is_perfect:
        singles[:] = 1.0  # of nodes without a choice; the others' are overwritten
        singles[edges[interior >= 1.0]] = 0.0
    value = bound = float(scores[interior >= 1.0].sum())
    steps = 0
    parts = free_parts(edges, interior, len(rho))
    own_tolerance = tolerance / max(len(parts), 1)
    with one_blas_thread():
        for own in parts:
            problem = _Problem.build(scores[own], edges[own], rho, is_perfect)
            centre = problem.complete(interior[own])
            x = centre if start is None else problem.complete(start[own])
            inside = (1.0 - PULL) * x + PULL * centre
            found = maximise(problem, inside, centre, own_tolerance, MAX_STEPS)
            marginals[own] = found.point[: len(own)]
            singles[problem.nodes] = found.point[len(own) :] if not is_perfect else 0.0
            value, bound = value + found.value, bound + found.upper_bound
            steps += found.steps
    status = Status.CONVERGED if bound - value <= tolerance else Status.STALLED
    return GraphSolution(read_only(marginals), read_only(singles), value, bound, steps, status)


def free_parts(edges: IntArray, interior: FloatArray, n_nodes: int) -> list[IntArray]:
    """Return the indices of the edges with a choice, one array a connected part.

    Parts are solved apart: one whose optimum is a vertex would keep the others from their steps.
    """
    free = np.flatnonzero((interior > 0.0) & (interior < 1.0))
    shape = (n_nodes, n_nodes)
    graph = coo_array((np.ones(len(free)), tuple(edges[free].T)), shape=shape)
    labels = connected_components(graph, directed=False)[1][edges[free, 0]]
    return [free[labels == label] for label in np.unique(labels)]


@dataclass(frozen=True, slots=True)
class GraphCurvature:
    """The Hessian of log Z_rho in the scores, read at a solution.

    ``edges``, ``rho`` and ``interior`` as in ``compute_graph_pseudomarginals``.
    """

    edges: IntArray
    rho: FloatArray
    interior: FloatArray
    is_perfect: bool = True

    def of_features(self, tau: FloatArray, features: FloatArray) -> FloatArray:
        """Return F^T (D - D A^T (A D A^T)^-1 A D) F, shape (K, K), positive semidefinite.

        D: minus the inverse of the entropy's Hessian; A: the sums at nodes; F (e, K). Zeros, which
        say nothing, where numbers overflow.
        """
        hessian = np.zeros((features.shape[1],) * 2)
        for own in free_parts(self.edges, self.interior, len(self.rho)):
            problem = _Problem.build(tau[own], self.edges[own], self.rho, self.is_perfect)
            inverse = problem.inverse_curvature(np.maximum(problem.complete(tau[own]), TINY))
            weighted = inverse[: len(own), None] * features[own]
            sums = np.zeros((len(problem.nodes), features.shape[1]))
            for end in (0, 1):
                np.add.at(sums, problem.edges[:, end], weighted)
            hessian += features[own].T @ weighted - sums.T @ problem.solve(inverse, sums)
        return as_semidefinite(hessian)


@dataclass(frozen=True, slots=True)
class _Problem:
    """The free edges of one part and, unless perfect, a single at every node.

    ``nodes`` (m,) are the graph's names of the part's nodes 0 .. m - 1.
    """

    scores: FloatArray
    edges: IntArray
    counts: FloatArray
    rho: FloatArray
    nodes: IntArray

    @staticmethod
    def build(scores: FloatArray, edges: IntArray, rho: FloatArray, is_perfect: bool) -> "_Problem":
        """Number the nodes anew."""
        nodes, own = np.unique(edges, return_inverse=True)
        counts = rho[edges[:, 0]] + rho[edges[:, 1]] - 1.0
        weights = np.empty(0) if is_perfect else rho[nodes]
        return _Problem(scores, own.reshape(edges.shape), counts, weights, nodes)

    def complete(self, tau: FloatArray) -> FloatArray:
        """Return the edges' marginals followed by those of the singles."""
        missing = 1.0 - self._sums(np.concatenate([tau, np.zeros(len(self.rho))]))
        return np.concatenate([tau, np.maximum(missing, TINY)[: len(self.rho)]])

    def value(self, x: FloatArray) -> float:
        """Return <W, tau> + H, nats."""
        tau, singles = np.split(x, [len(self.edges)])
        rest = self._rest(x)
        entropy = self.counts * rest * np.log(rest) - tau * np.log(tau)
        return float((self.scores * tau + entropy).sum() - self.rho @ (singles * np.log(singles)))

    def newton(self, x: FloatArray) -> NewtonStep:
        """Return the Newton step, which also repairs the sums at nodes."""
        gradient, inverse = self._gradient(x), self.inverse_curvature(x)
        right = self._sums(inverse * gradient) + self._excess(x)
        multipliers = self.solve(inverse, right[:, None])[:, 0]
        reduced = gradient - self._spread(multipliers)
        direction = inverse * reduced
        # gradient @ direction would add multipliers times rounding: enough to end the steps early
        return NewtonStep(direction, float(reduced @ direction), gradient, multipliers)

    def gap(self, x: FloatArray, newton: NewtonStep, wanted: float) -> float:
        """Return a bound of max_s <s - x, gradient> over the constraints, nats.

        With r the gradient less the multipliers of its nodes, which a feasible s does not see, an
        edge counts half at both of its nodes, and a node gives its whole to what promises most.
        """
        reduced = newton.gradient - self._spread(newton.multipliers)
        tops = np.full(len(self.nodes), -np.inf)
        for end in (0, 1):
            np.maximum.at(tops, self.edges[:, end], 0.5 * reduced[: len(self.edges)])
        if len(self.rho):
            tops = np.maximum(tops, reduced[len(self.edges) :])
        missing = np.maximum(np.abs(self._excess(x)), np.abs(self._sums(x) - 1.0))
        slack = float(missing @ (1.0 + np.abs(newton.multipliers)))
        return max(float(tops.sum() - reduced @ x), 0.0) + slack

    def fallback(self, x: FloatArray, newton: NewtonStep) -> None:
        """Return none: a vertex would cost a matching, for the sake of the last digits."""

    def room(self, x: FloatArray, direction: FloatArray) -> float:
        """Return the largest step that keeps every entry between 0 and 1."""
        rest = np.concatenate([self._rest(x), np.full(len(self.rho), np.inf)])
        room = np.where(direction < 0.0, x, rest) / np.maximum(np.abs(direction), TINY)
        room[x <= TINY] = np.inf  # stays there, or rises
        return float(room.min())

    def settle(self, x: FloatArray) -> FloatArray:
        """Give every likely edge what the others leave it, so that no rounding adds up in it."""
        x = np.maximum(x, TINY)
        likely, others = self._others(x)
        x[: len(self.edges)][likely] = 1.0 - others[self.edges[likely, 0]]
        return x

    def eased(self, cut: float) -> "_Problem":
        """Return the problem with smaller counting numbers."""
        return replace(self, counts=self.counts - cut)

    def inverse_curvature(self, x: FloatArray) -> FloatArray:
        """Return minus the inverse of the diagonal Hessian, kept finite."""
        tau, singles = np.split(x, [len(self.edges)])
        on_edges = inverse_curvature(tau, self._rest(x), self.counts)
        return np.concatenate([on_edges, singles / self.rho])

    def solve(self, inverse: FloatArray, right: FloatArray) -> FloatArray:
        """Solve A diag(inverse) A^T y = right, A the sums at nodes; ``right`` (m, k).

        Scaled first; singular where a component has two sides, whose multipliers may trade.
        """
        count = len(self.nodes)
        first, second = self.edges.T
        on_edges = inverse[: len(self.edges)]
        matrix = np.zeros((count, count))
        np.add.at(matrix, (first, second), on_edges)
        np.add.at(matrix, (second, first), on_edges)
        matrix[np.diag_indices(count)] += self._sums(inverse)
        scale = 1.0 / np.sqrt(np.maximum(np.abs(matrix).max(axis=1, initial=0.0), TINY))
        scaled = matrix * scale[:, None] * scale
        solution = np.linalg.lstsq(scaled, right * scale[:, None], rcond=1e-13)[0]
        return np.asarray(solution * scale[:, None])

    def _gradient(self, x: FloatArray) -> FloatArray:
        tau, singles = np.split(x, [len(self.edges)])
        on_edges = self.scores - self.counts * (1.0 + np.log(self._rest(x))) - 1.0 - np.log(tau)
        return np.concatenate([on_edges, -self.rho * (1.0 + np.log(singles))])

    def _rest(self, x: FloatArray) -> FloatArray:
        """Return 1 - tau, from what else its first node has where tau is near 1."""
        likely, others = self._others(x)
        rest = np.maximum(others[self.edges[:, 0]], TINY)
        return np.where(likely, rest, 1.0 - x[: len(self.edges)])

    def _excess(self, x: FloatArray) -> FloatArray:
        """Return the sums at nodes minus 1.

        The first node of a likely edge is exact by definition of ``_rest``, and the second compares
        the small entries alone: 1 + 1e-20 would hide them.
        """
        likely, others = self._others(x)
        out = self._sums(x) - 1.0
        first, second = self.edges[likely].T
        out[first], out[second] = 0.0, others[second] - others[first]
        return out

    def _others(self, x: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Return which edges are likelier than all others together, and the sums without them."""
        tau, singles = np.split(x, [len(self.edges)])
        likely = tau > 0.5  # at most one at a node
        return likely, self._sums(np.concatenate([np.where(likely, 0.0, tau), singles]))

    def _sums(self, x: FloatArray) -> FloatArray:
        """Return A x: what every node has in all."""
        tau, singles = np.split(x, [len(self.edges)])
        count = len(self.nodes)
        total = np.bincount(self.edges[:, 0], tau, count) + np.bincount(
            self.edges[:, 1], tau, count
        )
        return np.asarray(total + singles) if len(singles) else np.asarray(total)

    def _spread(self, multipliers: FloatArray) -> FloatArray:
        """Return A^T y."""
        on_edges = multipliers[self.edges[:, 0]] + multipliers[self.edges[:, 1]]
        return np.concatenate([on_edges, multipliers[: len(self.rho)]])
