"""Building lists, requests, preferences, rules and placements as CSV files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import (
    ANYBODY,
    Designation,
    Need,
    Preference,
    Request,
    RoomRules,
)
from engine.crf.rooms import LARGEST_CAPACITY, Rooms, plain_value, reader_of
from engine.crf.roster import as_rooms
from engine.crf.survey import Survey
from engine.datasets.csv_table import CsvTable, read_csv_table
from engine.datasets.roommate_files import write_rows
from engine.datasets.survey_csv import read_pairs_csv

NO_ROOM = {"", "-", "none", "unplaced"}
_PAIR_RULES = ("lock", "forbid")
_RULES = (*_PAIR_RULES, "single", "room", "offline", "kept")
_RULES_WITH_COLUMN = ("same", "designate", "need", "alike")


def read_rooms_csv(path: Path | str) -> Rooms:
    r"""Read room,capacity and any further columns.

    Parameters
    ----------
    path : Path or str, a CSV file.

    Returns
    -------
    Rooms

    Raises
    ------
    InvalidProblemError
        Naming the row: a missing column, a repeated or blank room, beds that are not 1 to 8.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rooms.csv"
    >>> _ = path.write_text("room,capacity,hall\nA-101,2,Alder\n")
    >>> read_rooms_csv(path).attributes["hall"]
    ('Alder',)
    """
    table, name = read_csv_table(path), Path(path).name
    room, beds = (_column(table, title, name) for title in ("room", "capacity"))
    first_line: dict[str, int] = {}
    capacities = []
    for cells, line in zip(table.rows, table.line_numbers, strict=True):
        if not cells[room]:
            raise InvalidProblemError(f"{name}, row {line}: the room is blank.")
        if cells[room] in first_line:
            raise InvalidProblemError(
                f"{name}, row {line}: {cells[room]} appears twice, first in row "
                f"{first_line[cells[room]]}. Leave one out."
            )
        first_line[cells[room]] = line
        capacities.append(_capacity(cells[beds], f"{name}, row {line}"))
    attributes = {
        title: tuple(cells[k] for cells in table.rows)
        for k, title in enumerate(table.header)
        if k not in (room, beds)
    }
    return Rooms(tuple(first_line), np.array(capacities, dtype=np.int64), attributes)


def _capacity(cell: str, where: str) -> int:
    if not cell.isdecimal() or not 1 <= int(cell) <= LARGEST_CAPACITY:
        raise InvalidProblemError(
            f"{where}: expected 1 to {LARGEST_CAPACITY} beds as capacity, received {cell!r}."
        )
    return int(cell)


def _column(table: CsvTable, title: str, name: str) -> int:
    lowered = [cell.lower() for cell in table.header]
    if title not in lowered:
        raise InvalidProblemError(f"{name}: expected a column {title!r} in the header.")
    return lowered.index(title)


def _index(cell: str, known: Mapping[str, int], where: str, of: str) -> int:
    if cell not in known:
        what = f"{cell} is not {of}" if cell else "an id is missing"
        raise InvalidProblemError(f"{where}: {what}.")
    return known[cell]


def _students(survey: Survey) -> dict[str, int]:
    return {student: k for k, student in enumerate(survey.ids)}


def _rooms(rooms: Rooms) -> dict[str, int]:
    return {room: k for k, room in enumerate(rooms.ids)}


def read_roster_csv(path: Path | str, survey: Survey, rooms: Rooms | None = None) -> IntArray:
    r"""Read student,room as the room of every student (n,), -1 for those without.

    Rooms are numbered by the building list, or, without one, as they come. Further columns are
    ignored, and so are lines of students that the survey does not have only where a building list
    is given: a previous placement names people who have left.

    Parameters
    ----------
    path : Path or str, a CSV file.
    survey : Survey, n students, the ids of which the file names.
    rooms : Rooms, optional, the building list.

    Returns
    -------
    ndarray, shape (n,), int64, index of the room, -1 for none.

    Raises
    ------
    InvalidProblemError
        Naming the row: an unknown or repeated student, an unknown room.

    Examples
    --------
    >>> import tempfile
    >>> from engine.crf.questionnaire import Question, Questionnaire
    >>> asked = Questionnaire((Question("Smokes", "binary", ("no", "yes")),))
    >>> survey = Survey(("ann", "ben"), asked, np.zeros((2, 1), dtype=int))
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> rooms = Rooms(("A-101",), np.array([2]), {"hall": ("Alder",)})
    >>> _ = path.write_text("student,room\nann,A-101\n")
    >>> read_roster_csv(path, survey, rooms).tolist()
    [0, -1]
    """
    table, name = read_csv_table(path), Path(path).name
    student, room = (_column(table, title, name) for title in ("student", "room"))
    known = _students(survey)
    numbers = {} if rooms is None else _rooms(rooms)
    first_line: dict[str, int] = {}
    out = np.full(survey.n_students, -1, dtype=np.int64)
    for cells, line in zip(table.rows, table.line_numbers, strict=True):
        where = f"{name}, row {line}"
        who, place = cells[student], cells[room]
        if who in first_line:
            raise InvalidProblemError(
                f"{where}: {who} appears twice, first in row {first_line[who]}."
            )
        first_line[who] = line
        if rooms is not None and who not in known:
            continue
        k = _index(who, known, where, "in the survey")
        if place.lower() in NO_ROOM and place not in numbers:
            continue
        if rooms is None:
            out[k] = numbers.setdefault(place, len(numbers))
        else:
            # A room that is no longer on the list: whoever lived there has to move.
            out[k] = numbers.get(place, -1)
    return out


def read_roommates_csv(path: Path | str, survey: Survey) -> IntArray:
    """Read a roster, where the header names student and room, as rooms (n,); else pairs (p, 2).

    Raises
    ------
    InvalidProblemError
        As `read_roster_csv` and `read_pairs_csv` do, or if nobody of a roster has a roommate.
    """
    header = {title.lower() for title in read_csv_table(path).header}
    if not {"student", "room"} <= header:
        return read_pairs_csv(path, survey)
    room = read_roster_csv(path, survey)
    if not (as_rooms(room, survey.n_students) >= 0).any():
        raise InvalidProblemError(f"{Path(path).name}: nobody in this roster has a roommate.")
    return room


def read_requests_csv(path: Path | str, survey: Survey, weight: float = 1.0) -> tuple[Request, ...]:
    r"""Read student,wants and, optionally, kind: wish (the default) or must.

    Parameters
    ----------
    path : Path or str, a CSV file.
    survey : Survey, n students, the ids of which the file names.
    weight : float, nats that honouring a wish adds.

    Returns
    -------
    tuple of Request

    Raises
    ------
    InvalidProblemError
        Naming the row: an unknown student, somebody who wants themselves, an unknown kind.

    Examples
    --------
    >>> import tempfile
    >>> from engine.crf.questionnaire import Question, Questionnaire
    >>> asked = Questionnaire((Question("Smokes", "binary", ("no", "yes")),))
    >>> survey = Survey(("ann", "ben"), asked, np.zeros((2, 1), dtype=int))
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("student,wants\nann,ben\n")
    >>> read_requests_csv(path, survey)[0].wants
    1
    """
    table, name = read_csv_table(path), Path(path).name
    student, wants = (_column(table, title, name) for title in ("student", "wants"))
    kind = _column(table, "kind", name) if "kind" in [x.lower() for x in table.header] else None
    known = _students(survey)
    requests = []
    for cells, line in zip(table.rows, table.line_numbers, strict=True):
        where = f"{name}, row {line}"
        a, b = (_index(cells[k], known, where, "in the survey") for k in (student, wants))
        if a == b:
            raise InvalidProblemError(f"{where}: {cells[student]} wants themselves.")
        word = "wish" if kind is None else cells[kind].lower() or "wish"
        if word not in {"wish", "must"}:
            raise InvalidProblemError(f"{where}: expected wish or must as kind, received {word!r}.")
        requests.append(Request(a, b, word == "must", weight))
    return tuple(requests)


def read_preferences_csv(
    path: Path | str, survey: Survey, rooms: Rooms, weight: float = 1.0
) -> tuple[Preference, ...]:
    r"""Read student,rank and one column named as one of the rooms, rank 1 being most wanted.

    Parameters
    ----------
    path : Path or str, a CSV file.
    survey : Survey, n students, the ids of which the file names.
    rooms : Rooms, the ids and columns of which the file names.
    weight : float, nats that a student's first choice adds.

    Returns
    -------
    tuple of Preference

    Raises
    ------
    InvalidProblemError
        Naming the row: an unknown student, a rank that is no number or used twice, a value that no
        room has.

    Examples
    --------
    >>> import tempfile
    >>> from engine.crf.questionnaire import Question, Questionnaire
    >>> asked = Questionnaire((Question("Smokes", "binary", ("no", "yes")),))
    >>> survey = Survey(("ann", "ben"), asked, np.zeros((2, 1), dtype=int))
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> rooms = Rooms(("A-101",), np.array([2]), {"hall": ("Alder",)})
    >>> _ = path.write_text("student,rank,hall\nann,1,Alder\n")
    >>> read_preferences_csv(path, survey, rooms)[0].values
    ('Alder',)
    """
    table, name = read_csv_table(path), Path(path).name
    student, rank = (_column(table, title, name) for title in ("student", "rank"))
    others = [k for k in range(len(table.header)) if k not in (student, rank)]
    if len(others) != 1:
        raise InvalidProblemError(f"{name}: expected student,rank and one column of the rooms.")
    title = table.header[others[0]]
    read = reader_of(rooms.column(title))
    there = {read(cell) for cell in rooms.column(title)}
    known = _students(survey)
    ranked: dict[int, dict[int, str]] = {}
    for cells, line in zip(table.rows, table.line_numbers, strict=True):
        where = f"{name}, row {line}"
        who = _index(cells[student], known, where, "in the survey")
        if not cells[rank].isdecimal():
            raise InvalidProblemError(f"{where}: expected a rank from 1, received {cells[rank]!r}.")
        value = cells[others[0]]
        if read(value) not in there:
            raise InvalidProblemError(f"{where}: no room has {title} = {value!r}.")
        mine = ranked.setdefault(who, {})
        if int(cells[rank]) in mine:
            raise InvalidProblemError(f"{where}: {cells[student]} has rank {cells[rank]} twice.")
        mine[int(cells[rank])] = value
    return tuple(
        Preference(who, title, tuple(mine[k] for k in sorted(mine)), weight)
        for who, mine in ranked.items()
    )


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
        self._students, self._room_of = _students(survey), _rooms(rooms)
        self.found: dict[str, list[Any]] = {}

    def read(self, cells: list[str], where: str) -> None:
        """Take one line in."""
        word, first, second = cells[0], cells[1], cells[2]
        rule, _, column = word.partition(":")
        rule, column = rule.lower(), column.strip()
        if rule in _RULES_WITH_COLUMN:
            self._read_column_rule(rule, column, first, second, where)
        elif word.lower() in _PAIR_RULES:
            a, b = (_index(x, self._students, where, "in the survey") for x in (first, second))
            if a == b:
                raise InvalidProblemError(f"{where}: a {rule} needs two different ids.")
            self._add(f"{rule}s", (a, b))
        elif rule == "single":
            self._add("single", _index(first, self._students, where, "in the survey"))
        elif rule == "room":
            student = _index(first, self._students, where, "in the survey")
            self._add("assigned", (student, _index(second, self._room_of, where, "a room")))
        elif rule in {"offline", "kept"}:
            field = "closed" if rule == "offline" else "kept"
            self._add(field, _index(first, self._room_of, where, "a room"))
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
            student = _index(first, self._students, where, "in the survey")
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


def write_roster_csv(path: Path, survey: Survey, room: IntArray) -> None:
    """Write student,room for everybody who has one; rooms are called R-1, R-2, ..."""
    placed = np.flatnonzero(room >= 0).tolist()
    write_rows(path, ["student", "room"], [[survey.ids[k], f"R-{room[k] + 1}"] for k in placed])


def write_placement_csv(
    path: Path,
    survey: Survey,
    rooms: Rooms,
    room: IntArray,
    scores: FloatArray,
    probabilities: FloatArray | None = None,
) -> None:
    """Write student,room,score,probability; blank where there is none, in the survey's order.

    Parameters
    ----------
    path : Path, the file to write.
    survey : Survey, n students.
    rooms : Rooms, r of them.
    room : ndarray, shape (n,), int64, index of the room, -1 for none.
    scores : ndarray, shape (n,), float64, nats, NaN where there is none.
    probabilities : ndarray, shape (n,), float64, optional.

    Examples
    --------
    >>> import tempfile
    >>> from engine.crf.questionnaire import Question, Questionnaire
    >>> asked = Questionnaire((Question("Smokes", "binary", ("no", "yes")),))
    >>> survey = Survey(("ann", "ben"), asked, np.zeros((2, 1), dtype=int))
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> rooms = Rooms(("A-101",), np.array([2]), {"hall": ("Alder",)})
    >>> write_placement_csv(path, survey, rooms, np.array([0, -1]), np.array([1.5, np.nan]))
    >>> path.read_text().splitlines()[1].startswith("ann,A-101")
    True
    """
    rows: list[list[object]] = []
    for k, student in enumerate(survey.ids):
        place = rooms.ids[room[k]] if room[k] >= 0 else ""
        score = f"{scores[k]:.6f}" if np.isfinite(scores[k]) else ""
        chance = ""
        if probabilities is not None and np.isfinite(probabilities[k]):
            chance = f"{probabilities[k]:.6g}"
        rows.append([student, place, score, chance])
    write_rows(path, ["student", "room", "score", "probability"], rows)
