"""Whom students do not want is never read as a request: in titles, and in the words of a cell."""

import pytest

from engine.tabular.choices import Role
from engine.tabular.guesses import guess_choices
from engine.tabular.person_search import By, People
from engine.tabular.personal import says_apart
from engine.tabular.preview import build_preview
from engine.tabular.reading import read_table
from engine.tabular.review import review
from engine.tabular.student_files import refuses, wanted_columns
from tests.tabular.file_writers import as_csv

NAMES = ("Ann Ash", "Ben Birch", "Cy Dunn", "Di Elm", "Ed Fox", "Flo Gage", "Gus Hill", "Hal Ito")
PEOPLE = People(tuple(f"N{k:04d}" for k in range(8)), names=NAMES)
APART = ["Do not place with", "do_not_pair", "Who do you NOT want to live with?", "Avoid",
         "I would rather not live with", "People I don't want to room with", "Keep apart from",
         "No-contact order with", "Never place me with", "Not with", "Conflicts with",
         "Mit wem möchtest du nicht zusammen wohnen? (nicht mit)", "No quiero vivir con",
         "Unwanted roommate", "DoNotRoomWith"]  # fmt: skip


def find(text: str) -> tuple[int, ...]:
    return next((found for kind in By if (found := PEOPLE.all_by(kind, text))), ())


@pytest.mark.parametrize("title", APART)
def test_a_list_of_people_to_keep_apart_holds_no_requests(title: str) -> None:
    """ "Do not place with" was read as the wish to live together."""
    rows = [["id", title], *([f"N{k:04d}", NAMES[k + 1]] for k in range(7))]
    assert wanted_columns(read_table(as_csv(rows)), find) == ()
    rows = [["id", "Roommate request", title]]
    rows += [[f"N{k:04d}", NAMES[k + 1], NAMES[k - 1]] for k in range(1, 7)]
    assert wanted_columns(read_table(as_csv(rows)), find) == (1,)


@pytest.mark.parametrize(
    "title",
    ["Roommate request (not guaranteed)", "Requested roommate, if any", "Wants",
     "Name of a friend to live with (leave blank if you do not have one)",
     "Roommate request. We cannot promise to place you with them.", "With", "Preferred roommate"],
)  # fmt: skip
def test_a_request_with_a_reservation_is_one(title: str) -> None:
    assert not says_apart(title)
    rows = [["id", title], *([f"N{k:04d}", NAMES[k + 1]] for k in range(7))]
    assert wanted_columns(read_table(as_csv(rows)), find) == (1,)


@pytest.mark.parametrize("title", APART[:4])
def test_a_survey_says_that_students_name_such_people(title: str) -> None:
    """The column could become the name of the student whose row it is."""
    rows = [["Student ID", "Tidy", "Guests", title]]
    rows += [[f"N{k:04d}", str(k % 3), "Yes" if k % 2 else "No", NAMES[k - 1]] for k in range(8)]
    table = read_table(as_csv(rows))
    choices = guess_choices(table)
    assert choices.columns[3].role is Role.IGNORE
    found = review(build_preview(table, choices))
    (note,) = [cause for cause in found.causes if cause.key == "apart 3"]
    assert note.title.endswith("names people to keep apart")
    assert not [cause for cause in found.causes if cause.key.startswith("requests")]


@pytest.mark.parametrize(
    "cell",
    ["Not Ben Birch", "anyone but Ben Birch", "Please don't put me with Ben Birch", "no quiero Ana",
     "Bitte nicht Ben Birch", "N'importe qui sauf Ana", "I didn’t get along with Ben Birch"],
)  # fmt: skip
def test_words_that_may_turn_a_request_into_its_contrary(cell: str) -> None:
    assert refuses(cell)


@pytest.mark.parametrize("cell", ["Ben Birch", "Ben Birch please", "ash@u.example", "Nott, Kay"])
def test_a_plain_request_is_none_of_these(cell: str) -> None:
    assert not refuses(cell)
