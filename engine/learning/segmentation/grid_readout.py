"""Best labelling and marginals on the grid of one picture, or of a tile of it.

Pictures of two labels with a table for each edge feature are read out by one minimum cut and by
the messages of two labels; all others by expansions and by messages of any number of labels.
"""

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.crf.class_features import ClassFeatures, ClassLabels
from engine.crf.grid_features import GridFeatures
from engine.graphs.grid import Grid
from engine.kernels.class_messages import bound_maximum, max_sweep
from engine.learning.segmentation.class_weights import rest_messages
from engine.objectives.class_messages import ClassMessages
from engine.objectives.grid_chains import GridChains
from engine.objectives.grid_messages import converge
from engine.oracles.grid_roof_duality import GridRoofDuality, decode_vertex

MESSAGE_TOLERANCE = 1e-4
"""Largest relative change of a message between sweeps at convergence."""

MAX_SWEEPS = 200

MAX_ROUNDS = 6
"""Largest number of expansions of every label: two nearly always suffice."""

BOUND_SWEEPS = 40
"""Number of sweeps of max-sum messages for the bound of the best labelling."""

ROUNDING = 1e-9
"""Share of the size of the scores by which a bound is raised to cover rounding errors."""


def read_marginals(
    features: GridFeatures | ClassFeatures, theta: FloatArray, rho: float
) -> tuple[NDArray[np.float32], bool]:
    """Return the pseudomarginals of a grid, and True if messages converged.

    Shape (rows, columns) of the second of two labels, or (rows, columns, L).
    """
    if isinstance(features, GridFeatures):
        marked, is_converged = predict_marginals(features, theta, rho)
        return marked.astype(np.float32), is_converged
    chains = ClassMessages(features, theta, is_shared=True)
    is_converged = rest_messages(chains)
    return chains.marginals(), is_converged


def best_labelling(
    features: GridFeatures | ClassFeatures, theta: FloatArray
) -> tuple[ClassLabels, float, float]:
    """Return the best labelling found, its score and a certified upper bound (nats)."""
    if isinstance(features, GridFeatures):
        return _best_by_cut(features, theta)
    return _best_by_expansions(features, theta)


def _best_by_cut(features: GridFeatures, theta: FloatArray) -> tuple[ClassLabels, float, float]:
    """Return the best labelling by one minimum cut, its score and an upper bound (nats).

    If edges prefer unequal labels, roof duality may leave pixels undecided (their bound is then
    strict), and these become foreground.
    """
    scores = features.scores(theta)
    grid = Grid(*features.shape)
    tables = grid.zeros()
    tables.nodes[:, :, 1] = scores.node
    edges = features.edges
    tables.horizontal[:] = scores.horizontal[edges.horizontal].reshape(tables.horizontal.shape)
    tables.vertical[:] = scores.vertical[edges.vertical].reshape(tables.vertical.shape)
    point = GridRoofDuality(grid).compute_extreme_point(tables.flat)
    labels = decode_vertex(grid, point.vertex.values)
    value = float(np.dot(grid.indicator(labels).flat, tables.flat))
    return labels.astype(np.uint8), value + scores.offset, point.upper_bound + scores.offset


def predict_marginals(
    features: GridFeatures, theta: FloatArray, rho: float, messages: FloatArray | None = None
) -> tuple[FloatArray, bool]:
    """Return the marginals tau_i(1), shape (rows, columns), and True if messages converged.

    ``messages``, (4, rows, columns), are the starting point, and are updated in place.
    """
    chains = GridChains(features, rho, theta, messages)
    is_converged = converge(chains, MESSAGE_TOLERANCE, batch=5, max_sweeps=MAX_SWEEPS)
    return chains.marginals(), is_converged


def _best_by_expansions(
    features: ClassFeatures, theta: FloatArray
) -> tuple[ClassLabels, float, float]:
    """Return the best labelling found by expansions, its score and an upper bound (nats).

    A move lets every pixel keep its label or take one given label; roof duality finds the best
    such move, and pixels that it leaves undecided keep their label: the score never falls. The
    bound is that of rows and columns of the grid solved separately, after max-sum messages.

    References
    ----------
    Boykov, Veksler and Zabih 2001; Kolmogorov 2006 (bound).
    """
    scores = features.scores(theta)
    nodes = scores.nodes.astype(np.float64)
    right, down = features.codes
    agreements = (scores.agreement[0][right], scores.agreement[1][down])
    labels = nodes.argmax(axis=2)
    value = _score(nodes, agreements, scores.pairs, labels)
    oracle = GridRoofDuality(Grid(*features.shape))
    quiet, tried, n = 0, 0, nodes.shape[2]
    while quiet < n and tried < MAX_ROUNDS * n:
        proposal = _expand(oracle, nodes, agreements, scores.pairs, labels, tried % n)
        score = _score(nodes, agreements, scores.pairs, proposal)
        tried, quiet = tried + 1, quiet + 1
        if score > value + 1e-12 * abs(value):
            labels, value, quiet = proposal, score, 0
    fixed = (nodes, right, down, 2.0 * scores.pairs, 2.0 * scores.agreement)
    messages = np.zeros((4, *nodes.shape))
    bound = bound_maximum(*fixed, messages)
    for _ in range(BOUND_SWEEPS // 10):
        for _ in range(10):
            max_sweep(*fixed, messages)
        fresh = bound_maximum(*fixed, messages)
        if fresh >= bound - 1e-4 * max(abs(bound - value), 1e-9):
            bound = min(bound, fresh)
            break
        bound = fresh
    size = float(np.abs(nodes).sum()) + sum(float(np.abs(a).sum()) for a in agreements)
    return labels.astype(np.uint8), value, max(value, bound + ROUNDING * size)


def _expand(
    oracle: GridRoofDuality,
    nodes: FloatArray,
    agreements: tuple[FloatArray, FloatArray],
    pairs: FloatArray,
    labels: NDArray[np.int64],
    alpha: int,
) -> NDArray[np.int64]:
    """Return the labelling after the best expansion of ``alpha``; undecided pixels keep theirs."""
    tables = oracle.grid.zeros()
    keep = np.take_along_axis(nodes, labels[:, :, None], axis=2)[:, :, 0]
    tables.nodes[:, :, 1] = nodes[:, :, alpha] - keep
    ends = ((labels[:, :-1], labels[:, 1:]), (labels[:-1], labels[1:]))
    parts = zip((tables.horizontal, tables.vertical), ends, agreements, pairs, strict=True)
    for table, (first, second), agreement, pair in parts:
        table[..., 0, 0] = pair[first, second] + agreement * (first == second)
        table[..., 0, 1] = pair[first, alpha] + agreement * (first == alpha)
        table[..., 1, 0] = pair[alpha, second] + agreement * (second == alpha)
        table[..., 1, 1] = pair[alpha, alpha] + agreement
    vertex = oracle.compute_extreme_point(tables.flat).vertex.values
    taken = vertex[: 2 * labels.size].reshape(*labels.shape, 2)[:, :, 1] == 1.0
    return np.where(taken, alpha, labels)


def _score(
    nodes: FloatArray,
    agreements: tuple[FloatArray, FloatArray],
    pairs: FloatArray,
    labels: NDArray[np.int64],
) -> float:
    """Return the score of a labelling, nats."""
    total = float(np.take_along_axis(nodes, labels[:, :, None], axis=2).sum())
    ends = ((labels[:, :-1], labels[:, 1:]), (labels[:-1], labels[1:]))
    for (first, second), agreement, pair in zip(ends, agreements, pairs, strict=True):
        total += float(pair[first, second].sum()) + float(agreement[first == second].sum())
    return total
