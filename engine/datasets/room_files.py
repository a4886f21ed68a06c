"""Building lists, rosters, requests, preferences and placements as CSV files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_number
from engine.crf.room_rules import (
    WEIGHT,
    Preference,
    Request,
)
from engine.crf.rooms import Rooms, reader_of
from engine.crf.roster import as_rooms
from engine.crf.survey import Survey
from engine.datasets.csv_table import CsvTable, naming, read_csv_table
from engine.datasets.roommate_files import write_rows
from engine.datasets.survey_csv import pairs_of, read_shared_rooms
from engine.tabular.designations import join_designations, read_designations
from engine.tabular.rooms import Column, RoomRow, guess_roles, read_rooms
from engine.tabular.unattended import Fixes

NO_ROOM = {"", "-", "none", "unplaced"}
GONE = -2


def read_rooms_csv(path: Path | str) -> Rooms:
    r"""Read a building list as the page reads it: one line for each room, or for each bed.

    Columns are recognised by name and content ("Room Number", "Bed Count", "Gender Designation").
    "Max Capacity" counts extra beds too, which are used last. A designation may name its columns:
    "Gender=F; Class year=1|2".
    All but the rooms, beds and capacities become attributes. A room is named as in its column, with
    its hall before it if rooms of several halls share a name.

    Parameters
    ----------
    path : Path or str, a CSV or XLSX file.

    Returns
    -------
    Rooms
        Cells of designations, needs and states are normalised: "Co-ed" is blank, "x" is "yes",
        "Out of service" is "offline".

    Raises
    ------
    InvalidProblemError
        Naming the row: a repeated or blank room, beds that are not 1 to 8, an unknown state.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rooms.csv"
    >>> _ = path.write_text("Building,Room Number,Bed Count\nAlder,A-101,2\n")
    >>> read_rooms_csv(path).attributes["Building"]
    ('Alder',)
    """
    table = read_csv_table(path)
    roles = guess_roles(table.header, table.rows)
    with naming(path):
        found = read_rooms(table.header, table.rows, table.line_numbers, roles)
        if found.problems:
            raise InvalidProblemError(found.problems[0].sentence)
    names = [room.name for room in found.rooms]
    if len({name.casefold() for name in names}) < len(names):
        names = [f"{room.hall} {room.name}" for room in found.rooms]
    attributes = {
        title: tuple(_cell(table, column, role, room) for room in found.rooms)
        for column, (title, role) in enumerate(zip(table.header, roles, strict=True))
        if role not in (Column.ROOM, Column.CAPACITY, Column.MAX_CAPACITY, Column.BED)
    }
    capacities = np.array([room.capacity for room in found.rooms], dtype=np.int64)
    largest = np.array([room.max_capacity for room in found.rooms], dtype=np.int64)
    return Rooms(tuple(names), capacities, _split(attributes, table, roles), largest)


def _split(
    attributes: dict[str, tuple[str, ...]], table: CsvTable, roles: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return the columns with one more for each that a designation names: "Theme=Quiet".

    Values without a column stay in the column of designations.
    """
    for title, role in zip(table.header, roles, strict=True):
        cells = attributes.get(title, ())
        if role != Column.DESIGNATION or not any("=" in cell for cell in cells):
            continue
        read = [read_designations(cell) for cell in cells]
        titles = {name for found in read for name in found} - {""}
        known = {name.casefold(): name for name in attributes}
        for name in sorted(titles):
            own = tuple("|".join(found.get(name, ())) for found in read)
            attributes.setdefault(known.get(name, name), own)
        attributes[title] = tuple("|".join(found.get("", ())) for found in read)
    return attributes


def _cell(table: CsvTable, column: int, role: str, room: RoomRow) -> str:
    """Return what a column says of a room; different cells of its beds are all kept."""
    if role == Column.DESIGNATION:
        return join_designations({table.header[column]: table.rows[room.lines[0]][column]})
    if role == Column.STATE:
        return room.state
    if role == Column.NEED:
        return "yes" if table.header[column].strip()[:80] in room.meets else "no"
    if role == Column.NEEDS:
        return "; ".join(room.meets)
    cells = (table.rows[line][column] for line in room.lines)
    return "; ".join(dict.fromkeys(cells))


def _column(table: CsvTable, title: str, name: str) -> int:
    lowered = [cell.lower() for cell in table.header]
    if title not in lowered:
        raise InvalidProblemError(f"{name}: expected a column {title!r} in the header.")
    return lowered.index(title)


def index_of(cell: str, known: Mapping[str, int], where: str, of: str) -> int:
    """Return the index of an id; raise InvalidProblemError if it is not ``of`` the known ones."""
    if cell not in known:
        what = f"{cell} is not {of}" if cell else "an id is missing"
        raise InvalidProblemError(f"{where}: {what}.")
    return known[cell]


def students_of(survey: Survey) -> dict[str, int]:
    """Return the index of every student id."""
    return {student: k for k, student in enumerate(survey.ids)}


def rooms_of(rooms: Rooms) -> dict[str, int]:
    """Return the index of every room id."""
    return {room: k for k, room in enumerate(rooms.ids)}


def read_roster_csv(path: Path | str, survey: Survey, rooms: Rooms | None = None) -> IntArray:
    r"""Read student,room as the room of every student (n,), -1 for none.

    Rooms are numbered by the building list, or, without one, in order of appearance. Further
    columns are ignored. With a building list, lines of students not in the survey are ignored too:
    a previous placement names people who have left.

    Parameters
    ----------
    path : Path or str, a CSV file.
    survey : Survey, n students; the file names their ids.
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
    return np.maximum(_read_roster(path, survey, rooms), -1)


def read_previous_csv(path: Path | str, survey: Survey, rooms: Rooms) -> tuple[IntArray, IntArray]:
    """Read a roster as `read_roster_csv` does, and the students of rooms that are gone.

    Returns
    -------
    room : ndarray, shape (n,), int64, index of the room, -1 for none.
    without : ndarray, shape (k,), int64, students whose room is not on the list: they have to move.
    """
    room = _read_roster(path, survey, rooms)
    return np.maximum(room, -1), np.flatnonzero(room == GONE).astype(np.int64)


def _read_roster(path: Path | str, survey: Survey, rooms: Rooms | None) -> IntArray:
    """Read the room of every student, -1 for none, ``GONE`` for one that is not on the list."""
    table, name = read_csv_table(path), Path(path).name
    student, room = (_column(table, title, name) for title in ("student", "room"))
    known = students_of(survey)
    numbers = {} if rooms is None else rooms_of(rooms)
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
        k = index_of(who, known, where, "in the survey")
        if place.lower() in NO_ROOM and place not in numbers:
            continue
        if rooms is None:
            out[k] = numbers.setdefault(place, len(numbers))
        else:
            out[k] = numbers.get(place, GONE)
    return out


def read_roommates_csv(path: Path | str, survey: Survey, *, fixes: Fixes = "refuse") -> IntArray:
    """Read past roommates: pairs (p, 2), or the room of every student (n,), -1 for none.

    A file is a roster if one column names people and another their room. Rows of more than
    two people are rooms as well.

    Raises
    ------
    InvalidProblemError
        In one sentence, if the import page would ask or refuse, or if nobody has a roommate.
    """
    found = read_shared_rooms(path, survey, fixes=fixes)
    if not found.rooms:
        return pairs_of(found, survey)
    room = np.full(survey.n_students, -1, dtype=np.int64)
    for number, (_, residents) in enumerate(found.rooms):
        room[list(residents)] = number
    if not (as_rooms(room, survey.n_students) >= 0).any():
        raise InvalidProblemError(f"{Path(path).name}: nobody in this roster has a roommate.")
    return room


def read_requests_csv(
    path: Path | str, survey: Survey, weight: float = WEIGHT
) -> tuple[Request, ...]:
    r"""Read student,wants and, optionally, kind: wish (the default) or must.

    Parameters
    ----------
    path : Path or str, a CSV file.
    survey : Survey, n students; the file names their ids.
    weight : float, nats that honouring a wish adds.

    Returns
    -------
    tuple of Request

    Raises
    ------
    InvalidProblemError
        Naming the row: an unknown student, somebody who wants themselves, or the same person
        twice, an unknown kind.

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
    check_number("weight", weight, at_least=0.0)
    table, name = read_csv_table(path), Path(path).name
    student, wants = (_column(table, title, name) for title in ("student", "wants"))
    kind = _column(table, "kind", name) if "kind" in [x.lower() for x in table.header] else None
    known = students_of(survey)
    requests = []
    first_line: dict[tuple[int, int], int] = {}
    for cells, line in zip(table.rows, table.line_numbers, strict=True):
        where = f"{name}, row {line}"
        a, b = (index_of(cells[k], known, where, "in the survey") for k in (student, wants))
        if a == b:
            raise InvalidProblemError(f"{where}: {cells[student]} wants themselves.")
        if (a, b) in first_line:
            raise InvalidProblemError(
                f"{where}: {cells[student]} wants {cells[wants]} twice, first in row "
                f"{first_line[a, b]}."
            )
        first_line[a, b] = line
        word = "wish" if kind is None else cells[kind].lower() or "wish"
        if word not in {"wish", "must"}:
            raise InvalidProblemError(f"{where}: expected wish or must as kind, received {word!r}.")
        requests.append(Request(a, b, word == "must", weight))
    return tuple(requests)


def read_preferences_csv(
    path: Path | str, survey: Survey, rooms: Rooms, weight: float = WEIGHT
) -> tuple[Preference, ...]:
    r"""Read student,rank and one column named like one of the rooms; rank 1 is the first choice.

    Parameters
    ----------
    path : Path or str, a CSV file.
    survey : Survey, n students; the file names their ids.
    rooms : Rooms; the file names their ids and columns.
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
    check_number("weight", weight, at_least=0.0)
    table, name = read_csv_table(path), Path(path).name
    student, rank = (_column(table, title, name) for title in ("student", "rank"))
    others = [k for k in range(len(table.header)) if k not in (student, rank)]
    if len(others) != 1:
        raise InvalidProblemError(f"{name}: expected student,rank and one column of the rooms.")
    title = table.header[others[0]]
    read = reader_of(rooms.column(title))
    there = {read(cell) for cell in rooms.column(title)}
    known = students_of(survey)
    ranked: dict[int, dict[int, str]] = {}
    for cells, line in zip(table.rows, table.line_numbers, strict=True):
        where = f"{name}, row {line}"
        who = index_of(cells[student], known, where, "in the survey")
        if not cells[rank].isdecimal() or int(cells[rank]) < 1:
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


def write_roster_csv(path: Path, survey: Survey, room: IntArray) -> None:
    """Write student,room for everybody who has one; rooms are named R-1, R-2, ..."""
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
    """Write student,room,score,probability; blank for none, in the survey's order.

    Parameters
    ----------
    path : Path, the file to write.
    survey : Survey, n students.
    rooms : Rooms, r of them.
    room : ndarray, shape (n,), int64, index of the room, -1 for none.
    scores : ndarray, shape (n,), float64, nats, NaN for none.
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
