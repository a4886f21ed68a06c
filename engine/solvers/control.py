"""Limits, progress reports and checkpoints, shared by every solver."""

from dataclasses import dataclass, field
from math import log

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.checkpoint import Checkpoint, SavedState, State
from engine.core.gap import relative_gap
from engine.core.options import check_callables, check_number, check_seconds, check_whole
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.core.status import Status
from engine.kernels.work_time import wall_seconds
from engine.solvers.result import TrajectoryPoint

CHECKPOINT_SECONDS = 2.0  # losing two seconds of work costs less than writing every step
ASK_SECONDS = 0.2  # between two calls of should_stop within a step, since it may query a database
SAME_DATA = 1e-9  # relative difference of statistics summed in another order


@dataclass(frozen=True, slots=True)
class Limits:
    """Conditions under which a solver stops.

    Parameters
    ----------
    relative_gap : float, certified gap over the size of the lower bound that counts as converged.
        0 where ``gap`` alone decides.
    max_iterations : int or None
    max_seconds : float or None, wall clock of this and, when resumed, earlier parts.
    gap : float or None
        Certified gap of the present point that counts as converged, nats.

    Examples
    --------
    >>> Limits(relative_gap=1e-6, max_seconds=60.0).max_iterations is None
    True
    """

    relative_gap: float = 1e-4
    max_iterations: int | None = None
    max_seconds: float | None = None
    gap: float | None = None

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_number("relative_gap", self.relative_gap, at_least=0.0)
        check_whole("max_iterations", self.max_iterations, optional=True)
        check_seconds("max_seconds", self.max_seconds)
        check_number("gap", self.gap, at_least=0.0, optional=True)


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Functions that report progress and request a stop, and the checkpoint that stores the state.

    A checkpoint is matched by its ``ProblemStamp``, which does not contain rho. If rho or anything
    else in an observation's entropy may change, give an ``OwnCheckpoint`` that contains it:
    otherwise a run would use bounds that were proved for another problem.

    Parameters
    ----------
    on_progress : callable
        Given a `Progress` after every iteration.
    should_stop : callable
        Called often; True ends the run with the best result so far.
    checkpoint : Checkpoint, optional
        Resume point after an interrupted run.
    seconds_before : float
        Seconds of work before this run, which count towards its limit.

    Examples
    --------
    >>> seconds = []
    >>> Callbacks(on_progress=lambda progress: seconds.append(progress.seconds)).checkpoint is None
    True
    """

    on_progress: ProgressCallback = ignore_progress
    should_stop: StopCallback = never_stop
    checkpoint: Checkpoint | None = None
    seconds_before: float = 0.0

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_callables(on_progress=self.on_progress, should_stop=self.should_stop)
        check_number("seconds_before", self.seconds_before, at_least=0.0)


@dataclass(frozen=True, slots=True)
class ProblemStamp:
    """Solver and problem of a checkpoint; a checkpoint of another solver is not used.

    A solver compares observations by their statistics alone, not by their entropies, hence not by
    rho: see ``Callbacks``.

    Parameters
    ----------
    solver : str, kind of the solver.
    n_blocks : int, observations.
    key : ndarray, numbers that differ for other data or another lambda: ``Objective.key``.
    """

    solver: str
    n_blocks: int
    key: FloatArray

    def as_state(self) -> State:
        """Return the entries of a state that ``recognises`` compares."""
        return {
            "stamp_solver": np.array(self.solver),
            "stamp_blocks": np.array(self.n_blocks),
            "stamp_key": self.key,
        }

    def recognises(self, state: SavedState) -> bool:
        """Return True if the same kind of solver saved the state, on the same data and ridge."""
        mine = self.as_state()
        if any(name not in state or state[name].shape != mine[name].shape for name in mine):
            return False
        return (
            str(state["stamp_solver"]) == self.solver
            and int(state["stamp_blocks"]) == self.n_blocks
            and np.allclose(state["stamp_key"], self.key, SAME_DATA, SAME_DATA)
        )


def solver_of(state: SavedState) -> str | None:
    """Return the kind of solver that saved a state, None if the state does not name it."""
    return str(state["stamp_solver"]) if "stamp_solver" in state else None


@dataclass(slots=True)
class Run:
    """Bookkeeping of one run: clock, trajectory, best bounds, decision to stop."""

    limits: Limits
    callbacks: Callbacks
    sentence: str = "Learning"
    seconds_before: float = field(init=False)
    upper: float = float("inf")
    lower: float = float("-inf")
    present: float = float("inf")  # objective at the solver's present point
    trajectory: list[TrajectoryPoint] = field(default_factory=list)
    _start: float = field(init=False)
    _saved: float = field(init=False)
    _asked: float = 0.0

    def __post_init__(self) -> None:
        self.seconds_before = self.callbacks.seconds_before
        self._start = self._saved = wall_seconds()

    @property
    def seconds(self) -> float:
        """Seconds of work so far, earlier parts of a resumed run included."""
        return self.seconds_before + wall_seconds() - self._start

    @property
    def relative_gap(self) -> float:
        """Best certified gap so far over the size of the lower bound."""
        return relative_gap(self.upper, self.lower)

    def record(self, iteration: int, oracle_calls: int, upper: float, lower: float | None) -> None:
        """Record the bounds of one iteration, keep the best of each, and report progress."""
        self.present = upper
        self.upper = min(self.upper, upper)
        if lower is not None:
            self.lower = max(self.lower, lower)
        known = self.lower > float("-inf")
        self.trajectory.append(
            TrajectoryPoint(
                iteration, self.seconds, oracle_calls, self.upper, self.lower if known else None
            )
        )
        self._report(iteration, known)

    def _report(self, iteration: int, known: bool) -> None:
        if self.callbacks.on_progress is ignore_progress:
            return
        gap = self.relative_gap if known else None
        self.callbacks.on_progress(
            Progress(
                sentence=self.sentence,
                fraction=None if gap is None else self._fraction(gap),
                iteration=iteration,
                seconds=self.seconds,
                seconds_left=self._seconds_left(),
                objective=self.upper,
                lower_bound=self.lower if known else None,
                gap=max(self.upper - self.lower, 0.0) if known else None,
                relative_gap=gap,
            )
        )

    @property
    def _target(self) -> float:
        """Target relative gap."""
        absolute = (self.limits.gap or 0.0) / max(abs(self.lower), 1.0)
        return max(self.limits.relative_gap, absolute)

    def _fraction(self, gap: float) -> float:
        """Share of the decrease from first gap to target, on a logarithmic axis."""
        first = next((p.relative_gap for p in self.trajectory if p.relative_gap), None)
        target = self._target
        if first is None or first <= target or gap <= target:
            return 1.0 if gap <= target else 0.0
        if target <= 0.0:
            return 0.0
        return min(max(log(first / gap) / log(first / target), 0.0), 1.0)

    def _seconds_left(self) -> float | None:
        """Extrapolate the seconds left from the later half of the run; None if unknown."""
        points = [p for p in self.trajectory if p.relative_gap]
        if len(points) < 3:
            return None
        past, now = points[len(points) // 2 - 1], points[-1]
        before, after = past.relative_gap or 0.0, now.relative_gap or 0.0
        target = self._target
        if after <= target:
            return 0.0
        if target <= 0.0:
            return None
        if before <= after or now.seconds <= past.seconds:
            return None
        rate = log(before / after) / (now.seconds - past.seconds)
        return log(after / target) / rate

    def verdict(self, iteration: int) -> Status | None:
        """Return the reason to stop now, or None to continue."""
        if self.relative_gap <= self.limits.relative_gap:
            return Status.CONVERGED
        if self.limits.gap is not None and self.present - self.lower <= self.limits.gap:
            return Status.CONVERGED
        if self.callbacks.should_stop():
            return Status.CANCELLED
        if self.limits.max_seconds is not None and self.seconds >= self.limits.max_seconds:
            return Status.TIME_LIMIT
        if self.limits.max_iterations is not None and iteration >= self.limits.max_iterations:
            return Status.ITERATION_LIMIT
        return None

    def is_over(self) -> bool:
        """Return True if the time is up or the caller requests a stop; called within steps."""
        if self.limits.max_seconds is not None and self.seconds >= self.limits.max_seconds:
            return True
        now = wall_seconds()
        if now - self._asked < ASK_SECONDS:
            return False
        self._asked = now
        return self.callbacks.should_stop()

    def is_checkpoint_due(self) -> bool:
        """Return True if the run has a checkpoint and the last save is old enough."""
        if self.callbacks.checkpoint is None:
            return False
        now = wall_seconds()
        if now - self._saved < CHECKPOINT_SECONDS:
            return False
        self._saved = now
        return True

    def load(self, stamp: ProblemStamp) -> SavedState | None:
        """Return the state to resume from and set the clock; None to start from the beginning."""
        saved = self.callbacks.checkpoint.load() if self.callbacks.checkpoint is not None else None
        if saved is None or not stamp.recognises(saved):
            return None
        self.seconds_before = float(saved["seconds"])
        return saved

    def save(self, stamp: ProblemStamp, state: State) -> None:
        """Save a state that ``load`` returns in a later run."""
        if self.callbacks.checkpoint is not None:
            seconds: State = {"seconds": np.array(self.seconds)}
            self.callbacks.checkpoint.save(state | seconds | stamp.as_state())
