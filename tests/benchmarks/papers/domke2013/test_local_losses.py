"""Losses that need no inference: exact derivatives, and values by enumeration."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from benchmarks.papers.domke2013.local_losses import LOCAL_LOSSES, local_loss
from benchmarks.papers.domke2013.picture_losses import PaperOptions, loss_and_gradient
from engine.core.progress import never_stop
from engine.learning.segmentation.class_weights import fit_loss
from engine.learning.segmentation.marginal_fitting import fit_marginals
from tests.objectives.test_class_messages import all_scores, example, parameters
from tests.objectives.test_grid_losses import check_gradient
from tests.reference.tiny_grids import tiny_example


@pytest.mark.parametrize("loss", LOCAL_LOSSES)
@pytest.mark.parametrize("shape", [(6, 5), (3, 4), (1, 5), (4, 1)])
def test_gradients_of_masks_by_finite_differences(loss: str, shape: tuple[int, int]) -> None:
    check_gradient(PaperOptions(loss), shape, loss=loss_and_gradient)


@pytest.mark.parametrize("is_potts", [True, False])
@pytest.mark.parametrize("loss", LOCAL_LOSSES)
def test_gradients_of_label_maps_by_finite_differences(loss: str, is_potts: bool) -> None:
    one = example(5, 6, 3)
    theta = parameters(one, is_potts=is_potts, size=0.1)
    _, gradient = local_loss(one, theta, loss)
    for k in range(len(theta)):
        step = 1e-2 * np.eye(len(theta))[k]
        above, below = (local_loss(one, theta + s, loss)[0] for s in (step, -step))
        assert gradient[k] == pytest.approx((above - below) / 0.02, abs=5e-3), k


@pytest.mark.parametrize("loss", ["pseudolikelihood", "piecewise"])
def test_pairs_are_learned_from_a_start_without_any(loss: str) -> None:
    one = example(5, 6, 3)
    _, gradient = local_loss(one, one.features.layout.plain(), loss)
    assert (np.abs(gradient[-18:]) > 1e-4).all()


def test_pseudolikelihood_by_enumeration() -> None:
    rng = np.random.default_rng(3)
    mask = tiny_example(rng)
    theta = rng.normal(size=14)
    expected = 0.0
    for i, j in np.ndindex(3, 4):
        energies = []
        for value in (True, False):
            labels = mask.labels.copy()
            labels[i, j] = value
            energies.append(theta @ mask.features.observed_statistics(labels))
        own = energies[0] if mask.labels[i, j] else energies[1]
        expected += np.logaddexp(*energies) - own
    value, _ = local_loss(mask, theta, "pseudolikelihood")
    assert value == pytest.approx(expected, rel=1e-10)


def test_local_losses_are_those_of_whole_sums() -> None:
    one = example(2, 2, 3)
    whole = replace(one, labels=np.array([[0, 1], [2, 1]], dtype=np.uint8))
    theta = parameters(one, is_potts=False, size=0.5)
    labellings, scores = all_scores(whole, theta)
    expected = 0.0
    for place in np.ndindex(2, 2):
        others = np.ones((2, 2), dtype=bool)
        others[place] = False
        rows = (labellings[:, others] == whole.labels[others]).all(axis=1)
        own = (labellings == whole.labels).all(axis=(1, 2))
        expected += logsumexp(scores[rows]) - scores[own][0]
    value, _ = local_loss(whole, theta, "pseudolikelihood")
    assert value == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("loss", LOCAL_LOSSES)
def test_hidden_pixels_do_not_count(loss: str) -> None:
    one = example(3, 3, 3)
    hidden = replace(one, labels=np.full_like(one.labels, 255))
    value, gradient = local_loss(hidden, parameters(one, is_potts=False), loss)
    assert value == 0.0
    assert not gradient.any()


@pytest.mark.parametrize("loss", LOCAL_LOSSES)
def test_weights_are_learned_by_them(loss: str) -> None:
    masks = [tiny_example(np.random.default_rng(seed)) for seed in range(3)]
    found = fit_marginals(masks, PaperOptions(loss), ridge=1.0, loss=loss_and_gradient)
    slope = sum(local_loss(one, found.theta, loss)[1] for one in masks)
    assert_allclose(slope, -found.theta, atol=2e-3)
    maps = [example(5, 6, 3, seed=seed) for seed in range(3)]
    learned = fit_loss(
        maps, PaperOptions(loss), ridge=1.0, should_stop=never_stop, loss=loss_and_gradient
    )
    plain = maps[0].features.layout.plain()
    before, after = (
        sum(local_loss(one, theta, loss)[0] for one in maps) for theta in (plain, learned.theta)
    )
    assert after < before
