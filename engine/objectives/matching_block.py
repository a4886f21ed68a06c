"""Matchings as blocks of the learning problem: surveys, items of two sides, general graphs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from engine.core.arguments import FloatArray, IntArray, check_shape
from engine.core.checkpoint import SavedState, State
from engine.core.errors import InvalidProblemError
from engine.crf.bipartite import BipartiteItems, check_assignment
from engine.crf.survey import Survey, check_pairs, partners_of
from engine.crf.survey_features import SurveyFeatures
from engine.entropies.matching import (
    MatchingEntropy,
    MatchingLayout,
    bipartite_layout,
    complete_layout,
    edge_layout,
    make_matching_entropy,
)
from engine.objectives.interior_start import find_interior_start
from engine.objectives.protocol import ExtremeDirection
from engine.oracles.assignment import assign
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.sparse_matching import MatchingKind, max_weight_matching

Oracle = Callable[[FloatArray], tuple[IntArray, float]]  # scores -> chosen places, upper bound


class EdgeModel(Protocol):
    """How weights become scores of edges, and pseudomarginals statistics."""

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return W in the layout of tau."""

    def statistics(self, tau: FloatArray) -> FloatArray:
        """Return phi(tau), shape (K,), linear in tau."""

    def vertex_statistics(self, vertex: IntArray) -> FloatArray:
        """Return phi of the indicator of some flat places."""


@dataclass(slots=True)
class MatchingBlock:
    """A block over matchings; the point is tau in its layout, a vertex its flat places.

    Parameters
    ----------
    model : EdgeModel
    entropy_function : MatchingEntropy
    oracle : callable, scores -> (places of a best matching, certified upper bound of its score).
    observed : ndarray, shape (K,), phi(Y).
    start : ndarray, an interior point.
    """

    model: EdgeModel
    entropy_function: MatchingEntropy
    oracle: Oracle
    observed: FloatArray
    start: FloatArray
    _asked: tuple[FloatArray, FloatArray] | None = None
    _scores: FloatArray = field(default_factory=lambda: np.empty(0))
    _mean: float = 0.0

    def initial_point(self) -> FloatArray:
        """Return the interior start."""
        return self.start.copy()

    def statistics(self, point: FloatArray) -> FloatArray:
        """Return phi(tau), shape (K,)."""
        return self.model.statistics(point)

    def entropy(self, point: FloatArray) -> float:
        """Return H_rho(tau), nats."""
        return self.entropy_function.value(point)

    def compute_extreme_direction(self, theta: FloatArray, point: FloatArray) -> ExtremeDirection:
        """Answer the linear maximisation at W + grad H(tau) by one matching."""
        scores = self._scores_at(theta, point)
        vertex, upper_bound = self.oracle(scores)
        gap = max(upper_bound - self._mean, 0.0)
        return ExtremeDirection(vertex, self.model.vertex_statistics(vertex), gap)

    def directional_slope(self, theta: FloatArray, point: FloatArray, vertex: IntArray) -> float:
        """Return <s - tau, W + grad H(tau)>, nats; O(n) after the first at one point."""
        scores = self._scores_at(theta, point)
        chosen = float(scores.ravel()[vertex].sum()) * self.entropy_function.layout.share
        return chosen - self._mean

    def _scores_at(self, theta: FloatArray, point: FloatArray) -> FloatArray:
        if self._asked is None or self._asked[0] is not theta or self._asked[1] is not point:
            self._scores = self.model.scores(theta) + self.entropy_function.gradient(point)
            product = float(np.einsum("i,i->", point.ravel(), self._scores.ravel()))
            self._mean = self.entropy_function.layout.share * product
            self._asked = (theta, point)
        return self._scores

    def segment(
        self, point: FloatArray, vertex: IntArray, away: IntArray | None = None
    ) -> "MatchingSegment":
        """Return the line towards a vertex, or from one vertex to another."""
        return MatchingSegment(self.entropy_function, point, vertex, away)

    def combine(self, vertices: Sequence[IntArray], weights: FloatArray) -> FloatArray:
        """Return weights[0] start + sum_k weights[k + 1] vertices[k]."""
        point: FloatArray = weights[0] * self.start
        flat = point.reshape(-1)
        for vertex, weight in zip(vertices, weights[1:], strict=True):
            flat[vertex] += weight
        return point

    def expand(
        self, theta: FloatArray, point: FloatArray, vertices: Sequence[IntArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return slopes and curvature in the weights of the start and of vertices.

        See ``engine.solvers.fully_corrective_frank_wolfe``. O(k n + n^2) and the edges shared.
        """
        scores = self._scores_at(theta, point).ravel()
        start, share = self.start.ravel(), self.entropy_function.layout.share
        totals = [float(np.einsum("i,i->", start, scores)), *(scores[v].sum() for v in vertices)]
        slopes = share * np.array(totals) - self._mean
        return slopes, self.entropy_function.curvature_among(point, self.start, vertices)

    def pack(self, point: FloatArray) -> State:
        """Return the point as arrays."""
        return {"tau": point}

    def unpack(self, state: SavedState) -> FloatArray:
        """Restore a point."""
        return np.array(state["tau"], dtype=np.float64)


@dataclass(slots=True)
class MatchingSegment:
    """tau + g (v - tau), or tau + g (v - w)."""

    entropy_function: MatchingEntropy
    tau: FloatArray
    vertex: IntArray
    away: IntArray | None
    _base: float | None = None

    @property
    def longest(self) -> float:
        """1 towards a vertex; between vertices as far as the giver's edges have weight."""
        if self.away is None:
            return 1.0
        giving = np.setdiff1d(self.away, self.vertex)
        taking = np.setdiff1d(self.vertex, self.away)
        flat = self.tau.ravel()
        limits = np.concatenate([flat[giving], 1.0 - flat[taking]])
        return float(limits.min()) if len(limits) else 1.0

    def entropy(self, step: float) -> tuple[float, float, float]:
        """Return H with its first and second derivative in g, nats."""
        if self.away is None:
            return self.entropy_function.along_vertex(self.tau, self.vertex, step)
        if self._base is None:
            self._base = self.entropy_function.value(self.tau)
        return self.entropy_function.along_exchange(
            self.tau, self._base, self.vertex, self.away, step
        )

    def point(self, step: float) -> FloatArray:
        """Return the point at g, as a new view on the memory of tau."""
        flat = self.tau.reshape(-1)
        if self.away is None:
            flat *= 1.0 - step
            flat[self.vertex] += step
        else:
            flat[self.vertex] += step
            flat[self.away] = np.maximum(flat[self.away] - step, 0.0)
        return flat.reshape(self.entropy_function.layout.shape)


@dataclass(frozen=True, slots=True)
class SurveyEdges:
    """Pairs of students: W = Z S Z^T and phi read off Z^T tau Z."""

    survey: Survey
    features: SurveyFeatures
    one_hot: FloatArray

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return W, shape (n, n)."""
        return self.features.scores(self.survey, theta)

    def statistics(self, tau: FloatArray) -> FloatArray:
        """Return phi(tau)."""
        return self.features.statistics(self.one_hot.T @ (tau @ self.one_hot))

    def vertex_statistics(self, vertex: IntArray) -> FloatArray:
        """Return phi of a matching given by both places of every pair."""
        n = self.survey.n_students
        rows, columns = np.divmod(vertex, n)
        pairs = np.stack([rows, columns], axis=1)[rows < columns]
        return self.features.pair_statistics(self.survey, pairs)


def make_survey_block(
    survey: Survey, pairs: IntArray, features: SurveyFeatures, rho: float
) -> MatchingBlock:
    """Build the block of one cohort: perfect matchings of a complete graph of its paired students.

    Start: tau = 1 / (n - 1).
    """
    pairs = check_pairs(pairs, survey.n_students, survey.ids)
    paired = np.sort(pairs.ravel())
    small = survey.take(paired)
    n = len(paired)
    model = SurveyEdges(small, features, features.one_hot(small))
    matcher = CompleteGraphMatcher()

    def oracle(scores: FloatArray) -> tuple[IntArray, float]:
        matching = matcher.solve(scores)
        return np.arange(n, dtype=np.int64) * n + matching.partner, matching.upper_bound

    start = np.full((n, n), 1.0 / max(n - 1, 1))
    np.fill_diagonal(start, 0.0)
    partner = np.searchsorted(paired, partners_of(pairs, survey.n_students)[paired])
    return MatchingBlock(
        model,
        make_matching_entropy(complete_layout(n), rho),
        oracle,
        model.vertex_statistics(np.arange(n, dtype=np.int64) * n + partner),
        start,
    )


@dataclass(frozen=True, slots=True)
class ItemEdges:
    """Items of two sides with explicit features per edge."""

    items: BipartiteItems

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return W, shape (n, n)."""
        return self.items.scores(theta)

    def statistics(self, tau: FloatArray) -> FloatArray:
        """Return phi(tau)."""
        return self.items.statistics(tau)

    def vertex_statistics(self, vertex: IntArray) -> FloatArray:
        """Return phi of an assignment given by its flat places."""
        return self.items.assignment_statistics(vertex % self.items.n_items)


def make_bipartite_block(
    items: BipartiteItems, columns: IntArray, rho: float | FloatArray
) -> MatchingBlock:
    """Build the block of one assignment; start tau = 1 / n. ``columns`` (n,): the observed ones.

    Raises
    ------
    InvalidProblemError
        If the columns are no permutation or rho is out of range.
    """
    columns = check_assignment(columns, items.n_items)
    n = items.n_items

    def oracle(scores: FloatArray) -> tuple[IntArray, float]:
        solution = assign(scores)
        places = np.arange(n, dtype=np.int64) * n + solution.columns
        return places, solution.upper_bound

    return MatchingBlock(
        ItemEdges(items),
        make_matching_entropy(bipartite_layout(n, n), rho),
        oracle,
        items.assignment_statistics(columns),
        np.full((n, n), 1.0 / n),
    )


@dataclass(frozen=True, slots=True)
class GraphEdges:
    """Edges of a general graph with explicit features, shape (e, K)."""

    features: FloatArray

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return W, shape (e,)."""
        scores: FloatArray = self.features @ theta
        return scores

    def statistics(self, tau: FloatArray) -> FloatArray:
        """Return phi(tau)."""
        total: FloatArray = tau @ self.features
        return total

    def vertex_statistics(self, vertex: IntArray) -> FloatArray:
        """Return phi of some edges."""
        total: FloatArray = self.features[vertex].sum(axis=0)
        return total


def make_graph_block(
    n_nodes: int,
    edges: IntArray,
    features: FloatArray,
    matched: IntArray,
    rho: float | FloatArray,
    *,
    is_perfect: bool = True,
) -> MatchingBlock:
    """Build the block of a matching of a general graph.

    Parameters
    ----------
    n_nodes : int
    edges : ndarray, shape (e, 2)
    features : ndarray, shape (e, K)
    matched : ndarray, indices of the observed edges.
    rho : float or ndarray, shape (n_nodes,).
    is_perfect : bool, whether every node is matched in every matching.

    Raises
    ------
    InfeasibleError
        If ``is_perfect`` and the graph has no perfect matching; it carries a deficient set.
    InvalidProblemError
        If an edge is a loop, the observed edges are no matching or rho is out of range.
    """
    layout = edge_layout(n_nodes, edges)
    kind: MatchingKind = "perfect" if is_perfect else "any"

    def oracle(scores: FloatArray) -> tuple[IntArray, float]:
        matching = max_weight_matching(n_nodes, edges, scores, kind)
        return matching.edge_indices, matching.upper_bound

    start = interior_of_graph(layout, is_perfect=is_perfect)
    matched = check_matching(layout, matched, is_perfect=is_perfect)
    model = GraphEdges(np.asarray(features, dtype=np.float64))
    entropy = make_matching_entropy(layout, rho, is_perfect=is_perfect)
    return MatchingBlock(model, entropy, oracle, model.vertex_statistics(matched), start)


def interior_of_graph(layout: MatchingLayout, *, is_perfect: bool) -> FloatArray:
    """Return an interior point, shape (e,); edges without a choice are at exactly 0 or 1.

    Raises
    ------
    InfeasibleError
        If ``is_perfect`` and the graph has no perfect matching.
    """
    edges = np.empty((0, 2), dtype=np.int64) if layout.edges is None else layout.edges
    if not is_perfect:
        degrees = np.bincount(edges.ravel(), minlength=1)
        return np.full(len(edges), 1.0 / (float(degrees.max()) + 2.0))

    def oracle(weights: FloatArray) -> IntArray:
        return max_weight_matching(layout.n_nodes, edges, weights, "perfect").edge_indices

    return np.array(find_interior_start(len(edges), oracle).tau)


def check_matching(layout: MatchingLayout, matched: IntArray, *, is_perfect: bool) -> IntArray:
    """Return indices of edges as int64 after checking that they are a matching.

    Raises
    ------
    InvalidProblemError
        If an index names no edge, two edges share a node or, if perfect, a node has none.
    """
    matched = np.asarray(matched, dtype=np.int64)
    check_shape("matched", matched, (None,))
    if len(matched) and (matched.min() < 0 or matched.max() >= layout.shape[0]):
        raise InvalidProblemError(f"matched: expected edges from 0 to {layout.shape[0] - 1}.")
    counts = np.bincount(np.concatenate(layout.ends(matched)), minlength=layout.n_nodes)
    wrong = np.flatnonzero((counts > 1) | (is_perfect & (counts == 0)))
    if len(wrong):
        node = int(wrong[0])
        wanted = "one edge" if is_perfect else "at most one edge"
        raise InvalidProblemError(
            f"matched: expected {wanted} at node {node}, received {int(counts[node])}."
        )
    return matched
