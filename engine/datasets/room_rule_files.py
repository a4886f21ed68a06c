"""Rules of rooms as a CSV file, and those that columns of survey and rooms speak of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import ANYBODY, Designation, Need, RoomRules
from engine.crf.rooms import Rooms, plain_value
from engine.crf.survey import Survey
from engine.datasets.csv_table import read_csv_table
from engine.datasets.room_files import index_of, rooms_of, students_of

_PAIR_RULES = ("lock", "forbid")
_RULES = (*_PAIR_RULES, "single", "room", "offline", "kept")
_RULES_WITH_COLUMN = ("same", "designate", "need", "alike")


def read_room_rules_csv(path: Path | str, survey: Survey, rooms: Rooms) -> RoomRules:
    r"""Read rule,student_a,student_b, with rooms and values in the second and third cells.

    lock A B; forbid A B; single A; room A ROOM; need:COLUMN A VALUE (yes where blank);
    same:COLUMN; designate:COLUMN (of the survey, the rooms' column in the second cell where it has
    another name); alike:COLUMN WEIGHT; offline ROOM; kept ROOM.

    Parameters
    ----------
    path : Path or str, a CSV file.
    survey : Survey, n students, the ids of which the file names.
    rooms : Rooms, the ids and columns of which the file names.

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
    table = read_csv_table(path, is_header=lambda row: not _is_rule(row[0]))
    reader = _RuleReader(survey, rooms)
    for cells, line in zip(table.rows, table.line_numbers, strict=True):
        reader.read([*cells, "", ""], f"{Path(path).name}, row {line}")
    fields: dict[str, Any] = {name: tuple(rows) for name, rows in reader.found.items()}
    return RoomRules(**fields)


def _is_rule(cell: str) -> bool:
    word = cell.lower()
    return word in _RULES or word.partition(":")[0] in _RULES_WITH_COLUMN


class _RuleReader:
    """Collects the rules of a file by the field of RoomRules that they belong to."""

    def __init__(self, survey: Survey, rooms: Rooms) -> None:
        self._survey, self._rooms = survey, rooms
        self._students, self._room_of = students_of(survey), rooms_of(rooms)
        self.found: dict[str, list[Any]] = {}

    def read(self, cells: list[str], where: str) -> None:
        """Take one line in."""
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
        known = self._rooms.attributes if rule == "need" else self._survey.attributes
        own = {"capacity", "room"} if rule == "need" else set()
        if column not in known and column not in own:
            of = "the rooms" if rule == "need" else "the survey"
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


def rules_of_columns(survey: Survey, rooms: Rooms) -> RoomRules:
    """Return the rules that columns of the same name in both files speak of.

    Where all values are words for yes and no, a student with yes needs a room with yes. Otherwise,
    where the rooms have values of the students, it is a designation: such rooms take only them.
    Case is ignored. Questions that are scored are no such columns.
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
    return RoomRules(needs=tuple(needs), designations=tuple(designations))


def _designates(cells: Sequence[str], column: Sequence[str]) -> bool:
    """Whether rooms name values that students have: "F" is one, although it can mean no."""
    rooms = {cell.strip().lower() for cell in cells} - ANYBODY
    named = {part.strip() for cell in rooms for part in cell.split("|")}
    return bool(named & {cell.strip().lower() for cell in column} - {"", "no"})
