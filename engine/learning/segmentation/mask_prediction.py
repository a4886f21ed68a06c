"""Prediction of masks: the best labelling, the probability of every pixel, and their errors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import read_only
from engine.core.errors import InvalidProblemError
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
"""How a mask is read out: by each pixel's larger marginal, or as the best single labelling."""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """What the model says of one picture, at the picture's size; arrays are read-only.

    Parameters
    ----------
    mask : ndarray, shape (H, W), bool: the best labelling (MAP), enlarged.
    marginals : ndarray, shape (H, W), float32: tree-reweighted pseudomarginals of "foreground".
    grid_shape : rows and columns of the model.
    score, upper_bound : float, nats
        Score of the labelling found and a certified bound of the best; equal (to rounding) where
        every pixel was decided, as it always is when no edge prefers unequal labels. Of a picture
        in tiles, whose best labellings are put together, neither is known: minus and plus infinity.
    is_converged : bool, whether the messages came to rest.
    """

    mask: NDArray[np.bool_]
    marginals: NDArray[np.float32]
    grid_shape: tuple[int, int]
    score: float
    upper_bound: float
    is_converged: bool

    def read_out(self, readout: str) -> NDArray[np.bool_]:
        """The mask by "marginal", the label of each pixel's larger marginal, or by "map".

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
        """Entropy of each pixel's marginal, shape (H, W), nats; log 2 at most."""
        return binary_entropy(self.marginals)


@dataclass(frozen=True, slots=True)
class MaskEvaluation:
    """Errors of one prediction against a known mask.

    ``error_map`` and ``error_mpm`` are shares of wrong pixels of the best labelling and of the
    most probable labels; ``iou`` is that of the labels read out, the most probable ones unless the
    best labelling was asked for; ``log_loss`` is in nats a pixel.
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
    """Segment one picture.

    Inference runs on a grid of at most ``model.max_side`` pixels a side; results are
    interpolated to the picture's size.

    Parameters
    ----------
    model : SegmentationModel or BoostedSegmentationModel
    image : ndarray, shape (H, W, 3), uint8
    maps : ndarray, shape (H', W', C), probabilities from elsewhere; as many planes as the model has
    should_stop : asked before every tile of a large model

    Returns
    -------
    Prediction

    Raises
    ------
    InvalidProblemError
        If the image has another shape or type, or the maps are not what the model learned with.
    StoppedError
        If asked to stop.

    Notes
    -----
    About 60 ms for any photograph, .5 s where trees are asked, and 15 bytes a pixel of the
    original beside the image. Trees of more than a megapixel are asked tile by tile
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
    """The same in the memory of a tile, beside the marginals of the picture."""
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
    """Compare a prediction with the true mask of the same size; the overlap is of ``readout``.

    Parameters
    ----------
    prediction : Prediction
    mask : ndarray, shape (H, W), bool, what is true.
    readout : "marginal" or "map", which of the predicted masks the overlap is of.

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
    return MaskEvaluation(
        error_map=pixel_error(prediction.mask, mask),
        error_mpm=pixel_error(prediction.mpm, mask),
        iou=intersection_over_union(prediction.read_out(readout), mask),
        log_loss=log_loss(prediction.marginals, mask),
    )
