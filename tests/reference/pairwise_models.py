"""Slow, obvious answers for small pairwise models: enumeration and a generic linear programme."""

import itertools

import numpy as np
from scipy.optimize import linprog

from engine.graphs.factor_graph import Factor, FactorGraph
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel


def enumerate_grid(grid: Grid, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores of all labellings and their indicator vectors, one a row."""
    rows = []
    for labels in itertools.product(range(grid.n_labels), repeat=grid.n_nodes):
        rows.append(grid.indicator(np.reshape(labels, (grid.height, grid.width))).flat)
    indicators = np.array(rows)
    return indicators @ scores, indicators


def exact_log_partition(grid: Grid, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """log Z and the exact marginal tables."""
    values, indicators = enumerate_grid(grid, scores)
    log_z = np.logaddexp.reduce(values)
    return float(log_z), np.exp(values - log_z) @ indicators


def local_polytope(cardinalities: list[int], edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equations A x = b of the local polytope: all node tables, then all edge tables, flat."""
    starts = np.concatenate([[0], np.cumsum(cardinalities)])
    size = int(starts[-1] + sum(cardinalities[i] * cardinalities[j] for i, j in edges))
    rows: list[np.ndarray] = []
    right: list[float] = []
    for i, labels in enumerate(cardinalities):
        row = np.zeros(size)
        row[starts[i] : starts[i] + labels] = 1
        rows.append(row)
        right.append(1.0)
    at = int(starts[-1])
    for i, j in edges:
        a, b = cardinalities[i], cardinalities[j]
        index = np.arange(at, at + a * b).reshape(a, b)
        for x in range(a):
            row = np.zeros(size)
            row[index[x]] = 1
            row[starts[i] + x] = -1
            rows.append(row)
            right.append(0.0)
        for y in range(b):
            row = np.zeros(size)
            row[index[:, y]] = 1
            row[starts[j] + y] = -1
            rows.append(row)
            right.append(0.0)
        at += a * b
    return np.array(rows), np.array(right)


def solve_local_polytope(cardinalities: list[int], edges: np.ndarray, scores: np.ndarray) -> float:
    """Largest <tau, scores> over the local polytope, by HiGHS."""
    matrix, right = local_polytope(cardinalities, edges)
    scale = float(np.abs(scores).max()) or 1.0  # the solver's tolerances are absolute
    answer = linprog(-scores / scale, A_eq=matrix, b_eq=right, bounds=(0, None), method="highs")
    assert answer.status == 0
    return float(-answer.fun) * scale


def infeasibility(cardinalities: list[int], edges: np.ndarray, tables: np.ndarray) -> float:
    """Largest violation of the equations and of non-negativity."""
    matrix, right = local_polytope(cardinalities, edges)
    return float(max(np.abs(matrix @ tables - right).max(), -tables.min()))


def random_model(
    seed: int,
    n_nodes: int = 5,
    *,
    most_labels: int = 3,
    density: float = 0.6,
    zeros: float = 0.0,
    scale: float = 1.0,
    binary: bool = False,
) -> PairwiseModel:
    """A random pairwise model; ``zeros`` is the share of impossible edge entries."""
    rng = np.random.default_rng(seed)
    cards = np.full(n_nodes, 2) if binary else rng.integers(1, most_labels + 1, n_nodes)
    pairs = [p for p in itertools.combinations(range(n_nodes), 2) if rng.random() < density]
    graph = PairwiseGraph(cards, np.array(pairs, dtype=np.int64).reshape(-1, 2))
    scores = rng.normal(size=graph.size) * scale
    edges = scores[graph.node_start[-1] :]
    edges[rng.random(len(edges)) < zeros] = -np.inf
    return PairwiseModel(graph, scores)


def enumerate_model(model: PairwiseModel) -> tuple[np.ndarray, np.ndarray]:
    """Scores of all labellings, and the labellings, one a row."""
    ranges = [range(int(c)) for c in model.graph.cardinalities]
    labellings = np.array(list(itertools.product(*ranges)), dtype=np.int64)
    return np.array([model.graph.score(model.scores, x) for x in labellings]), labellings


def exact_node_marginals(model: PairwiseModel) -> tuple[float, list[np.ndarray]]:
    """log Z and the exact marginal of each node, by enumeration."""
    values, labellings = enumerate_model(model)
    log_z = float(np.logaddexp.reduce(values))
    weights = np.exp(values - log_z) if log_z > -np.inf else np.zeros(len(values))
    return log_z, [
        np.bincount(labellings[:, i], weights=weights, minlength=int(c))
        for i, c in enumerate(model.graph.cardinalities)
    ]


def as_factor_graph(model: PairwiseModel) -> FactorGraph:
    """The same model as a factor graph."""
    graph = model.graph
    factors = [Factor((i,), graph.node_table(model.scores, i)) for i in range(graph.n_nodes)]
    factors += [
        Factor((int(i), int(j)), graph.edge_table(model.scores, e))
        for e, (i, j) in enumerate(graph.edges)
    ]
    return FactorGraph(graph.cardinalities, tuple(factors))


def best_labels(graph: PairwiseGraph, tables: np.ndarray) -> np.ndarray:
    """The label of largest node entry at each node (MPM for marginals), ties low."""
    return np.array([int(np.argmax(graph.node_table(tables, i))) for i in range(graph.n_nodes)])
