"""Prediction of masks: best labelling, probability of every pixel, and errors of both."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_callables, check_choice
from engine.core.progress import StopCallback, never_stop
from engine.crf.image_grid import enlarge
from engine.crf.picture_windows import ArrayMaps, ArraySource
from engine.learning.segmentation.boosted_model import BoostedSegmentationModel
from engine.learning.segmentation.given_maps import GivenMap, maps_for
from engine.learning.segmentation.grid_readout import best_labelling, predict_marginals
from engine.learning.segmentation.mask_model import AnySegmentationModel
from engine.learning.segmentation.tiled_prediction import WHOLE_PIXELS, TiledPrediction, sink_of
from engine.metrics.segmentation import (
    binary_entropy,
    intersection_over_union,
    log_loss,
    pixel_error,
)

READOUTS = ("marginal", "map")
"""Names of the readouts of a mask: each pixel's larger marginal, or the best labelling (MAP)."""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Prediction of a mask model for one picture, at its size; arrays are read-only.

    Parameters
    ----------
    mask : ndarray, shape (H, W), bool: the best labelling (MAP), enlarged.
    marginals : ndarray, shape (H, W), float32: tree-reweighted pseudomarginals of "foreground".
    grid_shape : rows and columns of the model.
    score, upper_bound : float, nats
        Score of the labelling found and a certified upper bound of the best score; equal (to
        rounding) if every pixel was decided, as is always so if no edge prefers unequal labels. For
        pictures predicted in tiles neither is known: minus and plus infinity.
    is_converged : bool, True if the messages converged.
    """

    mask: NDArray[np.bool_]
    marginals: NDArray[np.float32]
    grid_shape: tuple[int, int]
    score: float
    upper_bound: float
    is_converged: bool

    def read_out(self, readout: str) -> NDArray[np.bool_]:
        """Return the mask by "marginal", each pixel's larger marginal, or by "map".

        Raises
        ------
        InvalidProblemError
            If ``readout`` is neither.
        """
        if readout not in READOUTS:
            raise InvalidProblemError(
                f"readout: expected {' or '.join(READOUTS)}, received {readout!r}."
            )
        return self.mpm if readout == "marginal" else self.mask

    @property
    def mpm(self) -> NDArray[np.bool_]:
        """Labels that maximise each pixel's marginal, shape (H, W)."""
        return np.asarray(self.marginals > 0.5)

    @property
    def entropy(self) -> NDArray[np.float32]:
        """Entropy of each pixel's marginal, shape (H, W), nats; at most log 2."""
        return binary_entropy(self.marginals)


@dataclass(frozen=True, slots=True)
class MaskEvaluation:
    """Errors of one prediction against the true mask.

    ``error_map`` and ``error_mpm`` are shares of wrong pixels of the best labelling and of the
    most probable labels; ``iou`` is that of the most probable labels, or of the best labelling if
    requested; ``log_loss`` is in nats a pixel.
    """

    error_map: float
    error_mpm: float
    iou: float
    log_loss: float


def check_image(name: str, image: NDArray[Any]) -> None:
    """Raise InvalidProblemError unless ``image`` holds bytes of shape (height, width, 3)."""
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or image.size == 0:
        raise InvalidProblemError(
            f"{name}: expected bytes of shape (height, width, 3), received "
            f"{image.dtype} of shape {image.shape}."
        )


def predict_segmentation(
    model: AnySegmentationModel,
    image: NDArray[np.uint8],
    maps: GivenMap = None,
    *,
    should_stop: StopCallback = never_stop,
) -> Prediction:
    """Return the predicted mask and the marginals of one picture.

    Inference runs on a grid of at most ``model.max_side`` pixels a side; results are
    interpolated to the picture's size.

    Parameters
    ----------
    model : SegmentationModel or BoostedSegmentationModel
    image : ndarray, shape (H, W, 3), uint8
    maps : ndarray, shape (H', W', C), probabilities of another program, planes as in learning
    should_stop : called before every tile of a large model

    Returns
    -------
    Prediction

    Raises
    ------
    InvalidProblemError
        If the image has another shape or type, or the maps are not what the model learned with.
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    About 60 ms for any photograph, 0.5 s with trees, and 15 bytes a pixel of the original beside
    the image. Models with trees of more than a megapixel are predicted tile by tile
    (`engine.learning.segmentation.tiled_prediction`), in about a gigabyte.

    References
    ----------
    Kolmogorov and Rother 2007 (best labelling, roof duality); Wainwright, Jaakkola and Willsky 2005
    (marginals).

    Examples
    --------
    >>> from engine import generate_leaf_images, train_segmentation
    >>> leaves = generate_leaf_images(2, rng=np.random.default_rng(0), shape=(24, 32))
    >>> trained = train_segmentation([leaves[0].image], [leaves[0].mask])
    >>> predict_segmentation(trained.model, leaves[1].image).mask.shape
    (24, 32)
    """
    check_callables(should_stop=should_stop)
    check_image("image", image)
    planes = maps_for(model.n_maps, maps, image.shape[:2])
    rows, columns = model.grid_shape(int(image.shape[0]), int(image.shape[1]))
    if isinstance(model, BoostedSegmentationModel) and rows * columns > WHOLE_PIXELS:
        return _predict_in_tiles(model, image, planes, should_stop)
    features = model.features(image, planes)
    labels, score, bound = best_labelling(features, model.theta)
    nodes, converged = predict_marginals(features, model.theta, model.rho)
    shape = (int(image.shape[0]), int(image.shape[1]))
    mask = enlarge(labels.astype(np.float64), shape) >= 0.5
    marginals = np.clip(enlarge(nodes, shape), 0.0, 1.0)
    return Prediction(
        mask=read_only(mask),
        marginals=read_only(marginals),
        grid_shape=features.shape,
        score=score,
        upper_bound=bound,
        is_converged=converged,
    )


def _predict_in_tiles(
    model: BoostedSegmentationModel,
    image: NDArray[np.uint8],
    maps: NDArray[np.float32],
    should_stop: StopCallback,
) -> Prediction:
    """Predict tile by tile, in the memory of a tile and of the picture's marginals."""
    shape = (int(image.shape[0]), int(image.shape[1]))
    marginals = np.empty(shape, dtype=np.float32)
    best = np.empty(model.grid_shape(*shape), dtype=np.float32)
    work = TiledPrediction(
        model,
        ArraySource(image),
        ArrayMaps(maps),
        should_stop=should_stop,
        write_best=sink_of(best),
    )
    report = work.run(sink_of(marginals))
    return Prediction(
        mask=read_only(enlarge(best, shape) >= 0.5),
        marginals=read_only(marginals),
        grid_shape=report.grid_shape,
        score=-np.inf,
        upper_bound=np.inf,
        is_converged=report.is_converged,
    )


def evaluate_mask(
    prediction: Prediction, mask: NDArray[np.bool_], *, readout: str = "marginal"
) -> MaskEvaluation:
    """Return the errors of a prediction against the true mask of the same size.

    Parameters
    ----------
    prediction : Prediction
    mask : ndarray, shape (H, W), bool, the true mask.
    readout : "marginal" or "map", the predicted mask whose overlap is returned.

    Returns
    -------
    MaskEvaluation
        Shares of wrong pixels (``error_map``, ``error_mpm``), the overlap ``iou`` and the log loss
        in nats a pixel.

    Raises
    ------
    InvalidProblemError
        If the sizes differ.

    Examples
    --------
    >>> from engine import generate_leaf_images, predict_segmentation, train_segmentation
    >>> leaves = generate_leaf_images(3, rng=np.random.default_rng(0), shape=(24, 32))
    >>> pictures, masks = [leaf.image for leaf in leaves], [leaf.mask for leaf in leaves]
    >>> trained = train_segmentation(pictures[:2], masks[:2])
    >>> prediction = predict_segmentation(trained.model, pictures[2])
    >>> evaluate_mask(prediction, masks[2]).error_map < 0.2
    True
    """
    check_choice("readout", readout, READOUTS)
    return MaskEvaluation(
        error_map=pixel_error(prediction.mask, mask),
        error_mpm=pixel_error(prediction.mpm, mask),
        iou=intersection_over_union(prediction.read_out(readout), mask),
        log_loss=log_loss(prediction.marginals, mask),
    )
