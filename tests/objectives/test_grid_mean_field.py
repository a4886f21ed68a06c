"""Mean field on grids: derivatives by differences and by any graph's, and its bound."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from engine.core.errors import InvalidProblemError
from engine.core.progress import never_stop
from engine.learning.pairwise_fitting import PairwiseFitting, PairwiseObjective
from engine.learning.segmentation.class_weights import fit_loss
from engine.objectives.grid_losses import loss_and_gradient
from engine.objectives.grid_mean_field import GridMeanField
from engine.objectives.marginal_losses import (
    CLIQUE,
    LIKELIHOOD,
    NODE_LOSSES,
    LossOptions,
)
from tests.objectives.test_class_losses import ANY_GRAPH, as_pairwise
from tests.objectives.test_class_messages import all_scores, example, parameters

LOSSES = (*NODE_LOSSES, CLIQUE, LIKELIHOOD)
MEAN_FIELD = LossOptions(inference="mean-field", sharpness=4.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_truncated_gradient_is_that_of_the_loss_so_far(loss: str) -> None:
    one = example(5, 6, 3)
    theta = parameters(one, is_potts=False, size=0.2)
    options = replace(MEAN_FIELD, loss=loss, iterations=2, weights=(1.0, 2.0, 0.5))
    _, gradient = loss_and_gradient(one, theta, options)
    for k in range(len(theta)):
        step = 1e-3 * np.eye(len(theta))[k]
        above, below = (loss_and_gradient(one, theta + s, options)[0] for s in (step, -step))
        assert gradient[k] == pytest.approx((above - below) / 2e-3, abs=2e-3), k


@pytest.mark.parametrize("loss", LOSSES)
def test_at_rest_it_agrees_with_any_graphs(loss: str) -> None:
    one = example(3, 4, 3)
    theta = parameters(one, is_potts=False, size=0.2)
    fitting = PairwiseFitting(ANY_GRAPH[loss], inference="mean-field", sharpness=4.0)
    expected, slope = PairwiseObjective(as_pairwise(one), fitting)(theta)
    value, found = loss_and_gradient(one, theta, replace(MEAN_FIELD, loss=loss, iterations=60))
    assert value == pytest.approx(expected, abs=1e-6)
    assert_allclose(found, slope, atol=2e-6)


def test_its_likelihood_bounds_the_partition_function_from_below() -> None:
    one = example(2, 3, 3)
    for size in (0.3, 2.0):
        theta = parameters(one, is_potts=False, size=size)
        exact = logsumexp(all_scores(one, theta)[1])
        field = GridMeanField(one.features, theta)
        bounds = []
        for _ in range(10):
            bounds.append(field.lower_bound()[0])
            field.sweep()
        assert (np.diff(bounds) >= -1e-9).all()  # every update is the best of its pixel
        assert bounds[-1] <= exact + 1e-6
    assert bounds[0] < bounds[-1] - 1.0


def test_known_pixels_are_held_to_their_labels() -> None:
    one = example(3, 4, 3)
    theta = parameters(one, is_potts=False)
    field = GridMeanField(one.features, theta, one.labels)
    field.sweep()
    known = np.nonzero(one.labels < 3)
    assert (field.marginals[(*known, one.labels[known])] == 1.0).all()
    assert 0.0 < field.marginals[one.labels >= 3].max() < 1.0
    small = example(2, 2, 3)
    labels, scores = all_scores(small, theta)
    held = GridMeanField(small.features, theta, np.zeros((2, 2), dtype=np.uint8))
    held.sweep()
    expected = scores[(labels == 0).all(axis=(1, 2))][0]
    assert held.lower_bound()[0] == pytest.approx(expected, abs=1e-5)


def test_strong_scores_leave_a_slope_where_marginals_round_to_one() -> None:
    one = example(3, 3, 3)
    theta = parameters(one, is_potts=False, size=60.0)
    for loss in LOSSES:
        value, gradient = loss_and_gradient(one, theta, replace(MEAN_FIELD, loss=loss))
        assert np.isfinite(value), loss
        assert np.isfinite(gradient).all(), loss
    _, gradient = loss_and_gradient(one, theta, replace(MEAN_FIELD, loss=CLIQUE, iterations=1))
    assert np.abs(gradient).max() > 1.0


def test_weights_are_learned_by_it() -> None:
    examples = [example(5, 6, 3, seed=seed) for seed in range(3)]
    options = replace(MEAN_FIELD, iterations=3)
    fit = fit_loss(examples, options, ridge=1.0, should_stop=never_stop)
    plain = examples[0].features.layout.plain()
    before, after = (
        sum(loss_and_gradient(one, theta, options)[0] for one in examples)
        for theta in (plain, fit.theta)
    )
    assert after < 0.6 * before


def test_an_unknown_inference_is_refused() -> None:
    with pytest.raises(InvalidProblemError, match="one of trw, mean-field"):
        LossOptions(inference="bethe")
