"""Marginal-based learning (truncated fitting and relatives), the method MLE-Struct is compared to.

    minimise  sum_m loss(example m; theta) + lambda/2 ||theta||^2     by L-BFGS

with the losses of `engine.objectives.grid_losses`, on the same features and kernels. None of the
marginal losses is convex, and a truncated likelihood bounds nothing: there is no certificate.

References
----------
Domke 2013, "Learning graphical model parameters with approximate marginal inference".
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue

import numpy as np
from scipy.optimize import minimize

from engine.core.arguments import FloatArray, check_positive, read_only
from engine.core.errors import InvalidProblemError
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.crf.grid_features import GridExample
from engine.kernels.threads import count_threads, one_blas_thread
from engine.objectives.grid_losses import LossOptions, Tape, loss_and_gradient

MEMORY = 20
"""Steps that L-BFGS remembers."""

RELATIVE_DECREASE = 1e-9
"""Decrease of the objective over its size below which L-BFGS counts as converged."""

EvaluationCallback = Callable[[FloatArray, float, float], None]
"""Receives theta, the objective and the seconds so far after every evaluation."""


@dataclass(frozen=True, slots=True, eq=False)
class MarginalFit:
    """The parameters with the smallest objective, and how they were found."""

    theta: FloatArray
    objective: float
    evaluations: int
    seconds: float
    status: Status


class _Stop(Exception):
    """Carries the reason out of SciPy's loop."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


@dataclass(slots=True)
class _Objective:
    """The penalised loss, one picture a thread; remembers the best point seen."""

    examples: Sequence[GridExample]
    options: LossOptions
    ridge: float
    max_seconds: float | None
    should_stop: StopCallback
    on_evaluation: EvaluationCallback | None
    pool: ThreadPoolExecutor
    tapes: SimpleQueue[Tape]  # one a thread
    evaluations: int = 0
    best: float = np.inf
    best_theta: FloatArray = field(default_factory=lambda: np.zeros(0))
    started: float = field(default_factory=time.perf_counter)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        parts = self.pool.map(lambda m: self._loss_of(m, theta), range(len(self.examples)))
        value, gradient = 0.5 * self.ridge * float(theta @ theta), self.ridge * theta
        for part, slope in parts:
            value += part
            gradient = gradient + slope
        self.evaluations += 1
        if value < self.best or self.evaluations == 1:
            self.best, self.best_theta = value, theta.copy()
        seconds = time.perf_counter() - self.started
        if self.on_evaluation is not None:
            self.on_evaluation(theta.copy(), value, seconds)
        if self.should_stop():
            raise _Stop(Status.CANCELLED)
        if self.max_seconds is not None and seconds >= self.max_seconds:
            raise _Stop(Status.TIME_LIMIT)
        return value, gradient

    def _loss_of(self, index: int, theta: FloatArray) -> tuple[float, FloatArray]:
        tape = self.tapes.get()
        try:
            return loss_and_gradient(self.examples[index], theta, self.options, tape)
        finally:
            self.tapes.put(tape)


def fit_marginals(
    examples: Sequence[GridExample],
    options: LossOptions,
    *,
    ridge: float,
    start: FloatArray | None = None,
    max_iterations: int = 1000,
    max_seconds: float | None = None,
    on_evaluation: EvaluationCallback | None = None,
    should_stop: StopCallback = never_stop,
    threads: int | None = None,
) -> MarginalFit:
    """Fit theta to labelled pictures by the chosen loss.

    Parameters
    ----------
    examples : sequence of GridExample
    options : LossOptions
    ridge : float, lambda > 0 of the whole (not the mean) loss.
    start : ndarray, shape (K,), optional; zero by default. Published results start from the fit
        of "independent", and those of the smoothed classification loss from the surrogate
        likelihood's.
    max_iterations, max_seconds : limits; hitting one is said by the status.
    on_evaluation : called after every evaluation, its time counts.
    should_stop : asked after every evaluation.
    threads : pictures worked on at the same time; as many as cores by default.

    Returns
    -------
    MarginalFit

    Raises
    ------
    InvalidProblemError
        If there are no examples, ridge is not above 0, or the loss overflows at the start.
    """
    if len(examples) == 0:
        raise InvalidProblemError("Learning needs at least one labelled picture.")
    check_positive("ridge", ridge)
    theta = np.zeros(examples[0].features.n_parameters) if start is None else np.array(start)
    workers = threads or count_threads()
    tapes: SimpleQueue[Tape] = SimpleQueue()
    for _ in range(workers):
        tapes.put(Tape())
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        objective = _Objective(
            examples, options, ridge, max_seconds, should_stop, on_evaluation, pool, tapes
        )
        status = _minimise(objective, theta, max_iterations)
    return MarginalFit(
        theta=read_only(objective.best_theta),
        objective=objective.best,
        evaluations=objective.evaluations,
        seconds=time.perf_counter() - objective.started,
        status=status,
    )


def _minimise(objective: _Objective, theta: FloatArray, max_iterations: int) -> Status:
    """Run L-BFGS and translate how it ended."""
    try:
        outcome = minimize(
            objective,
            theta,
            jac=True,
            method="L-BFGS-B",
            options={
                "maxcor": MEMORY,
                "maxiter": max_iterations,
                "maxfun": 10 * max_iterations,
                "ftol": RELATIVE_DECREASE,
                "gtol": 0.0,
            },
        )
    except _Stop as stop:
        return stop.status
    if not np.isfinite(objective.best):
        raise InvalidProblemError("The loss is not finite at the starting parameters.")
    if outcome.status == 1:
        return Status.ITERATION_LIMIT
    return Status.CONVERGED if outcome.status == 0 else Status.STALLED
