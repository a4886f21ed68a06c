"""Columns that together hold the name of one person, told by what their titles say beside that."""

import pytest

from engine.tabular.identity import columns_by_person
from engine.tabular.pair_choices import guess_pair_choices, with_whole_names
from engine.tabular.pairs import PairsPreview, check_pairs
from engine.tabular.person_search import People
from engine.tabular.reading import read_table

STUDENTS = People(
    labels=("S1", "S2", "S3", "S4"),
    names=("Ann Lee", "Ben Ng", "Cai Lee", "Dia de la Cruz"),
)


@pytest.mark.parametrize(
    ("titles", "people"),
    [
        (["ROOMMATE_LAST", "ROOMMATE_FIRST"], [[1, 0]]),
        (["Roommate 1 First Name", "Roommate 1 Last Name", "Roommate 2"], [[0, 1], [2]]),
        (["RM1_FNAME", "RM1_LNAME", "RM2_FNAME", "RM2_LNAME"], [[0, 1], [2, 3]]),
        (["First name of roommate", "Last name of roommate"], [[0, 1]]),
        (["Vorname Mitbewohner", "Nachname Mitbewohner"], [[0, 1]]),
        (["First choice", "Second choice"], [[0], [1]]),
        (["Roommate first name", "Friend last name"], [[0], [1]]),
        (["Roommate", "Roommate last name"], [[0], [1]]),
        (["Roommate first name", "Roommate first name", "Roommate last name"], [[0], [1], [2]]),
        (["Roommate 1", "Roommate 2"], [[0], [1]]),
        ([], []),
    ],
)
def test_parts_of_one_name_share_the_rest_of_their_titles(
    titles: list[str], people: list[list[int]]
) -> None:
    assert columns_by_person(dict(enumerate(titles))) == people


def read(text: str) -> PairsPreview:
    table = with_whole_names(read_table(text.encode()))
    return check_pairs(table, STUDENTS, guess_pair_choices(table, STUDENTS))


@pytest.mark.parametrize(
    "text",
    [
        "First Name,Last Name,Roommate First Name,Roommate Last Name\n"
        "Ann,Lee,Ben,Ng\nCai,Lee,Dia,de la Cruz\n",
        "LAST,FIRST,RM_LAST,RM_FIRST\nLee,Ann,Ng,Ben\nLee,Cai,de la Cruz,Dia\n",
        "Student,Roommate First Name,Roommate Last Name\nAnn Lee,Ben,Ng\nCai Lee,Dia,de la Cruz\n",
    ],
)
def test_past_roommates_in_two_columns_each_are_found(text: str) -> None:
    """Each given name was a student whom nobody knows."""
    found = read(text)
    assert (found.pairs, found.errors) == (((0, 1), (2, 3)), ())


def test_a_roster_of_given_and_family_names_is_read() -> None:
    found = read("Last,First,Room\nLee,Ann,101\nNg,Ben,101\nLee,Cai,102\nde la Cruz,Dia,102\n")
    assert found.shared_rooms == (("101", (0, 1)), ("102", (2, 3)))
