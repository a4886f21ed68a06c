"""Files with another shape than one row a student: said in a sentence, never read as students."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.tabular.choices import Role
from engine.tabular.guesses import guess_choices
from engine.tabular.preview import build_preview
from engine.tabular.reading import read_table
from engine.tabular.review import Review, review
from engine.tabular.unattended import read_unattended
from tests.tabular.file_writers import as_csv
from tests.tabular.test_files_as_they_come import settled

SCALE = ("Never", "Rarely", "Sometimes", "Often", "Always")
QUESTIONS = ["Tidy", "Quiet", "Early", "Guests", "Music"]
NUMBERS = [f"S{1000 + k}" for k in range(12)]
RNG = np.random.default_rng(1)
ANSWERS = [[SCALE[k] for k in row] for row in RNG.integers(5, size=(12, 5))]
TURNED = [["Question", *NUMBERS]]
TURNED += [[asked, *said] for asked, said in zip(QUESTIONS, np.transpose(ANSWERS), strict=True)]


def found_in(rows: list[list[str]]) -> Review:
    table = read_table(as_csv(rows))
    return review(build_preview(table, guess_choices(table)))


def errors_of(rows: list[list[str]]) -> list[str]:
    return [cause.title for cause in found_in(rows).causes if cause.is_error]


def test_students_in_columns_are_not_read_as_questions() -> None:
    (title,) = errors_of(TURNED)
    assert title == "The columns seem to be students (S1000, S1001, …), and the rows questions"
    assert not settled(read_table(as_csv(TURNED))).preview.can_import
    with pytest.raises(InvalidProblemError, match="paste it transposed"):
        read_unattended(read_table(as_csv(TURNED)), "all")


def test_staff_may_say_that_such_columns_are_questions() -> None:
    table = read_table(as_csv(TURNED))
    found = review(build_preview(table, guess_choices(table)))
    (cause,) = [cause for cause in found.causes if cause.is_error]
    assert cause.other is not None
    choices = cause.other.act(guess_choices(table))
    assert review(build_preview(table, choices)).preview.can_import


def test_numbered_questions_are_no_students() -> None:
    names = ["Ana Lopez", "Bo De La Cruz", "Cy Dunn", "Di Ek", "Ed Fox", "Flo Gage"] * 2
    rows = [["Name", "101", "102", "103", "104", "105"]]
    rows += [[name, *said] for name, said in zip(names, ANSWERS, strict=True)]
    assert not [title for title in errors_of(rows) if title.startswith("The columns")]
    rows = [["Student ID", *(f"Q{k}" for k in range(101, 106))]]
    rows += [[number, *said] for number, said in zip(NUMBERS, ANSWERS, strict=True)]
    assert errors_of(rows) == []


def one_a_row(id_title: str) -> list[list[str]]:
    rows = [["nr", id_title, "item", "answer"]]
    for number, answers in zip(NUMBERS, ANSWERS, strict=True):
        rows += [
            [str(len(rows) + k), number, question, said]
            for k, (question, said) in enumerate(zip(QUESTIONS, answers, strict=True))
        ]
    return rows


@pytest.mark.parametrize("title", ["student_id", "Student number", "Respondent ID", "NetID"])
def test_one_answer_a_row_is_no_student_a_row(title: str) -> None:
    assert errors_of(one_a_row(title)) == ["Each row is one answer, not one student"]
    table = read_table(as_csv(one_a_row(title)))
    assert not settled(table).preview.can_import
    with pytest.raises(InvalidProblemError, match="pivot table"):
        read_unattended(table, "all")


def test_a_student_with_three_rows_of_answers_is_asked_about() -> None:
    rows = [["student_id", "wave", *QUESTIONS]]
    for number, answers in zip(NUMBERS, ANSWERS, strict=True):
        rows += [[number, str(wave), *answers[wave:], *answers[:wave]] for wave in range(3)]
    assert errors_of(rows) == ["12 people answered more than once"]


def test_a_code_of_a_campus_is_no_student() -> None:
    rows = [["Campus code", *QUESTIONS]]
    rows += [[f"C{k % 3}", *said] for k, said in enumerate(ANSWERS)]
    table = read_table(as_csv(rows))
    assert guess_choices(table).columns[0].role is not Role.ID


def test_responses_that_were_not_finished_are_offered_to_be_left_out() -> None:
    status = ["Complete"] * 10 + ["Partial", "In progress"]
    rows = [["Response ID", "Status", "Student ID", *QUESTIONS]]
    rows += [
        [str(k), step, number, *said]
        for k, (step, number, said) in enumerate(zip(status, NUMBERS, ANSWERS, strict=True))
    ]
    found = found_in(rows)
    assert found.preview.columns[1].choice.role is Role.IGNORE
    (cause,) = [cause for cause in found.causes if cause.key == "unfinished"]
    assert cause.title == "2 answers were not finished"
    assert cause.why.startswith("The survey program marks who stopped")
    assert settled(read_table(as_csv(rows))).preview.n_students == 10


def test_a_status_of_students_stays_a_question() -> None:
    rows = [["Student ID", "Status", *QUESTIONS]]
    rows += [
        [number, ("Single", "Married")[k % 2], *said]
        for k, (number, said) in enumerate(zip(NUMBERS, ANSWERS, strict=True))
    ]
    assert found_in(rows).preview.columns[1].choice.role is Role.QUESTION
