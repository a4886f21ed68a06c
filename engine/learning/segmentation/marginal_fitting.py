"""Marginal-based learning of masks (truncated fitting and relatives), compared with MLE-Struct.

    minimise  sum_m loss(example m; theta) + lambda/2 ||theta||^2     by L-BFGS

with the losses of `engine.objectives.grid_losses`, on the same features and kernels. The marginal
losses are not convex, and a truncated likelihood gives no bound: there is no certificate.

References
----------
Domke 2013, "Learning graphical model parameters with approximate marginal inference".
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.options import check_positive
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.crf.grid_features import GridExample
from engine.kernels.threads import count_threads, one_blas_thread
from engine.kernels.work_time import wall_seconds
from engine.learning.segmentation.example_store import ExampleView
from engine.learning.segmentation.mask_solvers import REHEARSAL_SHARE, subset_sizes
from engine.objectives.grid_inner import GridSetInnerProblem
from engine.objectives.grid_losses import Tape, loss_and_gradient
from engine.objectives.marginal_losses import Gradient, LossOptions
from engine.solvers.lbfgs import MEMORY, EvaluationCallback, SmoothFit, minimise_by_lbfgs
from engine.solvers.result import LearningResult

LONG_MEMORY = 100
"""Number of steps that L-BFGS stores on growing sets: K is a few hundred, inference costs more."""

RELATIVE_DECREASE = 1e-9
"""Relative decrease of the objective below which L-BFGS has converged."""

REHEARSAL_DECREASE = 1e-4
"""Relative decrease at convergence on a subset, whose optimum differs from that of all pictures."""

LOGISTIC_LOSSES = {"univariate": "univariate-logistic", "clique": "clique-logistic"}
"""Losses that models are learned by, besides the likelihood, by the names of public options."""

ITERATIONS = 10
"""Number of sweeps for a logistic loss: with good unaries messages have converged by then."""

LOGISTIC_TOLERANCE = 1e-4
"""Relative decrease of a logistic loss at convergence: below it the held-out error does not
change."""

METRIC_RHO = 0.5
"""Reweighting in the estimate of the Hessian, with initial messages; its value does not matter."""


PictureLoss = Callable[[GridExample, FloatArray, LossOptions, Tape | None], Gradient]
"""Loss of one picture and its gradient in theta; see `loss_and_gradient`."""


@dataclass(slots=True)
class _Objective:
    """Penalised loss of all pictures, computed with one picture per thread."""

    examples: Sequence[GridExample]
    options: LossOptions
    ridge: float
    pool: ThreadPoolExecutor
    tapes: SimpleQueue[Tape]  # one per thread
    loss: PictureLoss

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        parts = self.pool.map(lambda m: self._loss_of(m, theta), range(len(self.examples)))
        value, gradient = 0.5 * self.ridge * float(theta @ theta), self.ridge * theta
        for part, slope in parts:
            value += part
            gradient = gradient + slope
        return value, gradient

    def _loss_of(self, index: int, theta: FloatArray) -> tuple[float, FloatArray]:
        tape = self.tapes.get()
        try:
            return self.loss(self.examples[index], theta, self.options, tape)
        finally:
            self.tapes.put(tape)


def fit_marginals(
    examples: Sequence[GridExample],
    options: LossOptions,
    *,
    ridge: float,
    start: FloatArray | None = None,
    metric: FloatArray | None = None,
    memory: int = MEMORY,
    tolerance: float = RELATIVE_DECREASE,
    max_iterations: int = 1000,
    max_seconds: float | None = None,
    on_evaluation: EvaluationCallback | None = None,
    should_stop: StopCallback = never_stop,
    threads: int | None = None,
    loss: PictureLoss = loss_and_gradient,
) -> SmoothFit:
    """Fit theta to labelled pictures by the chosen loss.

    Parameters
    ----------
    examples : sequence of GridExample
    options : LossOptions
    ridge : float, lambda > 0 of the whole (not the mean) loss.
    start : ndarray, shape (K,), optional; zero by default. Published results start from the fit
        of "independent", and for the smoothed classification loss from that of the surrogate
        likelihood.
    metric : ndarray, shape (K, K), positive definite, optional; an estimate of the Hessian of the
        objective. L-BFGS then works in variables in which it is the identity.
    memory : int, number of steps that L-BFGS stores.
    tolerance : float, relative decrease of the objective in one step at convergence.
    max_iterations, max_seconds : limits; the status reports if one was reached.
    on_evaluation : called after every evaluation, its time counts.
    should_stop : called after every evaluation.
    threads : number of pictures processed in parallel; by default the number of cores.
    loss : computes the loss of one picture that the options name.

    Returns
    -------
    SmoothFit

    Raises
    ------
    InvalidProblemError
        If there are no examples, ridge or tolerance is not above 0, or the loss overflows at the
        start.
    """
    if len(examples) == 0:
        raise InvalidProblemError("Learning needs at least one labelled picture.")
    check_positive("ridge", ridge)
    check_positive("tolerance", tolerance)
    theta = np.zeros(examples[0].features.n_parameters) if start is None else np.array(start)
    workers = threads or count_threads()
    tapes: SimpleQueue[Tape] = SimpleQueue()
    for _ in range(workers):
        tapes.put(Tape())
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        return minimise_by_lbfgs(
            _Objective(examples, options, ridge, pool, tapes, loss),
            theta,
            metric=metric,
            memory=memory,
            tolerance=tolerance,
            max_iterations=max_iterations,
            max_seconds=max_seconds,
            on_evaluation=on_evaluation,
            should_stop=should_stop,
        )


def fit_marginals_on_growing_sets(
    examples: Sequence[GridExample],
    options: LossOptions,
    *,
    ridge: float,
    rng: np.random.Generator,
    start: FloatArray | None = None,
    rehearses: bool = True,
    tolerance: float = RELATIVE_DECREASE,
    max_iterations: int = 1000,
    max_seconds: float | None = None,
    on_evaluation: EvaluationCallback | None = None,
    should_stop: StopCallback = never_stop,
    threads: int | None = None,
    loss: PictureLoss = loss_and_gradient,
) -> SmoothFit:
    """Fit theta as `fit_marginals` does, after rehearsals on growing random subsets.

    Each subset contains the one before, starts at its optimum and uses lambda in proportion to its
    pixels; the last subset is all pictures. Every stage uses the metric of `estimate_metric` at
    its start, without which it would have to learn the curvature again. The objective and the
    status are those of the last stage: a convex loss has the same optimum as without rehearsals,
    another loss may have another local optimum.

    Parameters
    ----------
    examples, options, ridge, start, tolerance, threads, loss : see `fit_marginals`.
    rng : numpy.random.Generator, draws the order in which pictures join the subsets.
    rehearses : bool
        False to use all pictures at once, for a start that is already near their optimum.
    max_iterations : limit of each stage.
    max_seconds : limit of all stages together. A rehearsal may take `REHEARSAL_SHARE` of the
        remaining time, and all pictures are evaluated at least once, so the end may be late.
    on_evaluation : called after evaluations of the last stage only, with the seconds since the
        start of the first.
    should_stop : called after every evaluation of every stage.

    Returns
    -------
    SmoothFit
        Its seconds and evaluations are those of all stages; a pass over a subset counts by its
        share of the pixels, and the sum is rounded.

    Raises
    ------
    InvalidProblemError
        See `fit_marginals`.
    StoppedError
        If stopped within a rehearsal: no objective of all pictures is known.

    References
    ----------
    Domke 2013, section 8.4.
    """
    started = wall_seconds()
    check_positive("ridge", ridge)
    check_positive("tolerance", tolerance)
    order = [int(k) for k in rng.permutation(len(examples))]
    pixels = np.array([example.labels.size for example in examples])
    theta, passes, before = start, 0.0, 0.0

    def report(theta: FloatArray, objective: float, seconds: float) -> None:
        if on_evaluation is not None:
            on_evaluation(theta, objective, before + seconds)

    *smaller, everything = subset_sizes(len(examples))
    for size in [*smaller, everything] if rehearses else [everything]:
        is_last = size == everything
        stage = ExampleView(examples, order[:size])
        share = 1.0 if is_last else float(pixels[order[:size]].sum() / pixels.sum())
        metric = estimate_metric(stage, theta, share * ridge, threads)
        left = _seconds_left(max_seconds, started)
        before = wall_seconds() - started
        fit = fit_marginals(
            stage,
            options,
            ridge=share * ridge,
            start=theta,
            metric=metric,
            memory=LONG_MEMORY,
            tolerance=tolerance if is_last else max(tolerance, REHEARSAL_DECREASE),
            max_iterations=max_iterations,
            max_seconds=left if left is None or is_last else REHEARSAL_SHARE * left,
            on_evaluation=report if is_last else None,
            should_stop=should_stop,
            threads=threads,
            loss=loss,
        )
        if fit.status is Status.CANCELLED and not is_last:
            raise StoppedError("Learning was stopped before all images had been looked at.")
        theta, passes = fit.theta, passes + share * fit.evaluations
    return replace(fit, evaluations=round(passes), seconds=wall_seconds() - started)


def fit_logistic_loss(
    examples: Sequence[GridExample],
    loss: str,
    *,
    ridge: float,
    rho: float,
    max_seconds: float | None,
    should_stop: StopCallback,
    rng: np.random.Generator,
    start: FloatArray | None = None,
    sweeps: int = ITERATIONS,
    tolerance: float = LOGISTIC_TOLERANCE,
) -> LearningResult:
    """Learn weights by "univariate" or "clique" logistic loss; the result has no certificate.

    ``start`` as for `fit_marginals_on_growing_sets`; ``sweeps`` and ``tolerance`` as `ITERATIONS`
    and `LOGISTIC_TOLERANCE`.

    Raises
    ------
    InvalidProblemError
        If there are no examples.
    StoppedError
        If stopped before all examples had been evaluated.
    """
    fit = fit_marginals_on_growing_sets(
        examples,
        LossOptions(loss=LOGISTIC_LOSSES[loss], iterations=sweeps, rho=rho),
        ridge=ridge,
        rng=rng,
        start=start,
        tolerance=tolerance,
        max_seconds=max_seconds,
        should_stop=should_stop,
    )
    return fit.as_result()


def estimate_metric(
    examples: Sequence[GridExample],
    theta: FloatArray | None,
    ridge: float,
    threads: int | None = None,
) -> FloatArray:
    """Estimate the Hessian of a loss: lambda I + the covariance of features at uncoupled marginals.

    Every marginal loss compares marginals with labels in the same features, so one rough estimate
    serves all: it removes the scales and the correlations of the features.

    Returns
    -------
    ndarray, shape (K, K), positive definite

    Raises
    ------
    InvalidProblemError
        If there are no examples.
    """
    if len(examples) == 0:
        raise InvalidProblemError("Learning needs at least one labelled picture.")
    size = examples[0].features.n_parameters
    problem = GridSetInnerProblem(examples, METRIC_RHO, threads=threads or count_threads())
    with one_blas_thread():
        curvature = problem.curvature(np.zeros(size) if theta is None else theta, {})
    return curvature + ridge * np.eye(size)


def _seconds_left(max_seconds: float | None, started: float) -> float | None:
    """Return the seconds until the limit, 0 beyond it; None without a limit."""
    if max_seconds is None:
        return None
    return max(max_seconds - (wall_seconds() - started), 0.0)
