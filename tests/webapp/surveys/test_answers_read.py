"""Staff read the answers of students: texts, people, questions, files, the API."""

import csv
import io
from collections.abc import Callable

import pytest
from django.urls import reverse
from openpyxl import load_workbook

from tests.webapp.surveys.conftest import Student
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
    page = client.get(at("texts", asked)).content.decode()
    for text in (RAMP, "Thank you!", "N000"):
        assert text in page
    assert "3 to read" in page
    assert "Read 3 texts that students wrote" in client.get(reverse("common:home")).content.decode()
    ramp = WrittenAnswer.objects.get(participant=nine[0].row)
    done = client.post(at("texts-handle", asked), {"text": ramp.pk}, follow=True).content.decode()
    assert "1 text is marked as handled." in done
    assert RAMP not in done
    assert RAMP in client.get(at("texts", asked) + "?show=handled").content.decode()
    undo = at("texts-reopen", asked) + f"?text={ramp.pk}"
    assert undo in done.replace("&amp;", "&")
    client.post(undo)
    assert RAMP in client.get(at("texts", asked)).content.decode()
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
    page = client_of(bob).get(f"{at('texts', asked)}?{query}").content.decode()
    assert page.count('name="text"') == count


def test_people_are_found_by_what_they_wrote_and_chose(
    bob: User, asked: Questionnaire, nine: list[Student], client_of: Callable
) -> None:
    client, url = client_of(bob), at("answers-people", asked)

    def found(query: str) -> int:
        return client.get(f"{url}?{query}").content.decode().count("data-lead")

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
    questions = client.get(at("answers-questions", asked)).content.decode()
    assert f"?question={chosen.key}&amp;option=0" in questions
    assert "Read 3 texts" in questions


def test_one_person_is_read_with_every_answer_in_words(
    bob: User, asked: Questionnaire, nine: list[Student], client_of: Callable
) -> None:
    row = nine[0].row
    page = client_of(bob).get(at("answers-person", asked, row.pk)).content.decode()
    assert RAMP in page
    for question in questions_of(asked.content):
        assert question.in_words(row.answers.get(question.key)) in page
    assert "Rather not say" in page
    assert at("answers-person", asked, nine[1].row.pk) in page
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
    page = client.get(at("text-need", asked, early.pk)).content.decode()
    assert RAMP in page
    said = client.post(at("text-need", asked, early.pk), {"need": "step-free"}, follow=True)
    assert "It joins the cohort together with" in said.content.decode()
    cohort = cohort_from_answers(user=bob, questionnaire=asked, name="First")
    assert "Needs" in cohort.constraints
    said = client.post(at("text-need", asked, late.pk), {"need": "quiet"}, follow=True)
    assert "S-1002 of First needs “quiet” from now on." in said.content.decode()
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
    page = answer.content.decode()
    assert "field__error" in page
    assert f'value="{need}"' in page or not need
    text.refresh_from_db()
    assert (text.need, text.handled_at) == ("", None)


def test_texts_go_with_who_wrote_them(nine: list[Student]) -> None:
    nine[0].client.post(nine[0].url, {"action": "withdraw", "sure": "yes"})
    assert Participant.objects.count() == 8
    assert WrittenAnswer.objects.count() == 2
