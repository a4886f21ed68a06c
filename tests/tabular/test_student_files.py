"""Columns of files about students, told by their titles and by whom their cells name."""

import pytest

from engine.tabular.person_search import By, People
from engine.tabular.reading import read_table
from engine.tabular.student_files import (
    choice_columns,
    e_mail_column,
    name_columns,
    need_columns,
    ranked_choices,
    wanted_columns,
    who_columns,
)

PEOPLE = People(
    ("N01", "N02", "N03"),
    ("ash@u.example", "birch@u.example", ""),
    ("Ann Ash", "Ben Birch", "Ben Birch"),
)


def find(text: str) -> tuple[int, ...]:
    return next((found for kind in By if (found := PEOPLE.all_by(kind, text))), ())


def titles(text: str, columns: tuple[int, ...] | list[int]) -> list[str]:
    return [read_table(text.encode()).header[k] for k in columns]


@pytest.mark.parametrize(
    ("text", "who", "wanted"),
    [
        ("a,b\nN01,N02\nN02,N03\n", ["a"], ["b"]),
        ("Roommate,Me\nN01,N02\nN02,N03\n", ["Me"], ["Roommate"]),
        ("First name,Last name,Friend\nAnn,Ash,N02\n", ["First name", "Last name"], ["Friend"]),
        ("Last,First,Wish\nAsh,Ann,N02\n", ["First", "Last"], ["Wish"]),
        ("LAST_NM,FIRST_NM,Wish\nAsh,Ann,N02\n", ["FIRST_NM", "LAST_NM"], ["Wish"]),
        ("LName,FName,Wish\nAsh,Ann,N02\n", ["FName", "LName"], ["Wish"]),
        ("Row,Mail,Wants\n1,ASH@u.example,N02\n", ["Mail"], ["Wants"]),
        ("Response,Student,Live with\nR_1,N01,N02\n", ["Student"], ["Live with"]),
    ],
)
def test_who_asks_and_whom_they_want(text: str, who: list[str], wanted: list[str]) -> None:
    table = read_table(text.encode())
    found = wanted_columns(table, find)
    assert titles(text, found) == wanted
    assert titles(text, who_columns(table, find, found)) == who


@pytest.mark.parametrize(
    ("text", "who"),
    [
        (
            "Student ID,First name,Last name\nN01,Ann,Ash\nN02,Ben,Birch\nN03,Ben,Birch\n"
            "N02,Ben,Birch\nN99,Ann,Ash\n",
            ["Student ID"],  # the last row is a namesake, not Ann of N01
        ),
        (
            "ID,First name,Last name\n1,Ann,Ash\n2,Ben,Birch\nN03,Ben,Birch\n",
            ["First name", "Last name"],  # numbers of rows, one of them an id by chance
        ),
    ],
)
def test_ids_are_trusted_before_names(text: str, who: list[str]) -> None:
    assert titles(text, who_columns(read_table(text.encode()), find)) == who


SURVEY = (
    "Id,I study with music on.,I prefer a quiet floor.,Do you want a roommate?,"
    "Which hall do you prefer?,What temperature do you prefer?,Step-free room,Roommate,Last name\n"
    "N01,Agree,Disagree,Yes,Elm,Warm,yes,Ben Birch,Ash\n"
    "N02,Disagree,Agree,No,No preference,Cold,,ash@u.example,Birch\n"
)


def test_a_survey_says_less_than_its_words() -> None:
    """ "With music" was a request, "quiet floor: Agree" a need, a temperature a choice of hall."""
    table = read_table(SURVEY.encode())
    who = who_columns(table, find, wanted_columns(table, find))
    assert titles(SURVEY, who) == ["Id"]
    assert titles(SURVEY, wanted_columns(table, find)) == ["Roommate"]
    assert titles(SURVEY, choice_columns(table, who)) == ["Which hall do you prefer?"]
    assert titles(SURVEY, need_columns(table, who)) == ["Step-free room"]
    assert titles(SURVEY, name_columns(table, who)) == ["Last name"]
    assert e_mail_column(table, who) is None, "the e-mails are of roommates"


def test_choices_of_a_small_file_need_no_words() -> None:
    text = "id,first,second\nN01,Elm,Alder\n"
    assert titles(text, choice_columns(read_table(text.encode()), (0,))) == ["first", "second"]
    text = "id,Name,A,B\nN01,Ann,Elm,Alder\n"
    assert titles(text, choice_columns(read_table(text.encode()), (0,))) == ["A", "B"]
    assert ranked_choices(["Elm", "No preference", "N/A", "Elm", " Alder  Hall"]) == [
        "Elm",
        "Alder Hall",
    ]


@pytest.mark.parametrize(
    ("others", "own"),
    [
        ("Parent email", "Student email"),
        ("Emergency contact e-mail", "Email"),
        ("Roommate's email", "Email"),
        ("Advisor email", "University email"),
        ("GuardianEmail", "Email Address"),
        ("Email 1 (mother)", "Email"),
        ("Personal email", "University email"),
        ("Alternate Email", "Email"),
        ("Old email", "Current email"),
        ("Do not place with (email)", "Email"),
    ],
)
@pytest.mark.parametrize("is_blank", [True, False])
def test_letters_go_to_the_student(others: str, own: str, is_blank: bool) -> None:
    """The fuller column was taken, so that letters about roommates went to parents."""
    rows = [
        f"N{k},mum{k}@home.example,{'' if is_blank and k % 4 == 0 else f's{k}@u.example'}"
        for k in range(12)
    ]
    table = read_table("\n".join([f"id,{others},{own}", *rows]).encode())
    assert e_mail_column(table, [0]) == 2


@pytest.mark.parametrize("title", ["Parent email", "Mother's e-mail", "Emergency contact email"])
def test_e_mails_of_parents_alone_are_none_of_students(title: str) -> None:
    rows = [f"N{k},mum{k}@home.example" for k in range(12)]
    assert e_mail_column(read_table("\n".join([f"id,{title}", *rows]).encode()), [0]) is None


def test_a_column_that_is_nearly_empty_is_not_the_e_mail() -> None:
    rows = [f"N{k},s{k}@home.example,{'s@u.example' if k == 3 else ''}" for k in range(12)]
    text = "\n".join(["id,Email,University email", *rows])
    assert e_mail_column(read_table(text.encode()), [0]) == 1


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("id,First name,Last name,Parent name", ["First name", "Last name"]),
        ("id,Name,Emergency contact name", ["Name"]),
        ("id,Full name,Hall name,Program name", ["Full name"]),
        ("id,First Name,Middle Name,Last Name,Maiden name", ["First Name", "Last Name"]),
        ("id,Last Name,Full Name,First Name", ["First Name", "Last Name"]),
        ("id,Username,Name,Pet name", ["Name"]),
        ("id,Preferred name,Name", ["Name"]),
        ("id,Preferred name,Last name", ["Preferred name", "Last name"]),
        ("id,Parent name", []),
    ],
)
def test_a_name_is_the_students_and_said_once(header: str, names: list[str]) -> None:
    """All columns of names were joined: that of a parent, of a hall, and parts of it twice."""
    rows = [",".join([f"N{k}", *(f"Word{j}{k}" for j in range(header.count(",")))]) for k in "abcd"]
    table = read_table("\n".join([header, *rows]).encode())
    assert [table.header[k] for k in name_columns(table, [0])] == names


def test_names_are_no_needs() -> None:
    text = "id,Preferred name,Name,Quiet\nN01,Al,Ann,yes\nN02,Bo,Ben,no\n"
    assert need_columns(read_table(text.encode()), [0]) == (3,)
