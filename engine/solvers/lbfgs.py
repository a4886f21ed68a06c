"""L-BFGS for smooth losses, convex or not, with limits, a metric and the best point seen."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.kernels.work_time import wall_seconds
from engine.solvers.result import LearningResult, TrajectoryPoint

MEMORY = 20
"""Number of steps that L-BFGS remembers."""

EVALUATIONS_A_STEP = 10
"""Maximum number of evaluations a step that line searches may need on average."""

SmoothLoss = Callable[[FloatArray], tuple[float, FloatArray]]
"""Function that returns the loss and its gradient at theta."""

EvaluationCallback = Callable[[FloatArray, float, float], None]
"""Function that receives theta, the objective and the seconds so far after every evaluation."""


@dataclass(frozen=True, slots=True, eq=False)
class SmoothFit:
    """Parameters with the smallest objective seen, and the effort that found them."""

    theta: FloatArray
    objective: float
    evaluations: int
    seconds: float
    status: Status

    def as_result(self) -> LearningResult:
        """Return a result without a certificate: the loss is not convex."""
        end = TrajectoryPoint(
            self.evaluations, self.seconds, self.evaluations, float("inf"), -self.objective
        )
        return LearningResult(
            theta=self.theta,
            objective=float("inf"),
            lower_bound=-self.objective,
            is_certified=False,
            iterations=self.evaluations,
            oracle_calls=self.evaluations,
            seconds=self.seconds,
            status=self.status,
            trajectory=(end,),
        )


class _Stop(Exception):
    """Exception that carries the reason to stop out of SciPy's loop."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


@dataclass(slots=True)
class _Watched:
    """Loss function that remembers the best point seen, and stops at the limits."""

    loss: SmoothLoss
    max_seconds: float | None
    on_evaluation: EvaluationCallback | None
    should_stop: StopCallback
    evaluations: int = 0
    best: float = np.inf
    best_theta: FloatArray = field(default_factory=lambda: np.zeros(0))
    started: float = field(default_factory=wall_seconds)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = self.loss(theta)
        self.evaluations += 1
        if value < self.best or self.evaluations == 1:
            self.best, self.best_theta = value, theta.copy()
        seconds = wall_seconds() - self.started
        if self.on_evaluation is not None:
            self.on_evaluation(theta.copy(), value, seconds)
        if self.should_stop():
            raise _Stop(Status.CANCELLED)
        if self.max_seconds is not None and seconds >= self.max_seconds:
            raise _Stop(Status.TIME_LIMIT)
        return value, gradient


def minimise_by_lbfgs(
    loss: SmoothLoss,
    start: FloatArray,
    *,
    metric: FloatArray | None = None,
    memory: int = MEMORY,
    tolerance: float,
    max_iterations: int,
    max_seconds: float | None = None,
    on_evaluation: EvaluationCallback | None = None,
    should_stop: StopCallback = never_stop,
) -> SmoothFit:
    """Descend from ``start`` until a step lowers the loss by less than ``tolerance`` over its size.

    With a metric L L^T the variables are z = L^T theta, and the gradient in them L^-1 g.

    Parameters
    ----------
    loss : callable, maps theta of shape (K,) to the loss and its gradient.
    start : ndarray, shape (K,)
    metric : ndarray, shape (K, K), positive definite, optional; an estimate of the Hessian.
    memory : int, number of steps that are remembered.
    tolerance : float
    max_iterations, max_seconds : limits; one evaluation is always made.
    on_evaluation, should_stop : called after every evaluation.

    Raises
    ------
    InvalidProblemError
        If the loss is not finite at any evaluated point.

    References
    ----------
    Liu and Nocedal 1989; SciPy's L-BFGS-B without bounds.
    """
    watched = _Watched(loss, max_seconds, on_evaluation, should_stop)
    root = None if metric is None else np.linalg.cholesky(metric)

    def in_variables(z: FloatArray) -> tuple[float, FloatArray]:
        if root is None:
            return watched(z)
        value, gradient = watched(solve_triangular(root, z, lower=True, trans="T"))
        return value, solve_triangular(root, gradient, lower=True)

    try:
        outcome = minimize(
            in_variables,
            start if root is None else root.T @ start,
            jac=True,
            method="L-BFGS-B",
            options={
                "maxcor": memory,
                "maxiter": max_iterations,
                "maxfun": EVALUATIONS_A_STEP * max_iterations,
                "ftol": tolerance,
                "gtol": 0.0,
            },
        )
        status = _STATUSES.get(outcome.status, Status.STALLED)
    except _Stop as stop:
        status = stop.status
    else:
        if not np.isfinite(watched.best):
            raise InvalidProblemError("The loss is not finite at the starting parameters.")
    seconds = wall_seconds() - watched.started
    return SmoothFit(
        read_only(watched.best_theta), watched.best, watched.evaluations, seconds, status
    )


_STATUSES = {0: Status.CONVERGED, 1: Status.ITERATION_LIMIT}
"""Status of each of SciPy's exit codes."""
