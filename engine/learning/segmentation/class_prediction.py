"""Prediction of label maps: probabilities of every pixel, and the best labelling."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_flag
from engine.crf.class_features import ClassFeatures, ClassLabels
from engine.crf.image_grid import enlarge, shrink_image, shrink_maps
from engine.crf.picture_windows import ArrayMaps, ArraySource
from engine.graphs.grid import Grid
from engine.kernels.class_messages import bound_maximum, max_sweep
from engine.learning.segmentation.class_model import ClassSegmentationModel
from engine.learning.segmentation.class_weights import rest_messages
from engine.learning.segmentation.given_maps import maps_for
from engine.learning.segmentation.mask_prediction import READOUTS, check_image
from engine.learning.segmentation.tiled_prediction import WHOLE_PIXELS, TiledPrediction
from engine.objectives.class_messages import ClassMessages
from engine.oracles.grid_roof_duality import GridRoofDuality

MOST_ROUNDS = 6
"""Largest number of expansions of every label: two nearly always suffice."""

BOUND_SWEEPS = 40
"""Number of sweeps of max-sum messages for the bound of the best labelling."""

ROUNDING = 1e-9
"""Share of the size of the scores by which a bound is raised to cover rounding errors."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassPrediction:
    """Prediction of a class model for one picture, at its size; arrays are read-only.

    Parameters
    ----------
    classes : names; label 0 is the first.
    labels : ndarray, shape (H, W), uint8: class of each pixel's largest marginal.
    probabilities : ndarray, shape (H, W, L), float32: tree-reweighted pseudomarginals.
    grid_shape : rows and columns of the model.
    is_converged : bool, True if the messages converged.
    best : BestLabelling, the best single labelling found, if it was requested.
    """

    classes: tuple[str, ...]
    labels: ClassLabels
    probabilities: NDArray[np.float32]
    grid_shape: tuple[int, int]
    is_converged: bool
    best: "BestLabelling | None" = None

    @property
    def doubt(self) -> NDArray[np.float32]:
        """Entropy of each pixel's marginals, shape (H, W), nats; at most log L."""
        return entropy_of(self.probabilities)

    def read_out(self, readout: str) -> ClassLabels:
        """Return the labels by "marginal", each pixel's largest, or "map", the best labelling.

        Raises
        ------
        InvalidProblemError
            If ``readout`` is neither, or "map" was not computed.
        """
        if readout not in READOUTS:
            raise InvalidProblemError(
                f"readout: expected {' or '.join(READOUTS)}, received {readout!r}."
            )
        if readout == "marginal":
            return self.labels
        if self.best is None:
            raise InvalidProblemError("The best labelling was not requested.")
        return self.best.labels

    def above(self, label: int, threshold: float) -> NDArray[np.bool_]:
        """Return the pixels where the probability of a class is at least ``threshold``, (H, W)."""
        return np.asarray(self.probabilities[:, :, label] >= threshold)


@dataclass(frozen=True, slots=True, eq=False)
class BestLabelling:
    """Best labelling found, with its score and an upper bound on the best score, nats.

    No expansion of a label that persistency decides improves it.
    """

    labels: ClassLabels
    score: float
    upper_bound: float


def predict_classes(
    model: ClassSegmentationModel,
    image: NDArray[np.uint8],
    maps: NDArray[np.floating] | None = None,
    *,
    with_best: bool = False,
) -> ClassPrediction:
    """Segment one picture into the model's classes.

    Parameters
    ----------
    model : ClassSegmentationModel
    image : ndarray, shape (H, W, 3), uint8
    maps : ndarray, shape (H', W', C), probabilities of another program, planes as in learning
    with_best : bool, True to search for the best single labelling too.

    Returns
    -------
    ClassPrediction
        ``labels`` (H, W) and the probabilities of the classes.

    Raises
    ------
    InvalidProblemError
        If the image has another shape or type, or the maps are not what the model learned with.

    Notes
    -----
    Memory about 600 + 100 L bytes a pixel of the model and 8 L a pixel of the picture; models of
    more than a megapixel are predicted in tiles (``tiled_prediction``), unless the best labelling
    is requested.

    Examples
    --------
    >>> from engine import generate_leaf_images, train_class_segmentation
    >>> (leaf,) = generate_leaf_images(1, rng=np.random.default_rng(0), shape=(24, 32))
    >>> labels = leaf.mask.astype(np.uint8)
    >>> trained = train_class_segmentation([leaf.image], [labels], ["ground", "leaf"])
    >>> predict_classes(trained.model, leaf.image).labels.shape
    (24, 32)
    """
    check_flag("with_best", with_best)
    check_image("image", image)
    planes = maps_for(model.n_maps, maps, image.shape[:2])
    height, width = int(image.shape[0]), int(image.shape[1])
    shape = model.detail.shape(height, width)
    if shape[0] * shape[1] > WHOLE_PIXELS and not with_best:
        return _predict_in_tiles(model, image, planes)
    features = model.features(shrink_image(image, shape), shrink_maps(planes, shape))
    chains = ClassMessages(features, model.theta, is_shared=True)
    is_converged = rest_messages(chains)
    probabilities = enlarge_classes(chains.marginals(), (height, width))
    best = None
    if with_best:
        labels, score, bound = best_labelling(features, model.theta)
        best = BestLabelling(read_only(_stretch(labels, (height, width))), score, bound)
    return ClassPrediction(
        model.classes,
        read_only(probabilities.argmax(axis=2).astype(np.uint8)),
        read_only(probabilities),
        shape,
        is_converged,
        best,
    )


def _predict_in_tiles(
    model: ClassSegmentationModel, image: NDArray[np.uint8], maps: NDArray[np.float32]
) -> ClassPrediction:
    """Predict tile by tile, in the memory of a tile and of the picture's probabilities."""
    shape = (int(image.shape[0]), int(image.shape[1]))
    probabilities = np.empty((*shape, model.n_classes), dtype=np.float32)
    labels = np.empty(shape, dtype=np.uint8)

    def write(top: int, left: int, values: NDArray[np.float32]) -> None:
        place = slice(top, top + values.shape[0]), slice(left, left + values.shape[1])
        probabilities[place], labels[place] = values, values.argmax(axis=2)

    report = TiledPrediction(model, ArraySource(image), ArrayMaps(maps)).run(write)
    return ClassPrediction(
        model.classes,
        read_only(labels),
        read_only(probabilities),
        report.grid_shape,
        report.is_converged,
    )


def enlarge_classes(marginals: NDArray[np.float32], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return the marginals of a grid, (rows, columns, L), interpolated at the picture's pixels."""
    if marginals.shape[:2] == shape:
        return marginals
    out = np.empty((*shape, marginals.shape[2]), dtype=np.float32)
    for label in range(marginals.shape[2]):
        out[:, :, label] = enlarge(marginals[:, :, label].astype(np.float64), shape)
    return np.clip(out, 0.0, 1.0, out=out)


def _stretch(labels: ClassLabels, shape: tuple[int, int]) -> ClassLabels:
    """Return labels enlarged to a shape by nearest neighbours."""
    rows = (np.arange(shape[0]) + 0.5) * labels.shape[0] / shape[0]
    columns = (np.arange(shape[1]) + 0.5) * labels.shape[1] / shape[1]
    return labels[np.ix_(rows.astype(int), columns.astype(int))]


def entropy_of(probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the entropy of probabilities along the last axis, nats, float32."""
    p = np.clip(probabilities, np.float32(1e-7), np.float32(1.0))
    return np.asarray(-(p * np.log(p)).sum(axis=-1), dtype=np.float32)


def best_labelling(features: ClassFeatures, theta: FloatArray) -> tuple[ClassLabels, float, float]:
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
    while quiet < n and tried < MOST_ROUNDS * n:
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
