"""Staff read the answers of students: texts, people, questions, files, the API."""

import csv
import io
from collections.abc import Callable

import pytest
from django.urls import reverse
from openpyxl import load_workbook

from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.housing.rules import needs_of_student
from webapp.surveys.content import Kind
from webapp.surveys.models import Participant, Questionnaire, WrittenAnswer
from webapp.surveys.questions import questions_of
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open

RAMP = "I use a wheelchair and need a ramp."
FORMULA = '=HYPERLINK("http://evil.example","x")'


@pytest.fixture
def asked(bob: User, opened: Questionnaire) -> Questionnaire:
    """An open questionnaire with a free text."""
    made = questionnaire_create(user=bob, title="Own 2027", form="own")
    questionnaire_open(user=bob, questionnaire=made, closes_at=opened.closes_at)
    return made


def number_of(questionnaire: Questionnaire, kind: Kind) -> int:
    return next(q.number for q in questions_of(questionnaire.content) if q.kind == kind)


@pytest.fixture
def nine(asked: Questionnaire) -> list[Student]:
    """Nine students who finished, of whom the first three wrote something."""
    students = [Student(asked, f"N{k:03d}") for k in range(9)]
    for k, one in enumerate(students):
        one.say_all(k)
    for one, text in zip(students, (RAMP, FORMULA, "Thank you!"), strict=False):
        one.say(number_of(asked, Kind.TEXT), text)
    return students


def at(name: str, questionnaire: Questionnaire, *more: object) -> str:
    return reverse(f"surveys:{name}", args=[questionnaire.pk, *more])


def test_every_text_waits_for_staff_until_it_is_handled(
    bob: User, asked: Questionnaire, nine: list[Student], client_of: Callable
) -> None:
    client = client_of(bob)
    page = Page(client.get(at("texts", asked)))
    for text in (RAMP, "Thank you!", "N000"):
        assert page.has("listitem", text)
    assert page.has("link", "3 to read")
    assert Page(client.get(reverse("common:home"))).has(
        "listitem", "Read 3 texts that students wrote"
    )
    ramp = WrittenAnswer.objects.get(participant=nine[0].row)
    done = Page(client.post(at("texts-handle", asked), {"text": ramp.pk}, follow=True))
    assert done.one("status").says("1 text is marked as handled.")
    assert RAMP not in done.source
    assert Page(client.get(at("texts", asked) + "?show=handled")).has("listitem", RAMP)
    undo = at("texts-reopen", asked) + f"?text={ramp.pk}"
    assert done.one("status").one("form").address == undo
    client.post(undo)
    assert Page(client.get(at("texts", asked))).has("listitem", RAMP)
    client.post(at("texts-handle", asked), {"text": ramp.pk})
    nine[0].say(number_of(asked, Kind.TEXT), RAMP)
    ramp.refresh_from_db()
    assert ramp.handled_at is not None, "the same text again is no other text"
    nine[0].say(number_of(asked, Kind.TEXT), RAMP + " And a lift.")
    ramp.refresh_from_db()
    assert ramp.handled_at is None, "a changed text is read again"
    nine[0].say(number_of(asked, Kind.TEXT), action="skip")
    assert not WrittenAnswer.objects.filter(pk=ramp.pk).exists()
    assert AuditLine.objects.filter(verb="handled texts", user=bob).count() == 2


@pytest.mark.parametrize(
    ("query", "count"),
    [("q=WHEELCHAIR", 1), ("q=n001", 1), ("q=nothing of it", 0), ("show=all", 3), ("show=²", 3)],
)
def test_texts_are_searched(
    bob: User,
    asked: Questionnaire,
    nine: list[Student],
    client_of: Callable,
    query: str,
    count: int,
) -> None:
    page = Page(client_of(bob).get(f"{at('texts', asked)}?{query}"))
    assert len(page.every("checkbox", "Text of ")) == count


def test_people_are_found_by_what_they_wrote_and_chose(
    bob: User, asked: Questionnaire, nine: list[Student], client_of: Callable
) -> None:
    client, url = client_of(bob), at("answers-people", asked)

    def found(query: str) -> int:
        return len(
            [row for row in Page(client.get(f"{url}?{query}")).every("row") if row.has("cell")]
        )

    Student(asked, "N900").say(1, "22:15")
    assert found("") == 10
    assert found("state=finished") == 9
    assert found("state=started") == 1
    assert found("written=1") == 3
    assert found("q=wheelchair") == 1
    assert found("q=N00") == 9
    chosen = next(q for q in questions_of(asked.content) if q.options)
    answers = [one.row.answers[chosen.key] for one in nine]
    assert found(f"question={chosen.key}&option=0") == answers.count(0)
    assert found(f"question={chosen.key}&option=99") == 0
    questions = Page(client.get(at("answers-questions", asked)))
    assert f"?question={chosen.key}&option=0" in questions.one("link", "None").address
    assert questions.has("link", "Read 3 texts")


def test_one_person_is_read_with_every_answer_in_words(
    bob: User, asked: Questionnaire, nine: list[Student], client_of: Callable
) -> None:
    row = nine[0].row
    page = Page(client_of(bob).get(at("answers-person", asked, row.pk)))
    assert RAMP in page.said_of("Is there anything else we should know?")
    for question in questions_of(asked.content):
        answer = page.said_of(question.text)
        assert answer.startswith(question.in_words(row.answers.get(question.key)))
    assert page.said_of("Is there somebody you want to live with?") == "Rather not say"
    assert page.one("link", "Next").address == at("answers-person", asked, nine[1].row.pk)
    other = questionnaire_create(user=bob, title="Other", form="own")
    assert client_of(bob).get(at("answers-person", other, row.pk)).status_code == 404


def test_files_hold_every_answer_and_no_formula(
    bob: User, asked: Questionnaire, nine: list[Student], client_of: Callable
) -> None:
    client = client_of(bob)
    Student(asked, FORMULA).say(1, "21:30")
    answer = client.get(at("answers-file", asked, "csv"))
    rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert len(rows) == 11
    first = dict(zip(rows[0], rows[1], strict=True))
    assert (first["student number"], first["Anything else"]) == ("N000", RAMP)
    cells = [cell for row in rows[1:] for cell in row]
    assert not [cell for cell in cells if cell[:1] in ("=", "@", "+")], "no cell is a formula"
    book = load_workbook(io.BytesIO(client.get(at("texts-file", asked, "xlsx")).content))
    sheet = list(book.active.iter_rows())
    assert len(sheet) == 4
    assert "f" not in {cell.data_type for row in sheet for cell in row}
    one = client.get(at("texts-file", asked, "csv") + "?q=wheelchair").content.decode()
    assert len(one.splitlines()) == 2
    assert AuditLine.objects.filter(verb="exported", user=bob).count() == 3


def test_a_text_becomes_a_need_before_and_after_there_is_a_cohort(
    bob: User, asked: Questionnaire, nine: list[Student], client_of: Callable
) -> None:
    client = client_of(bob)
    early, late = (WrittenAnswer.objects.get(participant=one.row) for one in nine[:2])
    page = Page(client.get(at("text-need", asked, early.pk)))
    assert page.says(RAMP)
    said = client.post(at("text-need", asked, early.pk), {"need": "step-free"}, follow=True)
    assert Page(said).one("status").says("It joins the cohort together with")
    cohort = cohort_from_answers(user=bob, questionnaire=asked, name="First")
    assert "Needs" in cohort.constraints
    said = client.post(at("text-need", asked, late.pk), {"need": "quiet"}, follow=True)
    assert Page(said).one("status").says("S-1002 of First needs “quiet” from now on.")
    cohort = Cohort.objects.get(pk=cohort.pk)
    needs = [needs_of_student(student, ["Needs"]) for student in cohort.students.all()]
    assert needs[:3] == [("step-free",), ("quiet",), ()]
    assert cohort.revision > 0, "nothing goes on with what it kept"
    assert WrittenAnswer.objects.filter(handled_at=None).count() == 1


@pytest.mark.parametrize("need", ["", "a, b", "x" * 81])
def test_a_need_that_is_none_comes_back_with_what_was_typed(
    bob: User, asked: Questionnaire, nine: list[Student], client_of: Callable, need: str
) -> None:
    text = WrittenAnswer.objects.last()
    answer = client_of(bob).post(at("text-need", asked, text.pk), {"need": need})
    assert answer.status_code == 422
    page = Page(answer, status=422)
    assert page.field("Need").value == need
    assert page.field("Need").description
    text.refresh_from_db()
    assert (text.need, text.handled_at) == ("", None)


def test_texts_go_with_who_wrote_them(nine: list[Student]) -> None:
    nine[0].client.post(nine[0].url, {"action": "withdraw", "sure": "yes"})
    assert Participant.objects.count() == 8
    assert WrittenAnswer.objects.count() == 2
