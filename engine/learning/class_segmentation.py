"""Learning to segment pictures into several classes, from label maps or scribbles."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, check_positive
from engine.core.checkpoint import Checkpoint, OwnCheckpoint
from engine.core.errors import InvalidProblemError
from engine.core.progress import (
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.crf.class_features import UNKNOWN, ClassExample, ClassLabels, Layout
from engine.crf.filter_bank import Frame
from engine.crf.image_grid import shrink_image, shrink_labels, shrink_maps
from engine.kernels.threads import one_blas_thread
from engine.learning.boosted_unaries import FOLDS, deal_folds
from engine.learning.class_model import (
    LOSSES,
    ClassSegmentationModel,
    Detail,
    check_classes,
    class_features,
    make_class_model,
)
from engine.learning.class_unaries import ClassPicture, ClassUnaries, TreeLearning
from engine.learning.class_weights import (
    fit_likelihood,
    fit_univariate,
    mean_error,
    trees_alone,
)
from engine.learning.clock import Clock
from engine.learning.segmentation_prediction import check_image
from engine.solvers.result import LearningResult

Images = Iterable[NDArray[np.uint8]]
LabelMaps = Iterable[ClassLabels]
Maps = Iterable[NDArray[np.floating] | None]

RIDGE_PER_PIXEL = 1e-3
"""Default lambda over the number of known pixels that the weights are learned from."""

SAMPLES, SAMPLES_A_PICTURE = 200_000, 4_000
"""Pixels that the trees learn from: of all pictures together, and of one at most."""

WINDOW = 512
"""Pixels a side that are kept of a picture whose model is larger: where its known labels lie."""

EDGE_WINDOW = 64
"""Pixels a side of the windows that the weights are learned from, one a picture."""

EDGE_LABELS = 500_000
"""The weights are learned from so many pixels times classes at most."""

MOST_COMPARED_BY_LIKELIHOOD = 4
"""Of more classes the likelihood is learned by only where it is asked for: fitting the tables of
all edges to their margins for its certificate would take longer than the trees."""

RELATIVE_GAP = 2e-3
"""Certified gap over the size of the log-likelihood at which learning by it stops."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedClasses:
    """A learned model and how its weights were found.

    ``errors`` has the share of wrong pixels among those kept from the weights, for every way of
    learning that was compared, and of the trees alone; ``n_known``
    counts the known pixels of each class, at the size of the models.
    """

    model: ClassSegmentationModel
    result: LearningResult
    n_pixels: int
    n_known: tuple[int, ...]
    errors: Mapping[str, float]

    @property
    def loss(self) -> str:
        """The loss that the weights were learned by."""
        return self.model.loss


def train_class_segmentation(
    images: Images,
    labels: LabelMaps,
    classes: Sequence[str],
    *,
    maps: Maps | None = None,
    class_weights: Sequence[float] | None = None,
    loss: str | None = None,
    position: bool = True,
    ridge: float | None = None,
    detail: Detail | None = None,
    values: Sequence[int] | None = None,
    unknown: Sequence[int] = (),
    max_seconds: float | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
    checkpoint: Checkpoint | None = None,
    rng: np.random.Generator | None = None,
) -> TrainedClasses:
    """Learn trees of two stages out of fold, then weights of what they say and of edges.

    Parameters
    ----------
    images : iterable of ndarray, each (H, W, 3) uint8
    labels : iterable of ndarray, each (H, W) uint8
        Classes 0 to L - 1; `UNKNOWN` (255) where nothing is known: unpainted, or to be ignored.
        All three are gone through once, in step; a picture is kept at the size of its model.
    classes : names of the L classes, 2 to 32
    maps : iterable of ndarray, each (H', W', C) of numbers from 0 to 1, optional
        Probabilities from any other program for each picture; they become features of the nodes.
        H' and W' may differ from the picture's.
    class_weights : L numbers above 0, optional; how much a pixel of each class counts.
    loss : "univariate" or "likelihood", optional
        By default whichever has the lower error out of sample; of more than four classes
        the first.
    position : bool
        Whether the place within the picture may speak: it helps where pictures are framed alike.
    ridge : float, optional; by default .001 times the known pixels.
    detail : Detail, optional; the size of models, 200 pixels a side by default.
    values, unknown : kept with the model; see `ClassSegmentationModel`.
    max_seconds : float, optional
        Of all, reading included. Trees are grown to their end; the weights stop at the limit.
    on_progress, should_stop, checkpoint : see `engine.core`
        A run that was killed goes on after the last forest that was done.
    rng : numpy.random.Generator, optional
        Folds and sampled pixels; a fixed seed by default.

    Returns
    -------
    TrainedClasses

    Raises
    ------
    InvalidProblemError
        If there are no images, they or their labels or maps do not fit each other, fewer than two
        classes are known anywhere, or an option is out of range.
    StoppedError
        If asked to stop.
    """
    names = tuple(classes)
    check_classes(names)
    if loss is not None and loss not in LOSSES:
        raise InvalidProblemError(f"loss: expected one of {', '.join(LOSSES)}, received {loss!r}.")
    if max_seconds is not None and not max_seconds >= 0:
        raise InvalidProblemError(f"max_seconds: expected seconds from 0, received {max_seconds}.")
    weights = check_class_weights(class_weights, len(names))
    clock = Clock(on_progress, max_seconds)
    order = np.random.default_rng(0) if rng is None else rng
    size = detail or Detail()
    read = list(read_class_pictures(images, labels, len(names), maps=maps, detail=size))
    counts = check_known(read, names)
    pictures = _deal(read, len(names), order)
    own = _own_checkpoint(checkpoint, pictures, names, size, position)
    with one_blas_thread():
        how = TreeLearning(len(names), weights, position, clock.report, should_stop, own)
        unaries = how.learn(pictures)
        clock.report("Looking at what the second trees say", 0.78)
        chosen = _edge_pictures(pictures, len(names), order)
        examples = [_guessed(unaries, pictures[k]) for k in chosen]
        clock.report("Learning weights", 0.84)
        learner = _Weights(examples, weights, ridge, clock, should_stop)
        used, result, errors = learner.learn(loss)
    model = make_class_model(
        names,
        unaries,
        result.theta,
        loss=used,
        ridge=learner.ridge,
        detail=size,
        values=values,
        unknown=unknown,
    )
    n_pixels = sum(picture.labels.size for picture in pictures)
    result = replace(result, seconds=clock.seconds)
    return TrainedClasses(model, result, n_pixels, counts, errors)


@dataclass(frozen=True, slots=True, eq=False)
class ReadPicture:
    """A picture, or the window of it that is learned from, at the size of its model."""

    colours: NDArray[np.uint8]
    labels: ClassLabels
    maps: NDArray[np.float32]
    frame: Frame


def read_class_pictures(
    images: Images,
    labels: LabelMaps,
    n_classes: int,
    *,
    maps: Maps | None = None,
    detail: Detail,
) -> Iterator[ReadPicture]:
    """Yield pictures with labels at the size of their models, one at a time.

    Raises
    ------
    InvalidProblemError
        If the numbers differ, an image is not (H, W, 3) uint8, labels have another size or a value
        that is no class, or maps have another number of planes or values outside 0 to 1.
    """
    beside = repeat(None) if maps is None else maps
    n_maps: int | None = None
    pairs = zip_longest(images, labels)
    for number, ((image, label), given) in enumerate(zip(pairs, beside, strict=False), start=1):
        if image is None or label is None:
            lone, other = ("image", "label map") if label is None else ("label map", "image")
            raise InvalidProblemError(f"{lone} {number} has no {other}.")
        check_image(f"image {number}", image)
        check_label_map(f"image {number}", label, image.shape[:2], n_classes)
        planes = check_maps(f"image {number}", given)
        if n_maps is not None and planes.shape[2] != n_maps:
            raise InvalidProblemError(
                f"image {number}: expected {n_maps} maps as of the others, got {planes.shape[2]}."
            )
        n_maps = planes.shape[2]
        yield _windowed(image, label, planes, detail, n_classes)


def _windowed(
    image: NDArray[np.uint8],
    label: ClassLabels,
    planes: NDArray[np.float32],
    detail: Detail,
    n_classes: int,
) -> ReadPicture:
    """Shrink a picture to its model, and keep the window of it with the most known pixels."""
    shape = detail.shape(int(image.shape[0]), int(image.shape[1]))
    colours, small = shrink_image(image, shape), shrink_labels(label, shape, n_classes)
    maps = shrink_maps(planes, shape)
    top, left = _best_window(small < n_classes, WINDOW)
    place = slice(top, top + WINDOW), slice(left, left + WINDOW)
    return ReadPicture(
        np.ascontiguousarray(colours[place]),
        np.ascontiguousarray(small[place]),
        np.ascontiguousarray(maps[place]),
        Frame(top, left, *shape),
    )


def _best_window(known: NDArray[np.bool_], side: int) -> tuple[int, int]:
    """The corner of the window of ``side`` pixels that holds most known pixels."""
    rows, columns = known.shape
    if max(rows, columns) <= side:
        return 0, 0
    sums = np.zeros((rows + 1, columns + 1), dtype=np.int64)
    sums[1:, 1:] = known.cumsum(axis=0, dtype=np.int64).cumsum(axis=1)
    tops = np.unique(np.linspace(0, max(rows - side, 0), 9).astype(int))
    lefts = np.unique(np.linspace(0, max(columns - side, 0), 9).astype(int))
    bottoms, rights = np.minimum(tops + side, rows), np.minimum(lefts + side, columns)
    counts = sums[np.ix_(bottoms, rights)] - sums[np.ix_(tops, rights)]
    counts += sums[np.ix_(tops, lefts)] - sums[np.ix_(bottoms, lefts)]
    best = np.argwhere(counts == counts.max())
    row, column = best[len(best) // 2]  # among equals the middle: borders are the least alike
    return int(tops[row]), int(lefts[column])


def check_label_map(
    name: str, label: ClassLabels, shape: Sequence[int], n_classes: int
) -> ClassLabels:
    """Return the map if it has the picture's size and only known labels or `UNKNOWN`.

    Raises
    ------
    InvalidProblemError
        If not.
    """
    if label.shape != tuple(shape) or label.dtype != np.uint8:
        raise InvalidProblemError(
            f"{name}: expected labels of bytes of shape {tuple(shape)}, received {label.dtype} of "
            f"shape {label.shape}."
        )
    used = np.flatnonzero(np.bincount(label.ravel(), minlength=256))
    strange = used[(used >= n_classes) & (used != UNKNOWN)]
    if len(strange):
        raise InvalidProblemError(
            f"{name}: label {strange[0]} is none of the {n_classes} classes (0 to "
            f"{n_classes - 1}), nor unknown ({UNKNOWN})."
        )
    return label


def check_maps(name: str, given: NDArray[np.floating] | None) -> NDArray[np.float32]:
    """Return maps as (H, W, C) float32, C = 0 where there are none.

    Raises
    ------
    InvalidProblemError
        If the shape is another, or a value is not between 0 and 1.
    """
    if given is None:
        return np.zeros((1, 1, 0), dtype=np.float32)
    values = given[:, :, None] if given.ndim == 2 else given
    if values.ndim != 3 or values.size == 0:
        raise InvalidProblemError(f"{name}: expected maps of shape (height, width, planes).")
    narrow = np.asarray(values, dtype=np.float32)
    if not (np.isfinite(narrow).all() and narrow.min() >= -1e-6 and narrow.max() <= 1 + 1e-6):
        raise InvalidProblemError(f"{name}: maps must hold probabilities, numbers from 0 to 1.")
    return narrow


def check_class_weights(given: Sequence[float] | None, n_classes: int) -> FloatArray:
    """Return one weight a class, 1 by default.

    Raises
    ------
    InvalidProblemError
        If there are not as many as classes, or one is not above 0.
    """
    if given is None:
        return np.ones(n_classes)
    values = np.array([check_positive("class weight", number) for number in given])
    if len(values) != n_classes:
        raise InvalidProblemError(
            f"class weights: expected {n_classes}, one a class, received {len(values)}."
        )
    return values


def check_known(read: Sequence[ReadPicture], classes: Sequence[str]) -> tuple[int, ...]:
    """Count the known pixels of each class; refuse where there is nothing to tell apart.

    Raises
    ------
    InvalidProblemError
        If there are no pictures, or fewer than two classes are known.
    """
    if not read:
        raise InvalidProblemError("There are no labelled images to learn from.")
    counts = np.zeros(256, dtype=np.int64)
    for picture in read:
        counts += np.bincount(picture.labels.ravel(), minlength=256)
    found = counts[: len(classes)]
    if not found.any():
        raise InvalidProblemError("No pixel has a known label; there is nothing to learn.")
    if np.count_nonzero(found) < 2:
        only = classes[int(found.argmax())]
        raise InvalidProblemError(
            f"All known pixels are {only}; paint some of another class, or learn at more detail."
        )
    return tuple(int(count) for count in found)


def _deal(
    read: Sequence[ReadPicture], n_classes: int, rng: np.random.Generator
) -> list[ClassPicture]:
    """Deal pictures, or blocks of few ones, into folds, and draw the pixels to learn from."""
    each = max(1, min(SAMPLES // len(read), SAMPLES_A_PICTURE * max(1, FOLDS // len(read))))
    folds = deal_folds([picture.labels.shape for picture in read], rng)
    dealt = []
    for picture, fold in zip(read, folds, strict=True):
        known = np.flatnonzero(picture.labels.ravel() < n_classes)
        pixels = np.sort(rng.choice(known, min(each, len(known)), replace=False))
        dealt.append(
            ClassPicture(picture.colours, picture.maps, picture.labels, picture.frame, fold, pixels)
        )
    return dealt


def _edge_pictures(
    pictures: Sequence[ClassPicture], n_classes: int, rng: np.random.Generator
) -> list[int]:
    """Pictures that the weights are learned from: drawn at random, as many as time allows."""
    chosen: list[int] = []
    left = EDGE_LABELS // n_classes
    for k in rng.permutation(len(pictures)):
        if len(pictures[k].pixels) == 0:
            continue
        if left <= 0 and len(chosen) >= 3:
            break
        chosen.append(int(k))
        left -= min(pictures[k].labels.size, EDGE_WINDOW**2)
    return chosen


def _guessed(unaries: ClassUnaries, picture: ClassPicture) -> ClassExample:
    """A window whose scores come from trees that never saw its pixels: where most are known."""
    scores = unaries.scores(picture.colours, picture.maps, frame=picture.frame, folds=picture.folds)
    top, left = _best_window(picture.labels < unaries.n_classes, EDGE_WINDOW)
    place = slice(top, top + EDGE_WINDOW), slice(left, left + EDGE_WINDOW)
    colours = np.ascontiguousarray(picture.colours[place])
    own = np.ascontiguousarray(scores[place])
    features = class_features(colours, own, np.ascontiguousarray(picture.maps[place]))
    return ClassExample(features, np.ascontiguousarray(picture.labels[place]))


def _own_checkpoint(
    checkpoint: Checkpoint | None,
    pictures: Sequence[ClassPicture],
    classes: tuple[str, ...],
    detail: Detail,
    position: bool,
) -> OwnCheckpoint | None:
    """Tie a checkpoint to the sampled pixels and to the settings that change the trees."""
    if checkpoint is None:
        return None
    from hashlib import sha256

    digest = sha256()
    for picture in pictures:
        for array in (picture.colours, picture.labels, picture.maps, picture.folds, picture.pixels):
            digest.update(np.ascontiguousarray(array).tobytes())
    settings: dict[str, str | float] = {
        "classes": ", ".join(classes),
        "images": len(pictures),
        "detail": f"{detail.max_side} {detail.scale}",
        "position": str(position),
        "image digest": digest.hexdigest()[:12],
    }
    return OwnCheckpoint(checkpoint, settings)


class Way(NamedTuple):
    """A way to learn weights: by which loss, and whether edges know of agreement only."""

    name: str
    loss: str
    is_potts: bool


WAYS = (
    Way("univariate, pairs of classes", "univariate", is_potts=False),
    Way("univariate, agreement", "univariate", is_potts=True),
    Way("likelihood", "likelihood", is_potts=False),
)
"""What is compared, on pixels that neither trees nor weights saw."""


class _Weights:
    """Learns the weights by one loss or by the better of several, with pairs or without."""

    def __init__(
        self,
        examples: Sequence[ClassExample],
        weights: FloatArray,
        ridge: float | None,
        clock: Clock,
        should_stop: StopCallback,
    ) -> None:
        self._examples, self._weights = examples, weights
        self._clock, self._should_stop = clock, should_stop
        self._n_known = sum(example.n_known for example in examples)
        self.ridge = ridge or RIDGE_PER_PIXEL * self._n_known

    def learn(self, loss: str | None) -> tuple[str, LearningResult, dict[str, float]]:
        """Return the loss, its result, and the errors of the ways that were compared.

        Half of the pictures teach and the other half judge, then the other way round: every
        picture counts in the comparison. The best way then learns from all.
        """
        halves = self._examples[::2], self._examples[1::2]
        if len(halves[1]) == 0:
            way = WAYS[0] if loss is None else next(w for w in WAYS if w.loss == loss)
            return way.loss, self._fit(self._examples, way), {}
        many = self._layout.n_classes > MOST_COMPARED_BY_LIKELIHOOD
        compared = [
            way
            for way in WAYS
            if way.loss == loss or (loss is None and not (many and way.loss == "likelihood"))
        ]
        errors = {"trees alone": self._error(self._examples, trees_alone(self._layout))}
        if len(compared) > 1:
            for place, way in enumerate(compared):
                self._clock.report(f"Comparing ways to learn: {way.name}", 0.84 + 0.03 * place)
                wrong = 0.0
                for taught, judged in (halves, halves[::-1]):
                    theta = self._fit(taught, way).theta
                    known = sum(example.n_known for example in judged)
                    wrong += self._error(judged, theta) * known / self._n_known
                errors[way.name] = wrong
        best = min(compared, key=lambda way: errors.get(way.name, 0.0))
        self._clock.report(f"Learning weights: {best.name}", 0.95)
        return best.loss, self._fit(self._examples, best), errors

    @property
    def _layout(self) -> Layout:
        return self._examples[0].features.layout

    def _error(self, examples: Sequence[ClassExample], theta: FloatArray) -> float:
        return mean_error(examples, theta, self._should_stop)

    def _fit(self, examples: Sequence[ClassExample], way: Way) -> LearningResult:
        share = sum(example.n_known for example in examples) / self._n_known
        if way.loss == "likelihood":
            return fit_likelihood(
                examples,
                ridge=share * self.ridge,
                relative_gap=RELATIVE_GAP,
                max_seconds=self._clock.left,
                should_stop=self._should_stop,
            )
        return fit_univariate(
            examples,
            ridge=share * self.ridge,
            weights=self._weights,
            is_potts=way.is_potts,
            max_seconds=self._clock.left,
            should_stop=self._should_stop,
        )
