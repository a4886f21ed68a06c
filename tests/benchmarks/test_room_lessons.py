"""Lessons from rosters at a small size: what is printed is computed as it says."""

import numpy as np
import pytest

from benchmarks.goals import room_lessons


@pytest.fixture(scope="module")
def years() -> room_lessons.Years:
    return room_lessons.simulate(90, 3, (3,), np.random.default_rng(0))


def test_weights_are_recovered_and_rank_nearly_as_the_truth(years: room_lessons.Years) -> None:
    model, lesson = room_lessons.learn(years, 20.0)
    assert lesson.correlation > 0.4
    assert lesson.auc > max(lesson.true_auc - 0.05, 0.5)
    told = room_lessons.judge_chances(years, model, 5.0)
    assert told.happened == 90  # three pairs in each of thirty rooms
    assert told.expected == pytest.approx(90.0, abs=1e-6)
    assert 0.0 < told.largest_error < 0.2


def test_levels_are_taken_out_wholly() -> None:
    level = np.random.default_rng(1).normal(size=12)
    scores = level + level[:, np.newaxis]
    left = room_lessons.without_levels(scores)
    assert np.abs(left[~np.eye(12, dtype=bool)]).max() < 1e-9


def test_the_price_of_triples_is_exact_where_it_can_be_counted() -> None:
    # Three couples of 6 nats, nobody else likes anybody: doubles score 18, two triples 3 + 3.
    scores = np.zeros((6, 6))
    for a in (0, 2, 4):
        scores[a, a + 1] = scores[a + 1, a] = 6.0
    low, high = room_lessons.price_of_triples(scores, 5.0)
    assert low == pytest.approx(12.0, abs=0.1)
    assert high == pytest.approx(12.0, abs=0.1)
    assert low <= 12.0 + 1e-9 <= high + 2e-9
