"""Mask model with boosted trees as unaries, and its file format."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, as_finite_array, read_only
from engine.core.errors import InvalidProblemError
from engine.core.npz_file import write_npz
from engine.core.options import check_positive
from engine.crf.class_features import MOST_CLASSES
from engine.crf.filter_bank import SCALES
from engine.crf.grid_features import DenseNodeFeatures, GridFeatures
from engine.crf.image_features import (
    COLOUR_THRESHOLDS,
    N_EDGE_FEATURES,
    SOBEL_THRESHOLDS,
    code_edges,
)
from engine.crf.image_grid import MIN_SIDE, model_shape, shrink_image, shrink_maps
from engine.datasets.picture_view import PictureView
from engine.learning.segmentation.model_parts import check_model_parts, view_parts
from engine.learning.segmentation.tree_unaries import PARTS as TREE_PARTS
from engine.learning.segmentation.tree_unaries import TreeUnaries, unaries_from_arrays
from engine.objectives.grid_inner import check_rho

FORMAT = "bethe-hall boosted segmentation model 1"
LOSSES = ("likelihood", "univariate", "clique", "trees")
N_NODE_FEATURES = 3
"""Number of features of each pixel, without those of maps given with the picture."""

SMALL_ODDS = 1.5
"""Bound of the clipped log-odds, a separate feature: trees are more overconfident in doubt."""

_NUMBERS = ("theta", "ridge", "rho", "max_side", "position")
_SETTINGS = {
    "scales": np.array(SCALES),
    "colour_thresholds": COLOUR_THRESHOLDS,
    "sobel_thresholds": SOBEL_THRESHOLDS,
}
_WANTED = ("format", "loss", *_NUMBERS, *_SETTINGS)
PARTS = (*_WANTED, *TREE_PARTS)
"""Names of the arrays of a model file."""


@dataclass(frozen=True, slots=True, eq=False)
class BoostedSegmentationModel:
    """Mask model: boosted trees, weights of their log-odds and of edges, and settings.

    Parameters
    ----------
    unaries : TreeUnaries
    theta : ndarray, shape (174 + 2 C,) with C maps beside each picture, nats, read-only; see
        `engine.crf.grid_features`.
    loss : loss used in learning, one of `LOSSES`.
    ridge : float, lambda used in learning.
    rho : float, edge appearance probability in (0, 1/2].
    max_side : int, longest side in pixels; larger pictures are scaled down to it.
    """

    unaries: TreeUnaries
    theta: FloatArray
    loss: str
    ridge: float
    rho: float
    max_side: int

    @property
    def n_maps(self) -> int:
        """Number of planes of given maps that every picture needs."""
        return self.unaries.n_maps

    def grid_shape(self, height: int, width: int) -> tuple[int, int]:
        """Return the rows and columns of the model of a picture."""
        return model_shape((height, width), self.max_side)

    def features(
        self, image: NDArray[np.uint8], maps: NDArray[np.float32] | None = None
    ) -> GridFeatures:
        """Return the features of a picture, (H, W, 3) uint8, scaled down to the model's size.

        Its maps, (H', W', C) probabilities, are scaled down with it.
        """
        shape = self.grid_shape(image.shape[0], image.shape[1])
        colours = shrink_image(image, shape)
        planes = None if maps is None else shrink_maps(maps, shape)
        return boosted_features(colours, self.unaries.scores(colours, planes)[:, :, 0], planes)

    def save(self, path: Path | str, view: PictureView | None = None) -> None:
        """Write the model atomically, as an ``.npz`` of numbers and text without code.

        ``view`` is the view of the deep pictures that it learned from.
        """
        arrays: dict[str, NDArray[Any]] = {
            "format": np.array(FORMAT),
            "loss": np.array(self.loss),
            "theta": self.theta,
            "ridge": np.array(self.ridge),
            "rho": np.array(self.rho),
            "max_side": np.array(self.max_side),
            **_SETTINGS,
            **self.unaries.arrays(),
            **view_parts(view),
        }
        write_npz(path, arrays)


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


def tree_evidence(features: GridFeatures) -> FloatArray:
    """Return the log-odds of the trees from features of `boosted_features`, (rows, columns)."""
    if not isinstance(features.nodes, DenseNodeFeatures):
        raise InvalidProblemError("features: expected those of trees.")
    return features.nodes.values[:, :, 1]


def n_parameters(n_maps: int = 0) -> int:
    """Return the length of theta for ``n_maps`` maps beside each picture."""
    return 2 * (N_NODE_FEATURES + n_maps) + 4 * N_EDGE_FEATURES


def trees_alone(n_maps: int = 0) -> FloatArray:
    """Return the weights with which scores are the log-odds of the trees, without edges."""
    theta = np.zeros(n_parameters(n_maps))
    theta[N_NODE_FEATURES + n_maps + 1] = 1.0
    return theta


def make_boosted_model(
    unaries: TreeUnaries,
    theta: FloatArray,
    *,
    loss: str,
    ridge: float,
    rho: float,
    max_side: int,
) -> BoostedSegmentationModel:
    """Build a mask model that owns a checked, read-only copy of theta.

    Raises
    ------
    InvalidProblemError
        If theta has another length or is not finite, or another part is out of range.
    """
    if not 0 <= unaries.n_maps <= MOST_CLASSES:
        raise InvalidProblemError(f"maps: expected at most {MOST_CLASSES} planes.")
    size = n_parameters(unaries.n_maps)
    values = as_finite_array("theta", np.array(theta, dtype=np.float64), shape=(size,))
    if loss not in LOSSES:
        raise InvalidProblemError(f"loss: expected one of {', '.join(LOSSES)}, received {loss!r}.")
    if max_side < MIN_SIDE:
        raise InvalidProblemError(f"max_side: expected at least {MIN_SIDE}, received {max_side}.")
    unaries.check(1)
    return BoostedSegmentationModel(
        unaries,
        read_only(values),
        loss,
        check_positive("ridge", ridge),
        check_rho(rho),
        int(max_side),
    )


def assemble_boosted_model(
    parts: Mapping[str, NDArray[Any]], name: str
) -> BoostedSegmentationModel:
    """Build a mask model from the parts of a file, after checking them.

    Raises
    ------
    InvalidProblemError
        If a part is missing, learned with other features, or does not fit the others.
    """
    check_model_parts(parts, name, wanted=_WANTED, settings=_SETTINGS, numbers=_NUMBERS)
    try:
        return make_boosted_model(
            unaries_from_arrays(parts),
            parts["theta"],
            loss=str(parts["loss"]),
            ridge=float(parts["ridge"]),
            rho=float(parts["rho"]),
            max_side=int(parts["max_side"]),
        )
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{name} is damaged: {error}") from error
