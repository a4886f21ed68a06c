"""Three people decide in any order: every bed holds one student, no rule breaks, no bed is lost.

Hypothesis chooses the acts; each person works on a page that may be out of date. After every act,
refused or not, two placements of one cohort are held against the rules by what the tests know of
them themselves, and every published bed must be there unless somebody confirmed its loss.
DECISION_EXAMPLES and DECISION_STEPS make it long, and DATABASE_URL puts it on PostgreSQL:

    DECISION_EXAMPLES=200 DECISION_STEPS=120 bin/with-postgres .venv/bin/python -m pytest -q \\
        tests/webapp/housing/test_decisions_at_random.py
"""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.webapp.conftest import make_user
from tests.webapp.factories.campus import reader_of
from tests.webapp.factories.university import run_waiting
from webapp.accounts.models import User
from webapp.cohorts.late_arrivals import undo_refusals
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.selectors.surveys import forget_surveys
from webapp.cohorts.services.cohorts import cohort_purge
from webapp.cohorts.services.latecomers import latecomers_add, latecomers_undo
from webapp.common.errors import Refusal
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import (
    BuildingList,
    Place,
    Placement,
    PlacementVersion,
    ProposedChange,
    RoommateRequest,
    WaitingOffer,
)
from webapp.housing.rules import PlacementRules
from webapp.housing.scores import Scores
from webapp.housing.selectors.choices import choices_of
from webapp.housing.selectors.offers import beds_for
from webapp.housing.selectors.outcomes import outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.togetherness import asked_pairs
from webapp.housing.services.buildings import room_remove, room_save, rooms_set_state
from webapp.housing.services.changes import change_discard, change_keep, change_propose
from webapp.housing.services.decisions import (
    Decision,
    Move,
    decision_make,
    emptying,
    moving,
    places_lock,
    places_move,
    returning,
    withdrawing,
)
from webapp.housing.services.drafts import draft_add, draft_confirm, draft_discard, draft_drop
from webapp.housing.services.fitting import fit_version
from webapp.housing.services.placements import placement_compute, placement_create, placement_delete
from webapp.housing.services.publication import (
    placement_publish,
    placement_unpublish,
    published_people,
)
from webapp.housing.services.requests import requests_cut, requests_import, requests_keep
from webapp.housing.services.reviews import rooms_accept, rooms_keep
from webapp.housing.services.stays import place_dates_set
from webapp.housing.services.undo import (
    beds_changed,
    contradiction,
    decision_undo,
    situation_of,
)
from webapp.housing.services.versions import (
    computed_version,
    version_discard,
    version_store,
    version_use,
)
from webapp.housing.services.waiting import turn_change
from webapp.jobs.models import Job
from webapp.matching.models import ForbiddenPair, LearnedModel
from webapp.waiting.models import MoveWish
from webapp.waiting.selectors import free_rooms, next_student
from webapp.waiting.services import (
    move_wish_remove,
    move_wish_save,
    offer_accept,
    offer_decline,
    offer_make,
)

RULES = PlacementRules(designation="Gender", same=("Gender",), needs=("Accessible",))
EXAMPLES = int(os.environ.get("DECISION_EXAMPLES", "8"))
STEPS = int(os.environ.get("DECISION_STEPS", "40"))
ROUNDS = 12  # of two staff at once
WHO = st.integers(0, 2)
ROLLS = st.integers(0, 10**6)  # which student, room, act or version, of those that there are
DAYS = st.sampled_from([None, None, date(2026, 10, 31), date(2026, 11, 1), date(2026, 12, 1)])
LOOKS = st.sampled_from([True, True, True, False])  # whether the person looks at the page again


@pytest.fixture
def placement(
    bob: User,
    first_years: Cohort,
    campus: BuildingList,
    learned: LearnedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> Placement:
    """A placed cohort with a must, a wish, a never, and needs that few rooms meet."""
    monkeypatch.setattr("webapp.housing.jobs.PLACE_SECONDS", 0.3)
    monkeypatch.setattr("webapp.housing.jobs.CHANGE_SECONDS", 0.3)
    monkeypatch.setattr("webapp.housing.jobs.PRICES", (0.3,))
    first_years.constraints = ["Gender", "Accessible"]
    first_years.save()
    for student in first_years.students.all():
        student.attributes["Accessible"] = "yes" if student.number % 9 == 0 else "no"
        student.save()
    campus.rooms.filter(hall="Elm").update(meets=["Accessible"])
    campus.rooms.filter(name__endswith="3").update(meets=["Accessible"])
    text = "student,wants\nN000,N003\nN003,N000\nN001,N002\n"
    requests_import(user=bob, cohort=first_years, **reader_of(text))
    one, other = first_years.students.filter(attributes__Gender="F")[:2]
    ForbiddenPair.objects.create(cohort=first_years, first=one, second=other)
    return _placed(bob, first_years, campus, learned, "P")


def _placed(
    user: User, cohort: Cohort, buildings: BuildingList, model: LearnedModel, name: str
) -> Placement:
    made = placement_create(
        user=user, name=name, cohort=cohort, buildings=buildings, model=model, rules=RULES
    )
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    made.refresh_from_db()
    return made


def holds(placement: Placement) -> None:
    """Fail for anybody in two beds, two in one bed, or a rule that is broken."""
    places = list(placement.places.select_related("student", "room"))
    assert len({place.student_id for place in places}) == len(places)
    living = [place for place in places if place.room_id is not None]
    beds: dict[tuple[int, int], list[tuple[date, date]]] = {}
    for one in living:
        days = (one.arrives_on or date.min, one.leaves_on or date.max)
        beds.setdefault((one.room_id, one.bed), []).append(days)
    for taken in beds.values():
        for (first, last), (other_first, other_last) in combinations(taken, 2):
            assert last < other_first or other_last < first, "two in one bed on the same day"
    never = {
        frozenset(pair)
        for pair in ForbiddenPair.objects.values_list("first__number", "second__number")
    }
    where = {place.number: place.room_id for place in living}
    by_room: dict[int, list[Place]] = {}
    for place in living:
        by_room.setdefault(place.room_id, []).append(place)
        room, own = place.room, place.student.attributes
        assert not place.has_left
        assert 1 <= place.bed <= room.capacity
        assert room.state == "open", f"{place} but the room is {room.state}"
        assert room.designation in ("", own["Gender"])
        assert own["Accessible"] == "no" or "Accessible" in room.meets
    for people in by_room.values():
        assert len({place.student.attributes["Gender"] for place in people}) == 1
        numbers = [place.number for place in people]
        assert not any(pair <= set(numbers) for pair in never)
    is_must = not RoommateRequest.objects.filter(is_ignored=True, target__isnull=False).exists()
    if is_must and 1001 in where and 1004 in where:  # they asked for each other
        assert where[1001] == where[1004]


class ThreePeople(RuleBasedStateMachine):
    """Two staff and an administrator who decide about one cohort, each on a page of their own."""

    base: ClassVar[Placement]
    people: ClassVar[list[User]]
    done: ClassVar[Counter[str]]

    @initialize(is_published=st.booleans())
    def begin(self, is_published: bool) -> None:
        self.savepoint = transaction.savepoint()
        self.placement = self.base
        self.other: Placement | None = None
        if is_published:
            placement_publish(user=self.people[2], placement=self.fresh, version=self.fresh.version)
        self.seen = dict.fromkeys(range(3), self.fresh.version)
        self.confirmed = False
        self.before = self.published_beds()

    def teardown(self) -> None:
        if hasattr(self, "savepoint"):
            transaction.savepoint_rollback(self.savepoint)
            forget_surveys()

    # What the people see and pick.

    @property
    def fresh(self) -> Placement:
        return Placement.objects.select_related("cohort", "buildings", "model", "job").get(
            pk=self.placement.pk
        )

    def look(self, who: int, *, looks: bool) -> dict[str, Any]:
        """Return who acts on what, by the page that the person has before them."""
        fresh = self.fresh
        if looks:
            self.seen[who] = fresh.version
        return {"user": self.people[who], "placement": fresh, "version": self.seen[who]}

    def pick(self, roll: int, count: int = 1, **having: object) -> list[int]:
        numbers = list(self.fresh.places.filter(**having).values_list("number", flat=True))
        if len(numbers) < count:
            raise HousingError("Nobody is like that.")
        first = roll % len(numbers)
        step = 1 + roll // len(numbers) % (len(numbers) - 1) if len(numbers) > 1 else 1
        chosen = [numbers[(first + k * step) % len(numbers)] for k in range(count)]
        return list(dict.fromkeys(chosen))

    def room(self, roll: int) -> int:
        rooms = list(self.fresh.buildings.rooms.values_list("pk", flat=True))
        return int(rooms[roll % len(rooms)])

    def published_beds(self) -> dict[tuple[object, int], tuple[int, int]]:
        places = Place.objects.filter(
            placement__published_at__isnull=False, room__isnull=False
        ).values_list("placement", "number", "room", "bed")
        return {(key, number): (room, bed) for key, number, room, bed in places}

    def state(self) -> list[tuple[object, ...]]:
        columns = ("placement", "number", "room", "bed", "is_locked", "has_left", "arrives_on",
                   "leaves_on")  # fmt: skip
        return list(Place.objects.order_by("placement", "number").values_list(*columns))

    @contextmanager
    def act(self, name: str, *, confirmed: bool = False) -> Iterator[None]:
        """One act; what is refused must change nothing."""
        self.confirmed, state = False, self.state()
        try:
            with transaction.atomic():
                yield
            self.confirmed = confirmed
            self.done[name] += 1
        except Refusal:
            self.done[f"{name} refused"] += 1
            assert self.state() == state

    def decide(self, options: dict[str, Any], decision: Decision) -> None:
        """Decide as the pages do: at once, or as part of a draft where it is published."""
        if options["placement"].is_published:
            draft_add(decision=decision, **options)
        else:
            decision_make(decision=decision, **options)

    # Acts on students.

    @rule(who=WHO, roll=ROLLS, to=ROLLS, looks=LOOKS, count=st.integers(1, 2))
    def move(self, who: int, roll: int, to: int, looks: bool, count: int) -> None:
        with self.act("move"):
            options = self.look(who, looks=looks)
            moves = [Move(number, self.room(to)) for number in self.pick(roll, count)]
            self.decide(options, moving(moves, "moved"))

    @rule(who=WHO, roll=ROLLS, looks=LOOKS)
    def swap(self, who: int, roll: int, looks: bool) -> None:
        with self.act("swap"):
            options = self.look(who, looks=looks)
            a, b = self.pick(roll, 2, has_left=False, room__isnull=False)
            where = dict(self.fresh.places.values_list("number", "room_id"))
            moves = [Move(a, where[b]), Move(b, where[a])]
            self.decide(options, moving(moves, "swapped"))

    @rule(who=WHO, roll=ROLLS, looks=LOOKS)
    def empty(self, who: int, roll: int, looks: bool) -> None:
        with self.act("empty"):
            options, room = self.look(who, looks=looks), self.room(roll)
            living = self.fresh.places.filter(room=room)
            self.decide(options, emptying(list(living.values_list("number", flat=True)), [room]))

    @rule(who=WHO, roll=ROLLS, looks=LOOKS, is_back=st.booleans())
    def withdraw(self, who: int, roll: int, looks: bool, is_back: bool) -> None:
        with self.act("return" if is_back else "withdraw"):
            options, numbers = self.look(who, looks=looks), self.pick(roll, 1, has_left=is_back)
            self.decide(options, returning(numbers) if is_back else withdrawing(numbers))

    @rule(who=WHO, roll=ROLLS, looks=LOOKS, locked=st.booleans())
    def lock(self, who: int, roll: int, looks: bool, locked: bool) -> None:
        with self.act("lock" if locked else "release"):
            options = self.look(who, looks=looks)
            places_lock(numbers=self.pick(roll, 2), locked=locked, **options)

    @rule(who=WHO, roll=ROLLS, choice=ROLLS)
    def offered(self, who: int, roll: int, choice: int) -> None:
        """A bed that is offered to a student who waits, and a swap that is offered, can be had."""
        with self.act("offered"):
            rooms = PlacementRooms(self.fresh)
            waiting = rooms.homeless[:2]
            offers = beds_for(rooms, waiting, Scores(self.fresh)) if waiting else {}
            moves = [[Move(o.number, o.room.pk)] for number in waiting for o in offers[number]]
            living = {"has_left": False, "is_locked": False, "room__isnull": False}
            (number,) = self.pick(roll, 1, **living)
            found = choices_of(rooms, number)
            moves += [
                [Move(number, s.room.pk), Move(s.number, found.card.room.pk)] for s in found.swaps
            ]
            pair = tuple(self.pick(choice, 2, has_left=False))
            (asked,) = asked_pairs(rooms, [pair])
            if asked.way is not None and asked.way.other is None:
                moves.append([Move(asked.way.mover, asked.way.room.pk)])
            if not moves:
                raise HousingError("Nothing is offered.")
            self.do_offered(who, moves[choice % len(moves)])

    def do_offered(self, who: int, moves: list[Move]) -> None:
        if any(draft.seats for draft in ProposedChange.objects.filter(is_by_hand=True)):
            raise HousingError("What is offered is offered for the rooms of now, not of a draft.")
        try:
            self.decide(self.look(who, looks=True), moving(moves, "as offered"))
        except HousingError as problem:
            pytest.fail(f"Offered, then refused: {problem}")

    @rule(who=WHO, roll=ROLLS, is_first=st.booleans())
    def turn(self, who: int, roll: int, is_first: bool) -> None:
        with self.act("turn"):
            (number,) = self.pick(roll, 1, room=None, has_left=False)
            fresh = self.fresh
            turn_change(user=self.people[who], placement=fresh, number=number, is_first=is_first)
            homeless = PlacementRooms(self.fresh).homeless
            assert homeless[0 if is_first else -1] == number

    # Days of beds, and wishes for another bed.

    @rule(who=WHO, roll=ROLLS, looks=LOOKS, first=DAYS, last=DAYS)
    def dates(
        self, who: int, roll: int, looks: bool, first: date | None, last: date | None
    ) -> None:
        with self.act("dates"):
            (number,) = self.pick(roll, 1, has_left=False)
            options = self.look(who, looks=looks)
            place_dates_set(number=number, arrives_on=first, leaves_on=last, **options)

    @rule(who=WHO, roll=ROLLS, other=ROLLS)
    def follow(self, who: int, roll: int, other: int) -> None:
        """Somebody leaves in October, and somebody else comes into the room in November."""
        with self.act("follow"):
            (early,) = self.pick(roll, 1, room__isnull=False)
            place = self.fresh.places.select_related("student").get(number=early)
            gender = place.student.attributes["Gender"]
            late, *_ = self.pick(other, 1, has_left=False, student__attributes__Gender=gender)
            for number, first, last in (
                (early, None, date(2026, 10, 31)),
                (late, date(2026, 11, 1), None),
            ):
                one = self.fresh.places.get(number=number)
                if (one.arrives_on, one.leaves_on) != (first, last):
                    place_dates_set(
                        number=number, arrives_on=first, leaves_on=last,
                        **self.look(who, looks=True),
                    )  # fmt: skip
            self.decide(self.look(who, looks=True), moving([Move(late, place.room_id)], "follows"))

    @rule(who=WHO, roll=ROLLS, is_hall=st.booleans(), by_student=st.booleans())
    def wish(self, who: int, roll: int, is_hall: bool, by_student: bool) -> None:
        with self.act("wish"):
            (number,) = self.pick(roll, 1, room__isnull=False)
            user = None if by_student else self.people[who]
            hall = ("Alder", "Elm")[roll % 2] if is_hall else ""
            move_wish_save(user=user, placement=self.fresh, number=number, hall=hall)

    @rule(who=WHO, roll=ROLLS)
    def stop_wish(self, who: int, roll: int) -> None:
        with self.act("stop wish"):
            wishes = list(self.fresh.move_wishes.waiting())
            if not wishes:
                raise HousingError("Nobody waits for another bed.")
            number = wishes[roll % len(wishes)].student.number
            move_wish_remove(user=self.people[who], placement=self.fresh, number=number)

    @rule(who=WHO, roll=ROLLS)
    def offer(self, who: int, roll: int) -> None:
        """A bed that the page of the waiting list offers can be offered, and taken at once."""
        with self.act("offer"):
            fresh = self.fresh
            free = free_rooms(fresh) if fresh.is_published else []
            if not free:
                raise HousingError("No bed is free.")
            room = free[roll % len(free)].room
            number = next_student(fresh, room).number
            try:
                offer_make(
                    user=self.people[who], placement=fresh, room=room, number=number, hours=24
                )
            except HousingError as problem:
                if number is not None:
                    pytest.fail(f"S-{number} is next for {room}, then refused: {problem}")
                raise

    @rule(who=WHO, roll=ROLLS, says_yes=st.booleans())
    def answer(self, who: int, roll: int, says_yes: bool) -> None:
        with self.act("answer: yes" if says_yes else "answer: no", confirmed=says_yes):
            offers = list(WaitingOffer.objects.filter(state="open").select_related("placement"))
            if not offers:
                raise HousingError("No bed is offered.")
            one = offers[roll % len(offers)]
            if says_yes:
                event = offer_accept(offer=one, user=self.people[who])
                assert not one.placement.move_wishes.waiting().filter(student=one.student).exists()
                assert event.after[0][1] == one.room_id
            else:
                offer_decline(offer=one, user=self.people[who])

    # Drafts of late changes.

    @rule(who=WHO, roll=ROLLS, looks=LOOKS, wanted=st.sampled_from(["yes", "no", "drop", "wrong"]))
    def draft(self, who: int, roll: int, looks: bool, wanted: str) -> None:
        with self.act(f"draft: {wanted}", confirmed=wanted == "yes"):
            draft = ProposedChange.objects.filter(is_by_hand=True).first()
            if draft is None:
                raise HousingError("There is no draft.")
            options = {"user": self.people[who], "draft": draft}
            version = self.look(who, looks=looks)["version"]
            if wanted == "no":
                draft_discard(**options)
            elif wanted == "drop":
                draft_drop(number=int(next(iter(draft.seats))), **options)
            elif wanted == "wrong":
                with pytest.raises(PlacesChangedError):
                    draft_confirm(people=len(draft.seats) + 1, version=version, **options)
            else:
                draft_confirm(people=len(draft.seats), version=version, **options)

    # Acts on rooms.

    @rule(who=WHO, roll=ROLLS, looks=LOOKS, accepted=st.booleans())
    def accept(self, who: int, roll: int, looks: bool, accepted: bool) -> None:
        with self.act("accept"):
            rooms = [self.room(roll), self.room(roll // 7)]
            rooms_accept(rooms=rooms, accepted=accepted, **self.look(who, looks=looks))

    @rule(who=WHO, roll=ROLLS, looks=LOOKS, kept=st.booleans())
    def hold_back(self, who: int, roll: int, looks: bool, kept: bool) -> None:
        with self.act("hold back" if kept else "open"):
            rooms_keep(rooms=[self.room(roll)], kept=kept, **self.look(who, looks=looks))

    @rule(who=WHO, roll=ROLLS, state=st.sampled_from(["open", "kept", "offline"]))
    def close_wing(self, who: int, roll: int, state: str) -> None:
        with self.act(f"wing {state}"):
            rooms = [self.room(roll + k) for k in range(3)]
            buildings = self.fresh.buildings
            rooms_set_state(user=self.people[who], buildings=buildings, rooms=rooms, state=state)

    @rule(who=WHO, roll=ROLLS, what=st.sampled_from(["beds", "for", "remove"]))
    def rebuild(self, who: int, roll: int, what: str) -> None:
        with self.act(f"rebuild: {what}"):
            buildings, user = self.fresh.buildings, self.people[who]
            room = buildings.rooms.get(pk=self.room(roll))
            if what == "remove" and buildings.rooms.count() > 15:
                room_remove(user=user, room=room)
                return
            names = ("hall", "floor", "name", "designation", "meets", "state", "note", "capacity")
            values = {name: getattr(room, name) for name in names}
            values |= {"capacity": 1 + roll % 3} if what == "beds" else {"designation": "F"}
            room_save(user=user, buildings=buildings, room=room, values=values)

    # Versions.

    @rule(who=WHO, roll=ROLLS)
    def run(self, who: int, roll: int) -> None:
        """A run ends with any rooms at all: what cannot be is left out when it is used."""
        with self.act("run"):
            fresh, random = self.fresh, np.random.default_rng(roll)
            students = list(fresh.cohort.students.values_list("pk", flat=True))
            rooms = [None, *fresh.buildings.rooms.values_list("pk", flat=True)]
            found = {key: rooms[random.integers(len(rooms))] for key in students}
            figures = {"has_converged": False, "seconds": 1.0, "relative_gap": 0.1}
            version_store(
                computed_version(
                    placement=fresh,
                    job=None,
                    user=self.people[who],
                    rules=fresh.rules,
                    rooms=found,
                    doubts={},
                    figures=figures,
                    outcomes={**outcome(PlacementRooms(fresh)), "moved": 0},
                )
            )

    @rule(who=WHO, roll=ROLLS, is_stale=st.sampled_from([False, False, True]))
    def use_version(self, who: int, roll: int, is_stale: bool) -> None:
        with self.act("use version", confirmed=True):
            fresh, user = self.fresh, self.people[who]
            versions = list(fresh.versions.all())
            version = versions[roll % len(versions)]
            digest = fit_version(fresh, version).digest
            if is_stale:
                with pytest.raises(PlacesChangedError):
                    version_use(user=user, placement=fresh, number=version.number, digest="old")
                return
            version_use(user=user, placement=fresh, number=version.number, digest=digest)

    @rule(who=WHO, roll=ROLLS)
    def discard_version(self, who: int, roll: int) -> None:
        with self.act("discard version"):
            numbers = list(self.fresh.versions.values_list("number", flat=True))
            number = numbers[roll % len(numbers)]
            version_discard(user=self.people[who], placement=self.fresh, number=number)

    @rule(who=WHO, roll=ROLLS, says_yes=st.booleans())
    def undo(self, who: int, roll: int, says_yes: bool) -> None:
        """Every act that the history offers to undo can be undone, unless a rule would break."""
        with self.act("undo", confirmed=says_yes):
            fresh = self.fresh
            events = list(fresh.events.all()[:6])
            if not events:
                raise HousingError("There is nothing to undo.")
            event = events[roll % len(events)]
            problem = contradiction(fresh, event, situation_of(fresh, [event]))
            n_beds = len(beds_changed(event)) if fresh.is_published else 0
            options = {"user": self.people[who], "placement": fresh, "event": event}
            if n_beds and not says_yes and not problem:
                with pytest.raises(PlacesChangedError, match="confirm"):
                    decision_undo(**options)
                return
            fulfilled = MoveWish.objects.filter(event=event)
            wishers = set(fulfilled.values_list("student", flat=True))
            decision_undo(confirmed=n_beds, **options)
            assert not problem
            waiting = set(fresh.move_wishes.waiting().values_list("student", flat=True))
            assert wishers <= waiting, "a wish is lost though its bed was taken back"

    # Publishing.

    @rule(who=WHO, looks=LOOKS)
    def publish(self, who: int, looks: bool) -> None:
        with self.act("publish", confirmed=True):
            placement_publish(**self.look(who, looks=looks))

    @rule(who=WHO, is_right=st.booleans())
    def unpublish(self, who: int, is_right: bool) -> None:
        with self.act("unpublish", confirmed=is_right):
            people = published_people(self.fresh) + (not is_right)
            placement_unpublish(user=self.people[who], placement=self.fresh, people=people)

    @rule(who=WHO)
    def other_scenario(self, who: int) -> None:
        """Another scenario of the cohort, and which of the two the people look at."""
        if self.other is None:
            fresh = self.fresh
            self.other = Placement.objects.create(
                organisation=fresh.organisation,
                name="Q",
                cohort=fresh.cohort,
                buildings=fresh.buildings,
                model=fresh.model,
                rules=fresh.rules,
            )
            rooms = dict(fresh.places.values_list("student_id", "room_id"))
            version_store(
                computed_version(
                    placement=self.other,
                    job=None,
                    user=self.people[who],
                    rules=fresh.rules,
                    rooms=rooms,
                    doubts={},
                    figures={},
                    outcomes={**outcome(PlacementRooms(fresh)), "moved": 0},
                )
            )
        self.placement, self.other = self.other, self.placement
        self.seen = dict.fromkeys(range(3), self.fresh.version)

    @rule(who=WHO, is_cohort=st.booleans())
    def purge(self, who: int, is_cohort: bool) -> None:
        """Nothing that is published is removed."""
        fresh, user = self.fresh, self.people[who]
        if not fresh.is_published:
            return
        with self.act("purge"):
            if is_cohort:
                with pytest.raises(Refusal, match="Withdraw the publication first"):
                    cohort_purge(user=user, cohort=fresh.cohort, typed_name=fresh.cohort.name)
            else:
                placement_delete(user=user, placement=fresh, typed_name=fresh.name)

    # What else happens.

    @rule(who=WHO)
    def arrive(self, who: int) -> None:
        with self.act("arrive"):
            cohort = Cohort.objects.get(pk=self.base.cohort_id)
            if cohort.n_students > 36:
                raise HousingError("Enough for now.")
            like = Student.objects.filter(cohort=cohort).first()
            answers = {q["name"]: q["levels"][0] for q in cohort.questions[:3]}
            made = cohort.late_arrivals.count()
            row = {"id": f"L{made}", **answers, **like.attributes}
            latecomers_add(user=self.people[who], cohort=cohort, rows=[row])

    @rule(who=WHO, roll=ROLLS)
    def remove_late(self, who: int, roll: int) -> None:
        """Late arrivals can be removed if, and only if, the pages offer it."""
        with self.act("remove late arrivals"):
            arrivals = list(self.fresh.cohort.late_arrivals.all())
            if not arrivals:
                raise HousingError("Nobody came late.")
            one = arrivals[roll % len(arrivals)]
            problem = undo_refusals(one.cohort, [one])[one.pk]
            latecomers_undo(user=self.people[who], arrivals=one)
            assert not problem
            assert not Place.objects.filter(
                student__cohort=one.cohort, number__gte=one.first_number,
                number__lte=one.last_number,
            ).exists()  # fmt: skip

    @rule(
        who=WHO, roll=ROLLS, looks=LOOKS,
        what=st.sampled_from(["accept", "undecide", "lock", "release", "empty", "hold back"]),
    )  # fmt: skip
    def bulk(self, who: int, roll: int, looks: bool, what: str) -> None:
        """One act on all rooms of a floor, as filters choose them."""
        with self.act(f"all of a floor: {what}"):
            options = self.look(who, looks=looks)
            floor = self.fresh.buildings.rooms.get(pk=self.room(roll)).floor
            rooms = list(self.fresh.buildings.rooms.filter(floor=floor, state="open"))
            keys = [room.pk for room in rooms]
            living = self.fresh.places.filter(room__in=keys)
            numbers = list(living.values_list("number", flat=True))
            if what in ("accept", "undecide"):
                rooms_accept(rooms=keys, accepted=what == "accept", **options)
            elif what in ("lock", "release"):
                places_lock(numbers=numbers, locked=what == "lock", rooms=keys, **options)
            elif what == "hold back":
                rooms_keep(rooms=keys, kept=True, **options)
            else:
                free = list(living.filter(is_locked=False).values_list("number", flat=True))
                self.decide(options, emptying(free, keys))

    @rule(who=WHO, is_again=st.booleans())
    def cut(self, who: int, is_again: bool) -> None:
        """A must is left out, or counts again where it holds."""
        with self.act("cut"):
            cohort, user = self.fresh.cohort, self.people[who]
            if not is_again:
                requests_cut(user=user, cohort=cohort, pairs=[(1001, 1004)])
                return
            for placement in Placement.objects.filter(cohort=cohort):
                where = dict(placement.places.values_list("number", "room_id"))
                one, other = where.get(1001), where.get(1004)
                if None not in (one, other) and one != other:
                    raise HousingError("They live apart.")
            requests_keep(user=user, cohort=cohort)

    @invariant()
    def every_bed_holds(self) -> None:
        if not hasattr(self, "savepoint"):
            return
        for placement in Placement.objects.filter(cohort=self.base.cohort_id):
            holds(placement)
            known = set(placement.places.values_list("student", flat=True))
            assert known == set(placement.cohort.students.values_list("pk", flat=True))
        now = self.published_beds()
        if not self.confirmed:
            lost = {key: bed for key, bed in self.before.items() if now.get(key) != bed}
            assert not lost, "a published bed was lost without a confirmed act"
        self.before, self.confirmed = now, False


def test_no_order_of_acts_of_three_people_breaks_a_rule_or_loses_a_published_bed(
    bob: User, carol: User, placement: Placement
) -> None:
    ThreePeople.base, ThreePeople.done = placement, Counter()
    ThreePeople.people = [bob, make_user("dave", bob.organisation, "staff"), carol]
    run_state_machine_as_test(
        ThreePeople,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(ThreePeople.done.most_common())
    done = sum(count for act, count in ThreePeople.done.items() if "refused" not in act)
    assert done > EXAMPLES * STEPS // 8


def test_real_runs_between_decisions_keep_every_rule(
    bob: User, placement: Placement, learned: LearnedModel
) -> None:
    """The engine computes versions and late changes between decisions; a worker is killed once."""
    random = np.random.default_rng(3)
    numbers = list(placement.places.values_list("number", flat=True))
    for _ in range(4):
        placement.refresh_from_db()
        gone = int(random.choice(numbers))
        numbers.remove(gone)
        options = {"user": bob, "placement": placement, "version": placement.version}
        decision_make(decision=withdrawing([gone]), **options)
        placement_compute(user=bob, placement=placement)
        Job.objects.filter(state="queued").update(state="running", worker="gone:1")
        Job.objects.filter(state="running").update(state="queued", worker="")
        (job,) = run_waiting()
        assert job.state == "succeeded", job.error
        fresh = Placement.objects.get(pk=placement.pk)
        version = fresh.versions.first()
        digest = fit_version(fresh, version).digest
        version_use(user=bob, placement=fresh, number=version.number, digest=digest)
        holds(placement)
        change_propose(user=bob, placement=placement, price=0.3, pinned=[])
        run_waiting()
        change = ProposedChange.objects.get(placement=placement)
        if random.random() < 0.5:
            change_discard(user=bob, placement=placement)
        else:
            change_keep(user=bob, placement=placement, change_id=change.pk)
        holds(placement)
    assert PlacementVersion.objects.filter(placement=placement).count() >= 5


@pytest.mark.django_db(transaction=True)
def test_of_two_staff_at_once_one_is_told(bob: User, placement: Placement) -> None:
    """Both saw the same version: whoever touches the same room second is refused, and beds hold.

    On SQLite one after the other: it lets one write at a time.
    """
    numbers = list(placement.places.filter(room__isnull=False).values_list("number", flat=True))
    random = np.random.default_rng(5)
    told_apart = 0
    for _ in range(ROUNDS):
        placement.refresh_from_db()
        where = dict(placement.places.values_list("number", "room_id"))
        pairs = [random.choice(numbers, 2, replace=False).tolist() for _ in range(2)]
        rooms = [{where[n] for n in pair} for pair in pairs]
        told: list[str] = []
        start = threading.Barrier(2 if connection.vendor == "postgresql" else 1)

        def swap(
            one: int,
            other: int,
            where: dict[int, int | None] = where,
            told: list[str] = told,
            start: threading.Barrier = start,
        ) -> None:
            mine = Placement.objects.get(pk=placement.pk)
            moves = [Move(one, where[other]), Move(other, where[one])]
            start.wait()
            try:
                options = {"user": bob, "placement": mine, "version": placement.version}
                places_move(moves=moves, sentence="swapped", **options)
                told.append("done")
            except PlacesChangedError:
                told.append("told")
            except HousingError:
                told.append("refused")
            finally:
                connection.close()

        threads = [threading.Thread(target=swap, args=pair) for pair in pairs]
        if connection.vendor == "postgresql":
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        else:
            [thread.run() for thread in threads]
        assert len(told) == 2
        if rooms[0].isdisjoint(rooms[1]):
            told_apart += 1
            assert "told" not in told  # other rooms are no conflict
        else:
            assert told.count("done") <= 1
        holds(placement)
    assert told_apart


def test_scores_are_those_of_the_rooms_after_any_decisions(bob: User, placement: Placement) -> None:
    random = np.random.default_rng(17)
    acts: list[Callable[[list[int], list[int]], Decision]] = [
        lambda who, rooms: moving([Move(who[0], rooms[0])], "moved"),
        lambda who, rooms: emptying(who),
        lambda who, rooms: withdrawing(who[:1]),
    ]
    numbers = list(placement.places.values_list("number", flat=True))
    rooms = list(placement.buildings.rooms.values_list("pk", flat=True))
    done = 0
    for _ in range(60):
        placement.refresh_from_db()
        who = random.choice(numbers, 2, replace=False).tolist()
        decision = acts[random.integers(len(acts))](who, random.permutation(rooms).tolist())
        try:
            decision_make(
                user=bob, placement=placement, decision=decision, version=placement.version
            )
            done += 1
        except HousingError:
            continue
    assert done > 10
    scores = Scores(Placement.objects.get(pk=placement.pk))
    living: dict[int, dict[int, float | None]] = {}
    for place in Place.objects.filter(placement=placement, room__isnull=False):
        living.setdefault(place.room_id, {})[place.number] = place.score
    for people in living.values():
        expected = scores.of_members(list(people))
        assert people == {
            n: None if s is None else pytest.approx(s, abs=1e-9) for n, s in expected.items()
        }
