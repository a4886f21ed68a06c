"""Marginal-based learning with hidden labels and several labels: gradients and what is learned."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.learning.pairwise_fitting import (
    EM,
    INFERENCES,
    LOSSES,
    PairwiseExample,
    PairwiseFitting,
    PairwiseObjective,
    fit_pairwise,
)
from engine.objectives.marginal_losses import HIDDEN
from tests.reference.pairwise_models import enumerate_model


def example_of(rng, hidden=0.3, labels=3, edges=None):
    grid = Grid(2, 3, labels).to_pairwise()
    graph = grid if edges is None else PairwiseGraph(np.full(6, labels), edges)
    features = np.zeros((graph.size, 3))
    n = 6 * labels
    features[:n, :2] = rng.normal(size=(n, 2))
    features[n:, 2] = np.tile(np.eye(labels).ravel(), graph.n_edges)
    truth = rng.integers(0, labels, 6)
    return PairwiseExample(graph, features, np.where(rng.random(6) < hidden, HIDDEN, truth))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("inference", INFERENCES)
def test_gradients_in_theta_by_difference_quotients(loss, inference):
    rng = np.random.default_rng(0)
    options = PairwiseFitting(loss, inference, sharpness=5.0, tolerance=1e-13)
    objective = PairwiseObjective(example_of(rng), options)
    theta = 0.5 * rng.normal(size=3)
    _, found = objective(theta)
    for k, way in enumerate(1e-4 * np.eye(3)):
        slope = (objective(theta + way)[0] - objective(theta - way)[0]) / 2e-4
        assert found[k] == pytest.approx(slope, abs=2e-5)


def test_em_on_trees_is_the_exact_likelihood_of_what_is_observed():
    rng = np.random.default_rng(3)
    chain = np.array([[v, v + 1] for v in range(5)])
    examples = [example_of(rng, edges=chain) for _ in range(4)]
    options = PairwiseFitting(EM, rho=1.0)
    fit = fit_pairwise(examples, options)

    def exact(theta):
        total = 0.5 * theta @ theta
        for example in examples:
            model = PairwiseModel(example.graph, example.features @ theta)
            values, labellings = enumerate_model(model)
            known = example.labels != HIDDEN
            fits = (labellings[:, known] == example.labels[known]).all(axis=1)
            total += np.logaddexp.reduce(values) - np.logaddexp.reduce(values[fits])
        return total

    assert fit.status.is_converged
    assert fit.objective == pytest.approx(exact(fit.theta), abs=1e-7)
    for _ in range(30):
        assert exact(fit.theta + 0.1 * rng.normal(size=3)) >= fit.objective - 1e-6


def test_what_has_no_meaning_is_refused():
    rng = np.random.default_rng(0)
    example = example_of(rng)
    with pytest.raises(InvalidProblemError, match="features"):
        PairwiseExample(example.graph, np.zeros((3, 2)), example.labels)
    with pytest.raises(InvalidProblemError, match="own range"):
        PairwiseExample(example.graph, example.features, np.full(6, 3))
    with pytest.raises(InvalidProblemError, match="loss"):
        PairwiseFitting("hinge")
    with pytest.raises(InvalidProblemError, match="one number of features"):
        fit_pairwise([], PairwiseFitting())
