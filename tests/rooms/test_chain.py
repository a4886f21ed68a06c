"""Frequencies of the chain against sums over all placements."""

import numpy as np
import pytest

from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.datasets.roster_sampler import capacities_for, sample_roster
from engine.rooms.chain import share_probabilities
from tests.reference.room_placements import assignments, group_value


def exact_shares(scores: np.ndarray, capacities: tuple[int, ...]) -> np.ndarray:
    """P(i and j share a room) by enumeration, rooms all full."""
    n = len(scores)
    total, shares = 0.0, np.zeros((n, n))
    for rooms in assignments(capacities, n):
        groups = [tuple(np.flatnonzero(np.array(rooms) == r)) for r in range(len(capacities))]
        weight = np.exp(sum(group_value(scores, g) for g in groups if g))
        total += weight
        shares += weight * (np.array(rooms)[:, None] == np.array(rooms))
    return shares / total


@pytest.mark.parametrize("capacities", [(3, 3), (2, 3, 1), (2, 2, 2)])
def test_frequencies_are_those_of_all_placements(capacities: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(6, 6))
    scores = scores + scores.T
    exact = exact_shares(scores, capacities)
    room = np.repeat(np.arange(len(capacities)), capacities)
    pairs = np.column_stack(np.triu_indices(6, 1))
    found = share_probabilities(
        scores,
        Rooms(
            tuple(map(str, capacities))
            if len(set(capacities)) == 3
            else tuple("abc"[: len(capacities)]),
            np.array(capacities),
        ),
        room,
        pairs=pairs,
        standard_error=0.01,
        max_seconds=300,
    )
    difference = np.abs(found.probabilities - exact[pairs[:, 0], pairs[:, 1]])
    assert found.standard_errors.max() <= 0.01
    assert (difference <= 4.5 * found.standard_errors).all()
    assert found.has_mixed


def test_rules_hold_in_every_draw() -> None:
    rules = RoomRules(locks=((0, 1),), forbids=((2, 3),))
    found = share_probabilities(
        np.zeros((6, 6)),
        Rooms(("a", "b"), np.array([3, 3])),
        np.array([0, 0, 0, 1, 1, 1]),
        rules,
        pairs=np.array([[0, 1], [2, 3], [0, 2]]),
        max_seconds=300,
    )
    assert found.probabilities[0] == 1.0
    assert found.probabilities[1] == 0.0
    # The third bed beside the two: anybody, but 2 and 3 are then apart only if one of them has it.
    assert found.probabilities[2] == pytest.approx(0.5, abs=5 * found.standard_errors[2])


def test_a_drawn_roster_fills_its_rooms_and_prefers_high_scores() -> None:
    rng = np.random.default_rng(2)
    side = np.repeat([0, 1], 30)
    scores = np.where(side[:, None] == side, 4.0, 0.0)
    sample = sample_roster(scores, capacities_for(60, (3,)), rng=rng)
    assert sample.has_mixed
    assert (np.bincount(sample.room) == 3).all()
    alike = sum(len(set(side[sample.room == r])) == 1 for r in range(20))
    assert alike >= 15
    assert capacities_for(7, (2, 3)).tolist() == [2, 3, 2]
