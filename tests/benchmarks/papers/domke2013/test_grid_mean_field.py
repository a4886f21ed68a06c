"""Mean field on grids: derivatives by differences and by any graph's, and its bound."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from benchmarks.papers.domke2013.grid_mean_field import GridMeanField
from benchmarks.papers.domke2013.picture_losses import PaperOptions, loss_and_gradient
from engine.core.errors import InvalidProblemError
from engine.core.progress import never_stop
from engine.learning.pairwise_fitting import PairwiseFitting, PairwiseObjective
from engine.learning.segmentation.class_weights import fit_loss
from engine.objectives.marginal_losses import CLIQUE, LIKELIHOOD, NODE_LOSSES
from tests.objectives.test_class_losses import ANY_GRAPH, as_pairwise
from tests.objectives.test_class_messages import all_scores, example, parameters
from tests.objectives.test_grid_losses import N_NODE, check_gradient
from tests.reference.tiny_grids import all_statistics, tiny_example

LOSSES = (*NODE_LOSSES, CLIQUE, LIKELIHOOD)
MEAN_FIELD = PaperOptions(inference="mean-field", sharpness=4.0)
STEEP = replace(MEAN_FIELD, loss="smoothed-classification", iterations=4)


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
    fit = fit_loss(examples, options, ridge=1.0, should_stop=never_stop, loss=loss_and_gradient)
    plain = examples[0].features.layout.plain()
    before, after = (
        sum(loss_and_gradient(one, theta, options)[0] for one in examples)
        for theta in (plain, fit.theta)
    )
    assert after < 0.6 * before


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("iterations", [1, 4])
@pytest.mark.parametrize("shape", [(6, 5), (3, 4), (1, 5), (4, 1)])
def test_masks_have_gradients_by_finite_differences(
    loss: str, iterations: int, shape: tuple[int, int]
) -> None:
    options = replace(MEAN_FIELD, loss=loss, iterations=iterations, sharpness=5.0)
    check_gradient(options, shape, loss=loss_and_gradient)


@pytest.mark.parametrize("sharpness", [15.0, 50.0])
def test_steep_losses_of_masks_have_gradients_by_finite_differences(sharpness: float) -> None:
    check_gradient(replace(STEEP, sharpness=sharpness), (6, 5), loss=loss_and_gradient)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("node_scale", [10.0, 30.0])
def test_masks_have_gradients_where_marginals_round_to_0_and_1(
    loss: str, node_scale: float
) -> None:
    options = replace(MEAN_FIELD, loss=loss, iterations=4, sharpness=5.0)
    check_gradient(options, (3, 4), node_scale, loss_and_gradient)


def test_what_is_no_number_never_counts_as_convergence() -> None:
    mask = tiny_example(np.random.default_rng(5), 7, 9)
    theta = np.random.default_rng(6).normal(size=14)
    for place in (0, 7, 13):
        spoiled = theta.copy()
        spoiled[place] = np.nan
        options = replace(MEAN_FIELD, threshold=1e-3)
        assert np.isnan(loss_and_gradient(mask, spoiled, options)[0])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_threshold_gives_the_loss_of_converged_marginals(loss: str) -> None:
    rng = np.random.default_rng(1)
    mask = tiny_example(rng)
    theta = 0.5 * rng.normal(size=14)
    options = replace(MEAN_FIELD, loss=loss)
    first, second = (
        loss_and_gradient(mask, theta, one)
        for one in (replace(options, threshold=1e-12), replace(options, iterations=300))
    )
    assert first[0] == pytest.approx(second[0], rel=1e-9)
    assert_allclose(first[1], second[1], atol=1e-8)


@pytest.mark.parametrize("scale", [1.0, 25.0])
def test_losses_without_coupling_agree_with_the_likelihood(scale: float) -> None:
    rng = np.random.default_rng(4)
    mask = tiny_example(rng)
    theta = scale * rng.normal(size=14)
    theta[N_NODE:] = 0.0
    log_z = np.logaddexp.reduce(all_statistics(mask.features) @ theta)
    expected = log_z - theta @ mask.features.observed_statistics(mask.labels)
    for loss in ("independent", "pseudolikelihood", "univariate-logistic", "surrogate-likelihood"):
        value, _ = loss_and_gradient(mask, theta, replace(MEAN_FIELD, loss=loss))
        assert value == pytest.approx(expected, rel=1e-9), loss


def test_an_unknown_inference_is_refused() -> None:
    with pytest.raises(InvalidProblemError, match="one of trw, mean-field"):
        PaperOptions(inference="bethe")
