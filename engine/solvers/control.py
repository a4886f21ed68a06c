"""When a solver stops, what it reports and what it saves: one object for every solver."""

import time
from dataclasses import dataclass, field
from math import log

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.checkpoint import Checkpoint, SavedState, State
from engine.core.gap import relative_gap
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.core.status import Status
from engine.solvers.result import TrajectoryPoint

CHECKPOINT_SECONDS = 2.0  # losing two seconds of work costs less than writing every step
ASK_SECONDS = (
    0.2  # between two questions to the caller from within a step, which may ask a database
)
SAME_DATA = 1e-9  # relative difference of statistics summed in another order


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop.

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


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Whom to tell, whom to ask, and where to leave the state.

    A checkpoint is compared by what ``ProblemStamp`` holds, and rho is no part of that. Where rho
    or anything else in an observation's entropy may change, give an ``OwnCheckpoint`` that holds
    it: otherwise a run would use bounds that were proved for another problem.

    Parameters
    ----------
    on_progress : callable
        Given a `Progress` after every iteration.
    should_stop : callable
        Asked often; True ends the run with what it has.
    checkpoint : Checkpoint, optional
        Where a killed run goes on from.
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


@dataclass(frozen=True, slots=True)
class ProblemStamp:
    """Which solver, of which problem, left a checkpoint; one of another solver is not used.

    A solver knows its observations by their statistics alone. Their entropies, hence rho, are not
    compared: see ``Callbacks``.

    Parameters
    ----------
    solver : str, its kind.
    n_blocks : int, observations.
    key : ndarray, numbers that differ for other data or another lambda: ``Objective.key``.
    """

    solver: str
    n_blocks: int
    key: FloatArray

    def as_state(self) -> State:
        """Return what ``recognises`` looks for."""
        return {
            "stamp_solver": np.array(self.solver),
            "stamp_blocks": np.array(self.n_blocks),
            "stamp_key": self.key,
        }

    def recognises(self, state: SavedState) -> bool:
        """Whether the state was left by the same kind of solver on the same data and ridge."""
        mine = self.as_state()
        if any(name not in state or state[name].shape != mine[name].shape for name in mine):
            return False
        return (
            str(state["stamp_solver"]) == self.solver
            and int(state["stamp_blocks"]) == self.n_blocks
            and np.allclose(state["stamp_key"], self.key, SAME_DATA, SAME_DATA)
        )


def solver_of(state: SavedState) -> str | None:
    """Return the kind of solver that left a state, None where it does not say."""
    return str(state["stamp_solver"]) if "stamp_solver" in state else None


@dataclass(slots=True)
class Run:
    """The bookkeeping of one run: clock, trajectory, best bounds, decision to stop."""

    limits: Limits
    callbacks: Callbacks
    sentence: str = "Learning"
    seconds_before: float = field(init=False)
    upper: float = float("inf")
    lower: float = float("-inf")
    present: float = float("inf")  # the objective where the solver stands
    trajectory: list[TrajectoryPoint] = field(default_factory=list)
    _start: float = field(init=False)
    _saved: float = field(init=False)
    _asked: float = 0.0

    def __post_init__(self) -> None:
        self.seconds_before = self.callbacks.seconds_before
        self._start = self._saved = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds of work so far, earlier parts of a resumed run included."""
        return self.seconds_before + time.perf_counter() - self._start

    @property
    def relative_gap(self) -> float:
        """Best certified gap so far over the size of the lower bound."""
        return relative_gap(self.upper, self.lower)

    def record(self, iteration: int, oracle_calls: int, upper: float, lower: float | None) -> None:
        """Note the bounds of one iteration, keep the best of each, and report."""
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
        """The wanted relative gap."""
        absolute = (self.limits.gap or 0.0) / max(abs(self.lower), 1.0)
        return max(self.limits.relative_gap, absolute)

    def _fraction(self, gap: float) -> float:
        """Share of the way on a logarithmic axis from the first gap to the target."""
        first = next((p.relative_gap for p in self.trajectory if p.relative_gap), None)
        target = self._target
        if first is None or first <= target or gap <= target:
            return 1.0 if gap <= target else 0.0
        if target <= 0.0:
            return 0.0
        return min(max(log(first / gap) / log(first / target), 0.0), 1.0)

    def _seconds_left(self) -> float | None:
        """Extrapolate the fall of the gap over the later half of the run; None while unknown."""
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
        """Return the reason to stop now, or None to go on."""
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
        """Whether the time is up or the caller wants no more, asked often from within a step."""
        if self.limits.max_seconds is not None and self.seconds >= self.limits.max_seconds:
            return True
        now = time.perf_counter()
        if now - self._asked < ASK_SECONDS:
            return False
        self._asked = now
        return self.callbacks.should_stop()

    def is_checkpoint_due(self) -> bool:
        """Whether a checkpoint is wanted and the last one is old enough."""
        if self.callbacks.checkpoint is None:
            return False
        now = time.perf_counter()
        if now - self._saved < CHECKPOINT_SECONDS:
            return False
        self._saved = now
        return True

    def load(self, stamp: ProblemStamp) -> SavedState | None:
        """Return the state to go on from and set the clock; None to start anew."""
        saved = self.callbacks.checkpoint.load() if self.callbacks.checkpoint is not None else None
        if saved is None or not stamp.recognises(saved):
            return None
        self.seconds_before = float(saved["seconds"])
        return saved

    def save(self, stamp: ProblemStamp, state: State) -> None:
        """Leave a state that ``load`` finds again."""
        if self.callbacks.checkpoint is not None:
            seconds: State = {"seconds": np.array(self.seconds)}
            self.callbacks.checkpoint.save(state | seconds | stamp.as_state())
