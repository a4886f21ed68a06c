"""Gradients at convergence: against any graph's, difference quotients and one another."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.papers.domke2013.converged_gradients import GRADIENTS, gradient_by
from benchmarks.papers.domke2013.picture_losses import PaperOptions, loss_and_gradient
from engine.core.errors import InvalidProblemError
from engine.learning.pairwise_fitting import PairwiseFitting, PairwiseObjective
from engine.objectives.marginal_losses import (
    CLIQUE,
    LIKELIHOOD,
    MARGINAL_LOSSES,
    NODE_LOSSES,
    LossOptions,
)
from tests.objectives.test_class_losses import ANY_GRAPH, as_pairwise
from tests.objectives.test_class_messages import example, parameters
from tests.reference.tiny_grids import tiny_example


@pytest.mark.parametrize("loss", ANY_GRAPH)
def test_gradients_at_rest_agree_with_any_graphs(loss: str) -> None:
    one = example(3, 4, 3)
    theta = parameters(one, is_potts=False, size=0.2)
    value, gradient = gradient_by("implicit", one, theta, LossOptions(loss))
    general = PairwiseObjective(as_pairwise(one), PairwiseFitting(ANY_GRAPH[loss]))
    expected, slope = general(theta)
    assert value == pytest.approx(expected, abs=2e-6)
    assert_allclose(gradient, slope, atol=2e-6)
    for sides, away in (("one-sided", 1e-3), ("two-sided", 1e-4), ("four-sided", 3e-5)):
        found, perturbed = gradient_by(sides, one, theta, LossOptions(loss))
        assert found == pytest.approx(expected, abs=2e-6)
        assert_allclose(perturbed, gradient, atol=away, err_msg=sides)


@pytest.mark.parametrize("is_potts", [True, False])
@pytest.mark.parametrize("loss", ANY_GRAPH)
def test_gradients_at_rest_are_those_of_differences(loss: str, is_potts: bool) -> None:
    one = example(4, 3, 4)
    theta = parameters(one, is_potts=is_potts, size=0.3)
    weights = (1.0, 2.0, 0.5, 1.0)
    options = LossOptions(loss, weights=weights, is_potts=is_potts, sharpness=4.0)
    _, gradient = gradient_by("implicit", one, theta, options)
    _, perturbed = gradient_by("two-sided", one, theta, options)
    for way in np.random.default_rng(3).normal(size=(3, len(theta))):
        if is_potts:
            one.features.layout.split(way)[2][:] = 0.0
        steps = 2e-3 * np.array([-2, -1, 1, 2])
        ends = [gradient_by("implicit", one, theta + s * way, options)[0] for s in steps]
        slope = np.array([1, -8, 8, -1]) @ ends / 24e-3
        assert gradient @ way == pytest.approx(slope, rel=1e-4, abs=5e-4)
        assert perturbed @ way == pytest.approx(gradient @ way, abs=1e-3)


def test_a_loose_threshold_spoils_the_perturbed_gradient_most() -> None:
    one = example(3, 4, 3)
    theta = parameters(one, is_potts=False, size=0.2)
    _, exact = gradient_by("implicit", one, theta, LossOptions("univariate-logistic"))
    errors = {}
    for gradient, threshold in product(("implicit", "two-sided"), (1e-2, 1e-8)):
        loose = LossOptions("univariate-logistic", threshold=threshold)
        found = gradient_by(gradient, one, theta, loose)[1]
        errors[gradient, threshold] = np.abs(found - exact).max()
    assert errors["implicit", 1e-2] > 1e-5 > errors["implicit", 1e-8]
    assert errors["two-sided", 1e-2] > errors["implicit", 1e-2]
    assert errors["two-sided", 1e-8] < 1e-3


def test_gradients_at_rest_of_one_row_and_of_nothing_known() -> None:
    one = example(1, 5, 3)
    theta = parameters(one, is_potts=False)
    for loss in ANY_GRAPH:
        _, exact = gradient_by("implicit", one, theta, LossOptions(loss))
        _, truncated = loss_and_gradient(one, theta, LossOptions(loss, iterations=6))
        assert_allclose(exact, truncated, atol=1e-4)
        hidden = replace(one, labels=np.full_like(one.labels, 255))
        for gradient in ("implicit", "two-sided"):
            value, slope = gradient_by(gradient, hidden, theta, LossOptions(loss))
            assert value == 0.0
            assert not slope.any()


@pytest.mark.parametrize("loss", MARGINAL_LOSSES)
def test_mean_field_of_masks_has_gradients_at_convergence(loss: str) -> None:
    rng = np.random.default_rng(8)
    mask = tiny_example(rng)
    theta = 0.4 * rng.normal(size=14)
    by_mean_field = PaperOptions(loss, inference="mean-field")
    truncated = replace(by_mean_field, threshold=1e-13)
    value, expected = loss_and_gradient(mask, theta, truncated)
    for gradient, away in (("implicit", 1e-6), ("two-sided", 1e-4)):
        found, slope = gradient_by(gradient, mask, theta, by_mean_field)
        assert found == pytest.approx(value, abs=1e-8)
        assert_allclose(slope, expected, atol=away, err_msg=gradient)


@pytest.mark.parametrize("loss", [*NODE_LOSSES, CLIQUE, LIKELIHOOD])
def test_mean_field_at_rest_agrees_with_any_graphs(loss: str) -> None:
    one = example(3, 4, 3)
    theta = parameters(one, is_potts=False, size=0.2)
    fitting = PairwiseFitting(ANY_GRAPH[loss], inference="mean-field", sharpness=4.0)
    expected, slope = PairwiseObjective(as_pairwise(one), fitting)(theta)
    for gradient in GRADIENTS:
        options = PaperOptions(loss, 60, sharpness=4.0, inference="mean-field")
        value, found = gradient_by(gradient, one, theta, options)
        assert value == pytest.approx(expected, abs=1e-6), gradient
        away = {"implicit": 2e-6, "truncated": 2e-6, "one-sided": 1e-3}.get(gradient, 2e-5)
        assert_allclose(found, slope, atol=away, err_msg=gradient)


def test_an_unknown_gradient_is_refused() -> None:
    one = example(1, 5, 3)
    with pytest.raises(InvalidProblemError, match="gradient: expected one of"):
        gradient_by("three-sided", one, np.zeros(1), LossOptions())
