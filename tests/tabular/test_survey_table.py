"""Roles, kinds and orders of answers, on made-up columns and on a real survey."""

from collections import Counter

import pytest

from engine.datasets.csv_table import read_csv_table
from engine.tabular.answer_order import order_answers
from engine.tabular.choices import Role
from engine.tabular.guesses import guess_choices
from engine.tabular.layout import find_layout
from engine.tabular.numerals import number_style
from engine.tabular.reading import read_source
from engine.tabular.survey_table import classify_columns
from engine.tabular.table import build_table
from tests.shared_data import shared_data


def classify_rows(header, rows):
    return classify_columns(header, [Counter(cells) for cells in zip(*rows, strict=True)])


def classify(name, cells):
    return classify_rows(["id", name], [[f"S{k}", cell] for k, cell in enumerate(cells)])[1]


@pytest.mark.parametrize(
    "answers",
    [
        ["Never", "Rarely", "Monthly", "Weekly", "Daily"],
        ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"],
        ["Before 10 pm", "10–11 pm", "11 pm–12", "12–1 am", "After 1 am"],
        ["9-10 pm", "10-11 pm", "11-12 pm", "12-1 am"],
        ["21:30", "22:30", "23:30", "00:30", "1:30"],
        ["before 22:00", "22:00-23:00", "23:00-00:00", "00:00-01:00", "after 1:00"],
        ["00:00-06:00", "06:00-12:00", "12:00-18:00", "18:00-24:00"],
        ["0:30", "1:00", "2:30"],
        ["Before 7 am", "7-8 am", "8-9 am", "After 9 am"],
        ["less than 2", "2-3", "more than 3"],
        ["No", "Yes"],
        ["2", "10", "30"],
        ["Before 10 pm", "10-11 pm", "11 pm-12", "After 12"],
        ["Before 9", "9-10 pm", "10-12 pm", "12-1", "After 1"],
        ["Before 7", "7-8 am", "8-9 am", "After 9"],
        ["(5)", "(2)", "0", "3"],
        ["(1,000)", "(20)", "500"],
        ["(1)", "(2)", "(10)"],
        ["20", "500", "1,000"],
        ["¼", "½", "¾", "1", "1½"],
        ["¼ hour", "½ hour", "1 hour", "1½ hours"],
        ["\u22125", "-1", "0", "3"],
        ["\u22122 or less", "\u22121", "0", "1 or more"],
        ["-10 °C", "-5 °C", "0 °C", "5 °C"],
        ["-2 to -1", "0 to 1", "2 to 3"],
        ["I", "II", "III", "IV", "V"],
        ["Level III", "Level VIII", "Level IX", "Level X"],
        ["i.", "ii.", "iii.", "iv.", "v."],
        ["never smoked", "tried smoking", "former smoker", "current smoker"],
        ["Very quiet", "Quiet", "In between", "Outgoing", "Very outgoing"],
    ],
)
def test_known_orders(answers):
    assert order_answers(reversed(answers)) == (tuple(answers), True)


def test_letters_and_words_are_no_roman_numerals():
    for answers in (["I", "V", "X"], ["I", "We", "You"], ["C", "D", "I"]):
        assert order_answers(answers) == (tuple(answers), False)


def test_unknown_wordings_are_nominal():
    assert order_answers(["Rock", "Folk", "Jazz"]) == (("Folk", "Jazz", "Rock"), False)


@pytest.mark.parametrize(
    ("name", "cells", "role", "kind"),
    [
        ("Gender", ["F", "M", "F", "F"], "constraint", "binary"),
        ("Tidiness", ["1", "2", "5", "3", "4"], "question", "ordinal"),
        ("Music", ["Jazz", "Folk", "Rock", "Folk"], "question", "nominal"),
        ("Age", ["18", "19", "20", "19"], "ignore", "number"),
        ("Height", [f"{k}" for k in range(150, 190)], "ignore", "number"),
        ("Essay", [f"My {k} plans" for k in range(30)], "ignore", "text"),
        ("Bedtime", ["Late", "Late", "Late"], "ignore", "constant"),
        ("Bedtime", ["", "NA", ""], "ignore", "empty"),
    ],
)
def test_roles_and_kinds(name, cells, role, kind):
    guess = classify(name, cells)
    assert (guess.role, guess.kind) == (role, kind)


@pytest.mark.parametrize(
    ("cells", "levels"),
    [
        (["18.5", "20", "22.5"] * 6, ("18.5", "20", "22.5")),
        ([f"{17 + k / 2:.1f}" for k in range(60)] + ["hot"], ()),
        ([f"{17 + k / 2:.1f}" for k in range(5)], ()),
        (["18.5"] * 9 + ["20"] * 9 + ["about 22.5"], ("18.5", "20")),
        (["1,250.5", "980.5", "1,100.5"] * 9, ("980.5", "1,100.5", "1,250.5")),
    ],
)
def test_decimal_commas_are_judged_as_decimal_points(cells, levels):
    """A column with commas and one odd cell became a question, and one with points did not.

    A few numbers that repeat, such as hours of sleep, are answers; more are a measurement.
    """
    marks = str.maketrans(".,", ",.")
    for swap in ({}, marks):
        written = [cell.translate(swap) for cell in cells]
        lines = ["id;Warmth", *(f"S{k};{cell}" for k, cell in enumerate(written))]
        source = read_source("\n".join(lines).encode())
        table = build_table(source, find_layout(source))
        choice = guess_choices(table).columns[1]
        wanted = tuple(level.translate(swap) for level in levels)
        assert (choice.role is Role.QUESTION, choice.levels) == (bool(levels), wanted)
        assert levels or choice.reason.startswith("A measurement")


def test_blanks_are_counted_and_are_no_level():
    guess = classify("Tidiness", ["1", "", "2", "n/a", "3"])
    assert guess.blanks == 2
    assert guess.levels == ("1", "2", "3")
    assert guess.counts == (1, 1, 1)


def test_a_number_that_nobody_chose_stays_on_the_scale():
    assert classify("Tidiness", ["1", "2", "4", "5"]).levels == ("1", "2", "3", "4", "5")


def test_a_scale_shared_by_most_columns_completes_the_others():
    full = ["1", "2", "3", "4", "5"]
    rows = [[a, a, a, b] for a, b in zip(full, ["2", "3", "4", "5", "5"], strict=True)]
    guesses = classify_rows(["A", "B", "C", "D"], rows)
    assert guesses[3].levels == tuple(full)
    assert guesses[3].counts == (0, 1, 1, 1, 2)


def test_the_id_column_is_found_by_name_or_place():
    rows = [[f"x{k}", str(k % 3), f"S-{k}"] for k in range(20)]
    assert [g.role for g in classify_rows(["Remark", "Quiet", "student_id"], rows)][2] == "id"
    assert classify_rows(["Code", "Quiet", "Other"], rows)[0].role == "id"


def test_ids_of_rows_pasted_twice_are_still_ids():
    rows = [["A1", "Yes"], ["B2", "No"], ["C3", "Yes"]] * 2
    assert classify_rows(["student_id", "Quiet"], rows)[0].role == "id"
    assert classify_rows(["student_id", "Quiet"], [["A1", "Yes"]] * 6)[0].role != "id"


def test_every_column_of_the_real_survey():
    table = read_csv_table(shared_data("young_people_survey/responses.csv"))
    assert (len(table.rows), len(table.header)) == (1010, 150)
    guesses = {g.name: g for g in classify_rows(table.header, table.rows)}
    one_to_five = [
        g for g in guesses.values() if g.role == "question" and g.levels == tuple("12345")
    ]
    assert len(one_to_five) == 135
    assert all(g.kind == "ordinal" for g in one_to_five)
    for name in ("Age", "Height", "Weight", "Number of siblings"):
        assert (guesses[name].role, guesses[name].kind) == ("ignore", "number")
    assert guesses["Gender"].role == "constraint"
    assert guesses["Punctuality"].levels == (
        "i am often early",
        "i am always on time",
        "i am often running late",
    )
    for name in ("Smoking", "Alcohol", "Lying", "Internet usage", "Education"):
        assert (guesses[name].role, guesses[name].kind) == ("question", "ordinal")
    for name in ("Only child", "Village - town", "House - block of flats"):
        assert (guesses[name].role, guesses[name].kind) == ("question", "binary")
    assert guesses["Alcohol"].levels == ("never", "social drinker", "drink a lot")
    assert sum(g.blanks for g in guesses.values()) == 608


def test_signs_and_fractions_are_numbers():
    style = number_style(["\u22125", "(2)", "0", "1½", "4"])
    assert [style.value(x) for x in ("\u22125", "(2)", "0", "1½", "4")] == [-5, -2, 0, 1.5, 4]
    assert number_style(["(1)", "(2)", "(3)"]) is None, "labels in brackets are no numbers"
