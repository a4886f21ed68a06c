"""MLE-Struct on images: learn to segment from pictures with masks, with a certificate."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np

from engine.core.arguments import check_positive, check_seconds
from engine.core.checkpoint import Checkpoint, OwnCheckpoint
from engine.core.errors import InvalidProblemError
from engine.core.hosts import Hosts
from engine.core.progress import (
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.kernels.threads import one_blas_thread
from engine.learning.segmentation.edge_learning import LOGISTIC_LOSSES, fit_marginal_loss
from engine.learning.segmentation.example_store import ExampleStore
from engine.learning.segmentation.given_maps import Maps
from engine.learning.segmentation.labelled_pictures import (
    Images,
    Masks,
    check_labels,
    labelled_pictures,
)
from engine.learning.segmentation.mask_model import SegmentationModel, make_segmentation_model
from engine.learning.segmentation.mask_progress import SegmentationReporter
from engine.learning.segmentation.mask_solvers import (
    SegmentationTask,
    solve_by_frank_wolfe,
    solve_in_theta,
)
from engine.learning.segmentation.spread_pictures import SpreadPictures
from engine.objectives.grid_inner import check_rho
from engine.solvers.control import Callbacks, Limits
from engine.solvers.result import LearningResult

RIDGE_PER_PIXEL = 1e-3
"""Default lambda over the number of training pixels, the published setting (Domke 2013, 8.4)."""

SOLVERS = ("auto", "theta", "frank-wolfe", "block-coordinate")


@dataclass(frozen=True, slots=True, eq=False)
class TrainedSegmentation:
    """A learned model, and the certificate of its weights: bounds on log l_rho, nats."""

    model: SegmentationModel
    result: LearningResult
    n_pixels: int
    loss: str = "likelihood"
    errors: Mapping[str, float] = field(default_factory=dict)  # none: no losses are compared


def train_segmentation(
    images: Images,
    masks: Masks,
    *,
    maps: Maps | None = None,
    ridge: float | None = None,
    ridge_factor: float = 1.0,
    rho: float = 0.5,
    max_side: int = 200,
    solver: str = "auto",
    loss: str | None = None,
    relative_gap: float = 1e-3,
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
        Both are gone through once, in step, and no picture is kept.
    maps : iterable of ndarray, each (H', W', C) of numbers from 0 to 1, optional
        Probabilities from any other program for each picture, which become node features; see
        `train_boosted_segmentation`.
    ridge : float, optional
        lambda > 0; by default 0.001 times the number of training pixels.
    ridge_factor : float
        Multiplies that default; without effect where ``ridge`` is given.
    rho : float
        Edge appearance probability in (0, 1/2].
    max_side : int
        Larger pictures are shrunk to models of this many pixels a side.
    solver : "auto", "theta", "frank-wolfe" or "block-coordinate"
    loss : "likelihood" (the default), "univariate" or "clique"
        The logistic losses have no certificate, and neither solver, gap nor checkpoint matters.
    relative_gap : float
        Certified duality gap over the size of the log-likelihood at which to stop.
    max_seconds : float, optional
        From 0, reading the pictures included. All are read and the first parameters are always
        looked at, however little time is left then.
    holdout : (images, masks) or (images, masks, maps), optional
        Pictures not learned from; reports then carry a `SegmentationPreview`, unless there turn
        out to be none: the last report, and as many before it as a fifth of the time allows.
    on_progress, should_stop, checkpoint
        See `engine.core`.
    rng : numpy.random.Generator, optional
        Order of the blocks of "block-coordinate"; a fixed seed by default.
    cache : Path, optional
        Folder that keeps the features of pictures from run to run.
    hosts : Hosts, optional
        Where the pictures are worked on, such as `DaskHosts`: the answer is that of one host.
        For the solve in theta of the surrogate likelihood, "auto"; held-out pictures stay here.

    Returns
    -------
    TrainedSegmentation

    Raises
    ------
    InvalidProblemError
        If there are no images, one is not of the shape or type above, an image and its mask
        differ in size, maps do not fit the images, no mask marks anything (or all mark everything)
        at the size of the models, an option is out of range, or another solver or loss is asked to
        use hosts.
    StoppedError
        If ``should_stop`` answered True before any parameters were found.
    HostLostError
        If one of the hosts went away: begin again with the others, from the same checkpoint.

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
    _check_ways(solver, loss, has_hosts=hosts is not None)
    check_rho(rho)
    check_positive("relative_gap", relative_gap)
    check_positive("ridge_factor", ridge_factor)
    if ridge is not None:
        check_positive("ridge", ridge)
    check_seconds("max_seconds", max_seconds)
    started = perf_counter()
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
        result.theta, ridge=weight, rho=rho, max_side=max_side, n_maps=n_maps
    )
    return TrainedSegmentation(model, result, n_pixels, loss or "likelihood")


def _check_ways(solver: str, loss: str | None, *, has_hosts: bool) -> None:
    """Refuse a solver or a loss that is not known, or that hosts cannot share."""
    if solver not in SOLVERS:
        raise InvalidProblemError(f"solver: expected one of {', '.join(SOLVERS)}, got {solver!r}.")
    if loss not in {None, "likelihood", *LOGISTIC_LOSSES}:
        raise InvalidProblemError(
            f"loss: expected likelihood, univariate or clique, received {loss!r}."
        )
    if has_hosts and (solver not in ("auto", "theta") or loss in LOGISTIC_LOSSES):
        raise InvalidProblemError("hosts: expected solver theta and loss likelihood beside them.")


def _solve(
    task: SegmentationTask,
    solver: str,
    loss: str | None,
    limits: Limits,
    callbacks: Callbacks,
    reporter: SegmentationReporter,
    rng: np.random.Generator,
) -> LearningResult:
    """Find the weights by a logistic loss, or those of the likelihood by the solver."""
    if loss in LOGISTIC_LOSSES:
        return fit_marginal_loss(
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
    """Seconds of a limit that reading has left to the solver."""
    return None if max_seconds is None else max(max_seconds - (perf_counter() - started), 0.0)


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

    Returns how many maps each picture has, how many pixels of each are marked at that size, and
    whether any was at its own.
    """
    counts, is_any_marked = [], False
    for picture in labelled_pictures(images, masks, side, maps, n_maps=n_maps):
        n_maps = picture.maps.shape[2]
        with one_blas_thread():  # sums then round alike on every machine of a kind
            examples.append(picture.colours, picture.labels, picture.maps)
        counts.append(int(picture.labels.sum()))
        is_any_marked = is_any_marked or picture.is_marked
    return n_maps or 0, counts, is_any_marked


def _own(
    checkpoint: Checkpoint | None, task: SegmentationTask, solver: str, digest: str
) -> OwnCheckpoint | None:
    """Tie a checkpoint to the pictures, and to the settings that change the optimum or the way."""
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
