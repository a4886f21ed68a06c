"""Answers that are taken back go out of the cohorts that have a copy of them as well."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.reader import Reader
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_survey
from webapp.cohorts.services.cohorts import cohort_purge, cohort_split
from webapp.cohorts.sources import QUESTIONNAIRE
from webapp.housing.models import BuildingList, Place, Placement, Room, RoommateRequest
from webapp.matching.models import LearnedModel
from webapp.surveys.links import token_of
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import questions_of
from webapp.surveys.services.cohorts import cohort_from_answers

SURE = {"action": "withdraw", "sure": "yes"}


@pytest.fixture
def people(opened: Questionnaire) -> list[Participant]:
    """Four who finished; the first two were invited by e-mail."""
    said = {q.key: 1 for q in questions_of(opened.content)}
    return [
        Participant.objects.create(
            questionnaire=opened, identifier=f"N{k}", email=f"n{k}@x.example" if k < 2 else "",
            answers=said, updated_at=timezone.now(), finished_at=timezone.now(),
        )
        for k in range(4)
    ]  # fmt: skip


@pytest.fixture
def cohort(bob: User, opened: Questionnaire, people: list[Participant]) -> Cohort:
    """A cohort of them with its two halves; the first two asked for each other."""
    made = cohort_from_answers(user=bob, questionnaire=opened, name="First")
    cohort_split(user=bob, cohort=made, seed=1)
    anna, ben = made.students.order_by("number")[:2]
    for asks, whom in ((anna, ben), (ben, anna)):
        RoommateRequest.objects.create(
            cohort=made, student=asks, target=whom, source=f"{QUESTIONNAIRE}as it was called then"
        )
    return made


def withdraw(person: Participant) -> object:
    return Reader(headers={"Accept-Language": "en"}).post(f"/q/{token_of(person)}/", SURE)


def publish(bob: User, cohort: Cohort) -> Place:
    """A published placement that gives the first student a bed."""
    own = {"organisation": bob.organisation, "created_by": bob}
    house = BuildingList.objects.create(name="Campus", **own)
    room = Room.objects.create(buildings=house, hall="Elm", name="1", capacity=2)
    model = LearnedModel.objects.create(organisation=bob.organisation, name="M")
    placement = Placement.objects.create(
        name="Rooms", cohort=cohort, buildings=house, model=model, revision=1,
        published_at=timezone.now(), **own,
    )  # fmt: skip
    student = cohort.students.get(original_id="N0")
    return Place.objects.create(
        placement=placement, student=student, number=student.number, room=room, bed=1
    )


def test_the_copies_in_a_cohort_and_its_halves_are_blank(
    people: list[Participant], cohort: Cohort
) -> None:
    assert cohort_survey(cohort).answers.min() == 1  # read, and kept in memory
    done = withdraw(people[0])
    assert Page(done).has("heading", "also where rooms are planned")
    whole = Cohort.objects.get(pk=cohort.pk)
    for place in [whole, *Cohort.objects.filter(half_of=whole)]:
        for student in place.students.all():
            is_gone = student.original_id == "N0"
            assert set(student.answers) == {-1 if is_gone else 1}
            assert student.attributes["Gender"] == ("" if is_gone else "Man")
            assert student.email == ("n1@x.example" if student.original_id == "N1" else "")
    assert whole.n_students == 4
    assert cohort_survey(whole).answers[0].max() == -1, "no process goes on with what it kept"
    left = RoommateRequest.objects.get()
    assert left.student.original_id == "N1", "what others said stays theirs"
    line = AuditLine.objects.get(verb="withdrew")
    assert line.details["kept"] == []
    assert line.details["student"] == "S-1001"


def test_a_published_bed_keeps_what_it_needs_until_staff_delete_it(
    bob: User,
    alice: User,
    mallory: User,
    opened: Questionnaire,
    people: list[Participant],
    cohort: Cohort,
    client_of: Callable[[User], Client],
) -> None:
    place = publish(bob, cohort)
    withdraw(people[0])
    place.student.refresh_from_db()
    assert set(place.student.answers) == {-1}
    assert (place.student.attributes["Gender"], place.student.email) == ("Man", "n0@x.example")
    page = reverse("surveys:people", args=[opened.pk])
    assert Page(client_of(bob).get(page)).has("listitem", "S-1001 of First: Gender, e-mail kept")
    line = AuditLine.objects.get(verb="withdrew").pk
    act = reverse("surveys:withdrawal-delete", args=[opened.pk, line])
    assert client_of(mallory).post(act).status_code == 404
    assert client_of(alice).post(act).status_code == 403
    client_of(bob).post(reverse("surveys:withdrawal-delete", args=[opened.pk, line + 1000]))
    place.student.refresh_from_db()
    assert place.student.attributes["Gender"] == "Man", "another line deletes nothing"
    client_of(bob).post(act)
    place.refresh_from_db()
    assert (place.student.attributes["Gender"], place.student.email) == ("", "")
    assert place.room.name == "1", "the bed stays"
    assert AuditLine.objects.filter(verb="deleted what was withdrawn", user=bob).count() == 1
    again = Page(client_of(bob).post(act, follow=True))
    assert again.one("alert").says("Nothing of it is left to delete.")
    assert not again.says("e-mail kept")


def test_answers_can_be_deleted_after_closing_and_nothing_else(
    opened: Questionnaire, people: list[Participant], cohort: Cohort
) -> None:
    Questionnaire.objects.update(closes_at=timezone.now())
    here = Reader(headers={"Accept-Language": "en"})
    url = f"/q/{token_of(people[2])}/"
    page = here.get(url, follow=True)
    assert page.status_code == 410
    assert Page(page, status=410).has("button", "Delete my answers")
    assert "Tidiness" not in Page(page, status=410).source
    assert here.post(url, {"action": "withdraw"}).status_code == 410, "not without being sure"
    assert Page(here.post(url, SURE)).has("heading", "deleted")
    assert not Participant.objects.filter(pk=people[2].pk).exists()
    assert set(cohort.students.get(original_id="N2").answers) == {-1}
    assert here.post(url, SURE).status_code == 404
    code = Page(here.get(f"/q/code/{opened.code}/"), status=410)
    assert not code.has("button", "Delete my answers"), "by the code nobody is known"


def test_a_purged_cohort_leaves_its_questionnaire_whole(
    bob: User, opened: Questionnaire, people: list[Participant], cohort: Cohort
) -> None:
    cohort_purge(user=bob, cohort=cohort, typed_name="First")
    assert not Cohort.objects.exists()
    assert AuditLine.objects.filter(verb="purged").count() == 3
    for before, now in zip(people, opened.participants.order_by("pk"), strict=True):
        assert (now.answers, now.cohort) == (before.answers, None)
    opened.delete()
    assert not Participant.objects.exists()
