"""Ids and names of students are found by the titles that universities and programs give them."""

import numpy as np
import pytest

from engine.tabular.choices import Role
from engine.tabular.guesses import guess_choices
from engine.tabular.reading import read_table
from tests.tabular.file_writers import as_csv

GIVEN = ["Ana", "Bo", "Cy", "Di", "Ed", "Flo", "Gus", "Hal", "Ida", "Jo", "Kai", "Lou"]
FAMILY = ["Ek", "Chen", "Dunn", "Fox", "Hill", "Ito", "Jung", "Kim", "Lee", "Moss", "Ng", "Lopez"]
SAMPLED = np.random.default_rng(2).permutation(10**6)
NUMBERS = [f"9{k:06d}" for k in SAMPLED[: len(GIVEN)]]


def roles_of(titles: list[str], *columns: list[str]) -> list[Role]:
    """Return the roles of further columns of a survey."""
    rng = np.random.default_rng(1)
    rows = [
        [str(rng.integers(1, 6)), ("Yes", "No")[rng.integers(2)], *cells]
        for cells in zip(*columns, strict=True)
    ]
    table = read_table(as_csv([["Tidy", "Guests", *titles], *rows]))
    return [choice.role for choice in guess_choices(table).columns[2:]]


@pytest.mark.parametrize(
    "title",
    ["CWID", "GTID", "BannerID", "Panther ID", "A-Number", "Z Number", "PersonID", "ID Number",
     "ID No.", "SPRIDEN_ID", "sis_user_id", "MatrNr", "Matr.-Nr.", "N° étudiant", "Carnet", "RUT",
     "学号", "Candidate ID", "Marshall ID", "Q1 Student ID"],
)  # fmt: skip
def test_an_id_is_found_in_any_column(title: str) -> None:
    assert roles_of([title], NUMBERS) == [Role.ID]


@pytest.mark.parametrize(
    "title", ["Phone", "Zip code", "Room number", "Box", "Birth date", "Session ID", "Submission #"]
)
def test_other_numbers_are_no_ids(title: str) -> None:
    found = roles_of([title, "CWID"], NUMBERS, NUMBERS[::-1])
    assert found[1] is Role.ID
    assert found[0] is not Role.ID


def test_where_several_are_ids_the_one_named_so_wins() -> None:
    assert roles_of(["Codigo", "Banner ID"], NUMBERS, NUMBERS[::-1]) == [Role.IGNORE, Role.ID]


def test_numbers_that_repeat_are_no_ids() -> None:
    assert roles_of(["Major"], [NUMBERS[k // 2] for k in range(12)]) != [Role.ID]


@pytest.mark.parametrize(
    "titles",
    [("FirstName", "LastName"), ("first_name", "last_name"), ("NameFirst", "NameLast"),
     ("FName", "LName"), ("Fname", "Lname"), ("FIRST_NM", "LAST_NM"), ("Stu First", "Stu Last"),
     ("SPRIDEN_FIRST_NAME", "SPRIDEN_LAST_NAME"), ("Q1 First Name", "Q2 Last Name"),
     ("LegalFirst", "LegalLast"), ("1. Given name", "2. Surname")],
)  # fmt: skip
def test_both_parts_of_a_name_are_read(titles: tuple[str, str]) -> None:
    assert roles_of([*titles, "CWID"], GIVEN, FAMILY, NUMBERS) == [Role.NAME, Role.NAME, Role.ID]


@pytest.mark.parametrize("title", ["Pet Name", "MotherFirstName", "Contact_Last_Name", "Band name"])
def test_names_of_others_are_not_the_students(title: str) -> None:
    assert roles_of([title, "CWID"], GIVEN, NUMBERS)[0] is not Role.NAME
