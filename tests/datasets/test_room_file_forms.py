"""Every file about rooms is read the same as CSV of any delimiter, packed, or as a workbook."""

import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.datasets.room_files import (
    read_preferences_csv,
    read_previous_csv,
    read_requests_csv,
    read_roommates_csv,
    read_rooms_csv,
    read_roster_csv,
)
from engine.datasets.room_rule_files import read_room_rules_csv
from engine.datasets.survey_csv import infer_questionnaire, read_rules_csv, read_survey_csv
from tests.tabular.file_writers import as_csv, as_xlsx

SURVEY = [["id", "Quiet", "Bedtime"], ["A", "No", "Early"], ["B", "Yes", "Late"],
          ["C", "No", "Late"], ["D", "Yes", "Early"]]  # fmt: skip
ROOMS = [["Hall", "Room", "Beds", "Accessible"], ["Elm", "1", "2", "yes"], ["Elm", "2", "2", "no"]]
FORMS = {
    "comma": as_csv,
    "semicolon": lambda rows: as_csv(rows, delimiter=";"),
    "tab": lambda rows: as_csv(rows, delimiter="\t"),
    "bar": lambda rows: as_csv(rows, delimiter="|"),
    "utf-16": lambda rows: as_csv(rows, delimiter="\t", encoding="utf-16"),
    "mark": lambda rows: b"\xef\xbb\xbf" + as_csv(rows, newline="\r\n"),
    "gzip": lambda rows: gzip.compress(as_csv(rows)),
    "xlsx": lambda rows: as_xlsx({"Sheet1": rows}),
}


@pytest.fixture
def put(tmp_path):
    def write(rows: list[list[str]], form: str) -> Path:
        path = tmp_path / ("file.xlsx" if form == "xlsx" else "file.csv")
        path.write_bytes(FORMS[form](rows))
        return path

    return write


def year(put, form: str = "comma"):
    path = put(SURVEY, form)
    survey = read_survey_csv(path, infer_questionnaire([path]))
    return survey, read_rooms_csv(put(ROOMS, form))


FILES = {
    "requests": ([["student", "wants", "kind"], ["A", "B", "must"], ["C", "D", "wish"]],
                 lambda path, survey, rooms: read_requests_csv(path, survey)),
    "preferences": ([["student", "rank", "Hall"], ["A", "1", "Elm"], ["B", "1", "Elm"]],
                    read_preferences_csv),
    "previous": ([["student", "room"], ["A", "1"], ["B", "2"], ["C", "2"]], read_previous_csv),
    "roster": ([["student", "room"], ["A", "1"], ["B", "2"], ["C", "2"]], read_roster_csv),
    "roommates": ([["student", "room"], ["A", "X"], ["B", "X"], ["C", "Y"], ["D", "Y"]],
                  lambda path, survey, rooms: read_roommates_csv(path, survey)),
    "rules": ([["lock", "A", "B"], ["forbid", "C", "D"], ["single", "C"], ["room", "A", "1"],
               ["need:Accessible", "B", "yes"], ["offline", "2"], ["same:Quiet"]],
              read_room_rules_csv),
}  # fmt: skip


def plain(value: object) -> object:
    """Return a value that can be compared: arrays and rules as text of all their parts."""
    if dataclasses.is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", FILES)
def test_every_file_is_read_alike_in_every_form(kind: str, form: str, put) -> None:
    survey, rooms = year(put)
    rows, read = FILES[kind]
    expected = plain(read(put(rows, "comma"), survey, rooms))
    assert expected
    assert plain(read(put(rows, form), survey, rooms)) == expected


@pytest.mark.parametrize("form", FORMS)
def test_surveys_and_building_lists_are_read_alike_in_every_form(form: str, put) -> None:
    (survey, rooms), (other, others) = year(put), year(put, form)
    assert other.ids == survey.ids
    assert np.array_equal(other.answers, survey.answers)
    assert plain(others) == plain(rooms)


@pytest.mark.parametrize("kind", FILES)
def test_a_packed_file_that_is_cut_off_is_refused(kind: str, put) -> None:
    survey, rooms = year(put)
    rows, read = FILES[kind]
    path = put(rows, "gzip")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InvalidProblemError, match=r"file\.csv"):
        read(path, survey, rooms)


def test_rules_of_all_kinds_stand_in_one_file(put) -> None:
    """A rule of one cell below a rule of three was refused as two cells too short."""
    survey, rooms = year(put)
    rows, read = FILES["rules"]
    for lines in (rows, rows[::-1], [["rule", "a", "b"], *rows]):
        rules = read(put(lines, "comma"), survey, rooms)
        assert (rules.locks, rules.forbids, rules.single) == (((0, 1),), ((2, 3),), (2,))
        assert len(rules.same) == 1
        assert len(rules.needs) == len(rules.closed) == len(rules.assigned) == 1
    few = read_rules_csv(put([["lock", "A", "B"], ["single", "C"], ["same:Quiet"]], "tab"), survey)
    assert (few.locks, few.single, len(few.same)) == (((0, 1),), (2,), 1)
