"""A table under the choices: rows that count, names, and effective cells."""

from dataclasses import replace

import pytest

from engine.tabular.choices import Choices, ColumnChoice, Keep, Kind, Role
from engine.tabular.chosen_table import ChosenTable
from engine.tabular.multiple_answers import Part
from engine.tabular.reading import read_table
from engine.tabular.table import Table

SURVEY = (
    "id,Ended,Smokes,Hobbies\n"
    "a@x.org,2026-03-02 10:00,Yes,Chess; Tennis\n"
    "b,2026-03-01 10:00,No,Chess\n"
    "A@x.org,2026-03-01 09:00,never,N/A\n"
    "n/a,2026-03-03 10:00,No,Tennis\n"
)


@pytest.fixture
def table() -> Table:
    return read_table(SURVEY.encode())


@pytest.fixture
def choices() -> Choices:
    question = ColumnChoice(Role.QUESTION, Kind.BINARY, ("No", "Yes"))
    chess = replace(
        question, part=Part(3, "semicolons", "Chess", ("Chess", "Tennis")), name="Chess"
    )
    ignored = ColumnChoice(Role.IGNORE)
    return Choices((ColumnChoice(Role.ID), ignored, question, ignored, chess))


def test_all_rows_count_unless_they_are_left_out(table: Table, choices: Choices) -> None:
    assert ChosenTable(table, choices).rows == (2, 3, 4, 5)
    chosen = ChosenTable(table, choices.without_rows([3], "hand"))
    assert (chosen.kept, chosen.rows, dict(chosen.dropped)) == ((0, 2, 3), (2, 4, 5), {3: "hand"})


@pytest.mark.parametrize(
    ("keep", "rows"), [(Keep.ALL, (2, 3, 4, 5)), (Keep.FIRST, (2, 3, 5)), (Keep.JOINED, (2, 3, 5))]
)
def test_people_who_answered_twice_count_as_chosen(
    table: Table, choices: Choices, keep: Keep, rows: tuple[int, ...]
) -> None:
    """E-mails are the same person in any capitals; cells of "n/a" are nobody's."""
    chosen = ChosenTable(table, replace(choices, keep=keep))
    assert dict(chosen.repeats) == {"a@x.org": [0, 2]}
    assert chosen.rows == rows


def test_the_latest_row_is_the_one_with_the_last_time(choices: Choices) -> None:
    table = read_table(SURVEY.replace("Ended", "Timestamp").encode())
    chosen = ChosenTable(table, replace(choices, keep=Keep.LATEST))
    assert chosen.rows == (2, 3, 5), "row 4 stands below row 2, but is older"
    assert dict(chosen.dropped) == {4: "repeat"}


def test_joined_rows_fill_each_others_blanks(choices: Choices) -> None:
    table = read_table(b"id,a,Smokes,b\nu1,1,,p\nu1,2,Yes,q\nu2,3,No,r\n")
    three = Choices((*choices.columns[:3], choices.columns[1]), keep=Keep.JOINED)
    assert ChosenTable(table, three).cells(2) == ["Yes", "No"]


def test_cells_are_read_with_meanings_and_blanks(table: Table, choices: Choices) -> None:
    chosen = ChosenTable(table, choices.with_meaning(2, "never", "No"))
    assert chosen.cells(2) == ["Yes", "No", "No", "No"]
    assert chosen.cells(0) == ["a@x.org", "b", "A@x.org", ""]
    assert list(chosen.file_cells(0)) == ["a@x.org", "b", "A@x.org", "n/a"]
    assert chosen.all_cells(0) == chosen.cells(0)


def test_a_column_made_of_another_reads_its_cells(table: Table, choices: Choices) -> None:
    column = ChosenTable(table, choices).column(4)
    assert (column.name, column.header, column.wording) == ("Chess", "", "Hobbies: Chess")
    assert list(column.cells) == ["Yes", "Yes", "", "No"]
    assert (column.counts, column.n_blank) == ({"Yes": 2, "No": 1}, 1)


def test_a_column_has_the_name_that_staff_gave_it(table: Table, choices: Choices) -> None:
    chosen = ChosenTable(table, choices.with_column(2, name="Smoking"))
    assert (chosen.name(2), chosen.wording(2)) == ("Smoking", "Smokes")
    assert (chosen.name(1), chosen.wording(1)) == ("Ended", "")


def test_ids_in_other_capitals_are_told_but_not_e_mails(choices: Choices) -> None:
    table = read_table(b"id,a,Smokes,b\nN1,1,Yes,p\nn1,2,No,q\na@x,3,No,r\nA@x,4,No,s\n")
    three = Choices((*choices.columns[:3], choices.columns[1]))
    assert ChosenTable(table, three).spelled_apart(0) == [("N1", "n1")]
