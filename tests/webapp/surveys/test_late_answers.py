"""Late answers join the cohort that is there, and wait for a bed in its placements."""

from collections.abc import Callable

import pytest
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_survey
from webapp.housing.models import BuildingList, Place, Placement, Room, RoommateRequest
from webapp.housing.rules import needs_of_student
from webapp.matching.models import LearnedModel
from webapp.surveys.content import Kind, QuestionnaireError
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import questions_of
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.late_answers import _level_of, late_answers_join
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open
from webapp.surveys.services.written import written_as_need


@pytest.fixture
def asked(bob: User, opened: Questionnaire) -> Questionnaire:
    made = questionnaire_create(user=bob, title="Own 2027", form="own")
    questionnaire_open(user=bob, questionnaire=made, closes_at=opened.closes_at)
    return made


@pytest.fixture
def cohort(bob: User, asked: Questionnaire) -> Cohort:
    """Eight students who finished in time."""
    for k in range(8):
        Student(asked, f"N{k}").say_all(k)
    return cohort_from_answers(user=bob, questionnaire=asked, name="First-years")


def number_of(asked: Questionnaire, kind: Kind) -> int:
    return next(q.number for q in questions_of(asked.content) if q.kind is kind)


def join(bob: User, asked: Questionnaire, cohort: Cohort) -> str:
    return late_answers_join(user=bob, questionnaire=asked, cohort=cohort).sentence


def test_a_late_answer_means_what_the_same_answer_in_time_means(
    bob: User, asked: Questionnaire, cohort: Cohort
) -> None:
    for k in range(8):
        Student(asked, f"L{k}").say_all(k)
    said = join(bob, asked, cohort)
    assert said == ("8 late answers join First-years and wait for a bed in its placements.")
    cohort.refresh_from_db()
    students = {one.original_id: one for one in cohort.students.all()}
    assert cohort.n_students == len(students) == 16
    for k in range(8):
        assert students[f"L{k}"].answers == students[f"N{k}"].answers, k
        assert students[f"L{k}"].attributes == students[f"N{k}"].attributes
    assert cohort_survey(cohort).n_students == 16, "what was kept of it is read again"
    with pytest.raises(QuestionnaireError, match="Nobody has finished since"):
        join(bob, asked, cohort)


def test_they_wait_for_a_bed(bob: User, asked: Questionnaire, cohort: Cohort) -> None:
    own = {"organisation": bob.organisation, "created_by": bob}
    house = BuildingList.objects.create(name="Campus", **own)
    Room.objects.create(buildings=house, hall="Elm", name="1", capacity=2)
    model = LearnedModel.objects.create(organisation=bob.organisation, name="M")
    placement = Placement.objects.create(
        name="Rooms", cohort=cohort, buildings=house, model=model, revision=1, **own
    )
    Student(asked, "L1").say_all(1)
    join(bob, asked, cohort)
    late = Place.objects.get(placement=placement, student__original_id="L1")
    assert (late.room, late.has_left) == (None, False)


def test_requests_and_needs_come_along(bob: User, asked: Questionnaire, cohort: Cohort) -> None:
    late, other = Student(asked, "L1"), Student(asked, "L2")
    for k, one in enumerate((late, other)):
        one.say_all(k)
    early = Participant.objects.get(identifier="N3")
    number = number_of(asked, Kind.REQUEST)
    late.say(number, early.code)
    other.say(number, late.row.code)
    late.say(number_of(asked, Kind.TEXT), "No stairs, please.")
    written = late.row.written_answers.get()
    written_as_need(user=bob, questionnaire=asked, written=written, need="step-free")
    join(bob, asked, cohort)
    found = RoommateRequest.objects.filter(cohort=cohort)
    pairs = set(found.values_list("student__original_id", "target__original_id"))
    assert pairs == {("L1", "N3"), ("L2", "L1")}
    student = cohort.students.get(original_id="L1")
    assert needs_of_student(student, ["Needs"]) == ("step-free",)


def test_one_button_does_it_and_nobody_elses(
    bob: User,
    alice: User,
    mallory: User,
    asked: Questionnaire,
    cohort: Cohort,
    client_of: Callable,
) -> None:
    Student(asked, "L1").say_all(1)
    home = reverse("surveys:questionnaire", args=[asked.pk])
    page = Page(client_of(bob).get(home))
    assert page.has("button", "Add 1 late answer to First-years")
    url, fields = reverse("surveys:join-cohort", args=[asked.pk]), {"cohort": str(cohort.pk)}
    for person, status in ((alice, 403), (mallory, 404)):
        assert client_of(person).post(url, fields).status_code == status
    other = Cohort.objects.create(
        organisation=bob.organisation, name="Other", questions=[], n_students=0
    )
    wrong = Page(client_of(bob).post(url, {"cohort": str(other.pk)}, follow=True))
    assert wrong.one("alert").says("Choose a cohort that was made of this questionnaire.")
    done = Page(client_of(bob).post(url, fields, follow=True))
    assert done.one("status").says("1 late answer joins First-years")
    assert not Page(client_of(bob).get(home)).says("late answer")


def test_undo_lets_the_answers_wait_again_and_they_can_join_again(
    bob: User, asked: Questionnaire, cohort: Cohort, client_of: Callable
) -> None:
    late, other = Student(asked, "L1"), Student(asked, "L2")
    for k, one in enumerate((late, other)):
        one.say_all(k)
    number = number_of(asked, Kind.REQUEST)
    late.say(number, Participant.objects.get(identifier="N3").code)
    other.say(number, late.row.code)
    late.say(number_of(asked, Kind.TEXT), "No stairs, please.")
    written = late.row.written_answers.get()
    written_as_need(user=bob, questionnaire=asked, written=written, need="step-free")
    before = list(RoommateRequest.objects.values_list("pk", flat=True))
    client = client_of(bob)
    url, fields = reverse("surveys:join-cohort", args=[asked.pk]), {"cohort": str(cohort.pk)}
    for expected in (["S-1009", "S-1010"], ["S-1011", "S-1012"]):
        page = Page(client.post(url, fields, follow=True))
        arrivals = cohort.late_arrivals.first()
        undo = reverse("cohorts:latecomers-undo", args=[cohort.pk, arrivals.pk])
        forms = [form for form in page.every("form") if form.address == undo]
        assert len(forms) == 2, "the toast and the dialog both undo"
        assert [one.label for one in arrivals.students] == expected
        assert arrivals.source == "Questionnaire Own 2027"
        added = RoommateRequest.objects.exclude(pk__in=before)
        assert {(one.student.original_id, one.target.original_id) for one in added} == {
            ("L1", "N3"),
            ("L2", "L1"),
        }
        assert needs_of_student(arrivals.students[0], ["Needs"]) == ("step-free",)
        page = Page(client.post(undo, follow=True))
        assert page.one("status").says(f"2 students removed from First-years: {arrivals.labels}.")
        assert list(RoommateRequest.objects.values_list("pk", flat=True)) == before
        joined = Participant.objects.filter(cohort=cohort)
        assert not [one for one in joined if one.identifier.startswith("L")]
        home = Page(client.get(reverse("surveys:questionnaire", args=[asked.pk])))
        assert home.has("button", "Add 2 late answers to First-years")


def test_a_request_made_since_refuses_the_undo(
    bob: User, asked: Questionnaire, cohort: Cohort, client_of: Callable
) -> None:
    Student(asked, "L1").say_all(1)
    join(bob, asked, cohort)
    arrivals = cohort.late_arrivals.get()
    one = cohort.students.first()
    RoommateRequest.objects.create(
        cohort=cohort, student=one, target=arrivals.students.get(), source="list.csv"
    )
    undo = reverse("cohorts:latecomers-undo", args=[cohort.pk, arrivals.pk])
    page = Page(client_of(bob).post(undo, follow=True))
    assert page.one("alert").says("S-1001 asked for S-1009 since. Nobody was removed.")
    assert cohort.students.count() == 9
    assert Participant.objects.get(identifier="L1").cohort == cohort


def test_who_is_there_already_is_left_out_and_said(
    bob: User, asked: Questionnaire, cohort: Cohort
) -> None:
    cohort.students.filter(original_id="N0").update(original_id="L9")
    Student(asked, "L9").say_all(1)
    with pytest.raises(QuestionnaireError, match="in First-years already"):
        join(bob, asked, cohort)
    Student(asked, "L10").say_all(1)
    assert "1 other was left out: the cohort has their id already." in join(bob, asked, cohort)
    assert cohort.students.filter(original_id="L10").exists()


def test_another_cohort_takes_no_late_answers(bob: User, asked: Questionnaire) -> None:
    Participant.objects.create(
        questionnaire=asked, identifier="L1", finished_at=timezone.now(), answers={}
    )
    other = Cohort.objects.create(
        organisation=bob.organisation, name="Other", questions=[], n_students=0
    )
    with pytest.raises(QuestionnaireError, match="was not made of this questionnaire"):
        join(bob, asked, other)


EVENING = ("before 22:00", "22:00 to 23:30", "23:30 to 01:00", "01:00 or later")


@pytest.mark.parametrize(
    ("time", "place"),
    [("21:59", 0), ("22:00", 1), ("23:29", 1), ("23:30", 2), ("0:59", 2), ("01:00", 3),
     ("04:00", 3), ("18:00", 0)],
)  # fmt: skip
def test_a_time_finds_its_group_across_midnight(time: str, place: int) -> None:
    assert _level_of(time, EVENING) == EVENING[place]
