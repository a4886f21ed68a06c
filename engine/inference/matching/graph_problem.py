"""Matching problem of one connected part of a graph under its degree constraints.

    max <W, tau> + H_rho(tau)   with   d_i + f_i = 1,   f_i = 0 if perfect, f_i >= 0 if not

The probability f_i of staying single is a variable of its own, which makes the entropy a sum over
variables and its Hessian diagonal.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.newton_ascent import NewtonStep, inverse_curvature

LIKELY = 0.6  # at most one at a node, even while sums are inexact
FAR_OFF = 1e-3  # error of a node's sum beyond which nothing is proved
UNSEEN = 1e-10  # entries near the rounding of the sums
SMALL = 1e-14  # entries below the rounding of the sums: steps change their logarithms
LONGEST_FALL = 40.0  # largest fall of a logarithm in one step
SUM_ERROR = 1e-10  # largest error of a node's sum at a point whose value counts
REPAIRS = 3  # of sums; one is exact up to rounding unless an entry reaches 0
SINGULAR = 1e-13  # share of the largest entry that a scaled system cannot tell from 0


def free_parts(edges: IntArray, interior: FloatArray, n_nodes: int) -> list[IntArray]:
    """Return the indices of the free edges, one array a connected part.

    Parts are solved separately: one whose optimum is a vertex would shorten the others' steps.
    """
    free = np.flatnonzero((interior > 0.0) & (interior < 1.0))
    shape = (n_nodes, n_nodes)
    graph = coo_array((np.ones(len(free)), tuple(edges[free].T)), shape=shape)
    labels = connected_components(graph, directed=False)[1][edges[free, 0]]
    return [free[labels == label] for label in np.unique(labels)]


@dataclass(frozen=True, slots=True)
class GraphProblem:
    """Free edges of one part and, unless matchings are perfect, a single at every node.

    ``nodes`` (m,) are the graph's numbers of the part's nodes 0 .. m - 1.
    """

    scores: FloatArray
    edges: IntArray
    node_counts: FloatArray
    rho: FloatArray
    nodes: IntArray

    @staticmethod
    def build(
        scores: FloatArray, edges: IntArray, rho: FloatArray, is_perfect: bool
    ) -> "GraphProblem":
        """Build the problem of some edges with renumbered nodes."""
        nodes, own = np.unique(edges, return_inverse=True)
        weights = np.empty(0) if is_perfect else rho[nodes]
        return GraphProblem(
            scores, own.reshape(edges.shape), 2.0 * rho[nodes] - 1.0, weights, nodes
        )

    def complete(self, tau: FloatArray) -> FloatArray:
        """Return the edges' marginals followed by those of the singles, which complete the sums."""
        missing = 1.0 - self.sums(np.concatenate([tau, np.zeros(len(self.rho))]))
        return np.concatenate(
            [tau, np.maximum(missing, TOLERANCES.smallest_entry)[: len(self.rho)]]
        )

    def value(self, x: FloatArray) -> float:
        """Return <W, tau> + H, nats."""
        tau, singles = np.split(x, [len(self.edges)])
        rest = self.rest(x)
        entropy = self.counts * rest * np.log(rest) - tau * np.log(tau)
        return float((self.scores * tau + entropy).sum() - self.rho @ (singles * np.log(singles)))

    def newton(self, x: FloatArray) -> NewtonStep:
        """Return the Newton step, which also repairs the sums at nodes."""
        gradient, inverse = self.gradient(x), self.inverse_curvature(x)
        right = self.sums(inverse * gradient) + self.excess(x)
        multipliers = self.solve(inverse, right[:, None])[:, 0]
        reduced = gradient - self.spread(multipliers)
        direction = inverse * reduced
        # gradient @ direction would add multipliers times rounding, which may end the steps early
        return NewtonStep(direction, float(reduced @ direction), gradient, multipliers)

    def gap(self, x: FloatArray, newton: NewtonStep, wanted: float) -> float:
        """Return the difference of ``bound`` and value, nats."""
        return self.bound(x, newton.multipliers) - self.value(x)

    def bound(
        self, x: FloatArray, multipliers: FloatArray, prices: FloatArray | float = 0.0
    ) -> float:
        """Return a bound of the maximum from any multipliers of the nodes and prices of edges.

        ``multipliers`` (m,); ``prices`` (e,) are taken off the scores: the caller adds a bound of
        <prices, s> for feasible s. A node gives its whole unit to its best entry, an edge counting
        half at both of its nodes. The tangent holds at any point: entries too small for steps are
        first set to the values that the multipliers imply.
        """
        paid = self.spread(multipliers)
        paid[: len(self.edges)] += prices
        first = self._bound_at(x, multipliers, paid)
        is_small = x <= UNSEEN
        if not is_small.any() or not np.isfinite(first):
            return first
        wanted = np.exp(np.clip(self.tangent(x)[1] - paid, -LONGEST_FALL, LONGEST_FALL))
        moved = np.where(is_small, np.clip(x * wanted, TOLERANCES.smallest_entry, 10.0 * UNSEEN), x)
        return min(first, self._bound_at(moved, multipliers, paid))

    def _bound_at(self, x: FloatArray, multipliers: FloatArray, paid: FloatArray) -> float:
        """Return the bound by the tangent at x, with ``paid`` (of x's shape) subtracted."""
        constant, rewards = self.tangent(x)
        rewards -= paid
        on_edges = rewards[: len(self.edges)]
        tops = np.full(len(self.nodes), -np.inf)
        for end in (0, 1):
            np.maximum.at(tops, self.edges[:, end], 0.5 * on_edges)
        if len(self.rho):
            tops = np.maximum(tops, rewards[len(self.edges) :])
        summed = np.abs(multipliers).sum() + np.abs(rewards).sum() + abs(constant)
        return constant + float(multipliers.sum() + tops.sum() + TOLERANCES.rounding * summed)

    def tangent(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return a constant c and rewards r (of x's shape) such that value(s) <= c + <s, r>.

        ``x`` is positive; its sums need not be exact. A node's half of its edges' terms is concave
        if the node's own sum is one (Tang 2015, theorem 1): so every node is evaluated by itself,
        its entries scaled to that sum. Near a vertex log(1 - tau) depends on the smallest entries,
        and the difference between an edge's two nodes would count.
        """
        tau, singles = np.split(x, [len(self.edges)])
        likely, others = self._others(x)
        sums = self.sums(x)
        rewards, constant = self.scores.copy(), 0.0
        if not np.abs(sums - 1.0).max(initial=0.0) < FAR_OFF:
            constant = np.inf
        for node in self.edges.T:
            own, count = tau / sums[node], self.node_counts[node]
            rest = np.where(
                likely, np.maximum(others[node], TOLERANCES.smallest_entry) / sums[node], 1.0 - own
            )
            rewards -= 0.5 * (count * (1.0 + np.log(rest)) + 1.0 + np.log(own))
            constant += 0.5 * float((count * np.log(rest) + (count + 1.0) * own).sum())
        own = singles / sums if len(self.rho) else singles
        constant += float(self.rho @ own)
        return constant, np.concatenate([rewards, -self.rho * (1.0 + np.log(own))])

    def fallback(self, x: FloatArray, newton: NewtonStep) -> None:
        """Return None: a vertex would cost a matching and improve only the last digits."""

    def room(self, x: FloatArray, direction: FloatArray) -> float:
        """Return the largest step that keeps all but the smallest entries between 0 and 1.

        Otherwise the many falling small entries would shorten the step of a larger one.
        """
        rest = np.concatenate([self.rest(x), np.full(len(self.rho), np.inf)])
        room = np.where(direction < 0.0, x, rest) / np.maximum(
            np.abs(direction), TOLERANCES.smallest_entry
        )
        room[x <= SMALL] = np.inf
        return float(room.min())

    def move(self, x: FloatArray, step: FloatArray) -> FloatArray:
        """Take a step, in which the smallest entries move by their logarithms.

        Every likely edge gets the remainder of its node, so that no rounding accumulates in it.
        """
        factor = np.exp(np.clip(step / x, -LONGEST_FALL, LONGEST_FALL))
        x = np.where(
            x <= SMALL, np.clip(x * factor, TOLERANCES.smallest_entry, 2.0 * SMALL), x + step
        )
        return self.settle(x)

    def settle(self, x: FloatArray) -> FloatArray:
        """Return x with positive entries, every likely edge the remainder of its first node."""
        x = np.maximum(x, TOLERANCES.smallest_entry)
        likely, others = self._others(x)
        x[: len(self.edges)][likely] = 1.0 - others[self.edges[likely, 0]]
        return x

    def is_feasible(self, x: FloatArray) -> bool:
        """Return whether the sums at nodes are exact enough for the value at x to count."""
        return bool(np.abs(self.excess(x)).max(initial=0.0) <= SUM_ERROR)

    def repair(self, x: FloatArray) -> FloatArray:
        """Return a point nearby with exact sums at nodes; entries move by shares of their room.

        A step's system loses digits where curvature vanishes, as at 1/2 if rho is 1; this one does
        not depend on the curvature.
        """
        for _ in range(REPAIRS):
            if self.is_feasible(x):
                break
            room = np.concatenate([x[: len(self.edges)] * self.rest(x), x[len(self.edges) :]])
            moves = self.spread(self.solve(room, -self.excess(x)[:, None])[:, 0])
            x = self.settle(x + room * moves)
        return x

    @property
    def counts(self) -> FloatArray:
        """Counting numbers of the edges: the mean of their nodes'."""
        return np.asarray(self.node_counts[self.edges].mean(axis=1))

    def curvature(self, x: FloatArray) -> FloatArray:
        """Return minus the diagonal Hessian, of any sign."""
        tau, singles = np.split(x, [len(self.edges)])
        return np.concatenate([1.0 / tau - self.counts / self.rest(x), self.rho / singles])

    def inverse_curvature(self, x: FloatArray) -> FloatArray:
        """Return minus the inverse of the diagonal Hessian, kept finite."""
        tau, singles = np.split(x, [len(self.edges)])
        on_edges = inverse_curvature(tau, self.rest(x), self.counts)
        return np.concatenate([on_edges, singles / self.rho])

    def solve(self, inverse: FloatArray, right: FloatArray) -> FloatArray:
        """Solve A diag(inverse) A^T y = right, A the sums at nodes; ``right`` (m, k)."""
        return solve_scaled(self.node_matrix(inverse), right)

    def node_matrix(self, inverse: FloatArray) -> FloatArray:
        """Return A diag(inverse) A^T, (m, m)."""
        count = len(self.nodes)
        first, second = self.edges.T
        places, on_edges = first * count + second, inverse[: len(self.edges)]
        upper = np.bincount(places, on_edges, count * count).reshape(count, count)
        matrix: FloatArray = (upper + upper.T).astype(np.float64)
        matrix[np.diag_indices(count)] += self.sums(inverse)
        return matrix

    def gradient(self, x: FloatArray) -> FloatArray:
        tau, singles = np.split(x, [len(self.edges)])
        on_edges = self.scores - self.counts * (1.0 + np.log(self.rest(x))) - 1.0 - np.log(tau)
        return np.concatenate([on_edges, -self.rho * (1.0 + np.log(singles))])

    def rest(self, x: FloatArray) -> FloatArray:
        """Return 1 - tau, computed as the sum of the first node's others where tau is near 1."""
        likely, others = self._others(x)
        rest = np.maximum(others[self.edges[:, 0]], TOLERANCES.smallest_entry)
        return np.where(likely, rest, 1.0 - x[: len(self.edges)])

    def excess(self, x: FloatArray) -> FloatArray:
        """Return the sums at nodes minus 1.

        The first node of a likely edge is exact by definition of ``rest``, and the second compares
        the small entries alone, because 1 + 1e-20 would lose them.
        """
        likely, others = self._others(x)
        out = self.sums(x) - 1.0
        first, second = self.edges[likely].T
        out[first], out[second] = 0.0, others[second] - others[first]
        return out

    def _others(self, x: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Return a mask of the likely edges, and the sums without them."""
        tau, singles = np.split(x, [len(self.edges)])
        likely = tau > LIKELY
        return likely, self.sums(np.concatenate([np.where(likely, 0.0, tau), singles]))

    def sums(self, x: FloatArray) -> FloatArray:
        """Return A x, the sum at every node."""
        tau, singles = np.split(x, [len(self.edges)])
        count = len(self.nodes)
        total = np.bincount(self.edges[:, 0], tau, count) + np.bincount(
            self.edges[:, 1], tau, count
        )
        return np.asarray(total + singles) if len(singles) else np.asarray(total)

    def spread(self, multipliers: FloatArray) -> FloatArray:
        """Return A^T y."""
        on_edges = multipliers[self.edges[:, 0]] + multipliers[self.edges[:, 1]]
        return np.concatenate([on_edges, multipliers[: len(self.rho)]])


def solve_scaled(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a symmetric system, scaled first; ``right`` (m, k).

    A bipartite component makes the system singular; it is then solved by least squares.
    """
    scale = 1.0 / np.sqrt(
        np.maximum(np.abs(matrix).max(axis=1, initial=0.0), TOLERANCES.smallest_entry)
    )
    scaled = matrix * scale[:, None] * scale
    solution = np.linalg.lstsq(scaled, right * scale[:, None], rcond=SINGULAR)[0]
    return np.asarray(solution * scale[:, None])
