"""Codes above wordings, or below them, of programs that nobody knows; and rows that are people."""

import numpy as np
import pytest

from engine.tabular.choices import Role
from engine.tabular.layout import layout_at
from engine.tabular.reading import read_source, read_table
from engine.tabular.table import build_table
from tests.tabular.file_writers import as_csv
from tests.tabular.test_files_as_they_come import settled

SCALE = ("Never", "Rarely", "Sometimes", "Often", "Always")
TIDY = ("Very untidy", "Untidy", "Tidy", "Very tidy")
CODES = ["id", "Q1", "Q2", "Q3_1", "Q4"]
WORDINGS = [
    "Student number",
    "How often do you have guests?",
    "How tidy is your desk?",
    "On a usual day, hours of sleep:",
    "Gender",
]


def people(count: int) -> list[list[str]]:
    """Return rows of answers below ids that count up."""
    rng = np.random.default_rng(3)
    return [
        [
            str(70_001 + k),
            SCALE[rng.integers(5)],
            TIDY[rng.integers(4)],
            str(rng.integers(5, 10)),
            "FM"[rng.integers(2)],
        ]
        for k in range(count)
    ]


def test_wordings_below_codes_are_kept_as_long_names() -> None:
    table = read_table(as_csv([CODES, WORDINGS, *people(40)]))
    assert table.header == tuple(CODES)
    assert table.wordings == tuple(WORDINGS)
    assert table.n_rows == 40
    found = settled(table)
    assert found.preview.can_import
    assert found.preview.n_students == 40
    (person,) = found.preview.columns_as(Role.ID)
    assert person.index == 0
    titles = [cause.title for cause in found.causes]
    assert "Row 2 names the columns too" in titles


def test_codes_below_wordings_are_left_out() -> None:
    table = read_table(as_csv([WORDINGS, CODES, *people(40)]))
    assert table.header == tuple(WORDINGS)
    assert table.wordings == ()
    assert table.n_rows == 40


def test_under_a_title_and_with_a_blank_id() -> None:
    rows = [["Survey of 2026"], CODES, ["", *WORDINGS[1:]], *people(40)]
    assert read_table(as_csv(rows)).n_rows == 40


def test_a_row_that_staff_choose_as_the_header_is_the_only_one() -> None:
    source = read_source(as_csv([CODES, WORDINGS, *people(40)]))
    assert build_table(source, layout_at(source, 0, 1)).n_rows == 41
    table = build_table(source, layout_at(source, 0, 2))
    assert (table.header, table.n_rows) == (tuple(WORDINGS), 40)


@pytest.mark.parametrize(
    "first",
    [
        ["70000", "Every single evening, sorry", "Tidy", "7", "F"],
        ["70000", "Every single evening, sorry", "I have no desk at all", "7", "F"],
        ["70000", "Always", "Very tidy", "12", "X"],
        ["new", "n/a", "n/a", "n/a", "n/a"],
        ["70000", "2", "3", "7", "1"],
        ["S1", "Always", "Tidy", "about seven", "prefer not to say"],
    ],
)
def test_the_first_person_stays_however_odd(first: list[str]) -> None:
    table = read_table(as_csv([WORDINGS, first, *people(40)]))
    assert table.rows[0] == tuple(first)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_where_few_answered_nobody_is_taken_for_a_header(count: int) -> None:
    assert read_table(as_csv([CODES, *people(count)])).n_rows == count


def test_essays_are_no_header() -> None:
    rng = np.random.default_rng(5)

    def essay() -> str:
        words = ("and", "then", "we", "like", "music", "late", "never", "cook")
        return " ".join(words[k] for k in rng.integers(8, size=30))

    rows = [[str(k), essay(), essay(), essay(), essay()] for k in range(30)]
    assert read_table(as_csv([CODES, *rows])).n_rows == 30
