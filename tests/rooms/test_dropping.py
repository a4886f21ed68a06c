"""Contradictory rules are left out for the people they concern, and everybody else is placed."""

import numpy as np
import pytest

from engine.core.errors import InfeasibleError
from engine.crf.room_rules import Need, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.placement import Placement, place_in_rooms

IDS = tuple(f"S-{k}" for k in range(8))
GENDER = {"Gender": tuple("FFFFMMMM")}
ROOMS = Rooms(("A1", "A2", "B1", "B2"), np.full(4, 2), {"accessible": ("yes", "no", "no", "no")})


def place(rules: RoomRules, **options: object) -> Placement:
    return place_in_rooms(
        np.ones((8, 8)),
        ROOMS,
        rules,
        attributes=GENDER,
        ids=IDS,
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("rules", "field", "students"),
    [
        (RoomRules(requests=(Request(0, 4, True),), same=("Gender",)), "requests", {0, 4}),
        (RoomRules(requests=(Request(0, 1, True),), forbids=((0, 1),)), "requests", {0, 1}),
        (RoomRules(locks=((0, 1),), single=(1,), closed=()), "locks", {0, 1}),
        (RoomRules(locks=((0, 1, 2),)), "locks", {2}),
        (RoomRules(assigned=((0, 0), (0, 1))), "assigned", {0}),
        (RoomRules(assigned=((0, 3),), needs=(Need(0, "accessible"),)), "assigned", {0}),
        (
            RoomRules(locks=((0, 1),), requests=(Request(1, 2, True),), forbids=((0, 2),)),
            "requests",
            {1, 2},
        ),
    ],
)
def test_it_is_reported_and_the_rest_is_placed(
    rules: RoomRules, field: str, students: set[int]
) -> None:
    with pytest.raises(InfeasibleError):
        place(rules)
    found = place(rules, allow_unplaced=True)
    (dropped,) = found.dropped
    assert dropped.rule[0] == field
    assert set(dropped.students) == students
    assert all(IDS[student] in dropped.sentence for student in students)
    assert len(found.unplaced) == (1 if rules.single else 0)  # who lives alone takes two beds
    for need in rules.needs:
        assert ROOMS.attributes["accessible"][found.room[need.student]] == "yes"


def test_both_who_ask_for_each_other_against_a_rule_are_reported() -> None:
    both = (Request(0, 4, True), Request(4, 0, True), Request(1, 2, True))
    found = place(RoomRules(requests=both, same=("Gender",)), allow_unplaced=True)
    assert {entry for _, entry in (rule.rule for rule in found.dropped)} == set(both[:2])
    assert found.unplaced == ()
    assert found.honoured.tolist() == [False, False, True]


def test_what_may_not_be_dropped_still_fails_by_name() -> None:
    rules = RoomRules(locks=((0, 1),), forbids=((0, 1),))
    with pytest.raises(InfeasibleError, match="S-0 and S-1 are never to"):
        place(rules, allow_unplaced=True, may_drop=("requests",))


def test_people_whom_no_room_fits_are_left_out_together_with_one_reason() -> None:
    rooms = Rooms(("A", "B", "C"), np.array([4, 2, 2]), {"lift": ("no", "no", "no")})
    needs = tuple(Need(k, "lift") for k in (1, 3, 5))
    with pytest.raises(InfeasibleError, match="3 students need lift, and no open room has it"):
        place_in_rooms(np.ones((8, 8)), rooms, RoomRules(needs=needs), ids=IDS)
    found = place_in_rooms(
        np.ones((8, 8)), rooms, RoomRules(needs=needs), ids=IDS, allow_unplaced=True
    )
    (conflict,) = found.conflicts
    assert conflict.kind == "no_room"
    assert conflict.sentence == ("3 students need lift, and no open room has it: S-1, S-3, S-5.")
    assert found.unplaced == (1, 3, 5)
    assert found.upper_bound == pytest.approx(found.weight, abs=1e-6)


def test_no_open_room_leaves_everybody_out_and_says_so() -> None:
    closed = RoomRules(closed=(0, 1, 2, 3))
    found = place(closed, allow_unplaced=True)
    assert len(found.unplaced) == 8
    assert found.weight == found.upper_bound == 0.0
    assert "4 rooms offline" in found.conflicts[0].sentence
    none = place_in_rooms(np.zeros((2, 2)), Rooms((), np.array([])), allow_unplaced=True)
    assert none.unplaced == (0, 1)
