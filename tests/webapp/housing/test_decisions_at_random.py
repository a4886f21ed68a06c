"""Decisions in any order: nobody is in two beds, no bed holds two, and no rule is broken.

Sequences are seeded. After every act, refused or not, the whole placement is held against the rules
by what the tests know of them themselves; the engine places anew in between, as the job does.
DECISION_SEEDS and DECISION_STEPS make it long, and DATABASE_URL puts it on PostgreSQL:

    DECISION_SEEDS=40 DECISION_STEPS=200 bin/with-postgres .venv/bin/python -m pytest -q \\
        tests/webapp/housing/test_decisions_at_random.py
"""

import os
import threading
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from django.db import connection
from django.test import Client

from tests.webapp.conftest import make_user
from tests.webapp.housing.conftest import reader_of
from tests.webapp.matching.conftest import run_waiting
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.services.latecomers import latecomers_add
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import BuildingList, Place, Placement, PlacementEvent, RoommateRequest
from webapp.housing.rules import PlacementRules
from webapp.housing.scores import Scores
from webapp.housing.selectors.choices import choices_of
from webapp.housing.selectors.offers import beds_for
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.togetherness import asked_pairs
from webapp.housing.services.changes import change_discard, change_keep, change_propose
from webapp.housing.services.decisions import (
    Move,
    places_lock,
    places_move,
    students_return,
    students_withdraw,
)
from webapp.housing.services.placements import (
    placement_compute,
    placement_create,
    placement_publish,
    placement_unpublish,
)
from webapp.housing.services.proposed_scores import scores_after
from webapp.housing.services.requests import requests_cut, requests_import, requests_keep
from webapp.housing.services.reviews import rooms_accept, rooms_keep
from webapp.housing.services.undo import decision_undo
from webapp.housing.services.waiting import turn_change
from webapp.jobs.models import Job
from webapp.letters.services.questions import Wording, questions_ask, questions_send
from webapp.matching.models import ForbiddenPair, LearnedModel

RULES = PlacementRules(designation="Gender", same=("Gender",), needs=("Accessible",))
ACTS = [
    "lock",
    "release",
    "move",
    "move",
    "swap",
    "swap",
    "empty",
    "withdraw",
    "back",
    "accept",
    "keep",
    "open",
    "undo",
    "undo",
    "undo",
    "publish",
    "unpublish",
    "change",
    "discard",
    "give",
    "turn",
    "offered",
    "together",
    "stale",
    "arrive",
    "compute",
    "kill",
    "compared",
    "cut",
    "count_again",
    "ask",
]
SEEDS = int(os.environ.get("DECISION_SEEDS", "3"))
STEPS = int(os.environ.get("DECISION_STEPS", "60"))
ROUNDS = 12  # of two staff at once


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
    made = placement_create(
        user=bob, name="P", cohort=first_years, buildings=campus, model=learned, rules=RULES
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
    assert max(Counter((p.room_id, p.bed) for p in living).values(), default=0) <= 1
    never = {
        frozenset(pair)
        for pair in ForbiddenPair.objects.values_list("first__number", "second__number")
    }
    where = {place.number: place.room_id for place in living}
    for place in living:
        room, own = place.room, place.student.attributes
        assert not place.has_left
        assert 1 <= place.bed <= room.capacity
        assert room.state == "open", f"{place} but the room is {room.state}"
        assert room.designation in ("", own["Gender"])
        assert own["Accessible"] == "no" or "Accessible" in room.meets
        for other in living:
            if other.room_id == place.room_id and other.number != place.number:
                assert other.student.attributes["Gender"] == own["Gender"]
                assert frozenset((place.number, other.number)) not in never
    is_must = not RoommateRequest.objects.filter(is_ignored=True, target__isnull=False).exists()
    if is_must and 1001 in where and 1004 in where:  # they asked for each other
        assert where[1001] == where[1004]


class Office:
    """Staff who decide at random, by a seed; what is refused must change nothing."""

    def __init__(self, user: User, placement: Placement, seed: int) -> None:
        self.user, self.placement = user, placement
        self.random = np.random.default_rng(seed)
        self.rooms = list(placement.buildings.rooms.values_list("pk", flat=True))
        self.done: Counter[str] = Counter()

    def step(self) -> None:
        act = str(self.random.choice(ACTS))
        self.placement.refresh_from_db()
        self.before = self.state()
        try:
            getattr(self, act)()
            self.done[act] += 1
        except HousingError:
            self.done[f"{act} refused"] += 1
            assert self.state() == self.before
        holds(self.placement)

    def state(self) -> list[tuple[object, ...]]:
        places = self.placement.places.order_by("number")
        return list(places.values_list("number", "room", "bed", "is_locked", "has_left"))

    def pick(self, count: int = 1, **having: object) -> list[int]:
        """Numbers of some students; HousingError when there is none, as a service would say."""
        numbers = list(self.placement.places.filter(**having).values_list("number", flat=True))
        if len(numbers) < count:
            raise HousingError("Nobody is like that.")
        return [int(n) for n in self.random.choice(numbers, count, replace=False)]

    def room(self) -> int:
        return int(self.random.choice(self.rooms))

    @property
    def seen(self) -> dict[str, object]:
        return {
            "user": self.user,
            "placement": self.placement,
            "version": self.placement.version,
        }

    def lock(self) -> None:
        places_lock(numbers=self.pick(2), locked=True, **self.seen)

    def release(self) -> None:
        places_lock(numbers=self.pick(1, is_locked=True), locked=False, **self.seen)

    def move(self) -> None:
        moves = [Move(number, self.room()) for number in self.pick(int(self.random.integers(1, 3)))]
        places_move(moves=moves, sentence="moved", **self.seen)

    def swap(self) -> None:
        a, b = self.pick(2, has_left=False)
        where = dict(self.placement.places.values_list("number", "room_id"))
        places_move(moves=[Move(a, where[b]), Move(b, where[a])], sentence="swapped", **self.seen)

    def empty(self) -> None:
        numbers = list(
            self.placement.places.filter(room=self.room()).values_list("number", flat=True)
        )
        places_move(moves=[Move(n, None) for n in numbers], sentence="emptied", **self.seen)

    def withdraw(self) -> None:
        students_withdraw(numbers=self.pick(1, has_left=False), **self.seen)

    def back(self) -> None:
        students_return(numbers=self.pick(1, has_left=True), **self.seen)

    def accept(self) -> None:
        rooms_accept(rooms=[self.room(), self.room()], accepted=True, **self.seen)

    def keep(self) -> None:
        rooms_keep(rooms=[self.room()], kept=True, **self.seen)

    def open(self) -> None:
        rooms_keep(rooms=[self.room()], kept=False, **self.seen)

    def undo(self) -> None:
        events = PlacementEvent.objects.filter(placement=self.placement, undone_at=None)[:4]
        if not events:
            raise HousingError("There is nothing to undo.")
        event = events[int(self.random.integers(len(events)))]
        decision_undo(user=self.user, placement=self.placement, event=event)

    def give(self) -> None:
        """A free bed that is offered to somebody who waits can be given."""
        rooms = PlacementRooms(self.fresh)
        waiting = rooms.homeless[:3]
        offers = beds_for(rooms, waiting, Scores(self.fresh)) if waiting else {}
        found = [offer for number in waiting for offer in offers[number]]
        if not found:
            raise HousingError("No bed is offered.")
        offer = found[int(self.random.integers(len(found)))]
        self.do_offered([Move(offer.number, offer.room.pk)])

    def turn(self) -> None:
        is_first = bool(self.random.integers(2))
        (number,) = self.pick(1, room=None)
        turn_change(user=self.user, placement=self.placement, number=number, is_first=is_first)
        homeless = PlacementRooms(self.fresh).homeless
        assert homeless[0 if is_first else -1] == number

    def offered(self) -> None:
        """A swap that is offered can be done."""
        (number,) = self.pick(1, has_left=False, is_locked=False, room__isnull=False)
        found = choices_of(PlacementRooms(self.fresh), number)
        if not found.swaps:
            raise HousingError("No swap is offered.")
        swap = found.swaps[int(self.random.integers(len(found.swaps)))]
        self.do_offered([Move(number, swap.room.pk), Move(swap.number, found.card.room.pk)])

    def together(self) -> None:
        """What is offered to bring two together can be done, and does."""
        pair = tuple(self.pick(2, has_left=False))
        (found,) = asked_pairs(PlacementRooms(self.fresh), [pair])
        if found.way is None:
            raise HousingError("There is no way, or no need.")
        where = dict(self.placement.places.values_list("number", "room_id"))
        moves = [Move(found.way.mover, found.way.room.pk)]
        if found.way.other is not None:
            moves.append(Move(found.way.other, where[found.way.mover]))
        self.do_offered(moves)
        assert PlacementRooms(self.fresh).is_together(*pair)

    def do_offered(self, moves: list[Move]) -> None:
        """What a page offers is never refused."""
        try:
            places_move(moves=moves, sentence="as offered", **self.seen)
        except HousingError as problem:
            pytest.fail(f"Offered, then refused: {problem}")

    def stale(self) -> None:
        """Somebody who saw an older version is told, whatever they do."""
        old = {**self.seen, "version": self.placement.version - 1}
        one, other = self.pick(2)
        acts: list[Callable[[], object]] = [
            lambda: places_lock(numbers=[one], locked=True, **old),
            lambda: places_move(moves=[Move(one, None)], sentence="emptied", **old),
            lambda: places_move(moves=[Move(other, self.room())], sentence="moved", **old),
            lambda: students_withdraw(numbers=[one], **old),
            lambda: students_return(numbers=[one], **old),
            lambda: rooms_accept(rooms=[self.room()], accepted=True, **old),
            lambda: rooms_keep(rooms=[self.room()], kept=True, **old),
            lambda: placement_publish(**old),
        ]
        with pytest.raises(PlacesChangedError):
            acts[int(self.random.integers(len(acts)))]()
        assert self.state() == self.before

    def discard(self) -> None:
        pinned = self.pick(int(self.random.integers(0, 3)))
        change_propose(user=self.user, placement=self.placement, price=0.3, pinned=pinned)
        run_waiting()
        change_discard(user=self.user, placement=self.placement)
        assert self.state() == self.before

    @property
    def fresh(self) -> Placement:
        return Placement.objects.get(pk=self.placement.pk)

    def publish(self) -> None:
        placement_publish(**self.seen)

    def compared(self) -> None:
        """An administrator publishes from the comparison of scenarios; staff may not."""
        address = f"/placements/{self.placement.pk}/publish/"
        sent = {"version": self.placement.version, "back": "scenarios"}
        was_published = self.placement.is_published
        for role, status in (("staff", 403), ("administrator", 302)):
            client = Client()
            user = User.objects.filter(organisation=self.user.organisation, role=role).first()
            user = user or make_user("carol", self.user.organisation, "administrator")
            client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
            assert client.post(address, sent).status_code == status
            if status == 403:
                assert self.fresh.is_published == was_published

    def cut(self) -> None:
        requests_cut(user=self.user, cohort=self.placement.cohort, pairs=[(1001, 1004)])

    def count_again(self) -> None:
        """A must counts again where it holds; then nothing parts the two any more."""
        where = dict(self.placement.places.values_list("number", "room_id"))
        if None not in (where[1001], where[1004]) and where[1001] != where[1004]:
            raise HousingError("They live apart.")
        requests_keep(user=self.user, cohort=self.placement.cohort)

    def ask(self) -> None:
        """Whom a request means is asked by e-mail, which moves nobody."""
        cohort = self.placement.cohort
        student = cohort.students.get(number=1006)
        student.email = "f@uni.example"
        student.save(update_fields=["email"])
        request, _ = RoommateRequest.objects.get_or_create(
            cohort=cohort, student=student, target=None, defaults={"written": "my cousin"}
        )
        seen = request.question.times if hasattr(request, "question") else 0
        questions_ask(
            user=self.user, cohort=cohort, wording=Wording(), requests=[request.pk], seen=seen
        )
        assert questions_send() == 1
        assert self.state() == self.before

    def unpublish(self) -> None:
        placement_unpublish(user=self.user, placement=self.placement)

    def arrive(self) -> None:
        cohort = Cohort.objects.get(pk=self.placement.cohort_id)
        if cohort.n_students > 40:
            raise HousingError("Enough for now.")
        like = Student.objects.filter(cohort=cohort).first()
        answers = {q["name"]: q["levels"][0] for q in cohort.questions[:3]}
        row = {"id": f"L{cohort.n_students}", **answers, **like.attributes}
        latecomers_add(user=self.user, cohort=cohort, rows=[row])

    def compute(self) -> None:
        placement_compute(user=self.user, placement=self.placement)
        run_waiting()

    def kill(self) -> None:
        """A worker is killed while it places: nothing can be decided, then another one goes on."""
        placement_compute(user=self.user, placement=self.placement)
        Job.objects.filter(state="queued").update(
            state="running", worker="gone:1"
        )  # claimed, then killed
        before = self.state()
        with pytest.raises(HousingError, match="worked out right now"):
            places_lock(
                user=self.user, placement=self.placement, numbers=[1001], locked=True, version=-1
            )
        assert self.state() == before
        Job.objects.filter(state="running").update(state="queued", worker="")
        run_waiting()

    def change(self) -> None:
        pinned = self.pick(int(self.random.integers(0, 3)))
        change_propose(user=self.user, placement=self.placement, price=0.3, pinned=pinned)
        run_waiting()
        if self.random.random() < 0.3:  # somebody is quicker
            self.placement.refresh_from_db()
            self.withdraw()
            self.before = self.state()
        self.placement.refresh_from_db()
        change_keep(
            user=self.user,
            placement=self.placement,
            change_id=self.placement.change.pk,
            scores=scores_after(self.placement),
        )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_order_of_decisions_breaks_a_rule(bob: User, placement: Placement, seed: int) -> None:
    office = Office(bob, placement, seed)
    for _ in range(STEPS):
        office.step()
    print(office.done.most_common())
    assert sum(count for act, count in office.done.items() if "refused" not in act) > STEPS // 4


@pytest.mark.django_db(transaction=True)
def test_of_two_staff_at_once_one_is_told(bob: User, placement: Placement) -> None:
    """Both saw the same version: the second is refused, and the placement holds all the same.

    On SQLite one after the other: it lets one write at a time.
    """
    numbers = list(placement.places.filter(room__isnull=False).values_list("number", flat=True))
    random = np.random.default_rng(5)
    for _ in range(ROUNDS):
        placement.refresh_from_db()
        where = dict(placement.places.values_list("number", "room_id"))
        pairs = [random.choice(numbers, 2, replace=False).tolist() for _ in range(2)]
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
        assert told.count("done") <= 1
        assert told.count("told") == 0 or "done" in told
        holds(placement)


def test_scores_are_those_of_the_rooms_after_any_decisions(bob: User, placement: Placement) -> None:
    office = Office(bob, placement, 17)
    for _ in range(STEPS):
        office.step()
    placement.refresh_from_db()
    scores = Scores(Placement.objects.get(pk=placement.pk))
    rooms: dict[int, dict[int, float | None]] = {}
    for place in Place.objects.filter(placement=placement, room__isnull=False):
        rooms.setdefault(place.room_id, {})[place.number] = place.score
    for people in rooms.values():
        expected = scores.of_members(list(people))
        assert people == {
            n: None if s is None else pytest.approx(s, abs=1e-9) for n, s in expected.items()
        }
