"""A bed for everybody who can have one comes before any score."""

from itertools import product

import numpy as np
import pytest

from engine.crf.room_rules import Designation, Need, Preference, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.bed_plan import BedDemand, BedPlanner
from engine.rooms.clock import SearchClock
from engine.rooms.exchange import Exchange
from engine.rooms.formulation import formulate
from engine.rooms.placement import place_in_rooms


def demand(sizes: list[int], beds: list[int], **given: object) -> BedDemand:
    n, t = len(sizes), len(beds)
    return BedDemand(
        np.array(sizes),
        np.asarray(given.get("key", np.zeros(n, dtype=np.int64))),
        np.asarray(given.get("is_alone", np.zeros(n, dtype=bool))),
        np.asarray(given.get("with_needs", np.zeros(n, dtype=np.int64))),
        np.asarray(given.get("choices", np.ones((t, n), dtype=bool)))
        & (np.array(sizes) <= np.array(beds)[:, None]),
        np.array(beds),
        np.ones(t, dtype=np.int64),
        bool(given.get("must_fill", False)),
    )


def most_by_enumeration(d: BedDemand) -> tuple[int, int]:
    """People with needs, then people, who can have a bed at most."""
    best = (0, 0)
    for rooms in product(range(-1, len(d.capacity)), repeat=len(d.sizes)):
        room = np.array(rooms)
        fine = True
        for t in range(len(d.capacity)):
            inside = np.flatnonzero(room == t)
            people = d.sizes[inside].sum()
            fine &= bool(people <= d.capacity[t] and d.choices[t, inside].all())
            fine &= len(set(d.key[inside].tolist())) <= 1
            fine &= not (len(inside) > 1 and d.is_alone[inside].any())
            fine &= not (d.must_fill and 0 < people < d.capacity[t])
        if fine:
            placed = room >= 0
            best = max(best, (int(d.with_needs[placed].sum()), int(d.sizes[placed].sum())))
    return best


@pytest.mark.parametrize("seed", range(60))
def test_the_plan_houses_as_many_as_can_be_housed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, t = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    d = demand(
        rng.integers(1, 4, size=n).tolist(),
        rng.integers(1, 6, size=t).tolist(),
        key=rng.integers(2, size=n),
        is_alone=rng.random(n) < 0.2,
        with_needs=(rng.random(n) < 0.4).astype(np.int64),
        choices=rng.random((t, n)) < 0.7,
        must_fill=seed % 5 == 0,
    )
    plan = BedPlanner(d, SearchClock(None)).most()
    assert (plan.most_with_needs, plan.most_people) == most_by_enumeration(d)


def test_nobody_with_a_need_is_left_out_for_several_without() -> None:
    """The only accessible room has four beds, and who needs it lives alone."""
    rooms = Rooms(("A", "B"), np.array([4, 1]), {"accessible": ("yes", "no")})
    rules = RoomRules(needs=(Need(0, "accessible"),), single=(0,))
    found = place_in_rooms(np.ones((5, 5)), rooms, rules, allow_unplaced=True)
    assert found.room[0] == 0
    assert len(found.unplaced) == 3
    assert (found.most_with_needs, found.most_placed) == (1, 2)


def test_who_has_a_bed_keeps_one_before_newcomers() -> None:
    rooms = Rooms(("A",), np.array([2]))
    scores = np.full((4, 4), -50.0)
    scores[2:, 2:] = 50.0  # newcomers who would do far better
    found = place_in_rooms(scores, rooms, previous=np.array([0, 0, -1, -1]), allow_unplaced=True)
    assert found.unplaced == (2, 3)


@pytest.mark.parametrize("seconds", [0.0, None])
def test_rooms_of_the_other_gender_are_joined_so_that_nobody_is_left_out(
    seconds: float | None,
) -> None:
    """People took a room each where that scored best, and the rest found beds of others only."""
    n = 240
    genders = {"Gender": tuple("FM"[k % 2] for k in range(n))}
    halls = tuple(("North", "South")[k % 2] for k in range(n // 2 + 6))
    rooms = Rooms(
        tuple(f"R{k}" for k in range(len(halls))),
        np.full(len(halls), 2),
        {"hall": halls, "who": tuple(("", "F", "M")[k % 3] for k in range(len(halls)))},
    )
    rng = np.random.default_rng(0)
    rules = RoomRules(
        designations=(Designation("who", "Gender"),),
        same=("Gender",),
        preferences=tuple(Preference(k, "hall", ("North",), 20.0) for k in range(n)),
        requests=tuple(Request(int(a), int(b)) for a, b in rng.integers(n, size=(30, 2)) if a != b),
    )
    scores = -5.0 + rng.normal(size=(n, n))
    found = place_in_rooms(
        scores + scores.T,
        rooms,
        rules,
        attributes=genders,
        max_seconds=seconds,
        max_work=1.0,
        allow_unplaced=True,
    )
    assert found.unplaced == ()
    assert found.most_placed == n


def test_a_never_pair_in_a_large_room_is_no_room_to_join() -> None:
    """Among seven roommates a never counted a seventh, above what was taken for allowed."""
    n = 8
    rooms = Rooms(("A", "B"), np.array([8, 8]))
    rules = RoomRules(forbids=tuple((0, k) for k in range(1, n)))
    problem = formulate(np.zeros((n, n)), {}, rooms, rules).problem
    exchange = Exchange(problem)
    exchange.start(np.array([exchange.outside, *[0] * (n - 1)]))
    exchange.place_greedily(np.random.default_rng(0))
    assert exchange.room_of[0] == 1
    assert exchange.is_allowed()


@pytest.mark.parametrize("seed", range(6))
def test_of_two_in_one_room_one_makes_way_for_a_need(seed: int) -> None:
    """Two were assigned the only double; a third needs one. Both once lost their bed, not one."""
    scores = np.random.default_rng(seed).normal(size=(4, 4))
    found = place_in_rooms(
        scores + scores.T,
        Rooms(("R0",), np.array([2])),
        RoomRules(assigned=((0, 0), (3, 0)), needs=(Need(1, "capacity", "2"),)),
        allow_unplaced=True,
    )
    assert (found.most_with_needs, found.most_placed) == (1, 2)
    assert found.room[1] == 0
    assert len(found.unplaced) == 2
