"""Learning to segment: certificates hold, stops and limits are heard, bad input is refused."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.status import Status
from engine.learning.segmentation import mask_learning
from engine.learning.segmentation.example_store import ExampleStore
from engine.learning.segmentation.labelled_pictures import labelled_pictures
from engine.learning.segmentation.marginal_fitting import fit_marginals
from engine.learning.segmentation.mask_learning import train_segmentation
from engine.learning.segmentation.mask_solvers import subset_sizes
from engine.learning.segmentation.prediction import evaluate_mask, predict_segmentation
from engine.objectives.grid_chains import GridChains
from engine.objectives.marginal_losses import LossOptions
from engine.solvers.control import Limits
from tests.learning.segmentation.leaf_pictures import leaves


def make_examples(images: Any, masks: Any) -> ExampleStore:
    """The pictures as they are learned from, at most 200 pixels wide or high."""
    store = ExampleStore(None)
    for picture in labelled_pictures(images, masks, 200):
        store.append(picture.colours, picture.labels)
    return store


def test_it_learns_to_tell_leaves_from_soil(trained: Any) -> None:
    images, masks = leaves(3, seed=9)
    for image, mask in zip(images, masks, strict=True):
        errors = evaluate_mask(predict_segmentation(trained.model, image), mask)
        assert errors.error_map < 0.1
        assert errors.error_mpm < 0.1
        assert errors.iou > 0.6
        assert errors.log_loss < 0.3


def test_the_certificate_brackets_the_optimum(trained: Any) -> None:
    """The parameters' own log-likelihood lies between the two bounds."""
    assert trained.result.status is Status.CONVERGED
    assert trained.result.relative_gap <= 1e-4
    assert trained.result.duality_gap == trained.result.objective - trained.result.lower_bound
    total = -0.5 * trained.model.ridge * trained.model.theta @ trained.model.theta
    for example in make_examples(*leaves(5)):
        chains = GridChains(example.features, 0.5, trained.model.theta)
        chains.sweep(200)
        observed = example.features.observed_statistics(example.labels)
        total += trained.model.theta @ observed - chains.upper_bound()
    slack = 1e-6 * abs(total)
    assert trained.result.lower_bound - slack <= total <= trained.result.objective + slack


def test_likelihood_by_l_bfgs_finds_the_same_parameters() -> None:
    """The competitor's converged surrogate likelihood is the same convex problem."""
    images, masks = leaves(2, shape=(16, 20))
    ours = train_segmentation(images, masks, ridge=30.0, relative_gap=1e-7)
    options = LossOptions("surrogate-likelihood", threshold=1e-9)
    theirs = fit_marginals(
        make_examples(images, masks), options, ridge=ours.model.ridge, max_iterations=400
    )
    assert theirs.objective == pytest.approx(-ours.result.lower_bound, rel=1e-4)
    assert_allclose(theirs.theta, ours.model.theta, atol=0.02 * np.abs(ours.model.theta).max())


def test_reports_carry_the_error_and_the_marginals_of_held_out_pictures() -> None:
    reports: list[Any] = []
    train_segmentation(*leaves(14), holdout=leaves(3, seed=4), on_progress=reports.append)
    assert reports[-1].preview is not None
    previews = [report.preview for report in reports if report.preview is not None]
    assert all(len(preview.marginals) == 2 for preview in previews)
    assert previews[-1].marginals[0].shape == (48, 64)
    assert previews[-1].error < 0.1 < previews[0].error
    rehearsals = [report for report in reports if report.sentence.startswith("Rehearsing")]
    assert rehearsals
    assert all(report.objective is None and report.fraction is None for report in rehearsals)
    iterations = [report.iteration for report in reports]
    assert iterations == sorted(iterations)
    bounds = [report for report in reports if report.objective is not None]
    assert bounds[-1].objective >= bounds[-1].lower_bound
    assert bounds[-1].relative_gap <= 1e-3
    seconds = [report.seconds for report in reports]
    assert seconds == sorted(seconds)


def test_a_stop_is_heard() -> None:
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls > 30

    try:
        result = train_segmentation(*leaves(3), relative_gap=1e-12, should_stop=stop)
    except StoppedError:
        return
    assert result.result.status is Status.CANCELLED


def test_a_stop_in_a_rehearsal_never_passes_for_a_result() -> None:
    """The bounds of a subset are not those of the whole problem."""
    reports: list[Any] = []

    def stop() -> bool:
        return len(reports) >= 3

    with pytest.raises(StoppedError):
        train_segmentation(*leaves(14), on_progress=reports.append, should_stop=stop)
    assert all(report.objective is None for report in reports)


def test_a_time_limit_is_no_convergence() -> None:
    result = train_segmentation(*leaves(3), relative_gap=1e-12, max_seconds=0.05)
    assert result.result.status is Status.TIME_LIMIT
    assert result.result.objective >= result.result.lower_bound


def test_one_picture_is_enough_and_tiny_ones_do_no_harm() -> None:
    images, masks = leaves(1, shape=(30, 30))
    dots = [np.zeros((1, 1, 3), np.uint8), np.zeros((1, 40, 3), np.uint8)]
    more = [np.ones((1, 1), bool), np.zeros((1, 40), bool)]
    result = train_segmentation(images + dots, masks + more)
    assert result.result.relative_gap <= 1e-3
    for dot in dots:
        assert predict_segmentation(result.model, dot).mask.shape == dot.shape[:2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"masks": []}, "image 1 has no mask"),
        ({"images": leaves(2)[0]}, "mask 3 has no image"),
        ({"images": [], "masks": []}, "no labelled images"),
        ({"masks": [np.zeros((48, 64), bool)] * 5}, "No mask marks any pixel"),
        ({"masks": [np.ones((48, 64), bool)] * 5}, "mark every pixel"),
        ({"masks": [np.zeros((9, 9), bool)] * 5}, "image 1: expected a mask"),
        ({"ridge": 0.0}, "ridge"),
        ({"ridge": float("nan")}, "ridge"),
        ({"relative_gap": 0.0}, "relative_gap"),
        ({"relative_gap": -1.0}, "relative_gap"),
        ({"relative_gap": float("nan")}, "relative_gap"),
        ({"max_seconds": -1.0}, "max_seconds"),
        ({"max_seconds": float("nan")}, "max_seconds"),
        ({"rho": 0.7}, "rho"),
        ({"max_side": 4}, "max_side"),
        ({"solver": "magic"}, "solver"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], words: str) -> None:
    images, masks = leaves(5)
    arguments: dict[str, Any] = {"images": images, "masks": masks} | change
    with pytest.raises(InvalidProblemError, match=words):
        train_segmentation(**arguments)


def test_growing_subsets_end_with_everything() -> None:
    assert subset_sizes(1) == (1,)
    assert subset_sizes(12) == (12,)
    assert subset_sizes(200) == (6, 19, 62, 200)


def test_reading_counts_towards_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of one minute ran for nearly three: reading the pictures was not counted."""
    seen, clock = [], iter([100.0, 142.0])

    def solve(task: Any, limits: Limits, *_: Any) -> None:
        seen.append(limits.max_seconds)
        raise StoppedError("seen")

    monkeypatch.setattr(mask_learning, "solve_in_theta", solve)
    monkeypatch.setattr(mask_learning, "wall_seconds", lambda: next(clock))
    for limit in (60.0, 30.0):
        clock = iter([100.0, 142.0])
        with pytest.raises(StoppedError):
            train_segmentation(*leaves(2), max_seconds=limit)
    assert seen == [18.0, 0.0]
