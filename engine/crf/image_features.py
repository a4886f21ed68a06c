"""Features of the horses experiment, from any picture: 100 per node and 42 per edge.

Nodes: cosines and sines of colour and position for all 32 binary combinations, and 36 entries of a
histogram of oriented gradients, interpolated between the surrounding blocks of 16 pixels.
Edges: a constant; the colour difference above ten thresholds; the larger Sobel response of the two
ends above ten thresholds; and all of these separately for edges to the right and edges down.

References
----------
Domke 2013, section 8.3.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray, as_kernel_input, read_only
from engine.crf.grid_features import (
    CodeArray,
    EdgeFeatures,
    GridFeatures,
    NodeFeatures,
    NodeFeaturesWithMaps,
)
from engine.kernels.gradient_blocks import CELL, add_block_scores, project_on_blocks
from engine.kernels.sinusoids import (
    N_SINUSOIDS,
    project_on_sinusoids,
    sinusoid_rows,
    sum_sinusoids,
)

ORIENTATIONS = 9
N_GRADIENTS = 4 * ORIENTATIONS
N_NODE_FEATURES = 2 * N_SINUSOIDS + N_GRADIENTS

COLOUR_THRESHOLDS = np.array([0.01, 0.02, 0.04, 0.06, 0.09, 0.13, 0.18, 0.25, 0.35, 0.5])
"""Euclidean distances of colours in [0, 1]^3, about equally frequent in photographs."""

SOBEL_THRESHOLDS = np.array([0.05, 0.1, 0.17, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0])
"""Gradient sizes of the lightness in [0, 1] under the filter (1 2 1) x (1 0 -1)."""

N_LEVELS = len(COLOUR_THRESHOLDS) + 1
N_EDGE_FEATURES = 2 * (1 + len(COLOUR_THRESHOLDS) + len(SOBEL_THRESHOLDS))

LIGHTNESS = np.array([0.299, 0.587, 0.114])


@dataclass(frozen=True, slots=True)
class ImageNodeFeatures:
    """Node features of a photograph, kept as bytes and gradient blocks.

    Parameters
    ----------
    colours : ndarray, shape (rows, columns, 3), uint8
    gradients : ndarray, shape (block rows, block columns, 36), float32
        Normalised histograms around the corners of cells of 8 pixels.
    """

    colours: NDArray[np.uint8]
    gradients: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Keep read-only views, whether computed or read from a file."""
        for name in ("colours", "gradients"):
            object.__setattr__(self, name, as_kernel_input(getattr(self, name)))

    @property
    def n_features(self) -> int:
        """Length of u_i."""
        return N_NODE_FEATURES

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        return int(self.colours.shape[0]), int(self.colours.shape[1])

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return <weights, u_i> of every pixel, shape (rows, columns)."""
        total = np.empty(self.shape)
        sum_sinusoids(self.colours, np.ascontiguousarray(weights[: 2 * N_SINUSOIDS]), total)
        work = np.empty(self.gradients.shape[:2])
        add_block_scores(
            self.gradients, np.ascontiguousarray(weights[2 * N_SINUSOIDS :]), work, total
        )
        return total

    def project(self, residual: FloatArray) -> FloatArray:
        """Return sum_i residual_i u_i, shape (100,)."""
        statistics = np.empty(N_NODE_FEATURES)
        residual = as_kernel_input(residual)
        project_on_sinusoids(self.colours, residual, statistics[: 2 * N_SINUSOIDS])
        work = np.empty(self.gradients.shape[:2])
        project_on_blocks(residual, self.gradients, work, statistics[2 * N_SINUSOIDS :])
        return statistics

    def rows(self, pixels: IntArray) -> FloatArray:
        """Return u_i of the pixels with the given flat indices, shape (n, 100)."""
        i, j = np.divmod(pixels, self.shape[1])
        along_rows = interpolation_matrix(self.shape[0], self.gradients.shape[0])[i]
        along_columns = interpolation_matrix(self.shape[1], self.gradients.shape[1])[j]
        gradients = np.einsum(
            "na,nb,abk->nk", along_rows, along_columns, self.gradients, optimize="greedy"
        )
        return np.hstack([sinusoid_rows(self.colours, pixels), gradients])


def compute_image_features(
    colours: NDArray[np.uint8], maps: NDArray[np.float32] | None = None
) -> GridFeatures:
    """Compute all features of a picture already resized for its model.

    Parameters
    ----------
    colours : ndarray, shape (rows, columns, 3), uint8; sides of at least 8 pixels.
    maps : ndarray, shape (rows, columns, C), external log-odds, further node features

    Returns
    -------
    GridFeatures with 100 + C node and 42 edge features.

    Notes
    -----
    About 20 ms and 10 bytes per pixel for a picture of 200 x 150 pixels.
    """
    nodes, edges = compute_parts(colours)
    return GridFeatures(beside_maps(nodes, maps), edges)


def beside_maps(nodes: NodeFeatures, maps: NDArray[np.float32] | None) -> NodeFeatures:
    """Return node features followed by those of maps, if there are any."""
    return nodes if maps is None or not maps.shape[2] else NodeFeaturesWithMaps(nodes, maps)


def compute_parts(colours: NDArray[np.uint8]) -> tuple[ImageNodeFeatures, EdgeFeatures]:
    """Compute node and edge features separately; see `compute_image_features`."""
    fractions = colours / 255.0
    own = read_only(np.array(colours, order="C"))  # the caller may change the picture later
    nodes = ImageNodeFeatures(own, _gradients(fractions))
    return nodes, code_edges(fractions)


def code_edges(fractions: FloatArray) -> EdgeFeatures:
    """Code the edges of a picture with values in [0, 1], shape (rows, columns, 3)."""
    lightness = fractions @ LIGHTNESS
    response = sobel_response(lightness)
    horizontal = _code(
        np.linalg.norm(fractions[:, 1:] - fractions[:, :-1], axis=2),
        np.maximum(response[:, 1:], response[:, :-1]),
    )
    vertical = _code(
        np.linalg.norm(fractions[1:] - fractions[:-1], axis=2),
        np.maximum(response[1:], response[:-1]),
    )
    return edge_features_from_codes(horizontal, vertical)


def sobel_response(lightness: FloatArray) -> FloatArray:
    """Return gradient sizes by the filter (1 2 1) x (1 0 -1), borders repeated, same shape."""
    padded = np.pad(lightness, 1, mode="edge")
    along = padded[2:] - padded[:-2]
    across = padded[:, 2:] - padded[:, :-2]
    return np.hypot(
        along[:, :-2] + 2 * along[:, 1:-1] + along[:, 2:],
        across[:-2] + 2 * across[1:-1] + across[2:],
    )


def edge_features_from_codes(horizontal: CodeArray, vertical: CodeArray) -> EdgeFeatures:
    """Join codes, 11 x (colour level) + (Sobel level), with their vectors."""
    return EdgeFeatures(read_only(horizontal), read_only(vertical), *_edge_bases())


@cache
def _edge_bases() -> tuple[FloatArray, FloatArray]:
    """Return the vectors of all codes to the right and down, (121, 42) each, for all pictures.

    A separate pair for each picture would take 81 kB on top of the 300 kB of a photograph.
    """
    levels = np.arange(N_LEVELS)
    steps = (levels[:, None] > np.arange(N_LEVELS - 1)).astype(np.float64)  # (level, threshold)
    ones = np.ones((N_LEVELS**2, 1))
    base = np.hstack([ones, np.repeat(steps, N_LEVELS, axis=0), np.tile(steps, (N_LEVELS, 1))])
    nothing = np.zeros_like(base)
    return read_only(np.hstack([base, nothing])), read_only(np.hstack([nothing, base]))


def interpolation_matrix(n_pixels: int, n_blocks: int) -> FloatArray:
    """Return weights, (n_pixels, n_blocks), between block centres at 0, 8, 16, ... pixels."""
    place = (np.arange(n_pixels) + 0.5) / CELL
    return np.maximum(0.0, 1.0 - np.abs(place[:, None] - np.arange(n_blocks)))


def _code(difference: FloatArray, response: FloatArray) -> CodeArray:
    """Return the numbers of thresholds exceeded by both measures, joined into one byte."""
    colour = np.searchsorted(COLOUR_THRESHOLDS, difference)
    edge = np.searchsorted(SOBEL_THRESHOLDS, response)
    return np.asarray(N_LEVELS * colour + edge, dtype=np.uint8)


def _gradients(fractions: FloatArray) -> NDArray[np.float32]:
    """Return blocks of 2 x 2 cells at every cell corner, (block rows, block columns, 36)."""
    from skimage.feature import hog  # imported here: it takes longer than all other imports

    rows, columns = fractions.shape[:2]
    padding = [(CELL, CELL + -side % CELL) for side in (rows, columns)]
    padded = np.pad(fractions, [*padding, (0, 0)], mode="symmetric")
    blocks = hog(
        padded,
        orientations=ORIENTATIONS,
        pixels_per_cell=(CELL, CELL),
        cells_per_block=(2, 2),
        feature_vector=False,
        channel_axis=-1,
    )
    return read_only(blocks.reshape(*blocks.shape[:2], N_GRADIENTS).astype(np.float32))
