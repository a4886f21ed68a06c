"""Solvers of the learning problem of images: in theta on growing subsets, or Frank-Wolfe."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.array_store import ArrayStore
from engine.core.checkpoint import Checkpoint, SavedState, State
from engine.core.errors import StoppedError
from engine.core.status import Status
from engine.crf.grid_features import GridExample
from engine.kernels.threads import count_threads
from engine.kernels.work_time import wall_seconds
from engine.learning.segmentation.example_store import ExampleView
from engine.learning.segmentation.mask_progress import SegmentationReporter
from engine.learning.segmentation.spread_pictures import SpreadPictures
from engine.objectives.grid_inner import GridSetInnerProblem
from engine.objectives.learning_dual import make_learning_dual
from engine.objectives.protocol import InnerSolution, WarmStart
from engine.solvers.block_orders import AllTogether, BlockOrder, ShuffledOrder
from engine.solvers.control import Callbacks, Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.result import LearningResult
from engine.solvers.step_rules import LineSearch, OpenLoop, StepRule
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.grid import GridStructure

SMALLEST_SUBSET = 4
"""Smallest number of pictures of the first rehearsal."""

GROWTH = 3.2
"""Factor by which each subset is larger than the one before."""

REHEARSAL_GAP = 0.002
"""Relative gap at which a rehearsal ends: its last steps improve the curvature for the next stage,
which saves more evaluations there than the steps cost."""

REHEARSAL_SHARE = 0.4
"""Largest share of the remaining time for one rehearsal."""

THREADS = count_threads()
"""Number of pictures processed in parallel."""

CHECKPOINT_PATIENCE = 20.0
"""Pause between two saves of Frank-Wolfe, in multiples of the last save's time."""

MEMORY = 100
"""Number of steps that L-BFGS stores: K is a few hundred, so they cost nothing beside inference."""

INNER_RISE = 0.3
"""Largest error of unconverged messages, as a share of a step's predicted rise of the objective:
sweeps are most of the work, and messages continue from there at the next step."""


STEP_RULES: dict[str, StepRule] = {"line-search": LineSearch(), "open-loop": OpenLoop()}


@dataclass(frozen=True, slots=True)
class SegmentationTask:
    """Learning problem: labelled pictures, their numbers of pixels, lambda for all, and rho.

    ``spread`` holds the pictures instead of ``examples`` if they are on several hosts.
    """

    examples: Sequence[GridExample]
    sizes: Sequence[int]
    ridge: float
    rho: float
    spread: SpreadPictures | None = None


def solve_in_theta(
    task: SegmentationTask,
    limits: Limits,
    callbacks: Callbacks,
    reporter: SegmentationReporter,
    theta: FloatArray | None = None,
) -> LearningResult:
    """Maximise l_rho(theta) on growing random subsets, and at last on all pictures.

    A subset with lambda in proportion has nearly the same solution and curvature per picture; the
    next subset starts from both. The last stage then needs about a dozen evaluations instead of a
    hundred, and its bounds are those of the whole problem. The first subset starts at ``theta``,
    (K,), or at zero.

    Raises
    ------
    StoppedError
        If stopped within an evaluation or a rehearsal: there is no result with bounds.
    """
    order = np.random.default_rng(0).permutation(len(task.sizes))
    sizes = subset_sizes(len(task.sizes))
    stage, seconds = _resume(callbacks.checkpoint, sizes)
    started = wall_seconds() - seconds  # start time as if the run had not been interrupted
    while True:
        size, is_last = sizes[stage.index], stage.index == len(sizes) - 1
        chosen = range(size) if is_last else [int(k) for k in order[:size]]
        problem = _ReportingProblem(task, chosen, stage, callbacks, reporter)
        share = problem.n_pixels / sum(task.sizes)
        sentence = f"Learning from {size} images" if is_last else f"Rehearsing on {size} images"
        reporter.begin_stage(sentence, stage.seconds_before, is_rehearsal=not is_last)
        result = ThetaAscent(
            [problem],
            task.ridge * share,
            _stage_limits(limits, stage.seconds_before, is_last=is_last),
            Callbacks(
                reporter, callbacks.should_stop, _staged(callbacks.checkpoint, stage, problem)
            ),
            memory=MEMORY,
            refresh_ratio=float("inf"),
            inner_rise=INNER_RISE,
        ).solve(theta)
        if is_last:
            return _whole(result, stage)
        if result.status is Status.CANCELLED:
            raise StoppedError("Learning was stopped before all images had been looked at.")
        theta = result.theta
        stage = _Stage(
            stage.index + 1,
            problem.learned_curvature() / problem.n_pixels,
            wall_seconds() - started,
            stage.sweeps_before + result.oracle_calls,
        )


def solve_by_frank_wolfe(
    task: SegmentationTask,
    limits: Limits,
    callbacks: Callbacks,
    reporter: SegmentationReporter,
    *,
    by_blocks: bool,
    rng: np.random.Generator,
    step_rule: str = "line-search",
) -> LearningResult:
    """Learn by Frank-Wolfe in the local polytopes with roof duality (Tang 2015, algorithm 1).

    With ``by_blocks`` a step moves one picture per thread, else all pictures; a resumed run uses
    the number of pictures of its start on any machine. ``step_rule`` is "line-search" or
    "open-loop".

    Raises
    ------
    StoppedError
        If stopped within a pass.
    """
    count = len(task.examples)
    reporter.begin_stage(f"Learning from {count} images", 0.0, is_rehearsal=False)
    size = _pictures_a_block(callbacks.checkpoint) if by_blocks else count
    if callbacks.checkpoint is not None:
        callbacks = replace(callbacks, checkpoint=_PatientCheckpoint(callbacks.checkpoint, size))
    result = _solve_in_polytopes(
        task, limits, callbacks, reporter, size, rng, STEP_RULES[step_rule]
    )
    return _with_true_gap(task, callbacks, result)  # points are freed: messages need the memory


def _solve_in_polytopes(
    task: SegmentationTask,
    limits: Limits,
    callbacks: Callbacks,
    reporter: SegmentationReporter,
    size: int,
    rng: np.random.Generator,
    rule: StepRule,
) -> LearningResult:
    """Run Frank-Wolfe with ``size`` pictures a step; its points are freed on return."""
    count = len(task.examples)
    structures = [_ReportingStructure(task, k, callbacks, reporter) for k in range(count)]
    dual = make_learning_dual([structure.observed for structure in structures], task.ridge)
    order: BlockOrder = AllTogether() if size >= count else ShuffledOrder(size)
    with ThreadPoolExecutor(THREADS) as pool:
        return FrankWolfe(
            structures,
            dual,
            order,
            rule,
            rng=rng,
            limits=limits,
            callbacks=callbacks,
            mapper=pool.map,
            keep=ArrayStore().keep,
        ).solve()


def _pictures_a_block(checkpoint: Checkpoint | None) -> int:
    """Return the number of pictures per block: that of the resumed run, else one per thread.

    The saved points only fit steps with the same number, whatever the number of threads.
    """
    saved = None if checkpoint is None else checkpoint.load()
    return THREADS if saved is None else int(saved.get("pictures_a_block", THREADS))


def _with_true_gap(
    task: SegmentationTask, callbacks: Callbacks, result: LearningResult
) -> LearningResult:
    """Replace the bounds by those of one inner maximisation at theta if these are tighter.

    The Frank-Wolfe gap is a certificate too, but far wider, and log Z_rho costs no more than a few
    oracle calls a picture. If the run was cancelled, the bounds so far are returned.
    """
    if result.status is Status.CANCELLED:
        return result
    started = wall_seconds()
    problem = GridSetInnerProblem(
        task.examples, task.rho, threads=THREADS, should_stop=callbacks.should_stop
    )
    dual = make_learning_dual([problem.observed], task.ridge)
    try:
        bounds = dual.evaluate(result.theta, [problem.maximise(result.theta, None, 1e-9)])
    except StoppedError:
        return result
    return replace(
        result,
        objective=min(result.objective, bounds.upper),
        lower_bound=max(result.lower_bound, bounds.lower),
        seconds=result.seconds + wall_seconds() - started,
    )


class _ReportingStructure(GridStructure):
    """Grid structure that passes the parameters of the last oracle call to the reporter."""

    def __init__(
        self,
        task: SegmentationTask,
        index: int,
        callbacks: Callbacks,
        reporter: SegmentationReporter,
    ) -> None:
        super().__init__(task.examples, task.rho, index, callbacks.should_stop)
        self._reporter = reporter

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return the scores at theta; see `GridStructure.scores`."""
        self._reporter.theta = theta
        return super().scores(theta)


def subset_sizes(count: int) -> tuple[int, ...]:
    """Return the growing numbers of pictures of the subsets; the last number is ``count``."""
    sizes = [count]
    while sizes[0] / GROWTH >= SMALLEST_SUBSET:
        sizes.insert(0, round(sizes[0] / GROWTH))
    return tuple(sizes)


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """Stage of learning on one of the growing subsets, with results of the earlier stages.

    Parameters
    ----------
    index : int
    curvature : ndarray, shape (K, K), per pixel; None at the first stage.
    seconds_before, sweeps_before : effort of the earlier stages.
    """

    index: int = 0
    curvature: FloatArray | None = None
    seconds_before: float = 0.0
    sweeps_before: int = 0


class _ReportingProblem(GridSetInnerProblem):
    """Inner problem that passes the last solved parameters to the reporter."""

    def __init__(
        self,
        task: SegmentationTask,
        chosen: Sequence[int],
        stage: _Stage,
        callbacks: Callbacks,
        reporter: SegmentationReporter,
    ) -> None:
        n_pixels = sum(task.sizes[k] for k in chosen)
        spread = task.spread
        super().__init__(
            ExampleView(task.examples, chosen)
            if spread is None
            else spread.group(chosen, task.rho),
            task.rho,
            curvature=None if stage.curvature is None else stage.curvature * n_pixels,
            threads=THREADS,
            should_stop=callbacks.should_stop,
        )
        self._reporter = reporter

    def maximise(
        self, theta: FloatArray, state: WarmStart | None, accuracy: float
    ) -> InnerSolution:
        """Return the inner solution at theta; see `GridSetInnerProblem.maximise`."""
        solution = super().maximise(theta, state, accuracy)
        self._reporter.theta = theta
        return solution


def _stage_limits(limits: Limits, seconds_before: float, *, is_last: bool) -> Limits:
    left = None
    if limits.max_seconds is not None:
        left = max(limits.max_seconds - seconds_before, 0.0)
    if is_last:
        return replace(limits, max_seconds=left)
    gap = max(REHEARSAL_GAP, limits.relative_gap)
    return Limits(gap, None, None if left is None else REHEARSAL_SHARE * left)


@dataclass(slots=True)
class _PatientCheckpoint:
    """Checkpoint whose saves take at most a twentieth of the time, because points are large.

    It also stores the number of pictures per block: see ``_pictures_a_block``.
    """

    place: Checkpoint
    pictures_a_block: int
    _ready: float = 0.0

    def load(self) -> SavedState | None:
        """Return the saved state."""
        return self.place.load()

    def save(self, state: State) -> None:
        """Save the state, unless the last save was too recent for its duration."""
        started = wall_seconds()
        if started >= self._ready:
            self.place.save(state | {"pictures_a_block": np.array(self.pictures_a_block)})
            ended = wall_seconds()
            self._ready = ended + CHECKPOINT_PATIENCE * (ended - started)


@dataclass(frozen=True, slots=True)
class _StagedCheckpoint:
    """Checkpoint of one stage, which also stores the stage and the curvature learned so far."""

    place: Checkpoint
    stage: _Stage
    problem: GridSetInnerProblem

    def load(self) -> SavedState | None:
        """Return the state if it was saved in this stage."""
        state = self.place.load()
        if state is None or int(state.get("stage", np.array(-1))) != self.stage.index:
            return None
        return state

    def save(self, state: State) -> None:
        """Save the solver's state with the stage."""
        extra: State = {
            "stage": np.array(self.stage.index),
            "seconds_before": np.array(self.stage.seconds_before),
            "sweeps_before": np.array(self.stage.sweeps_before),
            "curvature": self.problem.learned_curvature() / self.problem.n_pixels,
        }
        self.place.save(state | extra)


def _staged(
    place: Checkpoint | None, stage: _Stage, problem: GridSetInnerProblem
) -> _StagedCheckpoint | None:
    return None if place is None else _StagedCheckpoint(place, stage, problem)


def _resume(place: Checkpoint | None, sizes: tuple[int, ...]) -> tuple[_Stage, float]:
    """Return the stage to start with, and the seconds already spent on it and before it."""
    state = place.load() if place is not None else None
    if state is None or not 0 <= int(state.get("stage", np.array(-1))) < len(sizes):
        return _Stage(), 0.0
    stage = _Stage(
        int(state["stage"]),
        state["curvature"],
        float(state["seconds_before"]),
        int(state["sweeps_before"]),
    )
    return stage, stage.seconds_before + float(state["seconds"])


def _whole(result: LearningResult, stage: _Stage) -> LearningResult:
    """Return the last stage's result with the time and the sweeps of all stages."""
    shifted = tuple(
        replace(point, seconds=point.seconds + stage.seconds_before) for point in result.trajectory
    )
    return replace(
        result,
        seconds=result.seconds + stage.seconds_before,
        oracle_calls=result.oracle_calls + stage.sweeps_before,
        trajectory=shifted,
    )
