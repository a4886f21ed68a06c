"""Placements against enumeration, and what the certificate promises."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.core.arguments import FloatArray
from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.progress import Progress
from engine.core.status import Status
from engine.crf.room_rules import Designation, Need, Preference, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.rooms.placement import place_in_rooms
from engine.rooms.pricing import Priced, Pricer
from tests.reference.room_placements import best_by_enumeration, best_of_nested, group_value

CASES = range(22)


def random_scores(rng: np.random.Generator, n: int) -> FloatArray:
    """Symmetric scores; every third draw is rounded, for ties."""
    scores = rng.normal(size=(n, n))
    scores = scores + scores.T
    return np.round(scores) if rng.random() < 0.3 else scores


def named_rooms(capacities: list[int], **attributes: tuple[str, ...]) -> Rooms:
    return Rooms(tuple(f"R{k}" for k in range(len(capacities))), np.array(capacities), attributes)


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_best_of_all_placements_under_every_kind_of_soft_rule(case: int) -> None:
    rng = np.random.default_rng(case)
    n = int(rng.integers(1, 8))
    capacities: list[int] = []
    while sum(capacities) < n + rng.integers(0, 3):
        capacities.append(int(rng.integers(1, 5)))
    scores = random_scores(rng, n)
    previous = np.array([k % len(capacities) if k < len(capacities) else -1 for k in range(n)])
    price = float(rng.choice([0.0, 0.7]))
    halls = tuple(rng.choice(["East", "West"], size=len(capacities)).tolist())
    wishes = tuple(
        Request(int(a), int(b), weight=0.8) for a, b in [rng.permutation(n)[:2]] * (n > 1)
    )
    likes = tuple(Preference(k, "hall", ("West", "East"), 0.5) for k in range(0, n, 2))

    def worth(members: tuple[int, ...], room: int) -> float:
        total = group_value(scores, members)
        total += sum(w.weight for w in wishes if {w.student, w.wants} <= set(members))
        total -= price * sum(previous[k] not in (-1, room) for k in members)
        return total + sum(0.5 if halls[room] == "West" else 0.25 for k in members if k % 2 == 0)

    found = place_in_rooms(
        scores,
        named_rooms(capacities, hall=halls),
        RoomRules(requests=wishes, preferences=likes),
        previous=previous,
        move_cost=price,
        gap=1e-9,
        max_seconds=None,
    )
    best = best_by_enumeration(worth, tuple(capacities), n)
    assert found.weight == pytest.approx(best, abs=1e-9)
    assert found.upper_bound >= best - 1e-9
    assert found.status is Status.CONVERGED
    assert (np.bincount(found.room, minlength=len(capacities)) <= capacities).all()
    assert found.n_moved == sum(previous[k] not in (-1, found.room[k]) for k in range(n))


def test_groups_too_many_to_look_at_do_not_keep_placements_from_being_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Prices went to ones that had been given up before, and stayed there until time was up."""
    search, looks = Pricer.search, 0

    def give_up(self: Pricer, *args: Any, **options: Any) -> Priced:
        found = search(self, *args, **options)
        return replace(found, is_whole=False, bound=np.inf) if options["is_exact"] else found

    def should_stop() -> bool:
        nonlocal looks
        looks += 1
        return looks > 5_000

    monkeypatch.setattr(Pricer, "search", give_up)
    scores = np.random.default_rng(0).normal(size=(70, 70))
    rooms = named_rooms([3, 4] * 10)
    found = place_in_rooms(scores + scores.T, rooms, max_seconds=None, should_stop=should_stop)
    assert found.status is Status.CONVERGED  # by cuts, after a dive
    assert found.weight <= found.upper_bound


@pytest.mark.parametrize("case", CASES)
def test_hard_rules_hold_and_cost_no_more_than_they_must(case: int) -> None:
    rng = np.random.default_rng(100 + case)
    n, capacities = 7, [1, 2, 3, 3]
    scores = random_scores(rng, n)
    a, b, c, d, e = (int(k) for k in rng.permutation(n)[:5])
    halls = ("East", "East", "West", "West")
    rules = RoomRules(
        locks=((a, b),),
        forbids=((c, d), (a, c)),
        assigned=((e, 3),),
        needs=(Need(d, "hall", "east"),),
        must_fill=bool(case % 2),
    )

    def worth(members: tuple[int, ...], room: int) -> float:
        inside = set(members)
        broken = len(inside & {a, b}) == 1 or {c, d} <= inside or {a, c} <= inside
        broken |= (e in inside and room != 3) or (d in inside and halls[room] != "East")
        broken |= rules.must_fill and len(inside) < capacities[room]
        return -np.inf if broken else group_value(scores, members)

    best = best_by_enumeration(worth, tuple(capacities), n)
    found = place_in_rooms(
        scores, named_rooms(capacities, hall=halls), rules, gap=1e-9, max_seconds=None
    )
    assert found.weight == pytest.approx(best, abs=1e-9)
    assert found.upper_bound >= best - 1e-9
    by_room = [tuple(np.flatnonzero(found.room == r).tolist()) for r in range(4)]
    assert all(worth(m, r) > -np.inf for r, m in enumerate(by_room) if m)


def test_too_few_beds_are_said_before_any_work() -> None:
    with pytest.raises(
        InfeasibleError, match="5 students need a bed, and the rooms that they may have hold 4"
    ) as error:
        place_in_rooms(np.zeros((5, 5)), named_rooms([2, 2]))
    assert error.value.conflicts[0].kind == "too_few_beds"


def test_who_cannot_have_a_bed_is_left_out_when_that_is_allowed() -> None:
    scores = np.ones((5, 5))
    found = place_in_rooms(scores, named_rooms([2, 2]), allow_unplaced=True, gap=1e-9)
    assert len(found.unplaced) == 1
    assert found.weight == pytest.approx(2.0)
    assert found.upper_bound == pytest.approx(2.0)


def test_doubles_alone_are_the_pairs_and_the_proof_of_the_matching_oracle() -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(80, 80))
    scores = scores + scores.T
    matching = CompleteGraphMatcher().solve(scores)
    found = place_in_rooms(scores, named_rooms([2] * 40), gap=1e-12, max_seconds=None)
    together = found.room[matching.pairs]
    assert (together[:, 0] == together[:, 1]).all()
    assert found.weight == pytest.approx(matching.weight, abs=1e-9)
    assert found.upper_bound == pytest.approx(matching.upper_bound, abs=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_thirty_people_in_a_mix_agree_with_the_whole_model_solved_by_highs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, beds, counts = 30, [1, 2, 3, 4], np.array([2, 5, 4, 2])
    scores = rng.normal(size=(n, n))
    scores = scores + scores.T
    forbids = tuple((int(a), int(b)) for a, b in rng.integers(n, size=(6, 2)) if a != b)
    wishes = tuple(Request(k, k + 7, weight=0.6) for k in range(8))
    groups, kinds, values = [], [], []
    for size in range(1, 5):
        for group in combinations(range(n), size):
            inside = set(group)
            if any({a, b} <= inside for a, b in forbids):
                continue
            worth = group_value(scores, group)
            worth += sum(0.6 for w in wishes if {w.student, w.wants} <= inside)
            if size == 4 and worth < 2.0:
                continue  # far below what four people are worth in pairs: never chosen
            groups.append(group)
            kinds.append(size)
            values.append(worth)
    # A group of s people may take a room of s beds or more: count rooms by "at least".
    whole = best_of_nested(groups, np.array(kinds), np.array(values), n, counts)
    capacities = [c for c, count in zip(beds, counts, strict=True) for _ in range(count)]
    rules = RoomRules(forbids=forbids, requests=wishes)
    found = place_in_rooms(scores, named_rooms(capacities), rules, gap=1e-9, max_seconds=None)
    assert found.weight == pytest.approx(whole, abs=1e-6)
    assert found.upper_bound >= whole - 1e-6


def test_a_killed_run_goes_on_from_its_checkpoint_and_refuses_another_input(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(60, 60))
    scores = scores + scores.T
    rooms = named_rooms([3] * 20)
    reports: list[Progress] = []
    place = FileCheckpoint(tmp_path / "rooms.npz")
    first = place_in_rooms(
        scores,
        rooms,
        gap=1e-12,
        max_seconds=None,
        on_progress=reports.append,
        should_stop=lambda: len(reports) > 2,
        checkpoint=place,
    )
    assert first.status is Status.CANCELLED
    assert place.load() is not None
    again: list[Progress] = []
    second = place_in_rooms(
        scores, rooms, gap=0.01, max_seconds=None, on_progress=again.append, checkpoint=place
    )
    assert again[0].lower_bound is not None
    assert again[0].lower_bound >= first.weight - 1e-9
    assert second.weight >= first.weight - 1e-9
    with pytest.raises(InvalidProblemError, match="checkpoint"):
        place_in_rooms(scores + 1.0, rooms, checkpoint=place)


@pytest.mark.parametrize("capacity", [3, 8])
def test_a_crowd_of_identical_people_is_placed_and_proved_at_once(capacity: int) -> None:
    found = place_in_rooms(np.ones((240, 240)), named_rooms([capacity] * (240 // capacity)))
    assert found.weight == pytest.approx(120.0)
    assert found.relative_gap <= 0.005


@pytest.mark.parametrize("n", [0, 1])
def test_nobody_and_one_person_are_placed_too(n: int) -> None:
    found = place_in_rooms(np.zeros((n, n)), named_rooms([8, 1]))
    assert len(found.room) == n
    assert found.weight == 0.0
    assert 0.0 <= found.upper_bound <= 1e-8
    assert all(0 <= pair[0] <= pair[1] for pair in combinations(found.room.tolist(), 2))


@pytest.mark.parametrize("scale", [1e9, 1e305])
def test_scores_too_large_to_tell_from_never_are_refused(scale: float) -> None:
    """They were cut at -1e7 in exchanges, and what came out was called proved all the same."""
    scores = np.array([[0.0, 1.0, -3.0], [1.0, 0.0, -2.0], [-3.0, -2.0, 0.0]])
    rooms = Rooms(("A", "B"), np.array([2, 1]))
    with pytest.raises(InvalidProblemError, match="scores: expected at most 100,000 nats"):
        place_in_rooms(scores * scale, rooms)
    with pytest.raises(InvalidProblemError, match="move_cost: expected at most 100,000 nats"):
        place_in_rooms(scores, rooms, previous=np.array([0, 1, 0]), move_cost=scale)
    largest = place_in_rooms(scores * 3e4, rooms, gap=1e-9)
    assert largest.weight == pytest.approx(3e4)
    assert largest.status is Status.CONVERGED


@pytest.mark.parametrize("woman", ["F", "W", "female", "no"])
def test_rooms_for_anybody_are_not_taken_for_those_of_women(woman: str) -> None:
    """An "F" was once read as "false", as a blank is: men were kept out of rooms for anybody."""
    rooms = named_rooms([2, 2, 1, 1], who=(woman, "M", "", "any"))
    rules = RoomRules(designations=(Designation("who", "Gender"),), same=("Gender",))
    genders = (woman, woman, "M", "M", "M", woman)
    scores = np.zeros((6, 6))
    found = place_in_rooms(scores, rooms, rules, attributes={"Gender": genders})
    assert sorted(found.room.tolist()) == [0, 0, 1, 1, 2, 3]
    halls = named_rooms([1, 1, 1], hall=("F", "N", "East"))
    likes = tuple(Preference(k, "hall", (hall,), 1.0) for k, hall in enumerate(("n", "East", "F")))
    found = place_in_rooms(np.zeros((3, 3)), halls, RoomRules(preferences=likes))
    assert found.room.tolist() == [1, 2, 0]


@pytest.mark.parametrize("case", ["too few beds", "dear moves"])
def test_the_gap_is_of_what_is_told_where_penalties_or_moves_are_dear(case: str) -> None:
    """The search ended at .2 % of all penalties: 14 % of what the placement was worth."""
    scores = np.random.default_rng(3).normal(size=(90, 90))
    few, all_of_them = named_rooms([3] * 10), named_rooms([3] * 32)
    reports: list[Progress] = []
    is_short = case == "too few beds"
    found = place_in_rooms(
        scores + scores.T,
        few if is_short else all_of_them,
        previous=None if is_short else np.append(np.repeat(np.arange(27), 3), [-1] * 9),
        move_cost=5.0,
        allow_unplaced=True,
        gap=1e-2,
        max_seconds=120.0,
        on_progress=reports.append,
    )
    assert found.status is Status.CONVERGED
    assert found.relative_gap <= 1e-2
    assert reports[-1].relative_gap == pytest.approx(found.relative_gap, abs=1e-9)
