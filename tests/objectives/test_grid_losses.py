"""Losses of marginal-based learning: exact derivatives, known values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.errors import InvalidProblemError
from engine.learning.segmentation.marginal_fitting import PictureLoss
from engine.objectives.grid_chains import GridChains
from engine.objectives.grid_losses import loss_and_gradient
from engine.objectives.marginal_losses import MARGINAL_LOSSES, LossOptions
from tests.reference.tiny_grids import all_statistics, tiny_example

CASES = [
    LossOptions(loss, iterations=iterations, sharpness=5.0, rho=rho)
    for loss in MARGINAL_LOSSES
    for iterations, rho in ((1, 0.5), (4, 0.5), (4, 0.3))
]
SHARP = [
    LossOptions("smoothed-classification", iterations=4, sharpness=sharpness)
    for sharpness in (15.0, 50.0)  # the default, and the steepest of the published ones
]


N_NODE = 6  # parameters of the nodes of a tiny example


def name_of(options: LossOptions) -> str:
    parts = (options.loss, options.iterations, options.rho, options.sharpness)
    return "-".join(str(part) for part in parts)


def check_gradient(
    options: LossOptions,
    shape: tuple[int, int],
    node_scale: float = 0.8,
    loss: PictureLoss = loss_and_gradient,
) -> None:
    """Compare the derivative in every parameter with a difference quotient."""
    rng = np.random.default_rng(0)
    example = tiny_example(rng, *shape)
    theta = 0.8 * rng.normal(size=example.features.n_parameters)
    theta[:N_NODE] *= node_scale / 0.8
    _, gradient = loss(example, theta, options, None)
    step = 1e-6
    for k in range(len(theta)):
        ends = []
        for sign in (1, -1):
            moved = theta.copy()
            moved[k] += sign * step
            ends.append(loss(example, moved, options, None)[0])
        slope = (ends[0] - ends[1]) / (2 * step)
        assert gradient[k] == pytest.approx(slope, abs=2e-6 * max(1.0, abs(slope)))


@pytest.mark.parametrize("options", CASES, ids=name_of)
@pytest.mark.parametrize("shape", [(6, 5), (3, 4), (1, 5), (4, 1)])
def test_gradient_by_finite_differences(options: LossOptions, shape: tuple[int, int]) -> None:
    check_gradient(options, shape)


@pytest.mark.parametrize("options", SHARP, ids=name_of)
def test_gradient_of_steep_losses_by_finite_differences(options: LossOptions) -> None:
    check_gradient(options, (6, 5))


@pytest.mark.parametrize("loss", MARGINAL_LOSSES)
@pytest.mark.parametrize("node_scale", [10.0, 30.0])
def test_gradient_where_marginals_round_to_0_and_1(loss: str, node_scale: float) -> None:
    """1 - p was 0 where the wrong label is sure: a loss of 691 nats, and no slope."""
    check_gradient(LossOptions(loss, iterations=4, sharpness=5.0), (3, 4), node_scale)


def test_what_is_no_number_never_counts_as_rest() -> None:
    """Every comparison with it fails, that of a change with a threshold too."""
    example = tiny_example(np.random.default_rng(5), 7, 9)
    theta = np.random.default_rng(6).normal(size=14)
    for place in (0, 7, 13):
        spoiled = theta.copy()
        spoiled[place] = np.nan
        assert np.isnan(GridChains(example.features, 0.5, spoiled).sweep(3))
        options = LossOptions("univariate-logistic", threshold=1e-3)
        assert np.isnan(loss_and_gradient(example, spoiled, options)[0])


@pytest.mark.parametrize("loss", MARGINAL_LOSSES)
def test_a_threshold_gives_the_loss_of_converged_marginals(loss: str) -> None:
    rng = np.random.default_rng(1)
    example = tiny_example(rng)
    theta = 0.5 * rng.normal(size=14)
    tight = LossOptions(loss, threshold=1e-12)
    many = LossOptions(loss, iterations=300)
    first, second = (loss_and_gradient(example, theta, o) for o in (tight, many))
    assert first[0] == pytest.approx(second[0], rel=1e-9)
    assert_allclose(first[1], second[1], atol=1e-8)


def test_converged_surrogate_likelihood_has_the_textbook_gradient() -> None:
    """phi(tau) - phi(Y), and the value log Z_rho - <theta, phi(Y)>."""
    rng = np.random.default_rng(2)
    example = tiny_example(rng)
    theta = 0.7 * rng.normal(size=14)
    chains = GridChains(example.features, 0.5, theta)
    chains.sweep(300)
    statistics, _ = chains.summarise(chains.marginals())
    observed = example.features.observed_statistics(example.labels)
    options = LossOptions("surrogate-likelihood", threshold=1e-12)
    value, gradient = loss_and_gradient(example, theta, options)
    assert value == pytest.approx(chains.upper_bound() - theta @ observed, abs=1e-8)
    assert_allclose(gradient, statistics - observed, atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 25.0])
def test_losses_without_coupling_agree_with_the_likelihood(scale: float) -> None:
    """Also where marginals round to 0 and 1: a loss of 40 nats for a false label was one of 691."""
    rng = np.random.default_rng(4)
    example = tiny_example(rng)
    theta = scale * rng.normal(size=14)
    theta[N_NODE:] = 0.0
    log_z = np.logaddexp.reduce(all_statistics(example.features) @ theta)
    expected = log_z - theta @ example.features.observed_statistics(example.labels)
    for loss in ("univariate-logistic", "surrogate-likelihood"):
        value, _ = loss_and_gradient(example, theta, LossOptions(loss))
        assert value == pytest.approx(expected, rel=1e-9), loss


def test_unknown_options_are_refused() -> None:
    with pytest.raises(InvalidProblemError, match="loss: expected one of"):
        LossOptions("hinge")
    with pytest.raises(InvalidProblemError, match="iterations: expected a whole number"):
        LossOptions(iterations=0)
    for sharpness in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidProblemError, match="sharpness"):
            LossOptions("smoothed-classification", sharpness=sharpness)
