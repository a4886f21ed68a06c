"""One student number, several sets of answers: both are kept, and staff decide which ones count."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_refused
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.models import Participant, Questionnaire, SetAside
from webapp.surveys.questions import questions_of
from webapp.surveys.selectors.clashes import sorted_answers
from webapp.surveys.services.clashes import (
    answers_choose,
    answers_choose_all,
    answers_restore,
    number_correct,
)
from webapp.surveys.services.cohorts import cohort_from_answers, waiting_for_cohort

Finish = Callable[..., Participant]


@pytest.fixture
def finish(opened: Questionnaire) -> Finish:
    """A function that makes somebody who finished with one answer to the first question."""
    key = questions_of(opened.content)[0].key

    def make(number: str = "", answer: int = 0, **fields: object) -> Participant:
        now = timezone.now()
        return Participant.objects.create(
            questionnaire=opened, identifier=number, answers={key: answer}, finished_at=now,
            updated_at=now, **fields,
        )  # fmt: skip

    return make


def names(questionnaire: Questionnaire) -> list[str]:
    return [one.identifier for one in waiting_for_cohort(questionnaire)]


def at(questionnaire: Questionnaire, name: str) -> str:
    return reverse(f"surveys:{name}", args=[questionnaire.pk])


def test_a_later_claim_of_a_number_replaces_nothing(
    bob: User, opened: Questionnaire, client_of: Callable[[User], Client]
) -> None:
    victim, claimant = Student(opened, "N00777"), Student(opened, "n00777")
    others = [Student(opened, f"N{k}") for k in range(2)]
    for k, one in enumerate((victim, claimant, *others)):
        one.say_all(k)
    assert names(opened) == ["N0", "N1"]
    client = client_of(bob)
    people = Page(client.get(at(opened, "people")))
    assert people.section("Mails").says("1 to decide")
    made = Page(client.post(at(opened, "make-cohort"), {"name": "All"}, follow=True))
    assert made.one("status").says(
        "2 students are in the cohort. 1 number waits for your decision under People."
    )
    page = Page(client.get(at(opened, "clashes")))
    assert len(page.every("button", "Count these answers")) == 2
    assert page.has("region", "N00777")
    client.post(at(opened, "clash-choose"), {"person": victim.row.pk})
    assert [one.pk for one in waiting_for_cohort(opened)] == [victim.row.pk]
    assert Participant.objects.filter(pk=claimant.row.pk).exists(), "both are kept"
    assert set(Cohort.objects.get().students.values_list("original_id", flat=True)) == {"N0", "N1"}


def test_answers_by_a_link_or_a_sign_in_count_before_those_by_a_code(
    opened: Questionnaire, finish: Finish
) -> None:
    invited = finish("N1", 0, email="anna@x.example")
    finish("N1", 1)
    signed_in = finish("N2", 0, subject="p:2")
    finish("N2", 1)
    assert waiting_for_cohort(opened) == [invited, signed_in]
    assert [clash.is_open for clash in sorted_answers(opened)[1]] == [False, False]
    finish("N1", 2, email="another@x.example")
    assert waiting_for_cohort(opened) == [signed_in], "two links with one number are a clash too"


def test_the_same_answers_twice_are_no_decision(opened: Questionnaire, finish: Finish) -> None:
    first = finish("N1", 3)
    finish("N1", 3)
    assert waiting_for_cohort(opened) == [first]
    assert not sorted_answers(opened)[1][0].is_open


def test_what_is_in_a_cohort_stays_and_a_later_claim_is_seen(
    bob: User, opened: Questionnaire, finish: Finish, client_of: Callable[[User], Client]
) -> None:
    first = finish("N1", 0)
    finish("N2", 0)
    cohort_from_answers(user=bob, questionnaire=opened, name="All")
    later = finish("N1", 2)
    assert waiting_for_cohort(opened) == []
    (clash,) = sorted_answers(opened)[1]
    assert (clash.counting, clash.is_in_cohort, clash.n_different) == (first, True, 1)
    common = {"user": bob, "questionnaire": opened}
    with pytest.raises(QuestionnaireError, match="in a cohort already"):
        answers_choose(**common, person=later.pk)
    with pytest.raises(QuestionnaireError, match="in a cohort, which knows"):
        number_correct(**common, person=first.pk, number="N9")
    page = Page(client_of(bob).get(at(opened, "clashes")))
    assert len(page.every("button", "Count these answers")) == 1
    number_correct(**common, person=later.pk, number="N3")
    assert waiting_for_cohort(opened) == [Participant.objects.get(pk=later.pk)]


def test_a_decision_is_taken_back(bob: User, opened: Questionnaire, finish: Finish) -> None:
    first, second = finish("N1", 0), finish("N1", 1)
    common = {"user": bob, "questionnaire": opened}
    assert answers_choose(**common, person=second.pk) == [first.pk]
    assert waiting_for_cohort(opened) == [second]
    answers_restore(**common, people=[first.pk])
    assert waiting_for_cohort(opened) == []
    assert list(AuditLine.objects.filter(target_id=str(opened.pk)).values_list("verb", flat=True))[
        :2
    ] == ["brought back answers", "set answers aside"]
    with pytest.raises(QuestionnaireError, match="None of these answers"):
        answers_restore(**common, people=[first.pk])


def test_a_mistyped_number_makes_two_people(
    bob: User, opened: Questionnaire, finish: Finish
) -> None:
    first, second = finish("N1", 0), finish("N1", 1)
    common = {"user": bob, "questionnaire": opened, "person": second.pk}
    for bad in ("", "  ", "n1", "x" * 201, "a\x00b"):
        with pytest.raises(QuestionnaireError):
            number_correct(**common, number=bad)
    assert number_correct(**common, number=" N 2 ") == "N1"
    assert names(opened) == [first.identifier, "N 2"]
    with pytest.raises(QuestionnaireError, match="nobody else gave this number"):
        number_correct(**common, number="N3")


@pytest.mark.parametrize(("which", "kept"), [("first", 0), ("latest", 1)])
def test_everything_is_decided_alike(
    bob: User, opened: Questionnaire, finish: Finish, which: str, kept: int
) -> None:
    pairs = [(finish(f"N{k}", 0), finish(f"N{k}", 1)) for k in range(3)]
    link = finish("N9", 0, email="anna@x.example")
    finish("N9", 1)
    early = timezone.now() - timedelta(days=1)
    Participant.objects.filter(pk__in=[pair[0].pk for pair in pairs]).update(updated_at=early)
    aside = answers_choose_all(user=bob, questionnaire=opened, which=which)
    assert set(aside) == {pair[1 - kept].pk for pair in pairs}
    assert waiting_for_cohort(opened) == [*(pair[kept] for pair in pairs), link]
    with pytest.raises(QuestionnaireError, match="nothing left to decide"):
        answers_choose_all(user=bob, questionnaire=opened, which=which)
    with pytest.raises(QuestionnaireError, match="Choose"):
        answers_choose_all(user=bob, questionnaire=opened, which="best")


def test_undo_brings_back_what_a_page_set_aside(
    bob: User, opened: Questionnaire, finish: Finish, client_of: Callable[[User], Client]
) -> None:
    first, second = finish("N1", 0), finish("N1", 1)
    client = client_of(bob)
    page = client.post(at(opened, "clash-choose"), {"person": first.pk}, follow=True)
    undo = f"{at(opened, 'clash-restore')}?person={second.pk}"
    assert any(one.address == undo for one in Page(page).every("form"))
    client.post(undo)
    assert not SetAside.objects.exists()


def test_a_refused_number_stays_in_its_field(
    bob: User, opened: Questionnaire, finish: Finish, client_of: Callable[[User], Client]
) -> None:
    finish("N1", 0), finish("N2", 0), finish("N2", 1)
    row = finish("N1", 1)
    sent = {"person": str(row.pk), "number": "x" * 201}
    page = client_of(bob).post(at(opened, "clash-correct"), sent)
    error = "The student number has 1 to 200 letters."
    check_refused(page, {"number": sent["number"]}, field="number", error=error)
    gone = client_of(bob).post(at(opened, "clash-correct"), {"person": "999999999", "number": "N3"})
    assert gone.status_code == 302
    assert set(Participant.objects.values_list("identifier", flat=True)) == {"N1", "N2"}


def test_who_may_decide(
    alice: User,
    bob: User,
    mallory: User,
    opened: Questionnaire,
    finish: Finish,
    client_of: Callable[[User], Client],
) -> None:
    first, second = finish("N1", 0), finish("N1", 1)
    acts = {
        "clash-choose": {"person": first.pk},
        "clash-restore": {"person": second.pk},
        "clash-correct": {"person": second.pk, "number": "N2"},
    }
    for name, fields in acts.items():
        url = at(opened, name)
        assert client_of(alice).post(url, fields).status_code == 403
        assert client_of(mallory).post(url, fields).status_code == 404
        assert "/sign-in/" in Client().post(url, fields).url
    for user, status in ((alice, 403), (mallory, 404), (bob, 200)):
        assert client_of(user).get(at(opened, "clashes")).status_code == status
    assert not SetAside.objects.exists()
    other = Questionnaire.objects.create(
        organisation=mallory.organisation, title="Theirs", content=opened.content
    )
    for name, fields in acts.items():  # their page, our people
        client_of(mallory).post(at(other, name), fields)
    assert not SetAside.objects.exists()
    assert set(Participant.objects.values_list("identifier", flat=True)) == {"N1"}


def test_pages_of_staff_ask_no_more_for_more_people(
    bob: User,
    opened: Questionnaire,
    finish: Finish,
    client_of: Callable[[User], Client],
    django_assert_max_num_queries: Callable,
) -> None:
    for k in range(30):
        finish(f"N{k:05d}", answer=k % 2)
    finish("N00001", answer=1), finish("N00002", answer=1)
    client = client_of(bob)
    for name in ("questionnaire", "people", "settings", "texts", "answers-people"):
        assert client.get(at(opened, name)).status_code == 200
        with django_assert_max_num_queries(32):
            client.get(at(opened, name))
