"""Learning to segment pictures into several classes, from label maps or scribbles."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arguments import check_seconds
from engine.core.checkpoint import Checkpoint, OwnCheckpoint
from engine.core.errors import InvalidProblemError
from engine.core.progress import (
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.core.status import Status
from engine.crf.class_features import ClassExample, centred
from engine.kernels.threads import one_blas_thread
from engine.learning.segmentation.class_model import (
    LOSSES,
    ClassSegmentationModel,
    Detail,
    check_classes,
    class_features,
    make_class_model,
)
from engine.learning.segmentation.class_pictures import (
    LabelMaps,
    ReadPicture,
    best_window,
    check_class_weights,
    check_known,
    read_class_pictures,
)
from engine.learning.segmentation.class_ways import (
    JUDGE_SECONDS_A_LABEL,
    ComparedWays,
    WayLearning,
    are_strokes,
    compared_ways,
    log_marginals,
    way_cost,
)
from engine.learning.segmentation.clock import Clock
from engine.learning.segmentation.folds import FOLDS
from engine.learning.segmentation.given_maps import Maps
from engine.learning.segmentation.labelled_pictures import Images
from engine.learning.segmentation.refits import has_fallen, is_refit_tried, slope_of
from engine.learning.segmentation.training_pictures import TrainingPicture, deal_pictures
from engine.learning.segmentation.tree_learning import (
    SAID,
    SAMPLES,
    SAMPLES_A_PICTURE,
    TreeLearning,
)
from engine.learning.segmentation.tree_unaries import TreeUnaries
from engine.metrics.classes import Confusion
from engine.solvers.result import LearningResult

EDGE_WINDOW = 64
"""Pixels a side of the windows that the weights are learned from, one a picture."""

EDGE_LABELS = 500_000
"""The weights are learned from so many pixels times classes at most."""

STROKE_WINDOW = 160
"""Pixels a side of the windows of few pictures with strokes, which lie apart."""

JUDGED_LABELS = 12_000_000
"""Pictures kept from it are judged on so many pixels times classes at most."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedClasses:
    """A learned model and how its weights were found.

    ``errors`` has the share of wrong pixels among those kept from the weights, for every way of
    learning that was compared, and of the trees alone. ``kept`` counts right and wrong pixels of
    pictures that were judged by trees and weights learned from the others (a lone picture, of its
    blocks), at the size of the models; ``n_known`` the known pixels of each class at that size;
    ``n_read`` how many pictures there was time to read.
    """

    model: ClassSegmentationModel
    result: LearningResult
    n_pixels: int
    n_known: tuple[int, ...]
    errors: Mapping[str, float]
    kept: tuple[Confusion, ...] = ()
    n_read: int = 0

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
        H' and W' may differ from the picture's, in its proportions.
    class_weights : L numbers above 0, optional; how much a pixel of each class counts.
    loss : "univariate", "likelihood" or "trees" (no edges: what the trees say alone), optional
        By default whichever has the lower error out of sample; of more than four classes
        without the likelihood.
    position : bool
        Whether the place within the picture may speak: it helps where pictures are framed alike.
    ridge : float, optional; by default .001 times the known pixels.
    detail : Detail, optional; the size of models, 200 pixels a side by default.
    values, unknown : kept with the model; see `ClassSegmentationModel`.
    max_seconds : float, optional
        Of all, reading included. Where it is short, pictures that half of it does not suffice to
        read are left out, trees are fewer, ways to learn weights are left out, and weights stop at
        the limit with the best found so far.
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

    Examples
    --------
    >>> from engine import generate_leaf_images
    >>> (leaf,) = generate_leaf_images(1, rng=np.random.default_rng(0), shape=(24, 32))
    >>> labels = leaf.mask.astype(np.uint8)
    >>> trained = train_class_segmentation([leaf.image], [labels], ["ground", "leaf"])
    >>> trained.model.classes
    ('ground', 'leaf')
    """
    names = tuple(classes)
    check_classes(names)
    if loss is not None and loss not in LOSSES:
        raise InvalidProblemError(f"loss: expected one of {', '.join(LOSSES)}, received {loss!r}.")
    check_seconds("max_seconds", max_seconds)
    weights = check_class_weights(class_weights, len(names))
    clock = Clock(on_progress, max_seconds)
    order = np.random.default_rng(0) if rng is None else rng
    size = detail or Detail()
    pairs = read_class_pictures(images, labels, len(names), maps=maps, detail=size)
    read, are_all = _read(pairs, len(names), clock)
    counts = check_known(read, names)
    few = SAMPLES_A_PICTURE * max(1, FOLDS // len(read))
    pictures = deal_pictures(read, len(names), min(SAMPLES // len(read), few), order)
    own = _own_checkpoint(checkpoint, pictures, names, size, position)
    n_pixels = sum(picture.labels.size for picture in pictures)
    clock.begin(n_pixels, later=_work_on_weights(pictures, len(names), loss))
    with one_blas_thread():
        how = TreeLearning(
            *(len(names), weights, position, clock.report, should_stop, own), passed=clock.passed
        )
        unaries = how.learn(pictures)
        clock.report("Looking at what the second trees say", 0.78)
        chosen = _edge_pictures(pictures, len(names), order)
        examples, wholes = _guessed(unaries, [pictures[k] for k in chosen], how)
        clock.trees = clock.seconds - clock.read
        learner = WayLearning(examples, wholes, weights, ridge, clock, should_stop)
        found = learner.learn(loss)
        if not learner.is_sparse and is_refit_tried(found.errors, found.way.loss, clock):
            taught = [pictures[k] for k in chosen]
            unaries, found = _refitted(how, unaries, taught, learner, found)
    model = make_class_model(
        names,
        unaries,
        found.result.theta,
        loss=found.way.loss,
        ridge=learner.strength,
        detail=size,
        values=values,
        unknown=unknown,
    )
    is_short = how.is_short or not are_all
    status = found.result.status
    status = Status.TIME_LIMIT if is_short and status.is_converged else status
    result = replace(found.result, seconds=clock.seconds, status=status)
    return TrainedClasses(model, result, n_pixels, counts, found.errors, found.kept, len(read))


def _read(
    pictures: Iterable[ReadPicture], n_classes: int, clock: Clock
) -> tuple[list[ReadPicture], bool]:
    """Read pictures, and whether all; when time is short those that tell two classes apart do."""
    read: list[ReadPicture] = []
    known = np.zeros(256, dtype=np.int64)
    for picture in pictures:
        read.append(picture)
        known += np.bincount(picture.labels.ravel(), minlength=256)
        if np.count_nonzero(known[:n_classes]) > 1 and clock.is_reading_over():
            return read, False
    return read, True


def _work_on_weights(
    pictures: Sequence[TrainingPicture], n_classes: int, loss: str | None
) -> float:
    """Core seconds expected of comparing the ways to learn weights, before windows are chosen."""
    sizes = [min(picture.labels.size, EDGE_WINDOW**2) for picture in pictures]
    n_labels = min(sum(sizes) * n_classes, EDGE_LABELS)
    labels = [picture.labels for picture in pictures]
    is_whole = all(bool((one < n_classes).all()) for one in labels)
    is_sparse = are_strokes(labels, n_classes)
    if is_sparse:
        n_labels = min(sum(one.size for one in labels) * n_classes, EDGE_LABELS)
    ways = compared_ways(loss, n_classes, is_sparse=is_sparse)
    judged = min(sum(picture.labels.size for picture in pictures) * n_classes, JUDGED_LABELS)
    fits = [way_cost(way, n_labels, is_whole=is_whole) for way in (*ways, ways[0])]
    return sum(fits) + JUDGE_SECONDS_A_LABEL * judged


def _edge_pictures(
    pictures: Sequence[TrainingPicture], n_classes: int, rng: np.random.Generator
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


def _guessed(
    unaries: TreeUnaries, pictures: Sequence[TrainingPicture], how: TreeLearning
) -> tuple[list[ClassExample], list[ClassExample]]:
    """Windows where most is known, and whole pictures as long as there is room and time.

    Their scores come from trees that never saw their pixels.
    """
    windows: list[ClassExample] = []
    wholes: list[ClassExample] = []
    left = JUDGED_LABELS
    extent = _window_side(pictures, unaries.n_outputs)
    for picture in pictures:
        if len(windows) > 1 and how.is_late(SAID):
            break
        colours, maps = picture.colours, picture.maps
        scores = unaries.scores(colours, maps, frame=picture.frame, folds=picture.folds)
        left -= scores.size
        if left >= 0 or not wholes:
            wholes.append(ClassExample(class_features(colours, scores, maps), picture.labels))
        top, side = best_window(picture.labels < unaries.n_outputs, extent)
        place = slice(top, top + extent), slice(side, side + extent)
        features = class_features(
            np.ascontiguousarray(colours[place]),
            np.ascontiguousarray(scores[place]),
            np.ascontiguousarray(maps[place]),
        )
        windows.append(ClassExample(features, np.ascontiguousarray(picture.labels[place])))
    return windows, wholes


def _window_side(pictures: Sequence[TrainingPicture], n_classes: int) -> int:
    """Pixels a side of the windows; larger ones of few pictures with strokes."""
    if not are_strokes((picture.labels for picture in pictures), n_classes):
        return EDGE_WINDOW
    side = int(np.sqrt(EDGE_LABELS / (n_classes * len(pictures))))
    return int(np.clip(side, EDGE_WINDOW, STROKE_WINDOW))


def _refitted(
    how: TreeLearning,
    unaries: TreeUnaries,
    pictures: Sequence[TrainingPicture],
    learner: WayLearning,
    found: ComparedWays,
) -> tuple[TreeUnaries, ComparedWays]:
    """Trees that went on from the messages, and weights on top of them, where that pays."""
    clock = learner.clock
    clock.foresee("Refitting the trees beside their messages", clock.trees)
    theta = found.result.theta
    said = [log_marginals(example, theta) for example in learner.wholes]
    trees = [example.features.trees for example in learner.wholes]
    scores = [centred(example.features.scores(theta).nodes) for example in learner.wholes]
    more = how.refit(unaries, pictures[: len(said)], said, slope_of(trees, scores))
    examples, wholes = _guessed(more, pictures[: len(learner.examples)], how)
    if len(examples) < len(learner.examples):  # there was no time to judge
        return unaries, found
    again = replace(learner, examples=examples, wholes=wholes).learn(None, only=found.way)
    before, after = found.errors[found.way.name], again.errors[found.way.name]
    errors = {**found.errors, f"{found.way.name}, refitted": after}
    if not has_fallen(before, after):
        return unaries, replace(found, errors=errors)
    return more, replace(again, errors=errors)


def _own_checkpoint(
    checkpoint: Checkpoint | None,
    pictures: Sequence[TrainingPicture],
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
