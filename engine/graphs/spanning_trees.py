"""Edge appearance probabilities of distributions over spanning trees (forests if disconnected)."""

import numpy as np
import scipy  # its parts are loaded on first use: most inference methods need none

from engine.core.arguments import FloatArray
from engine.graphs.pairwise import PairwiseGraph

# Number of columns of the inverse Laplacian in memory at once.
COLUMNS = 256
# Trees in a balanced mixture; largest number of nodes whose uniform probabilities take 1 s at most.
LEAST_TREES = 32
LARGEST_UNIFORM = 2000


def uniform_tree_probabilities(graph: PairwiseGraph) -> FloatArray:
    """Return the probability of each edge in a uniformly random spanning tree, shape (n_edges,).

    By Kirchhoff, this is the effective resistance between the edge's ends with unit resistors.
    Exact up to rounding. Cost: one sparse factorisation and n_nodes solves.

    References
    ----------
    Kirchhoff 1847; Wainwright, Jaakkola and Willsky 2005.
    """
    if graph.n_edges == 0:
        return np.zeros(0)
    n = graph.n_nodes
    first, second = graph.edges[:, 0], graph.edges[:, 1]
    ones = np.ones(graph.n_edges)
    adjacency = scipy.sparse.coo_array((ones, (first, second)), shape=(n, n)).tocsr()
    _, component = scipy.sparse.csgraph.connected_components(adjacency, directed=False)
    adjacency = adjacency + adjacency.T
    # Grounding one node of each component makes the Laplacian invertible and changes no resistance.
    ground = np.unique(component, return_index=True)[1]
    degree: FloatArray = np.asarray(adjacency.sum(axis=1)).ravel()
    degree[ground] += 1.0
    laplacian = scipy.sparse.csc_array(
        scipy.sparse.coo_array((degree, (np.arange(n), np.arange(n))), shape=(n, n)) - adjacency
    )
    solver = scipy.sparse.linalg.splu(laplacian)
    resistance = np.zeros(graph.n_edges)
    for low in range(0, n, COLUMNS):
        columns = np.arange(low, min(n, low + COLUMNS))
        right = np.zeros((n, len(columns)))
        right[columns, np.arange(len(columns))] = 1.0
        inverse = solver.solve(right)
        for ends, others in ((first, second), (second, first)):
            here = np.flatnonzero((ends >= low) & (ends < low + COLUMNS))
            column = ends[here] - low
            resistance[here] += inverse[ends[here], column] - inverse[others[here], column]
    return resistance.clip(0.0, 1.0)


def constant_tree_probability(graph: PairwiseGraph) -> float:
    """Return one rho that is valid on every edge: the smallest tree probability.

    It is valid because the polytope of forests is closed downwards. On large grids it tends to 1/2.
    """
    probabilities = tree_probabilities(graph)
    return float(probabilities.min()) if len(probabilities) else 1.0


def maximum_spanning_tree(graph: PairwiseGraph, weights: FloatArray) -> FloatArray:
    """Return the 0/1 indicator of a spanning forest of largest weight, shape (n_edges,)."""
    if graph.n_edges == 0:
        return np.zeros(0)
    n = graph.n_nodes
    first, second = graph.edges[:, 0], graph.edges[:, 1]
    # The solver minimises and takes zeros for absent edges: order-reversing, strictly positive.
    costs = 1.0 + weights.max() - weights
    tree = scipy.sparse.csgraph.minimum_spanning_tree(
        scipy.sparse.coo_array((costs, (first, second)), shape=(n, n)).tocsr()
    ).tocoo()
    numbers = scipy.sparse.coo_array(
        (np.arange(1, graph.n_edges + 1), (first, second)), shape=(n, n)
    ).tocsr()
    chosen = np.zeros(graph.n_edges)
    chosen[np.asarray(numbers[tree.row, tree.col]).ravel() - 1] = 1.0
    return chosen


def balanced_tree_probabilities(graph: PairwiseGraph) -> FloatArray:
    """Return edge probabilities of a mixture of trees that use the edges about equally often.

    Each tree takes the edges that earlier trees used least, until every edge is used and there
    are at least ``LEAST_TREES``. Valid by construction, and fast on graphs where the uniform
    distribution over all trees would take one linear solve per node.
    """
    counts = np.zeros(graph.n_edges)
    trees = 0
    while trees < LEAST_TREES or (graph.n_edges and counts.min() == 0.0):
        counts += maximum_spanning_tree(graph, -counts)
        trees += 1
    return counts / trees


def tree_probabilities(graph: PairwiseGraph) -> FloatArray:
    """Return uniform tree probabilities, or balanced ones on graphs of over 2,000 nodes."""
    if graph.n_nodes > LARGEST_UNIFORM:
        return balanced_tree_probabilities(graph)
    return uniform_tree_probabilities(graph)
