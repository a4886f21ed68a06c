"""Best labelling and marginals on the grid of one picture, or of a tile of it."""

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.crf.grid_features import GridFeatures
from engine.graphs.grid import Grid
from engine.objectives.grid_chains import GridChains
from engine.objectives.grid_messages import converge
from engine.oracles.grid_roof_duality import GridRoofDuality, decode_vertex

MESSAGE_TOLERANCE = 1e-4
"""Largest relative change of a message between sweeps at convergence."""

MAX_SWEEPS = 200


def best_labelling(
    features: GridFeatures, theta: FloatArray
) -> tuple[NDArray[np.bool_], float, float]:
    """Return the best labelling on the grid, its score and a certified upper bound (nats).

    It takes one minimum cut. If edges prefer unequal labels, roof duality may leave pixels
    undecided (their bound is then strict), and these become foreground.
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
    return labels.astype(np.bool_), value + scores.offset, point.upper_bound + scores.offset


def predict_marginals(
    features: GridFeatures, theta: FloatArray, rho: float, messages: FloatArray | None = None
) -> tuple[FloatArray, bool]:
    """Return the marginals tau_i(1), shape (rows, columns), and True if messages converged.

    ``messages``, (4, rows, columns), are the starting point, and are updated in place.
    """
    chains = GridChains(features, rho, theta, messages)
    is_converged = converge(chains, MESSAGE_TOLERANCE, batch=5, max_sweeps=MAX_SWEEPS)
    return chains.marginals(), is_converged
