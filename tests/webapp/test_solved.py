"""Solved placements that tests share."""

from typing import Any

import numpy as np
import pytest

from engine.core.progress import Progress
from engine.crf.rooms import Rooms
from tests.webapp import solved


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(solved, "_kept", {})
    found: list[Any] = []
    place = solved.place_in_rooms

    def counted(*problem: Any, **options: Any) -> Any:
        found.append(problem)
        return place(*problem, **options)

    monkeypatch.setattr(solved, "place_in_rooms", counted)
    return found


def problem(seed: int) -> tuple[Any, ...]:
    scores = np.random.default_rng(seed).random((6, 6))
    return scores + scores.T, Rooms(("A", "B"), np.array([3, 3]))


def test_a_problem_is_solved_once_and_its_reports_are_repeated(calls: list[Any]) -> None:
    answers, reports = [], []
    for seed in (1, 1, 2):
        seen: list[Progress] = []
        answers.append(
            solved.place_once(*problem(seed), on_progress=seen.append, should_stop=lambda: False)
        )
        reports.append(seen)
    assert len(calls) == 2
    assert answers[0] is answers[1]
    assert reports[0] == reports[1] != []
    assert answers[2].room.tolist() != answers[0].room.tolist()


def test_other_options_are_another_problem(calls: list[Any]) -> None:
    for gap in (0.0, 0.5):
        solved.place_once(*problem(1), gap=gap, should_stop=lambda: False)
    assert len(calls) == 2


def test_a_run_that_is_stopped_is_neither_kept_nor_answered_from_what_is_kept(
    calls: list[Any],
) -> None:
    assert not solved.place_once(*problem(1), should_stop=lambda: True).is_repeatable
    assert solved.place_once(*problem(1), should_stop=lambda: False).is_repeatable
    assert not solved.place_once(*problem(1), should_stop=lambda: True).is_repeatable
    assert len(calls) == 3
