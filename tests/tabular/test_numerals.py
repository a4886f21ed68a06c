"""Columns of numbers as people type them are read in groups, whatever unit stands beside them."""

import pytest

from engine.tabular.numerals import number_style, suggest_groups


def groups(cells: list[str]) -> tuple[str, ...]:
    style = number_style(cells)
    found = suggest_groups(cells, style) if style else None
    return found.levels if found else ()


@pytest.mark.parametrize(
    ("cells", "first", "last"),
    [
        ([f"${k}" for k in range(400, 1000, 25)], "under 500 $", "900 $ or more"),
        ([f"${k}/month" for k in range(400, 1000, 25)], "under 500 $/month", "900 $/month or more"),
        ([f"{k} Euro" for k in range(400, 1000, 25)], "under 500 €", "900 € or more"),
        ([f"$1,{k}" for k in range(100, 999, 40)], "under 1300 $", "1800 $ or more"),
        ([f"1.{k} €" for k in range(100, 999, 40)], "under 1300 €", "1800 € or more"),
        ([f"{k}°F" for k in range(60, 80)], "under 64 °F", "76 °F or more"),
        (["68", "70 F", "72°F", "65", "66 F", "74 F"], "under 66 °F", "72 °F or more"),
        ([f"{k} percent" for k in range(0, 100, 5)], "under 20 %", "80 % or more"),
        ([f"{k} hours per week" for k in range(2, 22)], "under 6 hours per week",
         "18 hours per week or more"),
        (["1 hour per week", *(f"{k} hours per week" for k in range(2, 21))],
         "under 4 hours per week", "16 hours per week or more"),
        ([f"{k} times a week" for k in range(20)], "under 4 times a week",
         "16 times a week or more"),
        (["30 min", "45 min", "1 hour", "1.5 hours", "2 hours", "3 hours", "20 min", "4 h"],
         "under 0.5 h", "3 h or more"),
        (["11pm", "23:30", "12 AM", "midnight", "22:30", "10 pm", "1:30 am", "0:15"],
         "before 22:30", "00:00 or later"),
    ],
)  # fmt: skip
def test_numbers_with_units_are_grouped(cells: list[str], first: str, last: str) -> None:
    """Sums with a sign before them, and units of several words, were taken for free text."""
    found = groups(cells)
    assert (found[0], found[-1]) == (first, last)


@pytest.mark.parametrize(
    "cells",
    [
        [f"{k} North" for k in range(101, 130)],  # rooms
        [f"{k}A" for k in range(101, 130)],
        [f"{k}-{k + 5} min" for k in range(5, 100, 5)],
        ["5 km", "3 miles", "2 km", "4 miles"],
        ["1.234", "2.345", "3.456"],  # a decimal mark or one of thousands
    ],
)
def test_other_texts_are_no_numbers(cells: list[str]) -> None:
    assert number_style(cells) is None


def test_minutes_are_parts_of_hours() -> None:
    style = number_style(["30 min", "2 hours", "1.5 h"])
    assert style is not None
    assert [style.value(text) for text in ("30 min", "1.5 hours", "2")] == [0.5, 1.5, 2.0]
    style = number_style(["30 min", "45 min", "20 min"])
    assert style is not None
    assert style.value("2 hours") == 120.0
