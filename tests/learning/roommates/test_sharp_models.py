"""Weights far sharper than any learned by likelihood, such as a perceptron's, are evaluated too."""

import numpy as np
import pytest

from engine.inference.matching.cascade import compute_group_marginals
from engine.learning.roommates.evaluation import evaluate_roommates
from engine.learning.roommates.model import make_roommate_model
from engine.oracles.perfect_matching import CompleteGraphMatcher
from tests.learning.roommates.cohorts import simulated_years

NO_PAIRS = np.empty((0, 2), dtype=np.int64)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rho", [1.0, 0.5])
@pytest.mark.parametrize("scale", [1e2, 1e3, 1e5, 1e12, 1e100])
def test_a_sharp_model_is_evaluated(scale, rho):
    years, university = simulated_years(60, 1)
    survey, pairs = years[0]
    theta = scale * np.random.default_rng(0).normal(size=university.features.n_features)
    evaluation = evaluate_roommates(
        make_roommate_model(theta, university.features, 1.0, rho), survey, pairs
    )
    assert 0.0 <= evaluation.auc <= 1.0
    assert all(0.0 <= b.predicted <= 1.0 for b in evaluation.reliability)


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_marginals_of_sharp_scores_are_the_best_matching(scale):
    n = 12
    rng = np.random.default_rng(0)
    scores = np.zeros((n, n))
    scores[np.arange(0, n, 2), np.arange(1, n, 2)] = 1.0
    scores += np.triu(0.1 * rng.random((n, n)), 1)
    scores = scale * (scores + scores.T)
    best = CompleteGraphMatcher().solve(scores).partner
    tau = compute_group_marginals(scores, 1.0, NO_PAIRS).tau
    assert np.allclose(tau[np.arange(n), best], 1.0)
    assert np.allclose(tau.sum(axis=1), 1.0)
