"""Pairwise models: any graph, any number of labels per node, zeros allowed."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from engine.core.arguments import FloatArray, IntArray, as_float_array, read_only
from engine.core.errors import InvalidProblemError

if TYPE_CHECKING:  # a graph alone needs no compiler, which takes half a second to load
    from engine.kernels.messages_pairwise import Layout


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseGraph:
    """Nodes with their numbers of labels, and edges between them.

    Tables are stored in one flat vector: node tables in order, then edge tables (labels of the
    first end, labels of the second) in order. The incidence lists give for each node the edges that
    touch it and their end there. Messages belong to the ends of edges, 2 e + k for end k of edge e,
    each with one entry per label of that node.

    Parameters
    ----------
    cardinalities : ndarray, shape (n_nodes,), int64, number of labels of each node.
    edges : ndarray, shape (n_edges, 2), int64, indices of the ends.

    Raises
    ------
    InvalidProblemError
        If a node has no label, or an edge is a loop or ends at an unknown node.

    Examples
    --------
    >>> graph = PairwiseGraph(np.array([2, 3]), np.array([[0, 1]]))
    >>> graph.n_nodes, graph.size
    (2, 11)
    """

    cardinalities: IntArray
    edges: IntArray
    node_start: IntArray = field(init=False)
    edge_start: IntArray = field(init=False)
    incident_start: IntArray = field(init=False)
    incident_edge: IntArray = field(init=False)
    message_start: IntArray = field(init=False)

    def __post_init__(self) -> None:
        """Check the graph and lay out the flat vector.

        Raises
        ------
        InvalidProblemError
            For a node without labels, an unknown node in an edge, a loop or a repeated edge.
        """
        cards = np.ascontiguousarray(self.cardinalities, dtype=np.int64)
        edges = np.ascontiguousarray(self.edges, dtype=np.int64).reshape(-1, 2)
        if cards.ndim != 1 or len(cards) == 0 or cards.min() < 1:
            raise InvalidProblemError("A model needs nodes, each with at least one label.")
        if len(edges):
            self._check_edges(edges, len(cards))
        sizes = cards[edges[:, 0]] * cards[edges[:, 1]]
        node_start = np.concatenate([[0], np.cumsum(cards)])
        edge_start = node_start[-1] + np.concatenate([[0], np.cumsum(sizes)])
        ends = edges.ravel()  # end k of edge e has number 2 e + k
        order = np.argsort(ends, kind="stable")
        counts = np.bincount(ends, minlength=len(cards))
        for name, value in (
            ("cardinalities", cards),
            ("edges", edges),
            ("node_start", node_start.astype(np.int64)),
            ("edge_start", edge_start.astype(np.int64)),
            ("incident_start", np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)),
            ("incident_edge", order.astype(np.int64)),
            ("message_start", np.concatenate([[0], np.cumsum(cards[ends])]).astype(np.int64)),
        ):
            object.__setattr__(self, name, read_only(value))

    @staticmethod
    def _check_edges(edges: IntArray, n_nodes: int) -> None:
        if edges.min() < 0 or edges.max() >= n_nodes:
            raise InvalidProblemError(f"edges: expected node numbers 0 to {n_nodes - 1}.")
        if (edges[:, 0] == edges[:, 1]).any():
            raise InvalidProblemError("edges: an edge joins a node to itself.")
        low, high = edges.min(axis=1), edges.max(axis=1)
        if len(np.unique(low * n_nodes + high)) != len(edges):
            raise InvalidProblemError("edges: two edges join the same nodes; add their tables.")

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.cardinalities)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.edges)

    @property
    def size(self) -> int:
        """Length of a flat vector of tables."""
        return int(self.edge_start[-1])

    @property
    def n_messages(self) -> int:
        """Number of entries of all messages."""
        return int(self.message_start[-1])

    @property
    def largest_degree(self) -> int:
        """Largest number of edges at a node."""
        return int(np.diff(self.incident_start).max())

    @property
    def layout(self) -> "Layout":
        """Arrays that locate tables and messages, in the order in which kernels take them."""
        return (
            self.cardinalities,
            self.edges,
            self.node_start,
            self.edge_start,
            self.incident_start,
            self.incident_edge,
            self.message_start,
        )

    @property
    def is_binary(self) -> bool:
        """Return True if every node has exactly two labels."""
        return bool((self.cardinalities == 2).all())

    def node_table(self, flat: FloatArray, node: int) -> FloatArray:
        """Return the view of one node's table, shape (labels,)."""
        return flat[self.node_start[node] : self.node_start[node + 1]]

    def edge_table(self, flat: FloatArray, edge: int) -> FloatArray:
        """Return the view of one edge's table, shape (labels of first, labels of second)."""
        i, j = self.edges[edge]
        part = flat[self.edge_start[edge] : self.edge_start[edge + 1]]
        return part.reshape(int(self.cardinalities[i]), int(self.cardinalities[j]))

    def message_places(self) -> tuple[IntArray, IntArray]:
        """Return the indices in messages to the first and to the second end of the labels of each
        entry of the edge tables.
        """
        sizes = np.diff(self.edge_start)
        inside = np.arange(self.node_start[-1], self.size) - np.repeat(self.edge_start[:-1], sizes)
        labels = np.divmod(inside, np.repeat(self.cardinalities[self.edges[:, 1]], sizes))
        first, second = (
            np.repeat(self.message_start[end:-1:2], sizes) + labels[end] for end in range(2)
        )
        return first, second

    def node_places(self) -> IntArray:
        """Return the indices in node tables of the label of each entry of the messages."""
        ends = self.edges.ravel()
        starts = self.node_start[ends] - self.message_start[:-1]
        places: IntArray = np.arange(self.n_messages) + np.repeat(starts, self.cardinalities[ends])
        return places

    def uniform(self) -> FloatArray:
        """Return the uniform pseudomarginals, flat."""
        cards = self.cardinalities
        sizes = np.diff(self.edge_start)
        return np.concatenate([np.repeat(1.0 / cards, cards), np.repeat(1.0 / sizes, sizes)])

    def indicator(self, labels: IntArray) -> FloatArray:
        """Return the 0/1 tables of a labelling (n_nodes,)."""
        flat = np.zeros(self.size)
        flat[self.places(labels)] = 1.0
        return flat

    def score(self, scores: FloatArray, labels: IntArray) -> float:
        """Return <indicator(labels), scores>; -inf if the labelling is impossible."""
        return float(scores[self.places(labels)].sum())

    def places(self, labels: IntArray) -> IntArray:
        """Return the flat indices at which the tables of a labelling (n_nodes,) are 1."""
        labels = np.asarray(labels, dtype=np.int64)
        if labels.shape != (self.n_nodes,) or ((labels < 0) | (labels >= self.cardinalities)).any():
            raise InvalidProblemError("labels: expected one label of its own range a node.")
        first, second = self.edges[:, 0], self.edges[:, 1]
        within = labels[first] * self.cardinalities[second] + labels[second]
        places: IntArray = np.concatenate(
            [self.node_start[:-1] + labels, self.edge_start[:-1] + within]
        )
        return places


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseModel:
    """Graph with its log potentials: p(x) is proportional to exp <indicator(x), scores>.

    Parameters
    ----------
    graph : PairwiseGraph
    scores : ndarray, shape (graph.size,), float64, nats, finite or -inf (impossible).

    Raises
    ------
    InvalidProblemError
        If the number of scores is wrong, or a score is NaN or +inf.

    Examples
    --------
    >>> graph = PairwiseGraph(np.array([2, 3]), np.array([[0, 1]]))
    >>> PairwiseModel(graph, np.zeros(graph.size)).scores.shape
    (11,)
    """

    graph: PairwiseGraph
    scores: FloatArray

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for another length, NaN or +inf."""
        scores = as_float_array("scores", self.scores)
        if scores.shape != (self.graph.size,):
            raise InvalidProblemError(
                f"scores: expected shape ({self.graph.size},), received {scores.shape}."
            )
        if np.isnan(scores).any() or (scores == np.inf).any():
            raise InvalidProblemError("scores: entries must be finite or minus infinity.")
        object.__setattr__(self, "scores", scores)

    @property
    def has_zeros(self) -> bool:
        """Return True if some table entry is impossible (-inf)."""
        return bool(np.isneginf(self.scores).any())


def build_pairwise_model(
    cardinalities: IntArray,
    node_tables: list[FloatArray],
    edge_tables: dict[tuple[int, int], FloatArray],
) -> PairwiseModel:
    """Build a model from one log table per node and a dictionary of log tables by edge."""
    pairs = list(edge_tables)
    graph = PairwiseGraph(
        np.asarray(cardinalities, dtype=np.int64),
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
    )
    parts = [np.ravel(table) for table in node_tables]
    parts += [np.ravel(edge_tables[pair]) for pair in pairs]
    return PairwiseModel(graph, np.concatenate(parts))
