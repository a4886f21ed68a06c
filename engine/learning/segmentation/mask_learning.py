"""MLE-Struct on images: certified learning of segmentation models from pictures with masks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine.core.checkpoint import Checkpoint, OwnCheckpoint
from engine.core.errors import InvalidProblemError
from engine.core.hosts import Hosts
from engine.core.options import (
    check_callables,
    check_choice,
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
from engine.crf.image_grid import MIN_SIDE
from engine.kernels.threads import one_blas_thread
from engine.kernels.work_time import wall_seconds
from engine.learning.segmentation.defaults import MAX_SIDE, RELATIVE_GAP, RHO, RIDGE_PER_PIXEL
from engine.learning.segmentation.example_store import ExampleStore
from engine.learning.segmentation.given_maps import Maps
from engine.learning.segmentation.labelled_pictures import (
    Images,
    Masks,
    check_labels,
    labelled_pictures,
)
from engine.learning.segmentation.marginal_fitting import LOGISTIC_LOSSES, fit_logistic_loss
from engine.learning.segmentation.mask_progress import SegmentationReporter
from engine.learning.segmentation.mask_solvers import (
    SegmentationTask,
    solve_by_frank_wolfe,
    solve_in_theta,
)
from engine.learning.segmentation.model import Detail, SegmentationModel, make_segmentation_model
from engine.learning.segmentation.spread_pictures import SpreadPictures
from engine.solvers.control import Callbacks, Limits
from engine.solvers.result import LearningResult

SOLVERS = ("auto", "theta", "frank-wolfe", "block-coordinate")
LOSSES = ("likelihood", *LOGISTIC_LOSSES)


@dataclass(frozen=True, slots=True, eq=False)
class TrainedSegmentation:
    """Learned model, with the certificate of its weights: bounds on log l_rho, nats."""

    model: SegmentationModel
    result: LearningResult
    n_pixels: int
    loss: str = "likelihood"
    errors: Mapping[str, float] = field(default_factory=dict)  # empty: no losses are compared
    left_out: tuple[str, ...] = ()  # empty: a time limit ends the steps and leaves nothing out


def train_segmentation(
    images: Images,
    masks: Masks,
    *,
    maps: Maps | None = None,
    ridge: float | None = None,
    ridge_factor: float = 1.0,
    rho: float = RHO,
    max_side: int = MAX_SIDE,
    solver: str = "auto",
    loss: str | None = None,
    relative_gap: float = RELATIVE_GAP,
    max_seconds: float | None = None,
    holdout: tuple[Images, Masks] | tuple[Images, Masks, Maps | None] | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
    checkpoint: Checkpoint | None = None,
    rng: np.random.Generator | None = None,
    cache: Path | None = None,
    hosts: Hosts | None = None,
) -> TrainedSegmentation:
    """Learn the weights that maximise the penalised surrogate likelihood of the masks.

    Parameters
    ----------
    images : iterable of ndarray, each (H, W, 3) uint8
    masks : iterable of ndarray, each (H, W) bool, the size of its image
        Both are iterated once, in parallel, and no picture is stored.
    maps : iterable of ndarray, each (H', W', C) of numbers from 0 to 1, optional
        Probabilities from any other program for each picture, which become node features; see
        `train_boosted_segmentation`.
    ridge : float, optional
        lambda > 0; by default 0.001 times the number of training pixels.
    ridge_factor : float
        Factor on that default; ignored if ``ridge`` is given.
    rho : float
        Edge appearance probability in (0, 1/2].
    max_side : int
        Larger pictures are scaled down to models of this many pixels a side.
    solver : "auto", "theta", "frank-wolfe" or "block-coordinate"
    loss : "likelihood" (the default), "univariate" or "clique"
        The logistic losses have no certificate, and ignore solver, gap and checkpoint.
    relative_gap : float
        Stop at this certified duality gap divided by the size of the log-likelihood.
    max_seconds : float, optional
        Limit from 0 on, reading included. All pictures are read and the first parameters are
        evaluated even if no time remains.
    holdout : (images, masks) or (images, masks, maps), optional
        Pictures not learned from. If there are any, the last report carries a
        `SegmentationPreview`, and as many earlier reports as a fifth of the time allows.
    on_progress, should_stop, checkpoint
        See `engine.core`.
    rng : numpy.random.Generator, optional
        Order of the blocks of "block-coordinate"; a fixed seed by default.
    cache : Path, optional
        Folder that stores the features of pictures from run to run.
    hosts : Hosts, optional
        Hosts that process the pictures, such as `DaskHosts`: the result is that of one host. Only
        for the likelihood with solver "auto" or "theta"; held-out pictures stay on this host.

    Returns
    -------
    TrainedSegmentation

    Raises
    ------
    InvalidProblemError
        If there are no images, one is not of the shape or type above, an image and its mask
        differ in size, maps do not fit the images, no mask marks anything (or all mark everything)
        at the size of the models, an option is out of range, or hosts are given with another
        solver or loss.
    StoppedError
        If ``should_stop`` returned True before any parameters were found.
    HostLostError
        If a host was lost: start again with the others, from the same checkpoint.

    References
    ----------
    Tang et al. 2015, section 4.3; Domke 2013 (the logistic losses).

    Examples
    --------
    >>> from engine import generate_leaf_images
    >>> leaves = generate_leaf_images(2, rng=np.random.default_rng(0), shape=(24, 32))
    >>> pictures, masks = [leaf.image for leaf in leaves], [leaf.mask for leaf in leaves]
    >>> trained = train_segmentation(pictures, masks)
    >>> trained.result.relative_gap <= 1e-3
    True
    """
    check_number("ridge", ridge, above=0.0, optional=True)
    check_number("ridge_factor", ridge_factor, above=0.0)
    check_number("rho", rho, above=0.0, at_most=0.5)
    check_whole("max_side", max_side, at_least=MIN_SIDE)
    check_choice("solver", solver, SOLVERS)
    check_choice("loss", loss, LOSSES, optional=True)
    check_number("relative_gap", relative_gap, above=0.0)
    check_seconds("max_seconds", max_seconds)
    check_generator("rng", rng)
    check_callables(on_progress=on_progress, should_stop=should_stop)
    if hosts is not None and (solver not in ("auto", "theta") or loss in LOGISTIC_LOSSES):
        raise InvalidProblemError("hosts: expected solver theta and loss likelihood beside them.")
    started = wall_seconds()
    here = ExampleStore(cache)
    spread = None if hosts is None else SpreadPictures(hosts, should_stop)
    examples: ExampleStore | SpreadPictures = here if spread is None else spread
    n_maps, counts, is_any_marked = _append(examples, images, masks, maps, side=max_side)
    check_labels(counts, examples.sizes, max_side, is_any_marked=is_any_marked)
    n_pixels = sum(examples.sizes)
    weight = ridge_factor * RIDGE_PER_PIXEL * n_pixels if ridge is None else float(ridge)
    held_out = ExampleStore(cache)
    if holdout:
        _append(held_out, *holdout, side=max_side, n_maps=n_maps)
    task = SegmentationTask(here, examples.sizes, weight, rho, spread)
    reporter = SegmentationReporter(held_out, rho, on_progress, should_stop)
    limits = Limits(relative_gap=relative_gap, max_seconds=_left(max_seconds, started))
    callbacks = Callbacks(reporter, should_stop, _own(checkpoint, task, solver, examples.digest))
    with one_blas_thread():
        order = np.random.default_rng(0) if rng is None else rng
        result = _solve(task, solver, loss, limits, callbacks, reporter, order)
        reporter.finish(result)
    model = make_segmentation_model(
        result.theta,
        loss=loss or "likelihood",
        ridge=weight,
        rho=rho,
        detail=Detail(max_side),
        n_maps=n_maps,
    )
    return TrainedSegmentation(model, result, n_pixels, loss or "likelihood")


def _solve(
    task: SegmentationTask,
    solver: str,
    loss: str | None,
    limits: Limits,
    callbacks: Callbacks,
    reporter: SegmentationReporter,
    rng: np.random.Generator,
) -> LearningResult:
    """Learn the weights by a logistic loss, or by the likelihood with the given solver."""
    if loss in LOGISTIC_LOSSES:
        return fit_logistic_loss(
            task.examples,
            loss,
            ridge=task.ridge,
            rho=float(task.rho),
            max_seconds=limits.max_seconds,
            should_stop=callbacks.should_stop,
            rng=rng,
        )
    if solver in ("auto", "theta"):
        return solve_in_theta(task, limits, callbacks, reporter)
    by_blocks = solver == "block-coordinate"
    return solve_by_frank_wolfe(task, limits, callbacks, reporter, by_blocks=by_blocks, rng=rng)


def _left(max_seconds: float | None, started: float) -> float | None:
    """Return the seconds of a limit that remain for the solver after reading."""
    return None if max_seconds is None else max(max_seconds - (wall_seconds() - started), 0.0)


def _append(
    examples: ExampleStore | SpreadPictures,
    images: Images,
    masks: Masks,
    maps: Maps | None = None,
    *,
    side: int,
    n_maps: int | None = None,
) -> tuple[int, list[int], bool]:
    """Add pictures, masks and maps at the size of their models.

    Returns the number of maps of each picture, the number of marked pixels of every picture at that
    size, and True if any mask marked a pixel at its own size.
    """
    counts, is_any_marked = [], False
    for picture in labelled_pictures(images, masks, side, maps, n_maps=n_maps):
        n_maps = picture.maps.shape[2]
        with one_blas_thread():  # sums then round identically on all machines of one type
            examples.append(picture.colours, picture.labels, picture.maps)
        counts.append(int(picture.labels.sum()))
        is_any_marked = is_any_marked or picture.is_marked
    return n_maps or 0, counts, is_any_marked


def _own(
    checkpoint: Checkpoint | None, task: SegmentationTask, solver: str, digest: str
) -> OwnCheckpoint | None:
    """Return a checkpoint bound to the pictures, and to the settings that change the solution."""
    if checkpoint is None:
        return None
    settings: dict[str, str | float] = {
        "solver": "theta" if solver == "auto" else solver,
        "ridge": task.ridge,
        "rho": float(task.rho),
        "images": len(task.sizes),
        "pixels": sum(task.sizes),
        "image digest": digest[:12],
    }
    return OwnCheckpoint(checkpoint, settings)
