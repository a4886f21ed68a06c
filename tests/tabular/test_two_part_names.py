"""Columns that together hold the name of one person, told by what their titles say beside that."""

import pytest

from engine.tabular.identity import columns_by_person


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
