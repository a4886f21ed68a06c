"""Rules of rooms from a CSV file, and from columns of the survey and the rooms."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import ANYBODY, Designation, Need, RoomRules
from engine.crf.rooms import Rooms, plain_value, reader_of
from engine.crf.survey import Survey
from engine.datasets.csv_table import read_csv_table
from engine.datasets.room_files import index_of, rooms_of, students_of
from engine.tabular.needs import parse_needs
from engine.tabular.room_states import RoomState
from engine.tabular.rooms import is_designation, is_list_of_needs, is_state
from engine.tabular.rule_columns import NEED, rule_of

_GENDER = re.compile(r"gender|sex", re.I)
_PAIR_RULES = ("lock", "forbid")
_RULES = (*_PAIR_RULES, "single", "room", "offline", "kept")
_RULES_WITH_COLUMN = ("same", "designate", "need", "alike", "order")


def read_room_rules_csv(path: Path | str, survey: Survey, rooms: Rooms) -> RoomRules:
    r"""Read rule,student_a,student_b, with rooms and values in the second and third cells.

    lock A B; forbid A B; single A; room A ROOM; need:COLUMN A VALUE (yes if blank); same:COLUMN;
    designate:COLUMN (of the survey; the second cell names the rooms' column if it differs);
    alike:COLUMN WEIGHT; order:COLUMN VALUE (of the rooms, first to fill first); offline ROOM; kept
    ROOM.

    Parameters
    ----------
    path : Path or str, a CSV file.
    survey : Survey, n students; the file names their ids.
    rooms : Rooms; the file names their ids and columns.

    Returns
    -------
    RoomRules

    Raises
    ------
    InvalidProblemError
        Naming the row: an unknown rule, id, room or column.

    Examples
    --------
    >>> import tempfile
    >>> from engine.crf.questionnaire import Question, Questionnaire
    >>> asked = Questionnaire((Question("Smokes", "binary", ("no", "yes")),))
    >>> survey = Survey(("ann", "ben"), asked, np.zeros((2, 1), dtype=int))
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> rooms = Rooms(("A-101",), np.array([2]), {"hall": ("Alder",)})
    >>> _ = path.write_text("lock,ann,ben\n")
    >>> read_room_rules_csv(path, survey, rooms).locks
    ((0, 1),)
    """
    table = read_csv_table(path, is_header=lambda row: not _is_rule(row[0]), may_be_short=True)
    reader = _RuleReader(survey, rooms)
    for cells, line in zip(table.rows, table.line_numbers, strict=True):
        reader.read([*cells, "", ""], f"{Path(path).name}, row {line}")
    fields: dict[str, Any] = {name: tuple(rows) for name, rows in reader.found.items()}
    return RoomRules(**fields)


def _is_rule(cell: str) -> bool:
    word = cell.lower()
    return word in _RULES or word.partition(":")[0] in _RULES_WITH_COLUMN


class _RuleReader:
    """Collector of the rules of a file, by their field of RoomRules."""

    def __init__(self, survey: Survey, rooms: Rooms) -> None:
        self._survey, self._rooms = survey, rooms
        self._students, self._room_of = students_of(survey), rooms_of(rooms)
        self.found: dict[str, list[Any]] = {}

    def read(self, cells: list[str], where: str) -> None:
        """Add one line."""
        word, first, second = cells[0], cells[1], cells[2]
        rule, _, column = word.partition(":")
        rule, column = rule.lower(), column.strip()
        if rule in _RULES_WITH_COLUMN:
            self._read_column_rule(rule, column, first, second, where)
        elif word.lower() in _PAIR_RULES:
            a, b = (index_of(x, self._students, where, "in the survey") for x in (first, second))
            if a == b:
                raise InvalidProblemError(f"{where}: a {rule} needs two different ids.")
            self._add(f"{rule}s", (a, b))
        elif rule == "single":
            self._add("single", index_of(first, self._students, where, "in the survey"))
        elif rule == "room":
            student = index_of(first, self._students, where, "in the survey")
            self._add("assigned", (student, index_of(second, self._room_of, where, "a room")))
        elif rule in {"offline", "kept"}:
            field = "closed" if rule == "offline" else "kept"
            self._add(field, index_of(first, self._room_of, where, "a room"))
        else:
            expected = ", ".join([*_RULES, *(f"{x}:COLUMN" for x in _RULES_WITH_COLUMN)])
            raise InvalidProblemError(f"{where}: expected {expected}, received {word!r}.")

    def _read_column_rule(
        self, rule: str, column: str, first: str, second: str, where: str
    ) -> None:
        of_rooms = rule in {"need", "order"}
        known = self._rooms.attributes if of_rooms else self._survey.attributes
        own = {"capacity", "room"} if of_rooms else set()
        if column not in known and column not in own:
            of = "the rooms" if of_rooms else "the survey"
            there = ", ".join(known) or "none"
            raise InvalidProblemError(
                f"{where}: {rule}:{column} names no column of {of}; there are: {there}."
            )
        if rule == "same":
            self._add("same", column)
        elif rule == "need":
            student = index_of(first, self._students, where, "in the survey")
            self._add("needs", Need(student, column, second or "yes"))
        elif rule == "designate":
            theirs = first or column
            if theirs not in self._rooms.attributes:
                raise InvalidProblemError(f"{where}: {theirs} names no column of the rooms.")
            self._add("designations", Designation(theirs, column))
        elif rule == "order":
            read = reader_of(self._rooms.column(column))
            if read(first) not in {read(cell) for cell in self._rooms.column(column)}:
                raise InvalidProblemError(f"{where}: no room has {column} = {first!r}.")
            self._add("order", (column, first))
        else:
            self._add("alike", (column, _weight(first, where)))

    def _add(self, field: str, entry: object) -> None:
        self.found.setdefault(field, []).append(entry)


def _weight(cell: str, where: str) -> float:
    try:
        weight = float(cell)
    except ValueError:
        weight = np.nan
    if not np.isfinite(weight):
        raise InvalidProblemError(f"{where}: expected a weight, received {cell!r}.")
    return weight


def rooms_that_offer(survey: Survey, rooms: Rooms) -> Rooms:
    """Return the rooms with a column of yes and no for every need that columns of a survey name.

    A room offers the features in its feature columns, and the needs with a yes in their column. A
    need that no room offers is "no" everywhere: it is never ignored.
    """
    offered = [_offers(rooms, room) for room in range(rooms.n_rooms)]
    known = {name.lower() for name in rooms.attributes}
    words = {word.lower(): word for needs in _needs_said(survey, rooms) for word in needs}
    added = {
        word: tuple("yes" if key in there else "no" for there in offered)
        for key, word in words.items()
        if key not in known
    }
    return replace(rooms, attributes={**rooms.attributes, **added}) if added else rooms


def _offers(rooms: Rooms, room: int) -> set[str]:
    offered: set[str] = set()
    for name, column in rooms.attributes.items():
        cell = column[room]
        if is_list_of_needs(name):
            offered |= {word.lower() for word in parse_needs(name, cell)}
        elif plain_value(cell) == "yes":
            offered.add(name.lower())
    return offered


def _needs_said(survey: Survey, rooms: Rooms) -> list[list[str]]:
    """Return every student's needs by the columns of needs, except columns that rooms have too."""
    said: list[list[str]] = [[] for _ in survey.ids]
    known = {name.lower() for name in rooms.attributes}
    for name, column in survey.attributes.items():
        answers = Counter(cell for cell in column if cell)
        is_scored = name in survey.questionnaire.names
        if is_scored or name.lower() in known or rule_of(name, "", answers) != NEED:
            continue
        for k, cell in enumerate(column):
            said[k] += parse_needs(name, cell)
    return said


def rules_of_columns(survey: Survey, rooms: Rooms) -> RoomRules:
    """Return the rules given by columns of the same name in both files.

    A column of needs of the survey ("Accessible", "Housing needs") counts whatever the names of the
    rooms' columns: call :func:`rooms_that_offer` first.

    If all values are words for yes and no, a student with yes needs a room with yes. Otherwise, if
    the rooms have values of the students, it is a designation: such rooms take only these students.
    Case is ignored. Scored questions are no such columns. A column of designations is compared with
    the survey's column of the same values, whatever its name; rooms that are offline or held back
    by their column are closed or kept.
    """
    needs: list[Need] = []
    designations = []
    by_name = {name.lower(): name for name in rooms.attributes}
    for name, column in survey.attributes.items():
        if name.lower() not in by_name or name in survey.questionnaire.names:
            continue
        theirs = by_name[name.lower()]
        mine = {plain_value(cell) for cell in column}
        cells = {plain_value(cell) for cell in rooms.attributes[theirs]}
        if mine | cells <= {"yes", "no"}:
            needs += [
                Need(k, theirs) for k, cell in enumerate(column) if plain_value(cell) == "yes"
            ]
        elif _designates(rooms.attributes[theirs], column):
            designations.append(Designation(theirs, name))
    for k, words in enumerate(_needs_said(survey, rooms)):
        needs += [Need(k, by_name.get(word.lower(), word)) for word in dict.fromkeys(words)]
    designations += _designation_of_another_name(survey, rooms, designations)
    states = next((cells for name, cells in rooms.attributes.items() if is_state(name)), ())
    return RoomRules(
        needs=tuple(needs),
        designations=tuple(designations),
        closed=tuple(room for room, state in enumerate(states) if state == RoomState.OFFLINE),
        kept=tuple(room for room, state in enumerate(states) if state == RoomState.KEPT),
    )


def _designation_of_another_name(
    survey: Survey, rooms: Rooms, known: Sequence[Designation]
) -> list[Designation]:
    """Return the designation whose columns have different names: "Gender Designation", "Gender".

    The survey's column is the one with values of the rooms, or, if there is none, the gender.
    """
    column = designation_column(rooms)
    if not column or any(rule.room_column == column for rule in known):
        return []
    others = {
        name: cells
        for name, cells in survey.attributes.items()
        if name not in survey.questionnaire.names
    }
    genders = [
        name
        for name, cells in others.items()
        if rule_of(name, "", Counter(cell for cell in cells if cell)) == "gender"
    ]
    alike = [name for name, cells in others.items() if _designates(rooms.attributes[column], cells)]
    if len(alike) > 1:
        alike = [name for name in alike if name in genders] or alike
    if len(alike) > 1:
        raise InvalidProblemError(
            f"The rooms' column {column} has values of the survey's columns {alike[0]} and "
            f"{alike[1]}. Choose one with the rule designate:COLUMN,{column}."
        )
    if not alike and _GENDER.search(column):
        alike = genders[:1]
    return [Designation(column, alike[0])] if alike else []


def designation_column(rooms: Rooms) -> str:
    """Return the column of the rooms that says who may live there; "" if none restricts anybody."""
    column = next((name for name in rooms.attributes if is_designation(name)), "")
    cells = rooms.attributes.get(column, ())
    return column if any(cell.strip().lower() not in ANYBODY for cell in cells) else ""


def _designates(cells: Sequence[str], column: Sequence[str]) -> bool:
    """Return True if rooms name values that students have: "F" is one, although it can mean no."""
    rooms = {cell.strip().lower() for cell in cells} - ANYBODY
    named = {part.strip() for cell in rooms for part in cell.split("|")}
    return bool(named & {cell.strip().lower() for cell in column} - {"", "no"})
