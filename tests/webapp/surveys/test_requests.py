"""Requests speak: codes that nobody has, one-sided and mutual ones, declined ones."""

from collections.abc import Callable

import pytest
from django.urls import reverse

from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.housing.models import RoommateRequest
from webapp.surveys.content import Kind
from webapp.surveys.models import Questionnaire, RequestedPerson
from webapp.surveys.questions import questions_of
from webapp.surveys.selectors.requests import request_counts, request_lines, requests_of
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open


@pytest.fixture
def asked(bob: User, opened: Questionnaire) -> Questionnaire:
    made = questionnaire_create(user=bob, title="Own 2027", form="own")
    questionnaire_open(user=bob, questionnaire=made, closes_at=opened.closes_at)
    return made


@pytest.fixture
def three(asked: Questionnaire) -> list[Student]:
    return [Student(asked, f"N{k}") for k in range(3)]


def number_of(asked: Questionnaire) -> int:
    return next(q.number for q in questions_of(asked.content) if q.kind is Kind.REQUEST)


def ask(student: Student, code: str) -> object:
    return student.say(number_of(student.questionnaire), code)


def shown(student: Student) -> Page:
    number = number_of(student.questionnaire)
    return Page(student.client.get(f"{student.url}?n={number}"))


def press(student: Student, act: str, code: str) -> object:
    fields = {"n": number_of(student.questionnaire), "action": act, "code": code}
    return student.client.post(student.url, fields)


def test_a_code_that_nobody_has_and_ones_own_are_told_at_once(three: list[Student]) -> None:
    anna, ben, _ = three
    for code, sentence in (
        ("ABCD2345", "Nobody has the code ABCD2345."),
        (anna.row.code, "This is your own code."),
    ):
        answer = ask(anna, code)
        assert answer.status_code == 422
        page = Page(answer, status=422)
        assert page.one("alert").says(sentence)
        assert page.field("live with").value == code, "what was typed stays"
    assert not RequestedPerson.objects.exists()
    assert ask(anna, ben.row.code).status_code == 302
    note = f"The person with the code {ben.row.code} has not asked for you yet."
    assert shown(anna).has("status", note)
    assert note not in Page(ask(anna, "ABCD2345"), status=422).source, "it is about the code before"
    assert shown(anna).has("status", note), "which stays"


def test_a_code_of_another_questionnaire_is_nobodys(
    three: list[Student], opened: Questionnaire
) -> None:
    stranger = Student(opened, "N1")
    assert ask(three[0], stranger.row.code).status_code == 422


@pytest.mark.parametrize("written", ["{}-{}", " {} {} ", "{}–{}", "{}.{}"])
def test_hyphens_spaces_and_case_do_not_matter(three: list[Student], written: str) -> None:
    code = three[1].row.code
    assert ask(three[0], written.format(code[:4], code[4:]).lower()).status_code == 302
    assert RequestedPerson.objects.get().target == three[1].row


def test_one_sided_and_mutual_are_told_at_once(three: list[Student]) -> None:
    anna, ben, _ = three
    number = number_of(anna.questionnaire)
    said = anna.client.post(
        anna.url, {"n": number, "answer": ben.row.code, "stays": "1"},
        headers={"X-Requested-With": "fetch"},
    ).json()  # fmt: skip
    assert "has not asked for you yet. Show them your code" in said["note"]
    assert anna.row.code in said["note"]
    assert shown(anna).has("status", "has not asked for you yet")
    assert shown(ben).says(f"The person with the code {anna.row.code} asks to live with you.")
    press(ben, "accept", anna.row.code)
    for one in (anna, ben):
        assert shown(one).has("status", "You asked for each other.")
    assert request_counts(anna.questionnaire) == (2, 1)
    ask(ben, "")
    assert shown(anna).has("status", "has not asked for you yet"), "an answer that is taken away"


def test_a_person_declines_and_nobody_is_told(three: list[Student], bob: User) -> None:
    anna, ben, _ = three
    ask(anna, ben.row.code)
    press(ben, "decline", anna.row.code)
    assert shown(ben).says("You declined the request")
    assert shown(anna).has("status", "has not asked for you yet")
    assert "declin" not in shown(anna).source
    assert requests_of(anna.questionnaire) == []
    press(ben, "take-back", anna.row.code)
    assert len(requests_of(anna.questionnaire)) == 1
    press(ben, "decline", anna.row.code)
    ask(ben, anna.row.code)
    assert [mutual for _, _, mutual in requests_of(anna.questionnaire)] == [True, True]
    refused = press(ben, "decline", anna.row.code)
    assert refused.status_code == 422
    for k, one in enumerate(three):
        one.say_all(k)
    ask(anna, ben.row.code)
    press(ben, "decline", anna.row.code)
    cohort_from_answers(user=bob, questionnaire=anna.questionnaire, name="C")
    assert not RoommateRequest.objects.exists(), "a declined request is none in the cohort"


def test_nobody_declines_for_another(three: list[Student]) -> None:
    anna, ben, carl = three
    ask(anna, ben.row.code)
    assert press(carl, "decline", anna.row.code).status_code == 422
    assert RequestedPerson.objects.get().declined_at is None


def test_staff_see_one_line_for_requests_against_a_rule(
    bob: User, asked: Questionnaire, three: list[Student], client_of: Callable
) -> None:
    anna, ben, carl = three
    gender = next(q.number for q in questions_of(asked.content) if q.is_rule)
    for one, answer in ((anna, 0), (ben, 1), (carl, 0)):
        one.say(gender, answer)
    ask(carl, anna.row.code)
    ask(anna, ben.row.code)
    ask(ben, anna.row.code)
    first, second = request_lines(asked)
    assert (first.is_mutual, first.differs_in) == (True, ("Gender",))
    assert (second.is_mutual, second.differs_in) == (False, ())
    page = client_of(bob).get(reverse("surveys:answers-requests", args=[asked.pk]))
    text = Page(page)
    assert text.text.count("Gender differs") == 1
    assert text.text.count("Both ask for each other") == 1
