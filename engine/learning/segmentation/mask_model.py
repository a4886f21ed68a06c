"""Mask model with linear weights of image features, and its file format."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, as_finite_array, read_only
from engine.core.errors import InvalidProblemError
from engine.core.npz_file import read_model_parts, write_npz
from engine.core.options import check_positive
from engine.crf.class_features import MOST_CLASSES
from engine.crf.grid_features import GridFeatures
from engine.crf.image_features import (
    COLOUR_THRESHOLDS,
    N_EDGE_FEATURES,
    N_NODE_FEATURES,
    SOBEL_THRESHOLDS,
    compute_image_features,
)
from engine.crf.image_grid import MIN_SIDE, model_shape, shrink_image, shrink_maps
from engine.datasets.picture_view import PictureView
from engine.learning.segmentation.boosted_model import (
    FORMAT as BOOSTED_FORMAT,
)
from engine.learning.segmentation.boosted_model import (
    PARTS as BOOSTED_PARTS,
)
from engine.learning.segmentation.boosted_model import (
    BoostedSegmentationModel,
    assemble_boosted_model,
)
from engine.learning.segmentation.model_parts import check_model_parts, view_parts, whole_number
from engine.objectives.grid_inner import check_rho

FORMAT = "bethe-hall segmentation model 1"
MAX_FILE_BYTES = 16 * 2**20
N_PARAMETERS = 2 * N_NODE_FEATURES + 4 * N_EDGE_FEATURES
"""Number of weights of a model without maps; each map adds two weights."""


@dataclass(frozen=True, slots=True)
class SegmentationModel:
    """Mask model: learned weights of image features, and settings.

    Parameters
    ----------
    theta : ndarray, shape (368 + 2 C,), nats, read-only; see `engine.crf.grid_features`.
    ridge : float, lambda used in learning.
    rho : float, edge appearance probability in (0, 1/2].
    max_side : int, longest side in pixels; larger pictures are scaled down to it.
    n_maps : int, C, number of planes of given maps that every picture needs.
    """

    theta: FloatArray
    ridge: float
    rho: float
    max_side: int
    n_maps: int = 0

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
        planes = None if maps is None else shrink_maps(maps, shape)
        return compute_image_features(shrink_image(image, shape), planes)

    def save(self, path: Path | str, view: PictureView | None = None) -> None:
        """Write the model atomically, as an ``.npz`` of numbers and text without code.

        ``view`` is the view of the deep pictures that it learned from.
        """
        arrays = {
            "format": np.array(FORMAT),
            "theta": self.theta,
            "ridge": np.array(self.ridge),
            "rho": np.array(self.rho),
            "max_side": np.array(self.max_side),
            **_SETTINGS,
            **({"n_maps": np.array(self.n_maps)} if self.n_maps else {}),
            **view_parts(view),
        }
        write_npz(path, arrays)


AnySegmentationModel = SegmentationModel | BoostedSegmentationModel


def make_segmentation_model(
    theta: FloatArray, *, ridge: float, rho: float, max_side: int, n_maps: int = 0
) -> SegmentationModel:
    """Build a mask model that owns a checked, read-only copy of theta.

    Raises
    ------
    InvalidProblemError
        If theta has another length or is not finite, or another number is out of range.
    """
    if not 0 <= n_maps <= MOST_CLASSES:
        raise InvalidProblemError(f"maps: expected at most {MOST_CLASSES} planes.")
    size = N_PARAMETERS + 2 * n_maps
    values = as_finite_array("theta", np.array(theta, dtype=np.float64), shape=(size,))
    if max_side < MIN_SIDE:
        raise InvalidProblemError(f"max_side: expected at least {MIN_SIDE}, received {max_side}.")
    return SegmentationModel(
        read_only(values), check_positive("ridge", ridge), check_rho(rho), int(max_side), n_maps
    )


def load_segmentation_model(path: Path | str) -> AnySegmentationModel:
    """Read a mask model, with linear or tree unaries, and check everything in the file.

    Parameters
    ----------
    path : Path or str, a file that ``save`` of a model wrote.

    Returns
    -------
    SegmentationModel or BoostedSegmentationModel

    Raises
    ------
    InvalidProblemError
        If the file is absent, too large, of another kind or version, learned with other features,
        or holds numbers that are not finite.

    Examples
    --------
    >>> load_segmentation_model("absent.npz")
    Traceback (most recent call last):
        ...
    engine.core.errors.InvalidProblemError: absent.npz: there is no such file.
    """
    name = Path(path).name
    parts = read_model_parts(path, {*_PARTS, *BOOSTED_PARTS}, max_bytes=MAX_FILE_BYTES)
    if str(parts.get("format")) == BOOSTED_FORMAT:
        return assemble_boosted_model(parts, name)
    parts = {key: values for key, values in parts.items() if key in {*_PARTS, "n_maps"}}
    if not set(_PARTS) <= set(parts) or str(parts["format"]) != FORMAT:
        raise InvalidProblemError(f"{name} is not a segmentation model of this version.")
    return _assemble(parts, name)


_NUMBERS = ("theta", "ridge", "rho", "max_side")
_SETTINGS = {"colour_thresholds": COLOUR_THRESHOLDS, "sobel_thresholds": SOBEL_THRESHOLDS}
_PARTS = ("format", *_NUMBERS, *_SETTINGS)


def _assemble(parts: dict[str, FloatArray], name: str) -> SegmentationModel:
    try:
        n_maps = whole_number(parts, "n_maps")
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{name} is damaged: {error}") from error
    if parts["theta"].shape != (N_PARAMETERS + 2 * n_maps,):
        raise InvalidProblemError(f"{name} was learned with other image features.")
    check_model_parts(parts, name, wanted=_PARTS, settings=_SETTINGS, numbers=_NUMBERS)
    try:
        return make_segmentation_model(
            parts["theta"],
            ridge=float(parts["ridge"]),
            rho=float(parts["rho"]),
            max_side=int(parts["max_side"]),
            n_maps=n_maps,
        )
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{name} is damaged: {error}") from error
