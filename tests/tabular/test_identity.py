"""Columns that say who a person is are never questions, also in files of two students."""

import pytest

from engine.tabular.answers import read_answers
from engine.tabular.choices import Role
from engine.tabular.guesses import guess_choices
from engine.tabular.preview import build_preview
from engine.tabular.reading import read_table
from engine.tabular.table import Table
from tests.tabular.file_writers import as_csv

PERSONAL = {
    "First name": ("Ann", "Bob"),
    "Last name": ("Lee", "Ray"),
    "Preferred name": ("Annie", "Bobby"),
    "Name": ("Ann Lee", "Bob Ray"),
    "Student": ("Ann Lee", "Bob Ray"),
    "Resident": ("Ann Lee", "Bob Ray"),
    "Nickname": ("Annie", "Bobby"),
    "Last": ("Lee", "Ray"),
    "First": ("Ann", "Bob"),
    "What name do you go by?": ("Annie", "Bobby"),
    "Vorname": ("Anna", "Bodo"),
    "Pronouns": ("she/her", "he/him"),
    "What are your pronouns?": ("she", "they"),
    "Anything else": ("she/her", "they/them"),
    "E-mail": ("a@x.edu", "b@x.edu"),
    "Email address": ("none yet", "b@x.edu"),
    "Parent's e-mail": ("a@x.edu", "b@x.edu"),
    "Phone": ("555-1234", "555-9999"),
    "Mobile number": ("0171 444", "0172 444"),
    "Emergency contact": ("Mum", "Dad"),
    "Student number": ("12", "13"),
    "Date of birth": ("2001-01-02", "2002-02-03"),
    "Home address": ("1 High Street", "2 Low Street"),
    "Instagram": ("ann_x", "bob_y"),
}
QUESTIONS = {
    "Hall name": ("Baker", "Elm"),
    "Phone use at night": ("often", "never"),
    "Phone": ("often", "never"),
    "Bedtime": ("Early", "Late"),
    "Sleep": ("early bird", "night owl"),
    "Do you use your phone in bed?": ("yes", "no"),
}


def table_of(title: str, cells: tuple[str, str], rows: int) -> Table:
    lines = [["id", title, "Smokes"]]
    lines += [[f"X{k}", cells[k % 2], ("yes", "no")[k % 2]] for k in range(rows)]
    return read_table(as_csv(lines))


def test_full_names_that_all_differ_are_no_question_whatever_their_title() -> None:
    column = guess_choices(table_of("Untitled", ("Ann Lee", "Bob Ray"), 2)).columns[1]
    assert column.role is Role.NAME


@pytest.mark.parametrize("rows", [2, 3, 40])
@pytest.mark.parametrize(("title", "cells"), PERSONAL.items())
def test_a_personal_column_is_never_a_question(
    title: str, cells: tuple[str, str], rows: int
) -> None:
    column = guess_choices(table_of(title, cells, rows)).columns[1]
    assert column.role not in (Role.QUESTION, Role.CONSTRAINT, Role.NEED)


@pytest.mark.parametrize("rows", [2, 40])
@pytest.mark.parametrize(("title", "cells"), QUESTIONS.items())
def test_a_question_with_such_a_word_stays_one(
    title: str, cells: tuple[str, str], rows: int
) -> None:
    column = guess_choices(table_of(title, cells, rows)).columns[1]
    assert column.role in (Role.QUESTION, Role.CONSTRAINT)


def test_the_parts_of_a_name_are_joined_and_others_names_are_left_out() -> None:
    table = read_table(
        as_csv(
            [
                ["id", "Last Name", "First Name", "Preferred name", "Pronouns", "E-mail",
                 "Parent name", "Roommate name", "Smokes"],
                ["1", "Silva", "José", "Zé", "he/him", "jose@x.edu", "Rui Silva", "Ann Lee", "yes"],
                ["2", "Lee", "Ann", "", "she/her", "ann@x.edu", "Kim Lee", "José Silva", "no"],
            ]
        )
    )  # fmt: skip
    choices = guess_choices(table)
    assert [c.role for c in choices.columns] == [
        Role.ID, Role.NAME, Role.NAME, Role.PREFERRED, Role.PRONOUNS, Role.EMAIL, Role.IGNORE,
        Role.IGNORE, Role.QUESTION,
    ]  # fmt: skip
    answers = read_answers(build_preview(table, choices))
    assert answers.names == ("José Silva", "Ann Lee")
    assert answers.preferred == ("Zé", "")
    assert answers.pronouns == ("he/him", "she/her")
    assert answers.emails == ("jose@x.edu", "ann@x.edu")


def test_a_column_of_full_names_wins_over_its_parts() -> None:
    table = read_table(
        as_csv(
            [
                ["id", "First name", "Full name", "Smokes"],
                ["1", "José", "José Silva", "yes"],
                ["2", "Ann", "Ann Lee", "no"],
            ]
        )
    )
    roles = [c.role for c in guess_choices(table).columns]
    assert roles == [Role.ID, Role.IGNORE, Role.NAME, Role.QUESTION]
