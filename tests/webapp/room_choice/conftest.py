"""A placed cohort whose rooms are free to choose, rounds of it, and students at their pages."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.campus import RULES
from tests.webapp.factories.tries import forget_tries
from tests.webapp.reader import Reader
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.housing.models import BuildingList, Place, Placement, RoommateRequest
from webapp.matching.services.set_models import model_set
from webapp.residents.links import handle_of, page_of, token_of
from webapp.room_choice.models import ChoiceRound
from webapp.room_choice.selectors.turns import StudentTurn, turn_of
from webapp.room_choice.services.choosing import room_choose
from webapp.room_choice.services.rounds import round_publish, round_save


@pytest.fixture(autouse=True)
def no_tries_before() -> None:
    forget_tries()


STUDENTS = 16
YEARS = ("Senior", "Junior", "Sophomore", "First")
QUESTIONS = [
    {"name": "Sleep", "kind": "ordinal", "levels": ["early", "middle", "late"]},
    {"name": "Noise", "kind": "ordinal", "levels": ["quiet", "some", "loud"]},
]


def placed_in(user: User, buildings: BuildingList, name: str = "P") -> Placement:
    """A cohort of 16 without rooms, in a placement with a model whose weights are set by hand.

    Numbers from 1001 on; even ones are women. S-1002 and S-1004 asked for each other, a must.
    """
    cohort = Cohort.objects.create(
        organisation=user.organisation,
        created_by=user,
        name=f"First-years of {name}",
        questions=QUESTIONS,
        constraints=["Gender", "Year", "Accessible"],
        needs=["Accessible"],
        n_students=STUDENTS,
    )
    students = Student.objects.bulk_create(
        Student(
            cohort=cohort,
            number=1001 + k,
            original_id=f"N{k:03d}",
            name=f"Name{k} Family{k}",
            email=f"n{k}@uni.example",
            answers=[k % 3, k // 2 % 3],
            attributes={"Gender": "MF"[k % 2], "Year": YEARS[k % 4], "Accessible": ""},
        )
        for k in range(STUDENTS)
    )
    model = model_set(user=user, name=name, cohort=cohort, importance={"Sleep": 2.0, "Noise": 1.0})
    made = Placement.objects.create(
        organisation=user.organisation,
        created_by=user,
        name=name,
        cohort=cohort,
        buildings=buildings,
        model=model,
        rules=replace(RULES, needs=("Accessible",)).to_json(),
        revision=1,
    )
    Place.objects.bulk_create(Place(placement=made, student=s, number=s.number) for s in students)
    request_each_other(made, 1002, 1004)
    return made


@pytest.fixture
def free(bob: User, campus: BuildingList) -> Placement:
    """The first-years without rooms."""
    return placed_in(bob, campus)


def a_round(user: User, placement: Placement, **changes: object) -> ChoiceRound:
    """A draft of a round that opened an hour ago and stays open for a day."""
    now = timezone.now().replace(microsecond=0)
    fields: dict[str, object] = {
        "name": "First",
        "opens_at": now - timedelta(hours=1),
        "closes_at": now + timedelta(days=1),
        "minutes": 30,
        "seed": 7,
        "stays_open": True,
    }
    return round_save(user=user, placement=placement, round=None, **fields | changes)


def published(user: User, draft: ChoiceRound) -> ChoiceRound:
    round_publish(user=user, round=draft, version=draft.version, send_mail=False)
    draft.refresh_from_db()
    return draft


def open_for_all(round: ChoiceRound) -> ChoiceRound:
    """Let every slot be open now."""
    round.slots.update(starts_at=timezone.now() - timedelta(minutes=5))
    return round


@pytest.fixture
def round(bob: User, free: Placement) -> ChoiceRound:
    """A published round in which everybody's slot is open."""
    return open_for_all(published(bob, a_round(bob, free)))


class Chooser:
    """A student with a phone, at the page of room choice."""

    def __init__(self, student: Student, language: str = "en") -> None:
        self.student = student
        self.page = page_of(student)
        self.client = Reader(headers={"Accept-Language": language})
        self.client.get(reverse("residents:enter", args=[token_of(self.page)]), follow=True)
        self.handle = handle_of(self.page)

    @property
    def address(self) -> str:
        return reverse("room_choice:rooms", args=[self.handle])

    def at(self, room: int) -> str:
        return reverse("room_choice:choose", args=[self.handle, room])

    def look(self, query: str = "", status: int = 200) -> Page:
        return Page(self.client.get(f"{self.address}{query}"), status=status)

    def home(self) -> Page:
        return Page(self.client.get(reverse("residents:home", args=[self.handle])))

    @property
    def turn(self) -> StudentTurn:
        turn = turn_of(self.student)
        assert turn is not None
        return turn

    def choose(self, room: int, seen: str | None = None) -> HttpResponse:
        sent = {"seen": self.turn.seen if seen is None else seen}
        return self.client.post(self.at(room), sent)


@pytest.fixture
def chooser(free: Placement) -> Callable[..., Chooser]:
    """A function from a number to the student who opened the link."""

    def open_link(number: int, language: str = "en") -> Chooser:
        return Chooser(free.cohort.students.get(number=number), language)

    return open_link


def choose(student: Student, room: int, now: datetime | None = None) -> None:
    """Choose a room as the service does it for a page that was just loaded."""
    turn = turn_of(student)
    assert turn is not None
    room_choose(turn=turn, room_id=room, seen=turn.seen)


def request_each_other(placement: Placement, one: int, other: int) -> None:
    """Let two students ask for each other."""
    students = {s.number: s for s in placement.cohort.students.all()}
    for asker, target in ((one, other), (other, one)):
        RoommateRequest.objects.get_or_create(
            cohort=placement.cohort, student=students[asker], target=students[target], source="t"
        )
