"""One observed matching of a general graph as an inner problem of the solve in theta.

The inner maximum is taken under the degree constraints, which bounds log Z from above. The upper
bound L(tau) needs tau inside the matching polytope: a graph with two sides has no odd sets, any
other is checked at every answer, and an answer that fails is reported as not feasible.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from engine.core.arguments import FloatArray, IntArray, check_shape
from engine.core.checkpoint import State
from engine.entropies.matching import edge_layout, make_matching_entropy
from engine.inference.graph_newton import GraphCurvature, compute_graph_pseudomarginals
from engine.inference.odd_sets import is_in_matching_polytope
from engine.objectives.matching_block import check_matching, interior_of_graph
from engine.objectives.protocol import InnerSolution


@dataclass(slots=True)
class GraphProblem:
    """A graph with features on its edges and an observed matching.

    Parameters
    ----------
    n_nodes : int
    edges : ndarray, shape (e, 2)
    features : ndarray, shape (e, K)
    matched : ndarray, indices of the observed edges
    rho : float or ndarray, shape (n_nodes,), reweighting in [0, 1]
    is_perfect : bool, whether every node is matched in every matching

    Raises
    ------
    InfeasibleError
        If ``is_perfect`` and the graph has no perfect matching; it carries a deficient set.
    InvalidProblemError
        If the shapes disagree, an edge joins a node to itself, the observed edges are no matching
        or rho is out of range.
    """

    n_nodes: int
    edges: IntArray
    features: FloatArray
    matched: IntArray
    rho: float | FloatArray = 1.0
    is_perfect: bool = True
    observed: FloatArray = field(init=False)
    _weights: FloatArray = field(init=False)
    _interior: FloatArray = field(init=False)
    _has_two_sides: bool = field(init=False)

    def __post_init__(self) -> None:
        layout = edge_layout(self.n_nodes, self.edges)
        check_shape("features", self.features, (len(self.edges), None))
        self._weights = make_matching_entropy(layout, self.rho).rho
        self._interior = interior_of_graph(layout, is_perfect=self.is_perfect)
        self._has_two_sides = has_two_sides(self.n_nodes, self.edges)
        matched = check_matching(layout, self.matched, is_perfect=self.is_perfect)
        self.observed = self.features[matched].sum(axis=0)

    def solve(self, theta: FloatArray, state: State | None, accuracy: float) -> InnerSolution:
        """Solve by Newton's method; see ``engine.objectives.protocol.InnerProblem``."""
        solution = compute_graph_pseudomarginals(
            self.features @ theta,
            self.edges,
            self._weights,
            self._interior,
            is_perfect=self.is_perfect,
            tolerance=max(accuracy, 1e-11),
            start=None if state is None else state["tau"],
        )
        tau = solution.marginals
        statistics = tau @ self.features
        return InnerSolution(
            log_partition=solution.upper_bound,
            statistics=statistics,
            entropy=solution.value - float(theta @ statistics),
            sweeps=solution.iterations,
            is_feasible=self._has_two_sides or self._odd_sets_hold(tau, solution.singles),
            state={"tau": tau},
        )

    def curvature(self, theta: FloatArray, state: State) -> FloatArray:
        """Return the Hessian of log Z_rho at an inner solution, exact in the interior, (K, K)."""
        curvature = GraphCurvature(self.edges, self._weights, self._interior, self.is_perfect)
        return curvature.of_features(state["tau"], self.features)

    def _odd_sets_hold(self, tau: FloatArray, singles: FloatArray) -> bool:
        """Check all odd sets; where nodes may stay single, on two copies joined at every node.

        A matching with singles is half of a perfect matching of the doubled graph, and its
        polytope the projection of that one's (Schrijver 2003, section 26.1).
        """
        dense = np.zeros((self.n_nodes, self.n_nodes))
        np.add.at(dense, (self.edges[:, 0], self.edges[:, 1]), tau)
        dense += dense.T
        if not self.is_perfect:
            dense = np.block([[dense, np.diag(singles)], [np.diag(singles), dense]])
        return is_in_matching_polytope(dense)


def has_two_sides(n_nodes: int, edges: IntArray) -> bool:
    """Whether a graph is bipartite: its double cover falls apart at every component."""
    first, second = edges.T
    ones = np.ones(len(edges), dtype=np.int8)
    plain = coo_array((ones, (first, second)), shape=(n_nodes, n_nodes))
    ends = np.concatenate([first, first + n_nodes]), np.concatenate([second + n_nodes, second])
    cover = coo_array((np.tile(ones, 2), ends), shape=(2 * n_nodes, 2 * n_nodes))
    count: int = connected_components(plain, directed=False)[0]
    doubled: int = connected_components(cover, directed=False)[0]
    return doubled == 2 * count
