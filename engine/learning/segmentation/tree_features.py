"""Features of a picture from the scores of its trees: of two labels, or of any number."""

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.crf.class_features import ClassFeatures
from engine.crf.grid_features import DenseNodeFeatures, GridFeatures
from engine.crf.image_features import N_EDGE_FEATURES, code_edges

N_NODE_FEATURES = 3
"""Number of features of each pixel of two labels, without those of maps given with the picture."""

SMALL_ODDS = 1.5
"""Bound of the clipped log-odds, a separate feature: trees are more overconfident in doubt."""


def tree_features(
    colours: NDArray[np.uint8], scores: NDArray[np.float32], maps: NDArray[np.float32]
) -> GridFeatures | ClassFeatures:
    """Return the features of a picture from its tree scores, (rows, columns, 1 or L), and maps."""
    if scores.shape[2] == 1:
        return boosted_features(colours, scores[:, :, 0], maps)
    return class_features(colours, scores, maps)


def boosted_features(
    colours: NDArray[np.uint8],
    log_odds: NDArray[np.float32],
    maps: NDArray[np.float32] | None = None,
) -> GridFeatures:
    """Return node features (constant, log-odds, clipped log-odds) and edge features of a picture.

    Parameters
    ----------
    colours : ndarray, shape (rows, columns, 3), uint8
    log_odds : ndarray, shape (rows, columns)
    maps : ndarray, shape (rows, columns, C), log-odds of another program, further node features
    """
    n_maps = 0 if maps is None else maps.shape[2]
    values = np.ones((*log_odds.shape, N_NODE_FEATURES + n_maps))
    values[:, :, 1] = log_odds
    np.clip(log_odds, -SMALL_ODDS, SMALL_ODDS, out=values[:, :, 2])
    if maps is not None:
        values[:, :, N_NODE_FEATURES:] = maps
    return GridFeatures(DenseNodeFeatures(values), code_edges(colours / 255.0))


def class_features(
    colours: NDArray[np.uint8], scores: NDArray[np.float32], maps: NDArray[np.float32]
) -> ClassFeatures:
    """Return class features from tree scores and maps, (rows, columns, .) each, and the colours."""
    return ClassFeatures(scores, maps, code_edges(colours / 255.0))


def tree_evidence(features: GridFeatures) -> FloatArray:
    """Return the log-odds of the trees from features of `boosted_features`, (rows, columns)."""
    if not isinstance(features.nodes, DenseNodeFeatures):
        raise InvalidProblemError("features: expected those of trees.")
    return features.nodes.values[:, :, 1]


def n_parameters(n_maps: int = 0) -> int:
    """Return the length of theta of two labels for ``n_maps`` maps beside each picture."""
    return 2 * (N_NODE_FEATURES + n_maps) + 4 * N_EDGE_FEATURES


def network_alone(n_maps: int) -> FloatArray:
    """Return the weights with which scores are the last map, that of the network, without edges."""
    theta = np.zeros(n_parameters(n_maps))
    theta[2 * (N_NODE_FEATURES + n_maps) - 1] = 1.0
    return theta


def trees_alone(n_maps: int = 0) -> FloatArray:
    """Return the weights with which scores are the log-odds of the trees, without edges."""
    theta = np.zeros(n_parameters(n_maps))
    theta[N_NODE_FEATURES + n_maps + 1] = 1.0
    return theta
