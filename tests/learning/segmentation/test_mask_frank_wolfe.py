"""Learning to segment by walking: the same optimum, closer bounds at the end."""

import time
import weakref
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from engine.core.errors import StoppedError
from engine.core.status import Status
from engine.learning.segmentation.mask_learning import train_segmentation
from engine.objectives.grid_inner import GridSetInnerProblem
from engine.solvers.iterate import Iterate
from tests.learning.segmentation.leaf_pictures import leaves


@pytest.mark.parametrize("solver", ["frank-wolfe", "block-coordinate"])
def test_frank_wolfe_reaches_the_same_optimum(solver: str) -> None:
    """A heavy ridge brings the optimum into the interior, where Frank-Wolfe is quick enough."""
    images, masks = leaves(3, shape=(16, 20))
    reference = train_segmentation(images, masks, ridge=3e4, relative_gap=1e-6)
    walked = train_segmentation(
        images, masks, ridge=3e4, solver=solver, relative_gap=0.02, max_seconds=60
    )
    assert walked.result.status is Status.CONVERGED
    assert walked.result.relative_gap <= 0.02
    assert walked.result.objective >= reference.result.lower_bound
    assert walked.result.lower_bound <= reference.result.objective
    assert all(b.objective <= a.objective for a, b in pairwise(walked.result.trajectory))
    distance = np.linalg.norm(walked.model.theta - reference.model.theta)
    assert distance < 0.2 * np.linalg.norm(reference.model.theta)


def test_frank_wolfe_ends_at_once_when_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The closer bounds cost a solve of every picture: not for somebody who asked to stop."""
    images, masks = leaves(3, shape=(16, 20))
    reports: list[Any] = []
    options: dict[str, Any] = {"ridge": 3e4, "solver": "frank-wolfe", "relative_gap": 1e-9}
    solved: list[int] = []
    solve = GridSetInnerProblem.maximise

    def counted(problem: Any, *words: Any) -> Any:
        solved.append(1)
        return solve(problem, *words)

    monkeypatch.setattr(GridSetInnerProblem, "maximise", counted)
    stopped = train_segmentation(
        images,
        masks,
        on_progress=reports.append,
        should_stop=lambda: len(reports) == 3,
        **options,
    )
    assert stopped.result.status is Status.CANCELLED
    assert not solved
    limited = train_segmentation(images, masks, max_seconds=0.05, **options)
    assert limited.result.status is Status.TIME_LIMIT
    assert solved


def test_a_stop_while_frank_wolfe_seeks_closer_bounds_leaves_it_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stopped(problem: Any, *words: Any) -> Any:
        raise StoppedError("Learning was stopped.")

    images, masks = leaves(3, shape=(16, 20))
    options: dict[str, Any] = {"ridge": 3e4, "solver": "frank-wolfe", "relative_gap": 0.05}
    monkeypatch.setattr(GridSetInnerProblem, "maximise", stopped)
    result = train_segmentation(images, masks, **options).result
    assert result.status is Status.CONVERGED
    assert 0.0 < result.relative_gap <= 0.05


def test_the_seconds_of_frank_wolfe_include_those_of_its_closer_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve = GridSetInnerProblem.maximise

    def slow(problem: Any, *words: Any) -> Any:
        time.sleep(0.3)
        return solve(problem, *words)

    images, masks = leaves(3, shape=(16, 20))
    options: dict[str, Any] = {"ridge": 3e4, "solver": "frank-wolfe", "relative_gap": 0.05}
    monkeypatch.setattr(GridSetInnerProblem, "maximise", slow)
    result = train_segmentation(images, masks, **options).result
    assert result.seconds >= result.trajectory[-1].seconds + 0.3


@pytest.mark.parametrize("solver", ["frank-wolfe", "block-coordinate"])
def test_the_points_are_gone_before_closer_bounds_are_sought(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two budgets of memory were in use at once: that of the points and that of the messages."""
    points: list[weakref.ref[Iterate]] = []
    begin, make = Iterate.begin, GridSetInnerProblem.__init__

    def begun(iterate: Iterate) -> None:
        points.append(weakref.ref(iterate))
        begin(iterate)

    def made(problem: GridSetInnerProblem, *words: Any, **options: Any) -> None:
        assert points
        assert all(iterate() is None for iterate in points)
        make(problem, *words, **options)

    monkeypatch.setattr(Iterate, "begin", begun)
    monkeypatch.setattr(GridSetInnerProblem, "__init__", made)
    train_segmentation(*leaves(3, shape=(16, 20)), ridge=3e4, solver=solver, relative_gap=0.05)
