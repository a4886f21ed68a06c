"""Learning of mask weights by a logistic marginal loss, and their held-out errors."""

from collections.abc import Sequence

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.core.progress import StopCallback
from engine.crf.grid_features import GridExample
from engine.learning.segmentation.marginal_fitting import fit_marginals_on_growing_sets
from engine.learning.segmentation.mask_progress import HeldOutPictures
from engine.objectives.grid_losses import LossOptions
from engine.solvers.result import LearningResult

LOGISTIC_LOSSES = {"univariate": "univariate-logistic", "clique": "clique-logistic"}

ITERATIONS = 10
"""Number of sweeps for a marginal loss: with good unaries messages have converged by then."""

TOLERANCE = 1e-4
"""Relative decrease of the loss at convergence: below it the held-out error does not change."""


def fit_marginal_loss(
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
    tolerance: float = TOLERANCE,
) -> LearningResult:
    """Learn weights by "univariate" or "clique" logistic loss; the result has no certificate.

    With a ``start`` near the optimum, (K,), all examples are used from the first step. ``sweeps``
    and ``tolerance`` as `ITERATIONS` and `TOLERANCE`.

    Raises
    ------
    InvalidProblemError
        If the loss has another name, or there are no examples.
    StoppedError
        If stopped before all examples had been evaluated.
    """
    if loss not in LOGISTIC_LOSSES:
        raise InvalidProblemError(
            f"loss: expected {' or '.join(LOGISTIC_LOSSES)}, received {loss!r}."
        )
    fit = fit_marginals_on_growing_sets(
        examples,
        LossOptions(loss=LOGISTIC_LOSSES[loss], iterations=sweeps, rho=rho),
        ridge=ridge,
        rng=rng,
        start=start,
        rehearses=start is None,
        tolerance=tolerance,
        max_seconds=max_seconds,
        should_stop=should_stop,
    )
    return fit.as_result()


def held_out_errors(
    examples: Sequence[GridExample], theta: FloatArray, rho: float, should_stop: StopCallback
) -> FloatArray:
    """Return the share of wrong pixels of every picture, (M,), by larger marginals."""
    return HeldOutPictures(examples, rho, should_stop=should_stop).errors(theta)
