"""Reading surveys, pairs and rules: every bad input gets one clear sentence."""

import csv
import gzip
import io

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.crf.questionnaire import Questionnaire
from engine.crf.rules import Rules
from engine.datasets.csv_table import read_csv_table
from engine.datasets.roommate_files import write_pairs_csv, write_survey_csv
from engine.datasets.survey_csv import (
    infer_questionnaire,
    read_pairs_csv,
    read_rules_csv,
    read_shared_rooms,
    read_survey_csv,
)
from tests.learning.roommates.cohorts import SMALL, random_pairs, random_survey
from tests.tabular.file_writers import as_xlsx

HEADER = "id,Quiet,Bedtime,Music\n"
GOOD = HEADER + "A,No,Early,Jazz\nB,Yes,Late,Folk\nC,No,,Rock\nD,Yes,Normal,Jazz\n"


def put(tmp_path, content, name="survey.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "survey.csv is empty"),
        (b"   \n\n", "is empty"),
        (HEADER, "has a header but no rows"),
        (GOOD.replace("Jazz", "Měsíc").encode("cp1250"), "row 2, column 4: the text is not UTF-8"),
        (b"%PDF-1.7 something", "is a PDF, not CSV or XLSX"),
        (b"PK\x03\x04zip", "a damaged ZIP or XLSX file"),
        (b"a,b\x00c\n1,2\n", "a binary file"),
        (HEADER.replace("Music", "Quiet") + "A,No,Early,No\n", "both called “Quiet”"),
        (HEADER.replace("Bedtime", "") + "A,No,Early,No\n", "Column 3 has no name"),
        (GOOD + "E,No\n", "row 6 has 2 cells, 2 fewer than the header"),
        (GOOD + "E,=1+1,Early,Jazz\n", "row 6, Quiet: the cell holds a formula"),
        (GOOD + "E,NaN,Early,Jazz\n", "row 6, Quiet: “NaN” is not a finite number"),
        (GOOD + "E,inf,Early,Jazz\n", "row 6, Quiet: “inf” is not a finite number"),
        (
            GOOD + "E,No," + "x" * 10_000_000 + ",Jazz\n",
            "row 6, Bedtime: the cell holds 10,000,000 characters",
        ),
        (",".join(f"c{k}" for k in range(1_000_000)) + "\n1\n", "1,000,000 columns; at most 2,000"),
        (GOOD + 'E,No,Early,"Jazz\nF,Yes,Late,Folk\n', "row 6: a quotation mark is not closed"),
        (GOOD + 'E,No,Early,"Jazz" 2\nF,Yes,Late,Folk\n', "row 6: a quotation mark is not closed"),
        (GOOD + "A,No,Early,Jazz\n", "row 6: A appears twice, first in row 2. Leave one out"),
        (GOOD + ",No,Early,Jazz\n", "row 6: id is blank"),
        (
            GOOD + "E,No,whenever,Jazz\n",
            "row 6, Bedtime: “whenever” is not one of the three answers",
        ),
        (HEADER + "A,No,Early,Jazz\n", "has one student; pairs need at least two"),
        (
            "id,Quiet,Bedtime\nA,No,Early\nB,No,Late\n",
            "other questions: Music is missing",
        ),
    ],
)
def test_bad_surveys(tmp_path, content, sentence):
    with pytest.raises(InvalidProblemError, match=sentence.replace("+", r"\+")) as caught:
        read_survey_csv(put(tmp_path, content), SMALL)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "content",
    [
        GOOD.replace(",", ";").encode(),
        GOOD.replace(",", "\t").encode("utf-16"),
        b"sep=|\n" + GOOD.replace(",", "|").encode(),
        GOOD.replace("\n", "\r\n").encode("utf-8-sig"),
        gzip.compress(GOOD.encode(), mtime=0),
        as_xlsx({"Cover": [["Housing"]], "Answers": [r.split(",") for r in GOOD.splitlines()]}),
    ],
    ids=["semicolons", "UTF-16", "bars", "mark", "gzip", "XLSX"],
)
def test_the_same_survey_is_read_from_every_form(tmp_path, content):
    survey = read_survey_csv(put(tmp_path, content), SMALL)
    plain = read_survey_csv(put(tmp_path, GOOD, "plain.csv"), SMALL)
    assert survey.ids == plain.ids
    assert np.array_equal(survey.answers, plain.answers)


def test_standard_input_is_a_file_like_any_other(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(("\ufeff" + GOOD).encode())))
    assert read_survey_csv("-", SMALL).ids == ("A", "B", "C", "D")


def test_what_was_done_to_a_file_is_told(tmp_path):
    notes = []
    text = GOOD + "id,Quiet,Bedtime,Music\nE,Yes,Late,prefer not to say\n"
    survey = read_survey_csv(put(tmp_path, text), SMALL, on_note=notes.append)
    assert survey.ids == ("A", "B", "C", "D", "E")
    assert survey.answers[4].tolist() == [1, 2, -1]
    assert notes == [
        "survey.csv: Left out: 1 row repeats the header (row 6).",
        "survey.csv: Blank: “prefer not to say” counts as a blank (1 cell).",
    ]


def test_what_the_page_would_ask_is_refused_fixed_or_declined(tmp_path):
    path = put(tmp_path, GOOD + "A,Yes,Late,Folk\n")
    with pytest.raises(InvalidProblemError, match="add --fixes all to keep the last row of each"):
        read_survey_csv(path, SMALL)
    assert read_survey_csv(path, SMALL, fixes="all").answers[-1].tolist() == [1, 2, 0]
    with pytest.raises(InvalidProblemError, match="A appears twice"):
        read_survey_csv(path, SMALL, fixes="none")
    short = put(tmp_path, GOOD + "E,Yes,Late\n", "short.csv")
    with pytest.raises(InvalidProblemError, match="row 6"):
        read_survey_csv(short, SMALL)
    assert len(read_survey_csv(short, SMALL, fixes="all").ids) == 4
    assert len(read_survey_csv(short, SMALL, fixes="none").ids) == 5
    with pytest.raises(InvalidProblemError, match="expected one of refuse, all, none"):
        read_survey_csv(path, SMALL, fixes="every")


def test_absent_files_and_folders(tmp_path):
    with pytest.raises(InvalidProblemError, match="cannot be read"):
        read_csv_table(tmp_path / "none.csv")
    with pytest.raises(InvalidProblemError, match="is a folder"):
        read_csv_table(tmp_path)


def test_a_byte_order_mark_and_blank_lines_are_no_problem(tmp_path):
    survey = read_survey_csv(put(tmp_path, "\ufeff" + GOOD.replace("\n", "\r\n\r\n")), SMALL)
    assert survey.ids == ("A", "B", "C", "D")


def test_quotes_within_a_cell_and_around_it(tmp_path):
    text = 'id,height,note\nA,5\'10","said ""no"",\nthen left"\nB,6\'1",\n'
    table = read_csv_table(put(tmp_path, text))
    assert table.rows == (("A", "5'10\"", 'said "no",\nthen left'), ("B", "6'1\"", ""))
    assert table.line_numbers == (2, 3), "as a spreadsheet numbers them"


def test_answers_blanks_and_attributes(tmp_path):
    survey = read_survey_csv(put(tmp_path, GOOD), SMALL)
    assert survey.answers[2].tolist() == [0, -1, 2]
    assert survey.attributes["Bedtime"] == ("Early", "Late", "", "Normal")


def test_blanks_of_an_attribute_are_alike_however_they_are_written(tmp_path):
    survey = read_survey_csv(put(tmp_path, GOOD.replace("C,No,,", "C,No,N/A,")), SMALL)
    assert survey.attributes["Bedtime"] == ("Early", "Late", "", "Normal")


def test_surveys_and_pairs_survive_a_round_trip(tmp_path):
    survey = random_survey(10, 4, blanks=0.2, Hall=tuple("NNNNNSSSSS"))
    write_survey_csv(tmp_path / "s.csv", survey)
    again = read_survey_csv(tmp_path / "s.csv", SMALL)
    assert np.array_equal(again.answers, survey.answers)
    assert again.attributes["Hall"] == survey.attributes["Hall"]
    write_pairs_csv(tmp_path / "p.csv", survey, random_pairs(10))
    assert np.array_equal(read_pairs_csv(tmp_path / "p.csv", again), random_pairs(10))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("A,X\n", "row 2: X is not a student of this cohort"),
        ("A,A\n", "row 2: A is paired with themselves"),
        ("A,B\nC,A\n", "row 3: A is paired twice, first in row 2"),
        ("A,\n", "row 2: one of the two ids is blank"),
        ("", "no rows"),
    ],
)
def test_bad_pairs(tmp_path, rows, sentence):
    survey = read_survey_csv(put(tmp_path, GOOD), SMALL)
    with pytest.raises(InvalidProblemError, match=sentence):
        read_pairs_csv(put(tmp_path, "student_a,student_b\n" + rows, "pairs.csv"), survey)


@pytest.mark.parametrize("text", ["A,B\n", "A,B\nC,D\n", "\n A , B ,note\nC,D,\n"])
def test_a_pairs_file_without_a_header_keeps_its_first_pair(tmp_path, text):
    survey = read_survey_csv(put(tmp_path, GOOD), SMALL)
    pairs = read_pairs_csv(put(tmp_path, text, "pairs.csv"), survey)
    assert pairs.tolist() == [[0, 1], [2, 3]][: text.strip().count("\n") + 1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("A,X\nC,D\n", "row 1: X is not a student of this cohort"),
        ("A,A\nC,D\n", "row 1: A is paired with themselves"),
        ("A\nB\n", "two columns of ids"),
    ],
)
def test_bad_first_pairs_without_a_header(tmp_path, text, sentence):
    survey = read_survey_csv(put(tmp_path, GOOD), SMALL)
    with pytest.raises(InvalidProblemError, match=sentence):
        read_pairs_csv(put(tmp_path, text, "pairs.csv"), survey)


def test_pairs_need_two_columns(tmp_path):
    survey = read_survey_csv(put(tmp_path, GOOD), SMALL)
    with pytest.raises(InvalidProblemError, match="two columns of ids"):
        read_pairs_csv(put(tmp_path, "student\nA\n", "pairs.csv"), survey)


def test_rules_files(tmp_path):
    survey = read_survey_csv(put(tmp_path, GOOD), SMALL)
    text = "rule,student_a,student_b\nlock,A,B\nforbid,C,D\nsame:Quiet,,\nsingle,A,\n"
    rules = read_rules_csv(put(tmp_path, text, "rules.csv"), survey)
    assert (rules.locks, rules.forbids) == (((0, 1),), ((2, 3),))
    assert (rules.same, rules.single) == (("Quiet",), (0,))


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("forbid,A,B\nforbid,C,D\n", Rules(forbids=((0, 1), (2, 3)))),
        ("Lock,A,B\n", Rules(locks=((0, 1),))),
        ("same:Quiet,,\nlock,A,C\n", Rules(locks=((0, 2),), same=("Quiet",))),
        ("single,A,\n", Rules(single=(0,))),
    ],
)
def test_a_rules_file_without_a_header_keeps_its_first_rule(tmp_path, text, rules):
    survey = read_survey_csv(put(tmp_path, GOOD), SMALL)
    assert read_rules_csv(put(tmp_path, text, "rules.csv"), survey) == rules


def test_a_mistyped_first_rule_is_no_header(tmp_path):
    survey = read_survey_csv(put(tmp_path, GOOD), SMALL)
    path = put(tmp_path, "forbd,A,B\nforbid,C,D\n", "rules.csv")
    with pytest.raises(InvalidProblemError, match="row 1: expected lock, forbid"):
        read_rules_csv(path, survey)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("marry,A,B", "row 2: expected lock, forbid, single or same:COLUMN, received 'marry'"),
        ("lock,A,X", "row 2: X is not in the survey"),
        ("lock,A,A", "row 2: a lock needs two different ids"),
        ("same:Hall,,", "row 2: same:Hall names no column"),
    ],
)
def test_bad_rules(tmp_path, row, sentence):
    survey = read_survey_csv(put(tmp_path, GOOD), SMALL)
    path = put(tmp_path, "rule,student_a,student_b\n" + row + "\n", "rules.csv")
    with pytest.raises(InvalidProblemError, match=sentence):
        read_rules_csv(path, survey)


def test_questions_are_inferred_from_all_files_together(tmp_path):
    first = put(tmp_path, "id,Quiet,Tidy\nA,No,1\nB,Yes,2\n", "one.csv")
    second = put(tmp_path, "id,Tidy,Quiet\nC,5,No\nD,4,No\n", "two.csv")
    questionnaire: Questionnaire = infer_questionnaire([first, second])
    assert questionnaire.names == ("Quiet", "Tidy")
    assert questionnaire.questions[1].levels == ("1", "2", "3", "4", "5")
    third = put(tmp_path, "id,Quiet\nC,No\nD,Yes\n", "three.csv")
    with pytest.raises(InvalidProblemError, match="Tidy is missing"):
        infer_questionnaire([first, third])


def test_reading_a_table_leaves_the_limit_of_other_readers_alone(tmp_path):
    before = csv.field_size_limit(10_000_000)
    try:
        read_csv_table(put(tmp_path, GOOD))
        assert csv.field_size_limit() == 10_000_000
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize("room", ["Room", "Zimmer", "Room number"])
@pytest.mark.parametrize("ids", ["ABCD", "AB", "A"])
def test_a_roster_in_which_nobody_shares_a_room_is_a_roster(tmp_path, room, ids) -> None:
    """Its rooms were taken for roommates: "R0 is not a student of this cohort"."""
    questionnaire = infer_questionnaire([put(tmp_path, GOOD)])
    survey = read_survey_csv(put(tmp_path, GOOD), questionnaire)
    rows = "".join(f"{one},R{k}\n" for k, one in enumerate(ids))
    found = read_shared_rooms(put(tmp_path, f"Student,{room}\n{rows}", "roster.csv"), survey)
    assert found.pairs == ()
    assert [len(residents) for _, residents in found.rooms] == [1] * len(ids)
    unknown = put(tmp_path, "Student,Room mate\nA,X\nB,Y\n", "pairs.csv")
    with pytest.raises(InvalidProblemError, match="row 2: X is not a student"):
        read_shared_rooms(unknown, survey)
