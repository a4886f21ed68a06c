"""Prediction of masks and label maps: best labelling, probabilities of every pixel, and errors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_callables, check_choice, check_flag
from engine.core.progress import StopCallback, never_stop
from engine.crf.class_features import ClassLabels
from engine.crf.image_grid import enlarge, shrink_image, shrink_maps
from engine.crf.picture_windows import ArrayMaps, ArraySource
from engine.learning.segmentation.given_maps import GivenMap, check_image, maps_for
from engine.learning.segmentation.grid_readout import best_labelling, read_marginals
from engine.learning.segmentation.model import SegmentationModel
from engine.learning.segmentation.tiled_prediction import WHOLE_PIXELS, TiledPrediction, sink_of
from engine.metrics.segmentation import (
    binary_entropy,
    intersection_over_union,
    log_loss,
    pixel_error,
)

READOUTS = ("marginal", "map")
"""Names of the readouts: each pixel's largest marginal, or the best labelling (MAP)."""


@dataclass(frozen=True, slots=True, eq=False)
class BestLabelling:
    """Best labelling found, (H, W) uint8, with its score and an upper bound on the best, nats.

    Both are equal (to rounding) if every pixel was decided, as is always so for two labels if no
    edge prefers unequal labels. For pictures predicted in tiles neither is known: minus and plus
    infinity. With more labels, no expansion of a label that persistency decides improves it.
    """

    labels: ClassLabels
    score: float
    upper_bound: float


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Prediction of a model for one picture, at its size; arrays are read-only.

    Parameters
    ----------
    classes : names of the labels; label 0 is the first.
    labels : ndarray, shape (H, W), uint8: label of each pixel's largest marginal.
    marginals : ndarray, float32: tree-reweighted pseudomarginals, of a mask those of "foreground",
        shape (H, W), of a label map those of every label, shape (H, W, L).
    grid_shape : rows and columns of the model.
    is_converged : bool, True if the messages converged.
    best : BestLabelling, the best single labelling found; None if it was not requested.
    """

    classes: tuple[str, ...]
    labels: ClassLabels
    marginals: NDArray[np.float32]
    grid_shape: tuple[int, int]
    is_converged: bool
    best: BestLabelling | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.classes)

    @property
    def probabilities(self) -> NDArray[np.float32]:
        """Pseudomarginals of every label, shape (H, W, L), read-only."""
        if self.marginals.ndim == 3:
            return self.marginals
        return read_only(np.stack([1 - self.marginals, self.marginals], axis=2))

    @property
    def doubt(self) -> NDArray[np.float32]:
        """Entropy of each pixel's marginals, shape (H, W), nats; at most log L."""
        if self.marginals.ndim == 3:
            return entropy_of(self.marginals)
        return binary_entropy(self.marginals)

    @property
    def score(self) -> float:
        """Score of the best labelling, nats; minus infinity if it is not known."""
        return -np.inf if self.best is None else self.best.score

    @property
    def upper_bound(self) -> float:
        """Certified upper bound of the best score, nats; infinity if it is not known."""
        return np.inf if self.best is None else self.best.upper_bound

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Pixels to which the best labelling gives a label other than the first, shape (H, W)."""
        return read_only(np.asarray(self.read_out("map") != 0))

    def read_out(self, readout: str) -> ClassLabels:
        """Return the labels by "marginal", each pixel's largest, or "map", the best labelling.

        Raises
        ------
        InvalidProblemError
            If ``readout`` is neither, or "map" was not computed.
        """
        check_choice("readout", readout, READOUTS)
        if readout == "marginal":
            return self.labels
        if self.best is None:
            raise InvalidProblemError("The best labelling was not requested.")
        return self.best.labels

    def above(self, label: int, threshold: float) -> NDArray[np.bool_]:
        """Return the pixels where the probability of a label is at least ``threshold``, (H, W)."""
        if self.marginals.ndim == 2 and label == 1:
            return np.asarray(self.marginals >= threshold)
        return np.asarray(self.probabilities[:, :, label] >= threshold)


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


def predict_segmentation(
    model: SegmentationModel,
    image: NDArray[np.uint8],
    maps: GivenMap = None,
    *,
    with_best: bool | None = None,
    should_stop: StopCallback = never_stop,
) -> Prediction:
    """Segment one picture into the model's labels.

    Inference runs on a grid of the model's size (`Detail`); results are interpolated to the
    picture's size.

    Parameters
    ----------
    model : SegmentationModel
    image : ndarray, shape (H, W, 3), uint8
    maps : ndarray, shape (H', W', C), probabilities of another program, planes as in learning
    with_best : bool, optional
        True to search for the best single labelling too. By default only for masks, for which it
        takes one minimum cut.
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
    Masks take about 60 ms for any photograph, 0.5 s with trees, and 15 bytes a pixel of the
    original beside the image; label maps about 600 + 100 L bytes a pixel of the model and 8 L a
    pixel of the picture. Models with trees of more than a megapixel are predicted tile by tile
    (`engine.learning.segmentation.tiled_prediction`), in about a gigabyte, unless the best
    labelling of a label map is requested.

    References
    ----------
    Kolmogorov and Rother 2007 (best labelling, roof duality); Boykov, Veksler and Zabih 2001
    (expansions); Wainwright, Jaakkola and Willsky 2005 (marginals).

    Examples
    --------
    >>> from engine import generate_leaf_images, train_segmentation
    >>> leaves = generate_leaf_images(2, rng=np.random.default_rng(0), shape=(24, 32))
    >>> trained = train_segmentation([leaves[0].image], [leaves[0].mask])
    >>> predict_segmentation(trained.model, leaves[1].image).labels.shape
    (24, 32)
    """
    check_callables(should_stop=should_stop)
    if with_best is not None:
        check_flag("with_best", with_best)
    check_image("image", image)
    planes = maps_for(model.n_maps, maps, image.shape[:2])
    size = int(image.shape[0]), int(image.shape[1])
    shape = model.grid_shape(*size)
    wants_best = model.is_mask if with_best is None else with_best
    is_large = shape[0] * shape[1] > WHOLE_PIXELS and model.unaries is not None
    if is_large and (model.is_mask or not wants_best):
        return _predict_in_tiles(model, image, planes, wants_best, should_stop)
    features = model.features(shrink_image(image, shape), shrink_maps(planes, shape))
    best = None
    if wants_best:
        labels, score, bound = best_labelling(features, model.theta)
        best = BestLabelling(read_only(_stretch(labels, size, model)), score, bound)
    nodes, is_converged = read_marginals(features, model.theta, model.rho)
    marginals = enlarge_marginals(nodes, size)
    return Prediction(
        model.classes,
        read_only(labels_of(marginals)),
        read_only(marginals),
        shape,
        is_converged,
        best,
    )


predict_classes = predict_segmentation
"""Name of `predict_segmentation` in version 0.1 for models of label maps."""


def _predict_in_tiles(
    model: SegmentationModel,
    image: NDArray[np.uint8],
    maps: NDArray[np.float32],
    with_best: bool,
    should_stop: StopCallback,
) -> Prediction:
    """Predict tile by tile, in the memory of a tile and of the picture's probabilities."""
    size = int(image.shape[0]), int(image.shape[1])
    shape = model.grid_shape(*size)
    marginals = np.empty(size if model.is_mask else (*size, model.n_classes), dtype=np.float32)
    labels = np.empty(size, dtype=np.uint8)
    found = np.empty(shape, dtype=np.float32) if with_best else None

    def write(top: int, left: int, values: NDArray[np.float32]) -> None:
        place = slice(top, top + values.shape[0]), slice(left, left + values.shape[1])
        marginals[place], labels[place] = values, labels_of(values)

    work = TiledPrediction(
        model,
        ArraySource(image),
        ArrayMaps(maps),
        should_stop=should_stop,
        write_best=None if found is None else sink_of(found),
    )
    report = work.run(write)
    best = None
    if found is not None:
        enlarged = _stretch(found.astype(np.uint8), size, model)
        best = BestLabelling(read_only(enlarged), -np.inf, np.inf)
    return Prediction(
        model.classes,
        read_only(labels),
        read_only(marginals),
        report.grid_shape,
        report.is_converged,
        best,
    )


def labels_of(marginals: NDArray[np.float32]) -> ClassLabels:
    """Return the label of the largest marginal of each pixel, uint8.

    ``marginals`` are those of the second of two labels, (H, W), or of every label, (H, W, L); of
    equal ones the first label is taken.
    """
    if marginals.ndim == 2:
        return np.asarray(marginals > 0.5).view(np.uint8)
    return np.asarray(marginals.argmax(axis=2), dtype=np.uint8)


def enlarge_marginals(
    marginals: NDArray[np.float32], shape: tuple[int, int]
) -> NDArray[np.float32]:
    """Return the marginals of a grid interpolated at the picture's pixels."""
    if marginals.ndim == 2:
        return np.clip(enlarge(marginals, shape), 0.0, 1.0)
    if marginals.shape[:2] == shape:
        return marginals
    out = np.empty((*shape, marginals.shape[2]), dtype=np.float32)
    for label in range(marginals.shape[2]):
        out[:, :, label] = enlarge(marginals[:, :, label].astype(np.float64), shape)
    return np.clip(out, 0.0, 1.0, out=out)


def _stretch(labels: ClassLabels, shape: tuple[int, int], model: SegmentationModel) -> ClassLabels:
    """Return labels enlarged to a shape: masks with smooth borders, others by nearest pixels."""
    if model.is_mask:
        return (enlarge(labels.astype(np.float64), shape) >= 0.5).view(np.uint8)
    rows = (np.arange(shape[0]) + 0.5) * labels.shape[0] / shape[0]
    columns = (np.arange(shape[1]) + 0.5) * labels.shape[1] / shape[1]
    return labels[np.ix_(rows.astype(int), columns.astype(int))]


def entropy_of(probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the entropy of probabilities along the last axis, nats, float32."""
    p = np.clip(probabilities, np.float32(1e-7), np.float32(1.0))
    return np.asarray(-(p * np.log(p)).sum(axis=-1), dtype=np.float32)


def evaluate_mask(
    prediction: Prediction, mask: NDArray[np.bool_], *, readout: str = "marginal"
) -> MaskEvaluation:
    """Return the errors of a prediction of two labels against the true mask of the same size.

    Parameters
    ----------
    prediction : Prediction, with the best labelling
    mask : ndarray, shape (H, W), bool, the true mask: pixels of the second label.
    readout : "marginal" or "map", the predicted mask whose overlap is returned.

    Returns
    -------
    MaskEvaluation
        Shares of wrong pixels (``error_map``, ``error_mpm``), the overlap ``iou`` and the log loss
        in nats a pixel.

    Raises
    ------
    InvalidProblemError
        If the sizes differ, or there are more than two labels.

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
    if prediction.n_labels != 2:
        raise InvalidProblemError(
            f"prediction: expected two labels, received {prediction.n_labels}."
        )
    marginals = prediction.marginals
    marked = marginals if marginals.ndim == 2 else marginals[:, :, 1]
    return MaskEvaluation(
        error_map=pixel_error(prediction.mask, mask),
        error_mpm=pixel_error(prediction.labels.view(np.bool_), mask),
        iou=intersection_over_union(prediction.read_out(readout).view(np.bool_), mask),
        log_loss=log_loss(marked, mask),
    )
