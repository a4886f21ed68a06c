"""Perturbed gradients against implicit ones."""

import numpy as np
import pytest

from benchmarks.papers.domke2013.perturbation import perturbed_gradient
from engine.core.errors import InvalidProblemError
from engine.inference.pairwise.marginal_gradients import (
    ImplicitGradient,
    implicit_mean_field_gradient,
)
from engine.objectives.marginal_losses import PAIRWISE_LOSSES, marginal_loss
from tests.inference.pairwise.test_marginal_gradients import (
    LABELS,
    mean_field,
    mixed_graph,
    reweighted,
)


@pytest.mark.parametrize("loss", PAIRWISE_LOSSES)
@pytest.mark.parametrize("inference", [reweighted, mean_field])
def test_every_number_of_sides_agrees_with_the_implicit_gradient(loss, inference):
    graph, rng = mixed_graph(), np.random.default_rng(1)
    solve = inference(graph)
    scores = 0.6 * rng.normal(size=graph.size)
    tables = solve(scores)
    _, slope = marginal_loss(graph, tables, LABELS, loss, 5.0)
    if inference is reweighted:
        implicit = ImplicitGradient(graph, 0.5)(tables, slope)
    else:
        implicit = implicit_mean_field_gradient(graph, scores, tables, slope)
    errors = {}
    for sides in (1, 2, 4):
        perturbed = perturbed_gradient(solve, scores, slope, sides)
        errors[sides] = np.abs(perturbed - implicit).max()
    assert errors[1] < 1e-2 * max(1.0, np.abs(implicit).max())
    assert errors[2] < 1e-5 * max(1.0, np.abs(implicit).max())
    assert errors[4] < 1e-5 * max(1.0, np.abs(implicit).max())


def test_what_is_unknown_is_refused():
    with pytest.raises(InvalidProblemError, match="sides"):
        perturbed_gradient(lambda s: s, np.zeros(2), np.ones(2), 3)
    with pytest.raises(InvalidProblemError, match="multiplier"):
        perturbed_gradient(lambda s: s, np.zeros(2), np.ones(2), multiplier=0.0)
