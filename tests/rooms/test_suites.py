"""Suites: the division among rooms against brute force, exchanges, and whom a suite is for."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Designation, Need, RoomRules, Rooms, place_in_rooms
from engine.core.arguments import FloatArray, IntArray
from engine.rooms.placement import mean_scores
from engine.rooms.suite_classes import classes_of_suites
from engine.rooms.suites import apart_in_suites, arrange_in_suites, suite_score


def scores_of(n: int, seed: int) -> FloatArray:
    draws = np.random.default_rng(seed).normal(size=(n, n))
    matrix = draws + draws.T
    np.fill_diagonal(matrix, 0.0)
    return matrix


def value(scores: FloatArray, room: IntArray, suite_of: IntArray, weight: float) -> float:
    """Value of rooms and suites, straight from the definition."""
    inside = float(np.nansum(mean_scores(scores, room))) / 2.0
    beside = 0.0
    for student, own in enumerate(room.tolist()):
        mates = [
            other
            for other, there in enumerate(room.tolist())
            if min(own, there) >= 0
            and there != own
            and suite_of[own] >= 0
            and suite_of[own] == suite_of[there]
        ]
        if mates:
            beside += float(scores[student, mates].mean()) / 2.0
    return inside + weight * beside


def nobody_apart(n: int) -> np.ndarray:
    return np.zeros((n, n), dtype=bool)


@settings(max_examples=60, deadline=None)
@given(
    capacities=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    seed=st.integers(0, 10_000),
    weight=st.sampled_from([0.01, 0.25, 1.0]),
    data=st.data(),
)
def test_a_suite_is_divided_as_well_as_by_brute_force(
    capacities: list[int], seed: int, weight: float, data: st.DataObject
) -> None:
    n = data.draw(st.integers(2, min(sum(capacities), 6)))
    beds = [room for room, size in enumerate(capacities) for _ in range(size)]
    room = np.array(data.draw(st.permutations(beds))[:n], dtype=np.int64)
    assigned = ((0, int(room[0])),) if data.draw(st.booleans()) else ()
    scores, suite_of = scores_of(n, seed), np.zeros(len(capacities), dtype=np.int64)
    rooms = Rooms(tuple(f"R{k}" for k in range(len(capacities))), np.array(capacities))
    rules = RoomRules(assigned=assigned)
    found = arrange_in_suites(
        scores, {}, rooms, rules, room, suite_of, nobody_apart(n), weight=weight
    )
    best = max(
        value(scores, np.array(there), suite_of, weight)
        for there in product(range(len(capacities)), repeat=n)
        if all(there.count(k) <= size for k, size in enumerate(capacities))
        and all(there[student] == own for student, own in assigned)
    )
    assert value(scores, found.room, suite_of, weight) == pytest.approx(best)
    before = float(np.nansum(mean_scores(scores, room))) / 2.0
    after = float(np.nansum(mean_scores(scores, found.room))) / 2.0
    assert found.gain == pytest.approx(after - before)
    assert found.suite_score == pytest.approx(suite_score(scores, found.room, suite_of))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_exchanges_keep_beds_and_rules_and_never_lose(seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    capacities = rng.integers(1, 4, size=8)
    suite_of = np.array([0, 0, 0, 1, 1, -1, -1, 2], dtype=np.int64)
    beds = np.repeat(np.arange(8), capacities)
    n = int(rng.integers(6, len(beds) + 1))
    gender = tuple("FM"[k] for k in rng.integers(0, 2, size=n))
    scores = scores_of(n, seed)
    accessible = tuple("yes" if k % 3 == 0 else "no" for k in range(8))
    rooms = Rooms(tuple(f"R{k}" for k in range(8)), capacities, {"accessible": accessible})
    forbids = tuple({tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(2)})
    rules = RoomRules(forbids=forbids, same=("gender",), needs=(Need(0, "accessible"),))
    attributes = {"gender": gender}
    class_of = np.unique(gender, return_inverse=True)[1].astype(np.int64)
    classes = classes_of_suites(attributes, rooms, rules, suite_of, class_of)
    cells = ["" if s < 0 or classes[s] < 0 else "FM"[0] for s in suite_of]
    names = np.unique(gender)
    cells = ["" if s < 0 else str(names[classes[s]]) for s in suite_of]
    rooms = Rooms(rooms.ids, capacities, {"accessible": accessible, "suite is for": tuple(cells)})
    rules = RoomRules(
        forbids=forbids,
        same=("gender",),
        needs=rules.needs,
        designations=(Designation("suite is for", "gender"),),
    )
    placed = place_in_rooms(
        scores, rooms, rules, attributes=attributes, allow_unplaced=True, max_work=2.0
    )
    apart = apart_in_suites(n, forbids, [gender])
    weight = data.draw(st.sampled_from([0.0, 0.25, 1.0]))
    found = arrange_in_suites(
        scores, attributes, rooms, rules, placed.room, suite_of, apart, weight=weight
    )
    room = found.room
    assert (np.bincount(room[room >= 0], minlength=8) <= capacities).all()
    left = {student for student, _ in found.left_out}
    assert set(np.flatnonzero(room < 0).tolist()) == set(placed.unplaced) | left
    for i in range(n):
        for j in range(i + 1, n):
            if min(room[i], room[j]) < 0:
                continue
            one_suite = suite_of[room[i]] >= 0 and suite_of[room[i]] == suite_of[room[j]]
            if room[i] == room[j] or one_suite:
                assert gender[i] == gender[j]
                assert (i, j) not in forbids
    if room[0] >= 0:
        assert accessible[room[0]] == "yes"
    if not left and not apart[np.ix_(range(n), range(n))][_same_suite(placed.room, suite_of)].any():
        now = value(scores, room, suite_of, weight)
        assert now >= value(scores, placed.room, suite_of, weight) - 1e-9
    if not left:
        assert placed.weight + found.gain <= placed.upper_bound + 1e-6


def _same_suite(room: IntArray, suite_of: IntArray) -> np.ndarray:
    suite = np.where(room >= 0, suite_of[room], -1)
    return (suite[:, np.newaxis] == suite) & (suite >= 0)


def test_suites_gather_whole_rooms_without_a_change_of_their_scores() -> None:
    """Doubles that fit well stay doubles, and friends of two doubles get one suite."""
    scores = np.zeros((8, 8))
    for a, b in ((0, 1), (2, 3), (4, 5), (6, 7)):
        scores[a, b] = scores[b, a] = 5.0
    for a, b in ((0, 2), (4, 6)):
        scores[a, b] = scores[b, a] = 1.0
    rooms = Rooms(("A1", "A2", "B1", "B2"), np.array([2, 2, 2, 2]))
    suite_of = np.array([0, 0, 1, 1], dtype=np.int64)
    room = np.array([0, 0, 2, 2, 1, 1, 3, 3], dtype=np.int64)
    found = arrange_in_suites(
        scores, {}, rooms, RoomRules(), room, suite_of, nobody_apart(8), weight=0.25
    )
    assert found.gain == pytest.approx(0.0)
    assert suite_of[found.room[0]] == suite_of[found.room[2]]
    assert suite_of[found.room[4]] == suite_of[found.room[6]]
    assert found.suite_score == pytest.approx(1.0)


def test_suites_that_do_not_count_change_nothing_unless_a_pair_must_part() -> None:
    scores = scores_of(4, 1)
    rooms, suite_of = Rooms(("A", "B", "C"), np.array([2, 2, 2])), np.array([0, 0, -1])
    room = np.array([0, 1, 2, 2])
    for forbids in ((), ((0, 1),)):
        found = arrange_in_suites(
            scores,
            {},
            rooms,
            RoomRules(forbids=forbids),
            room,
            suite_of,
            apart_in_suites(4, forbids, []),
            weight=0.0,
        )
        assert not found.left_out
        assert (found.room.tolist() == room.tolist()) == (not forbids)
    assert suite_of[found.room[0]] != suite_of[found.room[1]]


def test_a_pair_that_cannot_be_parted_loses_one_bed_and_not_that_of_staff() -> None:
    rooms = Rooms(("A1", "A2"), np.array([1, 1]))
    apart = apart_in_suites(2, [(0, 1)], [])
    found = arrange_in_suites(
        np.zeros((2, 2)),
        {},
        rooms,
        RoomRules(assigned=((1, 1),), forbids=((0, 1),)),
        np.array([0, 1]),
        np.array([0, 0]),
        apart,
        weight=0.25,
    )
    assert found.left_out == ((0, 1),)
    assert found.room.tolist() == [-1, 1]


def test_classes_give_a_bed_to_as_many_as_can_have_one() -> None:
    """Six women and two men in four suites of two singles: three suites are for women."""
    gender = ("F",) * 6 + ("M",) * 2
    rooms = Rooms(tuple(f"R{k}" for k in range(8)), np.ones(8, dtype=np.int64))
    suite_of = np.repeat(np.arange(4), 2)
    class_of = np.array([0] * 6 + [1] * 2)
    classes = classes_of_suites({"gender": gender}, rooms, RoomRules(), suite_of, class_of)
    assert sorted(classes.tolist()) == [0, 0, 0, 1]
    kept = classes_of_suites(
        {"gender": gender}, rooms, RoomRules(assigned=((6, 0),)), suite_of, class_of
    )
    assert kept[0] == 1
    present = np.array([2, 3, 4, 5, 6, 7, 0, 1])
    again = classes_of_suites({"gender": gender}, rooms, RoomRules(), suite_of, class_of, present)
    assert again.tolist() == [1, 0, 0, 0]
    both = RoomRules(assigned=((0, 0), (6, 1)))
    assert classes_of_suites({}, rooms, both, suite_of, class_of)[0] == -1
