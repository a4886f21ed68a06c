"""What is impossible is named by the smallest set of rules that clash."""

import numpy as np
import pytest

from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.crf.room_rules import Designation, Need, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.clock import SearchClock
from engine.rooms.conflicts import RoomConflict, check_room_rules
from engine.rooms.crowding import leaves_somebody_out
from engine.rooms.placement import place_in_rooms

GENDER = {"Gender": ("F", "F", "F", "F", "M", "M", "M", "M")}
ROOMS = Rooms(
    ("A1", "A2", "B1", "B2"),
    np.array([2, 2, 2, 2]),
    {
        "hall": ("Alder", "Alder", "Birch", "Birch"),
        "gender": ("F", "F", "M", "any"),
        "accessible": ("yes", "no", "no", "no"),
    },
)


def check(rules: RoomRules, rooms: Rooms = ROOMS, n: int = 8) -> tuple[RoomConflict, ...]:
    attributes = {name: column[:n] for name, column in GENDER.items()}
    ids = tuple(f"S-{k}" for k in range(n))
    return check_room_rules(n, rooms, rules, attributes, ids=ids)


def fields(conflict: RoomConflict) -> set[str]:
    return {field for field, _ in conflict.rules}


def test_rules_that_can_hold_make_no_conflict() -> None:
    rules = RoomRules(
        locks=((0, 1),),
        forbids=((2, 4),),
        designations=(Designation("gender", "Gender"),),
        needs=(Need(2, "accessible"),),
        same=("Gender",),
    )
    assert check(rules) == ()


def test_a_chain_of_locks_between_two_who_never_share_is_the_clash() -> None:
    rules = RoomRules(
        locks=((0, 1), (1, 2), (5, 6)), forbids=((0, 2), (3, 4)), requests=(Request(3, 5, True),)
    )
    conflict = check(rules)[0]
    assert conflict.kind == "contradiction"
    assert set(conflict.rules) == {("locks", (0, 1)), ("locks", (1, 2)), ("forbids", (0, 2))}
    assert "S-0 and S-1 and S-2 are to share a room" in conflict.sentence


def test_locked_people_who_differ_in_a_column_or_live_alone_are_named() -> None:
    assert check(RoomRules(locks=((0, 4),), same=("Gender",)))[0].rules == (
        ("locks", (0, 4)),
        ("same", "Gender"),
    )
    assert "S-1 is to live alone" in check(RoomRules(locks=((0, 1),), single=(1,)))[0].sentence


def test_a_person_without_any_room_gets_the_smallest_set_of_rules() -> None:
    rules = RoomRules(
        needs=(Need(4, "accessible"), Need(4, "hall", "Alder"), Need(0, "hall", "Birch")),
        designations=(Designation("gender", "Gender"),),
    )
    (conflict,) = check(rules)
    assert conflict.students == (4,)
    assert len(conflict.rules) == 2
    assert fields(conflict) == {"needs", "designations"}
    for left_out in conflict.rules:
        kept = [entry for entry in conflict.rules if entry != left_out]
        smaller = RoomRules(
            needs=tuple(e for f, e in kept if f == "needs"),
            designations=tuple(e for f, e in kept if f == "designations"),
        )
        assert check(smaller) == ()


def test_a_sentence_that_names_a_few_says_how_many_more_there_are() -> None:
    """Seven locked people looked like six, whom the room would have held."""
    rooms = Rooms(("A", "B"), np.array([6, 6]))
    locks = tuple((k, k + 1) for k in range(6))
    conflict = check(RoomRules(locks=locks), rooms)[0]
    assert conflict.sentence == (
        "7 are to share a room, and the largest takes 6: "
        "S-0, S-1, S-2, S-3, S-4, S-5 and 1 more (6 locks)."
    )


def test_only_those_whom_no_room_fits_are_named() -> None:
    """Everybody locked to the one with the need was named, though the need alone cannot be met."""
    rules = RoomRules(locks=((0, 1), (1, 2)), needs=(Need(1, "capacity", "1"),))
    (conflict,) = check(rules, Rooms(("A", "B"), np.array([4, 4])))
    assert conflict.sentence == "No room fits S-1: 1 need capacity = 1."
    assert conflict.students == (1,)


def test_a_ring_of_requests_longer_than_any_room_says_by_how_many() -> None:
    ring = tuple(Request(k, (k + 1) % 5, is_must=True) for k in range(5))
    (conflict,) = check(RoomRules(requests=ring), Rooms(("A", "B"), np.array([4, 4])))
    assert conflict.sentence == (
        "5 are to share a room, and the largest takes 4: S-0, S-1, S-2, S-3, S-4 (4 requests)."
    )


def test_beds_that_nobody_may_share_are_not_said_to_be_too_few_for_fewer_people() -> None:
    """ "1 students need a bed, and the rooms that they may have hold 6", it said."""
    (conflict,) = check(RoomRules(single=(2,)), Rooms(("A",), np.array([6])), n=3)
    assert conflict.sentence == (
        "At most 2 of 3 students can have a bed: S-2 lives alone; "
        "at least 1 is left without a room."
    )


def test_someone_assigned_to_two_rooms_is_told_both() -> None:
    (conflict,) = check(RoomRules(assigned=((3, 0), (3, 2), (5, 1))))
    assert conflict.students == (3,)
    assert set(conflict.rules) == {("assigned", (3, 0)), ("assigned", (3, 2))}


def test_more_people_in_a_room_than_beds_is_a_contradiction() -> None:
    (conflict,) = check(RoomRules(assigned=((0, 0), (1, 0), (2, 0))))
    assert conflict.kind == "contradiction"
    assert len(conflict.rules) == 3


def test_too_few_beds_of_a_kind_are_counted() -> None:
    rules = RoomRules(needs=tuple(Need(k, "accessible") for k in range(3)), forbids=((5, 6),))
    (conflict,) = check(rules)
    assert conflict.kind == "clash"
    assert conflict.students == (0, 1, 2)
    assert conflict.rooms == (0,)
    assert conflict.n_left == 1
    assert "3 students need a bed, and the rooms that they may have hold 2" in conflict.sentence
    assert "3 needs accessible = yes" in conflict.sentence


def test_offline_rooms_are_named_only_when_they_matter() -> None:
    (conflict,) = check(RoomRules(closed=(1,), same=("Gender",)))
    assert fields(conflict) == {"closed"}
    assert "1 room offline (A2)" in conflict.sentence


def test_no_rule_is_blamed_when_there_are_too_few_beds_anyway() -> None:
    few = Rooms(("A", "B"), np.array([4, 3]))
    (conflict,) = check(RoomRules(same=("Gender",), single=(0,)), few)
    assert conflict.kind == "too_few_beds"
    assert conflict.rules == ()


def test_groups_that_share_no_room_may_need_more_rooms() -> None:
    attributes = {"Gender": ("F", "F", "F", "M", "M")}
    ids = tuple("abcde")
    rooms = Rooms(("A", "B", "C"), np.array([2, 2, 1]))
    assert check_room_rules(5, rooms, RoomRules(same=("Gender",)), attributes, ids=ids) == ()
    odd = {"Gender": ("F", "F", "F", "M", "X")}
    rooms = Rooms(("A", "B"), np.array([3, 2]))
    (conflict,) = check_room_rules(5, rooms, RoomRules(same=("Gender",)), odd, ids=ids)
    assert conflict.rules == (("same", "Gender"),)


def test_too_many_beds_are_said_when_rooms_must_be_full() -> None:
    rooms = Rooms(("A", "B"), np.array([3, 3]))
    (conflict,) = check(RoomRules(must_fill=True), rooms, 5)
    assert conflict.kind == "too_many_beds"
    with pytest.raises(InfeasibleError, match="full room") as error:
        place_in_rooms(np.zeros((5, 5)), rooms, RoomRules(must_fill=True))
    assert error.value.conflicts == (conflict,) or error.value.conflicts[0].n_left == 2


@pytest.mark.parametrize("weight", [0.1, -0.5])
def test_never_pairs_that_leave_somebody_out_are_named_and_no_others(weight: float) -> None:
    """Where likeness was to be spread, no rule at all was named."""
    rooms = Rooms(("A", "B"), np.array([2, 2]))
    # Beds for four by number, but 0 may share with nobody.
    rules = RoomRules(forbids=((0, 1), (0, 2), (0, 3)), alike=(("Gender", weight),))
    attributes = {"Gender": ("F", "M", "F", "M")}
    ids = ("Ann", "Bob", "Cat", "Dan")
    with pytest.raises(InfeasibleError, match="never together: Ann and Bob") as error:
        place_in_rooms(np.zeros((4, 4)), rooms, rules, attributes=attributes, ids=ids)
    (conflict,) = error.value.conflicts
    assert conflict.kind == "clash"
    assert {entry for _, entry in conflict.rules} == set(rules.forbids)
    found = place_in_rooms(
        np.zeros((4, 4)), rooms, rules, attributes=attributes, ids=ids, allow_unplaced=True
    )
    assert len(found.unplaced) == 1
    assert found.conflicts[0].rules == conflict.rules


def test_locked_people_who_fit_by_number_but_into_no_set_of_rooms_are_named() -> None:
    rooms = Rooms(("A", "B"), np.array([3, 3]))
    rules = RoomRules(locks=((0, 1), (2, 3), (4, 5)))
    with pytest.raises(InfeasibleError, match="3 locks") as error:
        place_in_rooms(np.zeros((6, 6)), rooms, rules)
    assert {entry for _, entry in error.value.conflicts[0].rules} == set(rules.locks)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (RoomRules(forbids=((0, 9),)), "student 9"),
        (RoomRules(assigned=((0, 7),)), "room 7"),
        (RoomRules(needs=(Need(0, "lift"),)), "lift names no column of the rooms"),
        (RoomRules(same=("Sex",)), "Sex names no column of the survey"),
    ],
)
def test_a_rule_about_what_is_not_there_is_bad_input(rules: RoomRules, message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        check(rules)


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_a_request_needs_a_finite_weight(weight: float) -> None:
    with pytest.raises(InvalidProblemError, match="weight: expected a"):
        Request(0, 1, weight=weight)


def test_two_locked_into_one_room_who_are_never_to_share_it_are_named_at_once() -> None:
    """They were once found by nobody: everybody was left without a room "in the time given"."""
    rooms = Rooms(("A", "B"), np.array([3, 2]), {})
    rules = RoomRules(assigned=((0, 0), (2, 0), (1, 0)), forbids=((1, 2),))
    (conflict,) = check_room_rules(4, rooms, rules, {}, ids=[f"S-{k}" for k in range(4)])
    assert conflict.sentence == (
        "S-0 and S-1 and S-2 are to share a room, but S-1 and S-2 are never to."
    )
    assert ("forbids", (1, 2)) in conflict.rules
    assert {entry for field, entry in conflict.rules if field == "assigned"} == set(rules.assigned)


def test_what_wishes_cost_is_not_taken_for_a_lack_of_beds() -> None:
    """A placement that was only not found yet was called impossible where likeness costs."""
    rules = RoomRules(alike=(("Gender", -0.5),), requests=(Request(0, 1, weight=-2.0),))
    rooms = Rooms(("A", "B"), np.array([2, 2]))
    attributes = {"Gender": ("F",) * 4}
    assert not leaves_somebody_out(4, attributes, rooms, rules, SearchClock(None))
    alone = RoomRules(forbids=((0, 1), (0, 2), (0, 3)), requests=(Request(1, 2, weight=9.0),))
    assert leaves_somebody_out(4, attributes, rooms, alone, SearchClock(None))
