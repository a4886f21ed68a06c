"""Students and staff act in any order, also at once: nobody in two beds, no bed for two, no rule.

On PostgreSQL the students of the second test choose in threads at the same time; SQLite lets one
write after the other.
"""

import os
import random
import threading
from collections import Counter

import pytest
from django.db import connection

from tests.webapp.room_choice.conftest import request_each_other
from webapp.accounts.models import User
from webapp.common.errors import Refusal
from webapp.housing.models import Placement, RoommateRequest
from webapp.housing.rules import PlacementRules, broken_rule
from webapp.housing.services.buildings import rooms_set_state
from webapp.housing.services.checks import forbidden_numbers
from webapp.housing.services.decisions import (
    Move,
    places_lock,
    places_move,
    students_return,
    students_withdraw,
)
from webapp.housing.services.undo import decision_undo
from webapp.matching.models import ForbiddenPair
from webapp.room_choice.models import ChoiceRound, RoomChoice
from webapp.room_choice.selectors.rooms import offers_of
from webapp.room_choice.selectors.turns import turn_of
from webapp.room_choice.services import choosing
from webapp.room_choice.services import rounds as services
from webapp.room_choice.services.choosing import room_choose

KINDS = (
    *["choose"] * 14, "stale", "move", "withdraw", "return", "undo", "release", "close room",
    "round", "request",
)  # fmt: skip
ACTS = int(os.environ.get("CHOICE_ACTS", "150"))


def holds(placement: Placement) -> None:
    """Fail for two in a bed, a bed too many, a broken rule, or mutual requests that are parted."""
    places = list(placement.places.select_related("room", "student"))
    assert len({place.student_id for place in places}) == len(places)
    living = [place for place in places if place.room_id is not None]
    beds = Counter((place.room_id, place.bed) for place in living)
    assert max(beds.values(), default=0) <= 1
    rules, forbidden = PlacementRules.from_json(placement.rules), forbidden_numbers(placement)
    by_room: dict[int, list] = {}
    for place in living:
        assert not place.has_left
        assert 1 <= place.bed <= place.room.capacity
        by_room.setdefault(place.room_id, []).append(place)
    for people in by_room.values():
        students = [place.student for place in people]
        assert broken_rule(people[0].room, students, rules, forbidden) == ""
    where = {place.number: place.room_id for place in living}
    pairs = RoommateRequest.objects.filter(is_ignored=False, cohort=placement.cohort_id)
    asked = set(pairs.values_list("student__number", "target__number"))
    for one, other in asked:
        if (other, one) in asked and one in where and other in where:
            assert where[one] == where[other]


@pytest.mark.parametrize("seed", range(3))
def test_no_order_of_acts_breaks_a_rule(
    bob: User, free: Placement, round: ChoiceRound, seed: int
) -> None:
    roll = random.Random(seed)
    request_each_other(free, 1001, 1003)
    students = {s.number: s for s in free.cohort.students.all()}
    ForbiddenPair.objects.create(cohort=free.cohort, first=students[1005], second=students[1007])
    rooms = list(free.buildings.rooms.all())
    done: Counter[str] = Counter()
    for _ in range(ACTS):
        act = roll.choice(KINDS)
        try:
            _do(act, bob, free, round, roll, list(students.values()), rooms)
            done[act] += 1
        except Refusal:
            done["refused"] += 1
        holds(free)
    assert done["choose"] > ACTS // 10
    assert RoomChoice.objects.count() > 3


def _do(
    act: str,
    bob: User,
    placement: Placement,
    round: ChoiceRound,
    roll: random.Random,
    students: list,
    rooms: list,
) -> None:
    placement.refresh_from_db()
    student, room = roll.choice(students), roll.choice(rooms)
    staff = {"user": bob, "placement": placement, "version": placement.version}
    if act in ("choose", "stale"):
        turn = turn_of(student)
        if turn is not None:
            offers = offers_of(turn)
            key = roll.choice(offers).room.pk if offers and act == "choose" else room.pk
            room_choose(turn=turn, room_id=key, seen=turn.seen)
    elif act == "move":
        places_move(moves=[Move(student.number, room.pk)], sentence="moved", **staff)
    elif act == "withdraw":
        students_withdraw(numbers=[student.number], **staff)
    elif act == "return":
        students_return(numbers=[student.number], **staff)
    elif act == "release":
        places_lock(numbers=[student.number], locked=roll.random() < 0.3, **staff)
    elif act == "undo":
        events = list(placement.events.all()[:6])
        if events:
            decision_undo(user=bob, placement=placement, event=roll.choice(events))
    elif act == "close room":
        state = roll.choice(["open", "open", "kept"])
        rooms_set_state(user=bob, buildings=placement.buildings, rooms=[room.pk], state=state)
    elif act == "round":
        round.refresh_from_db()
        name = "round_resume" if round.state == "paused" else "round_pause"
        getattr(services, name)(user=bob, round=round, version=round.version)
    else:
        RoommateRequest.objects.filter(student=student).update(is_ignored=roll.random() < 0.5)


@pytest.mark.django_db(transaction=True)
def test_of_groups_that_want_one_room_at_once_one_gets_it(
    free: Placement, round: ChoiceRound, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "QUEUE_SECONDS", 300.0)  # "busy" would be right, not the point
    women = [s for s in free.cohort.students.all() if s.number % 2 == 0 and s.number > 1004]
    room = free.buildings.rooms.get(name="S0")
    turns = [turn_of(student) for student in women]
    said: list[str] = []
    is_parallel = connection.vendor == "postgresql"
    start = threading.Barrier(len(women) if is_parallel else 1)

    def take(turn: object) -> None:
        start.wait()
        try:
            room_choose(turn=turn, room_id=room.pk, seen=turn.seen)
            said.append("taken")
        except Refusal as refusal:
            said.append(str(refusal))
        finally:
            if is_parallel:
                connection.close()

    threads = [threading.Thread(target=take, args=[turn]) for turn in turns]
    for thread in threads:
        thread.start() if is_parallel else thread.run()
    for thread in threads if is_parallel else ():
        thread.join()
    assert said.count("taken") == 1
    assert sum("a moment ago" in sentence for sentence in said) == len(women) - 1
    assert free.places.with_bed().count() == 1
    holds(free)
