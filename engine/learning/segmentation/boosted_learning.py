"""Learning of mask models: boosted trees as unaries, and weights of their scores and of edges."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from engine.core.checkpoint import Checkpoint
from engine.core.options import (
    check_callables,
    check_choice,
    check_flag,
    check_generator,
    check_number,
    check_seconds,
    check_whole,
)
from engine.core.progress import (
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.crf.class_features import UNKNOWN
from engine.crf.grid_features import GridExample
from engine.crf.image_grid import MIN_SIDE
from engine.kernels.threads import count_threads, one_blas_thread
from engine.learning.segmentation.class_pictures import ReadPicture
from engine.learning.segmentation.clock import Clock, images_left_out
from engine.learning.segmentation.defaults import MAX_SIDE, RELATIVE_GAP, RHO, RIDGE_PER_PIXEL
from engine.learning.segmentation.given_maps import Maps
from engine.learning.segmentation.label_learning import LabelLearning, ScoredPictures
from engine.learning.segmentation.labelled_pictures import (
    Images,
    Masks,
    check_labels,
    labelled_pictures,
)
from engine.learning.segmentation.mask_progress import HeldOutPictures, SegmentationProgress
from engine.learning.segmentation.mask_weights import MaskWeights, candidate_cost, mask_candidates
from engine.learning.segmentation.model import (
    LOSSES,
    Detail,
    SegmentationModel,
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
from engine.learning.segmentation.picture_window import (
    WindowDraw,
    core_of,
    cut_windows,
    is_cut,
    windows_each,
)
from engine.learning.segmentation.training_pictures import Folds, TrainingPicture, deal_pictures
from engine.learning.segmentation.tree_features import boosted_features
from engine.learning.segmentation.tree_learning import (
    MASK_SAMPLES,
    SAID,
    SAMPLES,
    SAMPLES_A_PICTURE,
    TreeLearning,
    own_checkpoint,
)
from engine.learning.segmentation.tree_unaries import TreeUnaries
from engine.learning.segmentation.weight_learning import WeightLearner, check_loss
from engine.solvers.result import LearningResult

EDGE_PICTURES = 45
"""Largest number of pictures that the 174 weights are learned from: more change the error by less
than the random draw of pictures does. Up to as many others are used for evaluation."""

LOOKED_AT = 600_000
"""Pixels that the trees score at the same time, while weights are learned: a kilobyte each."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedBoosted:
    """Learned model of masks, with the result of learning its weights.

    ``errors`` has the share of wrong pixels on held-out pictures for every loss that was compared;
    it is empty if the caller chose the loss. A loss that is clearly worse on half of the pictures
    is evaluated on these alone. ``left_out`` names what the time limit left out.
    """

    model: SegmentationModel
    result: LearningResult
    n_pixels: int
    errors: Mapping[str, float]
    left_out: tuple[str, ...] = ()

    @property
    def loss(self) -> str:
        """Loss that the weights were learned by."""
        return self.model.loss


def train_boosted_segmentation(
    images: Images,
    masks: Masks,
    *,
    maps: Maps | None = None,
    loss: str | None = None,
    position: bool = True,
    ridge: float | None = None,
    ridge_factor: float = 1.0,
    rho: float = RHO,
    max_side: int = MAX_SIDE,
    relative_gap: float = RELATIVE_GAP,
    max_seconds: float | None = None,
    holdout: tuple[Images, Masks] | tuple[Images, Masks, Maps | None] | None = None,
    network: NetworkOptions | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
    checkpoint: Checkpoint | None = None,
    rng: np.random.Generator | None = None,
) -> TrainedBoosted:
    """Learn a mask model: trees of two stages out of fold, then weights of log-odds and edges.

    Parameters
    ----------
    images : iterable of ndarray, each (H, W, 3) uint8
    masks : iterable of ndarray, each (H, W) bool, the size of its image
        Both are iterated once, in parallel; pictures are stored at the size of their models, and
        as windows of 512 if the model is larger than 1,000 pixels a side.
    maps : iterable of ndarray, each (H', W', C) of numbers from 0 to 1, optional
        Probabilities from any other program for each picture, iterated in parallel; they become
        features of the trees and of the nodes. H' and W' may differ from the picture's size, in the
        same proportions.
    loss : "likelihood", "univariate", "clique", or "trees", "network" or "mean", optional
        Only the surrogate likelihood has a certificate. The last three have no edges. By default
        "trees", or with a network the mean of both unless one of the two makes clearly fewer
        mistakes on held-out pictures, or whichever of "univariate" and "likelihood" makes clearly
        fewer than these.
    position : bool
        True to use the position within the picture as a feature: it helps if all are framed alike.
    ridge, ridge_factor : as for `train_segmentation`; by default 0.001 times the pixels.
    rho, max_side : as for `train_segmentation`
    relative_gap : float, of "likelihood"
    max_seconds : float, optional
        Limit of the whole run, reading included. If it is short, reading stops after half of it,
        there are fewer trees, and learning stops at the limit with the weights so far.
    holdout : (images, masks) or (images, masks, maps), optional
        Pictures not learned from; the last report carries a `SegmentationPreview` of them.
    network : NetworkOptions, optional
        A network is learned out of fold too (see `engine.learning.segmentation.network`), and its
        probabilities become features beside those of given maps. It takes three quarters of a time
        limit. By default there is no network.
    on_progress, should_stop
        See `engine.core`.
    checkpoint : Checkpoint, optional
        Store of networks and finished trees, so that a killed run does not learn them again; see
        `engine.core.checkpoint`.
    rng : numpy.random.Generator, optional
        Folds and sampled pixels; a fixed seed by default.

    Returns
    -------
    TrainedBoosted

    Raises
    ------
    InvalidProblemError
        As for `train_segmentation`, if maps and images do not fit each other, or if a network is
        requested and JAX is not installed.
    StoppedError
        If ``should_stop`` returned True.

    Examples
    --------
    >>> from engine import generate_leaf_images
    >>> leaves = generate_leaf_images(3, rng=np.random.default_rng(0), shape=(24, 32))
    >>> pictures, masks = [leaf.image for leaf in leaves], [leaf.mask for leaf in leaves]
    >>> train_boosted_segmentation(pictures, masks, loss="trees").n_pixels
    2304
    """
    check_choice("loss", loss, LOSSES, optional=True)
    check_flag("position", position)
    check_number("ridge", ridge, above=0.0, optional=True)
    check_number("ridge_factor", ridge_factor, above=0.0)
    check_number("rho", rho, above=0.0, at_most=0.5)
    check_whole("max_side", max_side, at_least=MIN_SIDE)
    check_number("relative_gap", relative_gap, above=0.0)
    check_seconds("max_seconds", max_seconds)
    check_generator("rng", rng)
    check_callables(on_progress=on_progress, should_stop=should_stop)
    clock = Clock(on_progress, max_seconds)
    order = np.random.default_rng(0) if rng is None else rng
    check_loss(loss, has_network=network is not None)
    options = None if network is None else resolved_options(network)
    read = _read(images, masks, maps, max_side, order, clock)
    pictures, left_out = read.pictures, read.left_out
    own = "none" if options is None else checkpoint_setting(options)
    settings = {"position": str(position), "network": own}
    kept = PartStore(own_checkpoint(checkpoint, pictures, settings))
    net: Network | None = None
    if options is not None:
        seed = int(order.integers(2**31))
        nets = NetworkLearning(options, 2, None, position, clock, should_stop, kept, seed)
        net, pictures = nets.learn(pictures)
        left_out = (*left_out, *nets.left_out)
        after_network(clock)
    n_maps = pictures[0].maps.shape[2]
    held_out = (
        []
        if holdout is None
        else _held_out(*holdout, n_maps=n_maps, side=max_side, clock=clock, network=net)
    )
    n_pixels = sum(picture.labels.size for picture in pictures)
    candidates = mask_candidates(loss, has_network=net is not None)
    n_chosen = n_pixels * min(len(pictures), EDGE_PICTURES) // len(pictures)
    clock.begin(n_pixels, later=sum(candidate_cost(one, n_chosen) for one in candidates))
    with one_blas_thread():
        how = TreeLearning(
            *(1, None, position, clock.report, should_stop, kept),
            thinned_from=0,
            most=MASK_SAMPLES,
            passed=clock.passed,
            is_local=read.is_local,
            n_unseen=0 if net is None else n_unseen_maps(net, pictures),
        )
        problem = MaskWeights(n_maps, rho, relative_gap, should_stop, order)

        def score(
            unaries: TreeUnaries, some: Sequence[TrainingPicture]
        ) -> ScoredPictures[GridExample]:
            examples = _scored(unaries, some, how)
            own = examples[:EDGE_PICTURES]
            n_known = sum(example.n_known for example in own)
            learner = WeightLearner(
                problem,
                own,
                ridge_factor * RIDGE_PER_PIXEL * n_known if ridge is None else ridge,
                clock,
                others=examples[EDGE_PICTURES:],
                work=kept,
            )
            places = [core_of(picture.labels) for picture in some[: len(own)]]
            return ScoredPictures(learner, candidates, (), own, places, is_compared=loss is None)

        chosen = [pictures[k] for k in order.permutation(len(pictures))[: 2 * EDGE_PICTURES]]
        learned = LabelLearning(how, score, clock).learn(pictures, chosen, left_out)
        model = make_segmentation_model(
            learned.weights.result.theta,
            unaries=learned.unaries,
            loss=learned.weights.candidate.loss,
            ridge=learned.strength,
            rho=rho,
            detail=Detail(max_side),
            network=net,
        )
        result = learned.result(clock)
        _show(clock, held_out, learned.unaries, rho, result, should_stop)
    n_known = sum(int(np.count_nonzero(p.labels != UNKNOWN)) for p in pictures)
    return TrainedBoosted(model, result, n_known, learned.errors, learned.left_out)


@dataclass(frozen=True, slots=True)
class _Read:
    """Training pictures in folds, True if some are windows, and what was left out for time."""

    pictures: list[TrainingPicture]
    is_local: bool
    left_out: tuple[str, ...]


def _read(
    images: Images,
    masks: Masks,
    maps: Maps | None,
    max_side: int,
    rng: np.random.Generator,
    clock: Clock,
) -> _Read:
    """Read pictures at the size of their models, check their labels, and deal them into folds."""
    cut: list[list[ReadPicture]] = []
    counts: list[int] = []
    sizes: list[int] = []
    is_any_marked, is_local = False, False
    left_out: tuple[str, ...] = ()
    draw = WindowDraw(rng)
    for picture in labelled_pictures(images, masks, max_side, maps):
        cut.append(cut_windows(picture, windows_each(len(cut) + 1), draw))
        counts.append(int(picture.labels.sum()))
        sizes.append(picture.labels.size)
        is_any_marked |= picture.is_marked
        is_local |= is_cut(picture.labels.shape)
        is_enough = any(0 < counts[k] < sizes[k] for k in (0, -1))
        if is_enough and clock.is_reading_over():
            left_out = (images_left_out(len(cut)),)
            break
    check_labels(counts, sizes, max_side, is_any_marked=is_any_marked)
    dealt = [(k, window) for k, own in enumerate(cut) for window in own[: windows_each(len(cut))]]
    each = min(SAMPLES // len(dealt), SAMPLES_A_PICTURE)
    windows, owners = [window for _, window in dealt], [k for k, _ in dealt]
    return _Read(deal_pictures(windows, 2, each, rng, owners=owners), is_local, left_out)


def _held_out(
    images: Images,
    masks: Masks,
    maps: Maps | None = None,
    *,
    n_maps: int,
    side: int,
    clock: Clock,
    network: Network | None,
) -> list[ReadPicture]:
    """Read the held-out pictures, as long as there is time."""
    read = []
    draw = WindowDraw(np.random.default_rng(0))
    n_given = n_maps - (0 if network is None else network.n_planes)
    for picture in labelled_pictures(images, masks, side, maps, n_maps=n_given):
        for one in cut_windows(picture, 1, draw):
            own = [] if network is None else [network.log_odds(one.colours)]
            read.append(one._replace(maps=np.concatenate([one.maps, *own], axis=2)))
        if clock.is_reading_over():
            break
    return read


def _scored(
    unaries: TreeUnaries, pictures: Sequence[TrainingPicture], how: TreeLearning
) -> list[GridExample]:
    """Return examples with log-odds from trees that did not learn from their pixels.

    Pictures are scored in parallel, as many as memory allows, as long as there is time.
    """

    def one(place: int, picture: TrainingPicture) -> GridExample | None:
        if place and how.is_late(SAID, "pictures of the weights"):
            return None
        return _example(unaries, picture, picture.folds)

    largest = max(picture.labels.size for picture in pictures)
    n_threads = max(1, min(count_threads(), LOOKED_AT // largest))
    with ThreadPoolExecutor(n_threads) as pool:
        found = pool.map(one, range(len(pictures)), pictures)
        known = takewhile(lambda example: example is not None, found)
        return [example for example in known if example is not None]


def _example(
    unaries: TreeUnaries, picture: TrainingPicture | ReadPicture, folds: Folds | None = None
) -> GridExample:
    """Return the example of a picture: the whole picture, or the core of a window."""
    core = core_of(picture.labels)
    colours, maps = picture.colours, picture.maps
    log_odds = unaries.scores(colours, maps, frame=picture.frame, folds=folds)[:, :, 0]
    features = boosted_features(colours[core], log_odds[core], maps[core])
    return GridExample(features, np.ascontiguousarray(picture.labels[core]).view(np.bool_))


def _show(
    clock: Clock,
    pictures: Sequence[ReadPicture],
    unaries: TreeUnaries,
    rho: float,
    result: LearningResult,
    should_stop: StopCallback,
) -> None:
    """Report the error on held-out pictures, if there are any, on as many as there is time for.

    Large pictures are evaluated on one window each, and the report has no marginals of them.
    """
    examples: list[GridExample] = []
    for picture in pictures:
        if examples and clock.left == 0.0:
            break
        examples.append(_example(unaries, picture))
    if not examples:
        return
    preview = HeldOutPictures(examples, rho, should_stop=should_stop).look(result.theta)
    if unaries.is_local:  # marginals of windows do not match the whole pictures
        preview = replace(preview, marginals=())
    clock.on_progress(
        SegmentationProgress(
            "Looking at the held-out images",
            fraction=0.99,
            iteration=result.iterations,
            seconds=clock.seconds,
            preview=preview,
        )
    )
