"""Scores of all pairs that the rules allow, for comparison with the proposed pairs."""

import numpy as np
from numpy.typing import NDArray

from engine import Survey
from engine.learning.roommates.model import RoommateModel

SAMPLED_PAIRS = 20_000  # enough for the shape of the distribution in a chart


def allowed_scores(
    model: RoommateModel, survey: Survey, marginals: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return the scores of pairs that the rules allow: all, or an even sample of many.

    A pair is allowed if the computation gave it any probability.
    """
    n = len(marginals)  # students who came to the cohort later are in no pair yet
    if n * (n - 1) // 2 <= SAMPLED_PAIRS:
        first, second = np.triu_indices(n, 1)
    else:  # i + 1 .. i + n - 1 modulo n: never the student, all others equally often
        rng = np.random.default_rng(0)
        first = rng.integers(0, n, SAMPLED_PAIRS)
        second = (first + rng.integers(1, n, SAMPLED_PAIRS)) % n
    pairs = np.stack([first, second], axis=1)[marginals[first, second] > 0]
    return model.features.pair_scores(survey, model.theta, pairs).sum(axis=1)
