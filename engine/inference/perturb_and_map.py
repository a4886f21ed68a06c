"""Marginals as frequencies of the MAP solution under random scores."""

from typing import Any

import numpy as np

from engine.core.arguments import FloatArray, as_float_array, check_shape
from engine.core.errors import InvalidProblemError
from engine.core.options import check_callables, check_flag, check_generator, check_whole
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.oracles.protocol import LinearMinimizationOracle


def estimate_perturb_and_map(
    scores: Any,
    oracle: LinearMinimizationOracle,
    n_samples: int,
    *,
    rng: np.random.Generator,
    is_bipartite: bool = True,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
) -> FloatArray:
    """Estimate edge marginals by solving MAP with Gumbel noise on every edge.

    tau_ij = share of the samples whose maximiser of <W + G, s> uses edge ij, the G_ij independent
    Gumbel variables of mean zero. The limit for many samples is not the marginal of
    p(s) ~ exp <W, s>: noise per edge is a low-order stand-in for noise per matching.

    Parameters
    ----------
    scores : ndarray, shape (n, n), float64, nats; symmetric unless ``is_bipartite``
    oracle : LinearMinimizationOracle
        Its vertices are of points (n, n).
    n_samples : int, at least 1, calls of the oracle
    rng : numpy.random.Generator
    is_bipartite : bool
        Whether rows and columns are different nodes; if not, both ends see the same noise.
    on_progress, should_stop : callbacks, called once a sample

    Returns
    -------
    ndarray, shape (n, n): frequencies; over the samples so far if stopped early.

    Raises
    ------
    InvalidProblemError
        If scores are not a square array, n_samples is below 1, or the caller stops it before the
        first sample.

    References
    ----------
    Papandreou and Yuille (2011), Perturb-and-MAP random fields; Li, Swersky and Zemel (2013),
    Efficient feature learning using perturb-and-MAP.

    Examples
    --------
    >>> from engine.oracles.assignment import AssignmentOracle
    >>> rng = np.random.default_rng(0)
    >>> tau = estimate_perturb_and_map(np.zeros((2, 2)), AssignmentOracle(), 200, rng=rng)
    >>> bool(abs(tau[0, 0] - 0.5) < 0.1)
    True
    """
    check_whole("n_samples", n_samples, at_least=1)
    check_generator("rng", rng, optional=False)
    check_flag("is_bipartite", is_bipartite)
    check_callables(on_progress=on_progress, should_stop=should_stop)
    scores = as_float_array("scores", scores)
    check_shape("scores", scores, (None, scores.shape[0] if scores.ndim else None))
    counts: FloatArray = np.zeros(scores.shape)
    made = 0
    while made < n_samples and not should_stop():
        noise = rng.gumbel(-np.euler_gamma, 1.0, scores.shape)
        if not is_bipartite:
            noise = np.tril(noise, -1) + np.tril(noise, -1).T
        oracle.compute_extreme_point(scores + noise).vertex.add_to(counts)
        made += 1
        on_progress(Progress("Sampling matchings", fraction=made / n_samples, iteration=made))
    if not made:
        raise InvalidProblemError(f"n_samples: expected at least 1, made {made} of {n_samples}.")
    counts /= made
    return counts
