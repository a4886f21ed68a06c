"""Learning of class models, which segment pictures into classes, from label maps or strokes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from engine.core.checkpoint import Checkpoint
from engine.core.options import (
    check_callables,
    check_choice,
    check_flag,
    check_generator,
    check_number,
    check_seconds,
)
from engine.core.progress import (
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.crf.class_features import ClassExample
from engine.kernels.threads import one_blas_thread
from engine.learning.segmentation.class_candidates import (
    JUDGE_SECONDS_A_LABEL,
    TREES_ALONE,
    ClassWeights,
    are_strokes,
    candidate_cost,
    compared_candidates,
)
from engine.learning.segmentation.class_pictures import (
    LabelMaps,
    ReadPicture,
    best_window,
    check_class_weights,
    check_known,
    read_class_pictures,
)
from engine.learning.segmentation.clock import Clock, images_left_out
from engine.learning.segmentation.given_maps import Maps
from engine.learning.segmentation.label_learning import LabelLearning, ScoredPictures
from engine.learning.segmentation.labelled_pictures import Images
from engine.learning.segmentation.model import (
    CLASS_LOSSES,
    Detail,
    SegmentationModel,
    label_code,
    make_segmentation_model,
)
from engine.learning.segmentation.network.inference import Network
from engine.learning.segmentation.network.learning import (
    NetworkLearning,
    NetworkOptions,
    after_network,
    checkpoint_setting,
    n_unseen_maps,
    resolved_options,
)
from engine.learning.segmentation.part_store import PartStore
from engine.learning.segmentation.training_pictures import FOLDS, TrainingPicture, deal_pictures
from engine.learning.segmentation.tree_features import class_features
from engine.learning.segmentation.tree_learning import (
    SAID,
    SAMPLES,
    SAMPLES_A_PICTURE,
    TreeLearning,
    own_checkpoint,
)
from engine.learning.segmentation.tree_unaries import TreeUnaries
from engine.learning.segmentation.weight_learning import Candidate, WeightLearner, check_loss
from engine.metrics.classes import Confusion
from engine.solvers.result import LearningResult

EDGE_WINDOW = 64
"""Side in pixels of the windows that the weights are learned from, one per picture."""

EDGE_LABELS = 500_000
"""Largest number of pixels times classes that the weights are learned from."""

STROKE_WINDOW = 160
"""Side in pixels of the windows of few pictures with strokes, which lie far apart."""

JUDGED_LABELS = 12_000_000
"""Largest number of pixels times classes of held-out pictures for evaluation."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedClasses:
    """Learned class model, with the result of learning its weights.

    ``errors`` has the share of wrong held-out pixels for every candidate that was compared, and for
    the trees alone. ``kept`` has confusion matrices of held-out pictures (of a single picture, of
    its held-out blocks), at the size of the models; ``n_known`` counts the known pixels of each
    class at that size; ``n_read`` is the number of pictures read within the time limit, and
    ``left_out`` names what that limit left out.
    """

    model: SegmentationModel
    result: LearningResult
    n_pixels: int
    n_known: tuple[int, ...]
    errors: Mapping[str, float]
    kept: tuple[Confusion, ...] = ()
    n_read: int = 0
    left_out: tuple[str, ...] = ()

    @property
    def loss(self) -> str:
        """Loss that the weights were learned by."""
        return self.model.loss


def train_class_segmentation(
    images: Images,
    labels: LabelMaps,
    classes: Sequence[str],
    *,
    maps: Maps | None = None,
    class_weights: Sequence[float] | None = None,
    loss: str | None = None,
    is_smooth: bool = True,
    position: bool = True,
    ridge: float | None = None,
    detail: Detail | None = None,
    values: Sequence[int] | None = None,
    unknown: Sequence[int] = (),
    max_seconds: float | None = None,
    network: NetworkOptions | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
    checkpoint: Checkpoint | None = None,
    rng: np.random.Generator | None = None,
) -> TrainedClasses:
    """Learn a class model: trees of two stages out of fold, then weights of scores and edges.

    Parameters
    ----------
    images : iterable of ndarray, each (H, W, 3) uint8
    labels : iterable of ndarray, each (H, W) uint8
        Classes 0 to L - 1; `UNKNOWN` (255) for unpainted or ignored pixels. Images, labels and maps
        are iterated once, in parallel; a picture is stored at the size of its model.
    classes : names of the L classes, 2 to 32
    maps : iterable of ndarray, each (H', W', C) of numbers from 0 to 1, optional
        Probabilities from any other program for each picture; they become features of the nodes.
        H' and W' may differ from the picture's size, in the same proportions.
    class_weights : L numbers above 0, optional; weight of a pixel of each class.
    loss : "univariate", "likelihood", or without edges "trees", "network" or "mean", optional
        By default the one with the lowest held-out error; with more than four classes the
        likelihood is not compared, and the network alone and the mean of trees and network are
        compared if there is a network.
    is_smooth : bool
        False to compare no loss with edges between pixels: they smooth away a class that is only
        two pixels wide, such as the edges of objects (`engine.datasets.edges_of`).
    position : bool
        True to use the position within the picture as a feature: it helps if all are framed alike.
    ridge : float, optional; by default 0.001 times the known pixels.
    detail : Detail, optional; the size of models, 200 pixels a side by default.
    values, unknown : stored with the model; see `SegmentationModel`.
    max_seconds : float, optional
        Limit of the whole run, reading included. If it is short, reading stops after half of it,
        there are fewer trees, some candidates are not compared, and learning stops at the limit
        with the best weights so far.
    network : NetworkOptions, optional; see `engine.train_boosted_segmentation`.
    on_progress, should_stop, checkpoint : see `engine.core`
        A killed run resumes after the last finished forest or weights, and within a network.
    rng : numpy.random.Generator, optional
        Folds and sampled pixels; a fixed seed by default.

    Returns
    -------
    TrainedClasses

    Raises
    ------
    InvalidProblemError
        If there are no images, they or their labels or maps do not fit each other, fewer than two
        classes are known anywhere, an option is out of range, or a network is requested and JAX is
        not installed.
    StoppedError
        If ``should_stop`` returned True.

    Examples
    --------
    >>> from engine import generate_leaf_images
    >>> (leaf,) = generate_leaf_images(1, rng=np.random.default_rng(0), shape=(24, 32))
    >>> labels = leaf.mask.astype(np.uint8)
    >>> trained = train_class_segmentation([leaf.image], [labels], ["ground", "leaf"])
    >>> trained.model.classes
    ('ground', 'leaf')
    """
    check_choice("loss", loss, CLASS_LOSSES, optional=True)
    check_flag("position", position)
    check_flag("is_smooth", is_smooth)
    check_number("ridge", ridge, above=0.0, optional=True)
    check_seconds("max_seconds", max_seconds)
    check_generator("rng", rng)
    check_callables(on_progress=on_progress, should_stop=should_stop)
    names = tuple(classes)
    code = label_code(names, values, unknown)
    weights = check_class_weights(class_weights, len(names))
    clock = Clock(on_progress, max_seconds)
    order = np.random.default_rng(0) if rng is None else rng
    size = detail or Detail()
    check_loss(loss, has_network=network is not None)
    options = None if network is None else resolved_options(network)
    pairs = read_class_pictures(images, labels, len(names), maps=maps, detail=size)
    read, unread = _read(pairs, len(names), clock)
    counts = check_known(read, names)
    few = SAMPLES_A_PICTURE * max(1, FOLDS // len(read))
    pictures = deal_pictures(read, len(names), min(SAMPLES // len(read), few), order)
    settings: dict[str, str | float] = {
        "classes": ", ".join(names),
        "detail": f"{size.max_side} {size.scale}",
        "position": str(position),
        "network": "none" if options is None else checkpoint_setting(options),
    }
    work = PartStore(own_checkpoint(checkpoint, pictures, settings))
    net: Network | None = None
    if options is not None:
        seed = int(order.integers(2**31))
        nets = NetworkLearning(
            *(options, len(names), weights, position, clock, should_stop, work, seed)
        )
        net, pictures = nets.learn(pictures)
        unread = (*unread, *nets.left_out)
        after_network(clock)
    n_pixels = sum(picture.labels.size for picture in pictures)
    compared = partial(
        compared_candidates, loss, len(names), has_network=net is not None, is_smooth=is_smooth
    )
    later = _work_on_weights(pictures, len(names), compared)
    clock.begin(n_pixels, later=later)
    with one_blas_thread():
        how = TreeLearning(
            *(len(names), weights, position, clock.report, should_stop, work),
            passed=clock.passed,
            n_unseen=0 if net is None else n_unseen_maps(net, pictures),
        )

        def score(
            unaries: TreeUnaries, some: Sequence[TrainingPicture]
        ) -> ScoredPictures[ClassExample]:
            examples, wholes = _scored(unaries, some, how)
            layout = examples[0].features.layout
            is_sparse = are_strokes((one.labels for one in wholes), layout.n_classes)
            problem = ClassWeights(layout, weights, should_stop, is_sparse)
            candidates = compared(is_sparse=is_sparse)
            return ScoredPictures(
                WeightLearner(problem, examples, ridge, clock, wholes, work=work),
                candidates,
                () if TREES_ALONE in candidates else (TREES_ALONE,),
                wholes,
                [(slice(None), slice(None))] * len(wholes),
                is_refit_allowed=not is_sparse,
            )

        chosen = [pictures[k] for k in _edge_pictures(pictures, len(names), order)]
        learned = LabelLearning(how, score, clock).learn(pictures, chosen, unread)
    found = learned.weights
    model = make_segmentation_model(
        found.result.theta,
        unaries=learned.unaries,
        code=code,
        loss=found.candidate.loss,
        ridge=learned.strength,
        detail=size,
        network=net,
    )
    return TrainedClasses(
        model,
        learned.result(clock),
        n_pixels,
        counts,
        learned.errors,
        found.kept,
        len(read),
        learned.left_out,
    )


def _read(
    pictures: Iterable[ReadPicture], n_classes: int, clock: Clock
) -> tuple[list[ReadPicture], tuple[str, ...]]:
    """Return the pictures read and what was left out; short of time, two known classes do."""
    read: list[ReadPicture] = []
    known = np.zeros(256, dtype=np.int64)
    for picture in pictures:
        read.append(picture)
        known += np.bincount(picture.labels.ravel(), minlength=256)
        if np.count_nonzero(known[:n_classes]) > 1 and clock.is_reading_over():
            return read, (images_left_out(len(read)),)
    return read, ()


def _work_on_weights(
    pictures: Sequence[TrainingPicture],
    n_classes: int,
    compared: Callable[..., list[Candidate]],
) -> float:
    """Return the estimated CPU seconds to compare the candidates, before windows are chosen."""
    sizes = [min(picture.labels.size, EDGE_WINDOW**2) for picture in pictures]
    n_labels = min(sum(sizes) * n_classes, EDGE_LABELS)
    labels = [picture.labels for picture in pictures]
    is_whole = all(bool((one < n_classes).all()) for one in labels)
    is_sparse = are_strokes(labels, n_classes)
    if is_sparse:
        n_labels = min(sum(one.size for one in labels) * n_classes, EDGE_LABELS)
    candidates = compared(is_sparse=is_sparse)
    judged = min(sum(picture.labels.size for picture in pictures) * n_classes, JUDGED_LABELS)
    fits = [
        candidate_cost(candidate, n_labels, is_whole=is_whole)
        for candidate in (*candidates, candidates[0])
    ]
    return sum(fits) + JUDGE_SECONDS_A_LABEL * judged


def _edge_pictures(
    pictures: Sequence[TrainingPicture], n_classes: int, rng: np.random.Generator
) -> list[int]:
    """Return the places of the pictures for the weights, drawn at random up to `EDGE_LABELS`."""
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


def _scored(
    unaries: TreeUnaries, pictures: Sequence[TrainingPicture], how: TreeLearning
) -> tuple[list[ClassExample], list[ClassExample]]:
    """Return the windows with most known pixels, and whole pictures within memory and time.

    Their scores come from trees that did not learn from their pixels.
    """
    windows: list[ClassExample] = []
    wholes: list[ClassExample] = []
    left = JUDGED_LABELS
    extent = _window_side(pictures, unaries.n_outputs)
    for picture in pictures:
        if len(windows) > 1 and how.is_late(SAID, "pictures of the weights"):
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
    """Return the side of the windows in pixels; larger for few pictures with strokes."""
    if not are_strokes((picture.labels for picture in pictures), n_classes):
        return EDGE_WINDOW
    side = int(np.sqrt(EDGE_LABELS / (n_classes * len(pictures))))
    return int(np.clip(side, EDGE_WINDOW, STROKE_WINDOW))
