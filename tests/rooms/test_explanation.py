"""Explanations, moves, what-if, veto and parity of a placement."""

import numpy as np
import pytest

from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.crf.room_rules import Need, Preference, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.datasets.university import simulate_university
from engine.learning.roommates.model import make_roommate_model
from engine.rooms.changed_rules import what_if
from engine.rooms.explanation import (
    PlacementMoves,
    doubt_of_scores,
    explain_room,
    explain_roommates,
)
from engine.rooms.parity import placement_parity
from engine.rooms.placement import mean_scores, place_in_rooms
from engine.rooms.veto import veto_curve, vetoed_pairs

CAPACITIES = np.array([1, 2, 2, 3, 3, 4])
ROOMS = Rooms(tuple("ABCDEF"), CAPACITIES, {"hall": ("E", "E", "W", "W", "E", "W")})


def weight_of(scores, room, rules, previous, price):
    """The whole weight, from its definition."""
    total = float(np.nansum(mean_scores(scores, room)) / 2)
    total += sum(r.weight for r in rules.requests if room[r.student] == room[r.wants])
    for p in rules.preferences:
        hall = ROOMS.attributes["hall"][room[p.student]]
        if hall in p.values:
            total += p.weight * (len(p.values) - p.values.index(hall)) / len(p.values)
    return total - price * sum(
        previous[k] >= 0 and previous[k] != room[k] for k in range(len(room))
    )


def test_every_move_costs_what_the_weight_says() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(12, 12))
    scores = scores + scores.T
    room = np.array([0, 1, 1, 2, 3, 3, 3, 4, 4, 5, 5, 5])
    previous = np.array([0, 1, 2, 2, 3, 3, 3, -1, 4, 5, 5, 4])
    rules = RoomRules(
        requests=(Request(0, 1, weight=0.7), Request(9, 10, weight=0.4)),
        preferences=(Preference(4, "hall", ("E", "W"), 0.9),),
        forbids=((2, 3),),
        needs=(Need(8, "hall", "E"),),
    )
    moves = PlacementMoves(scores, ROOMS, room, rules, previous=previous, move_cost=0.3)
    now = weight_of(scores, room, rules, previous, 0.3)
    seen = 0
    for student in range(12):
        for move in moves.best(student, count=100):
            after = room.copy()
            after[student] = move.room
            if move.partner >= 0:
                after[move.partner] = room[student]
            assert move.change == pytest.approx(
                weight_of(scores, after, rules, previous, 0.3) - now, abs=1e-9
            )
            assert move.change_here + move.change_there == pytest.approx(move.change)
            assert (np.bincount(after, minlength=6) <= CAPACITIES).all()
            assert after[2] != after[3]
            assert after[8] in (0, 1, 4)
            seen += 1
        assert moves.best(student, count=3) == moves.best(student, count=100)[:3]
    assert seen > 80
    forbidden = moves.swap(8, 9)
    assert not forbidden.is_allowed
    with pytest.raises(InvalidProblemError, match="different rooms"):
        moves.swap(1, 2)


def test_a_room_is_taken_apart_to_what_it_counts() -> None:
    university = simulate_university(12, 1, rng=np.random.default_rng(1))
    survey = university.cohorts[0].survey
    model = make_roommate_model(university.theta, university.features, 100.0, 1.0)
    room = np.array([0, 1, 1, 2, 3, 3, 3, 4, 4, 5, 5, 5])
    found = explain_room(model, survey, room, 3)
    assert found.students == (4, 5, 6)
    assert found.score == pytest.approx(found.pair_scores.sum() / 2 / 2)
    assert found.weakest == found.students[int(np.argmin(found.student_means))]
    parts = explain_roommates(model, survey, room, 5)
    assert {k for k, _ in parts} == {4, 6}
    assert sum(p.score for _, p in parts) / 2 == pytest.approx(found.student_means[1])
    assert explain_room(model, survey, room, 0).score == 0.0
    with pytest.raises(InvalidProblemError, match="Nobody lives in room 9"):
        explain_room(model, survey, room, 9)


def test_doubt_is_one_where_sure_and_all_others_where_even() -> None:
    even = doubt_of_scores(np.zeros((6, 6)), np.zeros(6))
    assert even == pytest.approx(np.full(6, 5.0))
    sure = np.full((6, 6), -40.0)
    for k in (0, 2, 4):
        sure[k, k + 1] = sure[k + 1, k] = 0.0
    assert doubt_of_scores(sure, np.zeros(6)) == pytest.approx(np.ones(6), abs=1e-6)


def test_what_if_places_again_and_says_who_moves() -> None:
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(12, 12))
    scores = scores + scores.T
    room = place_in_rooms(scores, ROOMS, gap=1e-9, max_seconds=None).room
    pair = np.flatnonzero(room == room[0])
    other = int(pair[pair != 0][0]) if len(pair) > 1 else 1
    found = what_if(
        scores, ROOMS, room, forbid=((0, other),), max_seconds=300, probability_seconds=1
    )
    assert found.placement.room[0] != found.placement.room[other] or len(pair) == 1
    assert found.moved == tuple(np.flatnonzero(found.placement.room != room))
    assert found.score_change <= 1e-9
    moved = what_if(scores, ROOMS, room, move=((3, 5),), max_seconds=300)
    assert moved.placement.room[3] == 5
    with pytest.raises(InfeasibleError, match="are to share a room"):
        what_if(scores, ROOMS, room, lock=((0, 1),), forbid=((0, 1),))


def test_the_veto_keeps_to_its_false_alarm_rate() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(200, 200))
    scores = scores + scores.T
    pairs = np.arange(200).reshape(-1, 2)
    curve = veto_curve([(scores, pairs)])
    real = scores[pairs[:, 0], pairs[:, 1]]
    for rate in (0.0, 0.02, 0.1, 0.5):
        threshold = curve.threshold(rate)
        assert (real < threshold).mean() <= rate
        low, high = curve.interval(rate)
        assert low <= (real < threshold).mean() <= high
    vetoed = vetoed_pairs(scores, curve.threshold(0.1))
    assert all(scores[i, j] < curve.threshold(0.1) for i, j in vetoed)
    assert scores[vetoed[0]] == scores[np.triu_indices(200, 1)].min()
    room = np.arange(200) // 2
    here = vetoed_pairs(scores, curve.threshold(0.1), room)
    assert len(here) == (real < curve.threshold(0.1)).sum()
    with pytest.raises(InvalidProblemError, match="0 to 1"):
        curve.threshold(1.5)


def test_parity_marks_a_group_that_comes_off_worse_and_says_too_few() -> None:
    scores = np.zeros((60, 60))
    scores[:30, :30] = -2.0
    np.fill_diagonal(scores, 0.0)
    rooms = Rooms(tuple(f"R{k}" for k in range(30)), np.full(30, 2))
    groups = ["low"] * 28 + ["few"] * 2 + ["high"] * 30
    lanes = {"side": tuple(["a"] * 30 + ["b"] * 30)}
    rules = RoomRules(same=("side",), requests=(Request(0, 1), Request(40, 41)))
    placement = place_in_rooms(scores, rooms, rules, attributes=lanes, max_seconds=None)
    rows = placement_parity(
        placement, groups, rules, doubt=np.ones(60), vetoed=vetoed_pairs(scores, -1.0)
    )
    by = {(row.measure, row.group): row for row in rows}
    assert by["score", "low"].mean == pytest.approx(-2.0)
    assert by["score", "low"].is_outside
    assert by["score", "low"].difference < -1.5
    assert np.isnan(by["score", "few"].interval[0])
    assert not by["score", "few"].is_outside
    assert by["vetoes", "low"].mean == 1.0
    assert by["vetoes", "high"].mean == 0.0
    assert by["requests", "high"].count == 1
    assert not by["doubt", "low"].is_outside


def test_a_move_into_a_single_room_is_answered() -> None:
    """Nobody shares a room then, and the probabilities of no pair ended in an error."""
    rooms = Rooms(("A", "B"), np.array([2, 1]))
    room = np.array([0, 0])
    found = what_if(np.ones((2, 2)), rooms, room, move=((0, 1),), probability_seconds=1.0)
    assert found.moved == (0,)
    assert found.shared is not None
    assert len(found.shared.pairs) == 0
