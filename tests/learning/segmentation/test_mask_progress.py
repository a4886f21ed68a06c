"""Looks at held-out pictures: seldom if they are dear, warm, several at a time."""

import threading
from typing import Any

import numpy as np
import pytest

from engine.core.progress import Progress
from engine.core.status import Status
from engine.learning.segmentation import mask_progress
from engine.learning.segmentation.mask_progress import (
    PREVIEW_PATIENCE,
    HeldOutPictures,
    SegmentationReporter,
)
from engine.objectives.grid_chains import GridChains
from engine.solvers.result import LearningResult
from tests.reference.tiny_grids import tiny_example

PATIENCE = 60.0  # seconds; only a failure waits so long
EXAMPLES = [tiny_example(np.random.default_rng(seed)) for seed in range(3)]
THETA = np.random.default_rng(9).normal(size=14)


def result(status: Status, theta: np.ndarray = THETA) -> LearningResult:
    return LearningResult(theta, 1.0, 0.0, True, 1, 1, 1.0, status, ())


class Clock:
    """A clock that a look at one picture moves on by a second."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def predict(self, features: Any, *words: Any) -> Any:
        self.now += 1.0
        return np.zeros(features.shape), True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(mask_progress, "wall_seconds", clock)
    monkeypatch.setattr(mask_progress, "predict_marginals", clock.predict)
    return clock


def test_held_out_pictures_rest_in_proportion_to_what_they_cost(clock: Clock) -> None:
    """All were looked at for every report, which with many of them was most of the time."""
    reports: list[Any] = []
    reporter = SegmentationReporter(EXAMPLES, 0.5, reports.append)
    reporter.theta = THETA
    reporter(Progress("", iteration=0))
    assert clock.now == 103.0
    clock.now += 3.0 * PREVIEW_PATIENCE - 0.5
    reporter(Progress("", iteration=1))
    clock.now += 1.0
    reporter(Progress("", iteration=2))
    assert [report.preview is not None for report in reports] == [True, False, True]
    assert [len(reports[k].preview.marginals) for k in (0, 2)] == [2, 2]


@pytest.mark.parametrize("status", [Status.CONVERGED, Status.TIME_LIMIT, Status.CANCELLED])
def test_the_final_parameters_are_looked_at_once(clock: Clock, status: Status) -> None:
    reports: list[Any] = []
    reporter = SegmentationReporter(EXAMPLES, 0.5, reports.append)
    reporter.theta = THETA
    reporter(Progress("", iteration=0))
    reporter.finish(result(status))
    assert len(reports) == 1
    reporter(Progress("", iteration=1))
    reporter.finish(result(status, THETA + 1.0))  # the best are not always those looked at last
    assert [report.iteration for report in reports] == [0, 1] + [1] * (
        status is not Status.CANCELLED
    )
    assert (reports[-1].preview is None) == (status is Status.CANCELLED)


def test_whoever_asks_to_stop_does_not_wait_for_held_out_pictures(clock: Clock) -> None:
    reports: list[Any] = []
    reporter = SegmentationReporter(EXAMPLES, 0.5, reports.append, lambda: True)
    reporter.theta = THETA
    reporter(Progress("", iteration=0))
    assert clock.now == 100.0
    assert [report.preview for report in reports] == [None]


def test_a_second_look_goes_on_from_the_messages_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sweeps: list[int] = []
    sweep = GridChains.sweep

    def counted(chains: GridChains, count: int) -> float:
        sweeps.append(count)
        return sweep(chains, count)

    monkeypatch.setattr(GridChains, "sweep", counted)
    held_out = HeldOutPictures(EXAMPLES, 0.5, threads=1)
    cold = held_out.look(THETA)
    before = len(sweeps)
    warm = held_out.look(THETA)
    assert before > len(EXAMPLES)
    assert len(sweeps) - before == len(EXAMPLES)
    assert warm.error == cold.error
    assert np.allclose(warm.marginals[0], cold.marginals[0], atol=1e-4)


def test_two_held_out_pictures_are_looked_at_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    barrier, predict = threading.Barrier(2), mask_progress.predict_marginals

    def meet(*words: Any) -> Any:
        barrier.wait(PATIENCE)
        return predict(*words)

    monkeypatch.setattr(mask_progress, "predict_marginals", meet)
    assert HeldOutPictures(EXAMPLES[:2], 0.5, threads=2).look(THETA).error >= 0.0
