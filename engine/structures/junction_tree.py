"""Labelled chain, tree or model of low treewidth, with exact inference."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray, as_finite_array, check_shape
from engine.core.options import check_whole
from engine.core.rounding import sum_allowance
from engine.entropies.pairwise import PairwiseEntropy
from engine.graphs.junction_tree import LARGEST_TABLE, JunctionTree, Scope
from engine.inference.factors.junction_tree import calibrate, statistics_covariance
from engine.objectives.protocol import InnerSolution
from engine.oracles.junction_tree import JunctionTreeOracle
from engine.oracles.protocol import Vertex, make_indicator


class JunctionTreeStructure:
    """Labelling of a model with features on nodes and factors; points are those of its tree.

    The polytope is the marginal polytope and the entropy is exact, so that the surrogate
    likelihood is the likelihood: MLE-Struct is maximum likelihood, with a certificate.

    Parameters
    ----------
    cardinalities : ndarray, shape (n,), numbers of labels.
    scopes : the variables of each factor of two or more, in the order of its table's axes.
    features : ndarray, shape (entries, K)
        A row for each entry of the nodes' tables in order, then of the factors' tables.
    labels : ndarray, shape (n,), the observed labelling.
    largest_table : int, largest number of entries of a clique.

    Raises
    ------
    InvalidProblemError
        If shapes disagree, a feature is not finite, a label is out of range or the model is too
        wide.

    Examples
    --------
    Two binary nodes that agreed, and one feature, that they agree: P = e^t / (e^t + 1).

    >>> agree = np.array([[0.0], [0], [0], [0], [1], [0], [0], [1]])
    >>> pair = JunctionTreeStructure(np.full(2, 2), ((0, 1),), agree, np.array([1, 1]))
    >>> pair.maximise(np.zeros(1), None, 0.0).statistics.tolist()
    [0.5]
    """

    def __init__(
        self,
        cardinalities: IntArray,
        scopes: tuple[Scope, ...],
        features: FloatArray,
        labels: IntArray,
        *,
        largest_table: int = LARGEST_TABLE,
    ) -> None:
        check_whole("largest_table", largest_table, at_least=1)
        self.tree = JunctionTree(cardinalities, tuple(scopes), largest_table)
        self.features = as_finite_array("features", features, shape=(None, None))
        check_shape("features", self.features, (self.tree.n_table_entries, None))
        self.oracle = JunctionTreeOracle(self.tree)
        signs = (1.0, -1.0, 0.0)
        parts = self.tree.split(np.empty(self.tree.size))
        self.entropy = PairwiseEntropy(
            np.concatenate([np.full(len(part), s) for part, s in zip(parts, signs, strict=True)])
        )
        entries = self.tree.table_places(labels)
        self.observed = np.asarray(self.features[entries].sum(axis=0))
        nodes = entries[: len(self.tree.cardinalities)]
        self.labels: Vertex = make_indicator(self._tables_at + nodes)

    @property
    def start(self) -> FloatArray:
        """Uniform distribution, as a new array."""
        return calibrate(self.tree, np.zeros(self.tree.n_table_entries))[1]

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return A theta in the shape of a point: the tables' scores, 0 elsewhere."""
        scores = np.zeros(self.tree.size)
        self.tree.split(scores)[2][:] = self.features @ theta
        return scores

    def statistics(self, at: FloatArray | Vertex) -> FloatArray:
        """Return phi of a point or of a vertex, shape (K,)."""
        if isinstance(at, Vertex):
            if at.places is not None:
                places = at.places[at.places >= self._tables_at] - self._tables_at
                return np.asarray(self.features[places].sum(axis=0))
            at = at.values
        return np.asarray(self.tree.split(at)[2] @ self.features)

    def node_marginals(self, point: FloatArray) -> list[FloatArray]:
        """Return the table of each node."""
        ends = self.tree.table_start[1 : len(self.tree.cardinalities)]
        tables = self.tree.split(point)[2][: self.tree.table_start[len(self.tree.cardinalities)]]
        return np.split(tables, ends)

    def maximise(
        self, theta: FloatArray, state: FloatArray | None, accuracy: float
    ) -> InnerSolution:
        """Compute exact sums; see ``engine.objectives.protocol.InnerProblem``."""
        tables = self.features @ theta
        log_partition, point = calibrate(self.tree, tables)
        statistics = self.statistics(point)
        size = float(np.abs(tables).sum()) + len(self.tree.up)
        allowance = sum_allowance(len(self.tree.cliques) + len(self.tree.scopes) + 8, size)
        return InnerSolution(
            log_partition=log_partition + allowance,
            statistics=statistics,
            entropy=self.entropy.value(point),
            sweeps=1,
            is_feasible=True,
            state=point,
        )

    def curvature(self, theta: FloatArray, state: FloatArray) -> FloatArray:
        """Return the exact Hessian of log Z at the point ``state``, (K, K)."""
        return statistics_covariance(self.tree, self.features, state)

    @property
    def _tables_at(self) -> int:
        return self.tree.size - self.tree.n_table_entries
