"""From an uploaded table to rooms: one line for each room, or for each bed.

Columns are recognised by name and content; the page lets staff change their roles. Anything
unreadable is a problem with its row and one sentence; nothing is dropped silently.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from engine.crf.rooms import LARGEST_CAPACITY
from engine.tabular.designations import join_designations
from engine.tabular.room_states import (
    NO,
    TITLES_OF_STATES,
    YES,
    RoomState,
    StateColumn,
    may_be_states,
    worst,
)
from engine.tabular.text import title_words
from engine.tabular.words import counted


class Column(StrEnum):
    """Role of a column in a list of rooms."""

    HALL = "hall"
    FLOOR = "floor"
    ROOM = "room"
    SUITE = "suite"
    BED = "bed"
    CAPACITY = "capacity"
    MAX_CAPACITY = "max capacity"
    DESIGNATION = "designation"
    NEED = "need"
    NEEDS = "needs"
    STATE = "state"
    NOTE = "note"
    IGNORE = "ignore"


LABELS = {
    Column.HALL: "Hall",
    Column.FLOOR: "Floor",
    Column.ROOM: "Room",
    Column.SUITE: "Suite or apartment of the room",
    Column.BED: "Bed",
    Column.CAPACITY: "Beds in the room",
    Column.MAX_CAPACITY: "Beds with extra beds",
    Column.DESIGNATION: "Who may live there",
    Column.NEED: "A need it meets (yes or no)",
    Column.NEEDS: "Needs it meets (a list)",
    Column.STATE: "Open, held back or offline",
    Column.NOTE: "Note",
    Column.IGNORE: "Leave out",
}
_NAMES = (
    (
        Column.BED,
        r"bed|bed ?(name|number|no|space|letter)|bedspace|room ?space( \w+)?|"
        r"bett|bettplatz|cama|lit",
    ),
    (
        Column.MAX_CAPACITY,
        r"max(imum)? (capacity|occupancy|beds)|(beds|capacity) with extra beds|overflow capacity|"
        r"(expanded|emergency) (capacity|occupancy)",
    ),
    (
        Column.CAPACITY,
        r"(room |bed |max(imum)? |design |normal |standard |total )?(capacity|occupancy|cap\.?)|"
        r"max(imum)? (occupants|residents)|occupants|(total|num\.?) beds|beds (per|a) room|"
        r"beds|size|room size|places|sleeps|"
        r"(number|no\.?|#) ?(of )?(beds|places)|beds in (the )?room|bed count|"
        r"betten|bettenzahl|anzahl betten|plätze|belegung|"
        r"camas|plazas|capacidad|n[úu]mero de camas|lits|capacité|nombre de lits",
    ),
    (
        Column.HALL,
        r"((student |residential )?residence |student |residential )?"
        r"(hall|building|bldg|residence|house|dorm(itory)?|community)( ?(name|code|id|no|number))?|"
        r"room ?location|location|complex|property|gebäude|haus|wohnheim|edificio|residencia|"
        r"bâtiment|batiment|résidence",
    ),
    (
        Column.FLOOR,
        r"floor|level|storey|story|wing|floor name|etage|stockwerk|piso|planta|étage",
    ),
    (
        Column.ROOM,
        r"room|room ?(name|number|num|nbr|nr|no|id|base|code|#)|rm( ?(no|number|#))?|unit|suite|"
        r"space|number|zimmer|zimmer ?(nummer|nr\.?)|raum|habitaci[óo]n|cuarto|"
        r"n[úu]mero de habitaci[óo]n|chambre|num[ée]ro de chambre",
    ),
    (
        Column.SUITE,
        r"(suite|apartment|apt\.?|flat|unit|pod|cluster)( ?(name|number|no\.?|id|code))?|"
        r"wohnung|wohneinheit|wohngemeinschaft|wg|apartamento|piso compartido|appartement",
    ),
    (
        Column.DESIGNATION,
        r"(room |hall |floor )?(gender|sex)( \w+)?|(\w+ )?designation|restricted to|reserved for|"
        r"who( may live (here|there))?|for|geschlecht|g[ée]nero|sexo|genre|sexe|"
        r"(room |hall |floor )?(theme|living learning( community)?|class year|class standing)|"
        r"(academic )?program(me)?",
    ),
    (Column.NEEDS, r"needs( met| it meets)?|features|amenities|attributes|meets|accommodations?"),
    (Column.STATE, TITLES_OF_STATES),
    (Column.NOTE, r"notes?|comments?|remarks?|reason|bemerkung(en)?|notas?|remarques?"),
)
_THEME = r"theme|living|class|academic|program"
_KIND = r"(room ?)?(type|kind|category)"
_BED_LETTER = re.compile(r"(?<=\d)[-_ ]?[A-Ha-h]$")
_KINDS = (
    r"singles?(?![- ](?:sex|gender|stor|level|bed))|einzel(zimmer)?|individual|"
    r"sencilla|simple|chambre individuelle",
    r"doubles?(?![- ]bed)|doppel(zimmer)?|zweibett(zimmer)?|doble",
    r"triples?|dreibett(zimmer)?",
    r"quads?|quadruples?|vierbett(zimmer)?|cu[áa]druple",
    r"quints?|quintuples?|qu[íi]ntuple",
)
"""Words for kinds of rooms with one bed, two beds and so on; a double bed may be for one."""
_NUMBER_OF_KIND = re.compile(
    r"(\d|one|two|three|four|five|six)[- ]?(?:person|people|bed(?:s|der)?)\b"
)
_NUMBERS = ("one", "two", "three", "four", "five", "six")

_SECOND_CHOICE = {
    Column.BED: r"room ?space \w+",
    Column.ROOM: r"unit|suite|space|number",
    Column.CAPACITY: r"size|room size",
    Column.HALL: r"community|house|location|complex|property|.* (code|id|no|number)",
}
"""Names that a role takes only if no other column has a name of that role."""

_NEED_WORDS = (
    r"accessib|step.?free|wheelchair|\bada\b|quiet|ground.?floor|lift|elevator|barrier|deaf|"
    r"hearing|visual alarm"
)
# A slash between words without spaces is part of one need: "Deaf/hard of hearing".
_NEEDS_APART = re.compile(r"[;,|\n]|\s/\s")
LARGEST_SUITE = 24  # beds in one suite
# Roles of several columns.
MANY_COLUMNS = (Column.NEED, Column.DESIGNATION, Column.STATE, Column.IGNORE)

MOST_LETTERS = {
    Column.HALL: 80,
    Column.FLOOR: 20,
    Column.ROOM: 40,
    Column.SUITE: 40,
    Column.DESIGNATION: 200,
    Column.NOTE: 120,
    Column.NEEDS: 80,  # of one need
}


@dataclass(frozen=True, slots=True)
class RoomRow:
    """One room of a file; ``bed`` names the bed if each line is a bed.

    ``lines`` are the positions of its rows in the table. ``max_capacity`` counts extra beds too;
    ``designation`` is in the form of :func:`engine.tabular.designations.read_designations`.
    Rooms of one hall with the same ``suite``, without case, form a suite; blank is no suite.
    """

    hall: str
    floor: str
    name: str
    capacity: int
    designation: str
    meets: tuple[str, ...]
    state: str
    note: str
    max_capacity: int = 0
    bed: str = ""
    lines: tuple[int, ...] = ()
    suite: str = ""


@dataclass(frozen=True, slots=True)
class RoomProblem:
    """A problem that rejects a list of rooms: one sentence, with the row of the file."""

    sentence: str
    row: int | None = None


@dataclass(slots=True)
class RoomFile:
    """The content of a file under the chosen roles: rooms, or the problems that reject it."""

    rooms: list[RoomRow] = field(default_factory=list)
    problems: list[RoomProblem] = field(default_factory=list)
    one_line_a_bed: bool = False

    @property
    def n_beds(self) -> int:
        """Total number of beds without extra beds."""
        return sum(room.capacity for room in self.rooms)

    @property
    def n_extra_beds(self) -> int:
        """Total number of extra beds."""
        return sum(room.max_capacity - room.capacity for room in self.rooms)

    @property
    def n_suites(self) -> int:
        """Number of suites: rooms of one hall with the same name of a suite."""
        return len({(r.hall, r.suite.casefold()) for r in self.rooms if r.suite})

    @property
    def halls(self) -> list[tuple[str, int, int]]:
        """Each hall with its rooms and beds, in the order of the file."""
        found: dict[str, list[int]] = {}
        for room in self.rooms:
            entry = found.setdefault(room.hall, [0, 0])
            entry[0] += 1
            entry[1] += room.capacity
        return [(hall, rooms, beds) for hall, (rooms, beds) in found.items()]


def guess_roles(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a role for every column, by its name and content.

    A role that can be used only once goes to the first column that fits. A column of yes and no
    with no other role is a need that rooms meet; a column without a role is ignored.
    """
    names = [_plain_name(name) for name in header]
    better = {
        role
        for role, pattern in _NAMES
        for words in names
        if re.fullmatch(pattern, words) and not _is_second_choice(role, words)
    }
    roles: list[str] = []
    for index, words in enumerate(names):
        cells = {row[index].strip().casefold() for row in rows}
        role = _guess(words, cells, roles, better)
        if role == Column.SUITE and len(rows) > LARGEST_SUITE * len(cells - {""}):
            role = Column.IGNORE  # a part of the campus, or a blank column
        roles.append(role)
    if Column.MAX_CAPACITY in roles and (Column.CAPACITY not in roles or Column.BED in roles):
        is_only = Column.CAPACITY not in roles
        roles[roles.index(Column.MAX_CAPACITY)] = Column.CAPACITY if is_only else Column.IGNORE
    if Column.ROOM in roles and not {Column.CAPACITY, Column.BED} & {*roles}:
        kind = _column_of_kinds(names, rows, roles)
        if kind is not None:
            roles[kind] = Column.CAPACITY
    return roles


def _column_of_kinds(
    names: Sequence[str], rows: Sequence[Sequence[str]], roles: Sequence[str]
) -> int | None:
    """Return the column of "Single" and "Double" of a list with a line for each room, or None.

    Cells that are no such words are then problems of their rows.
    """
    places = [k for k, role in enumerate(roles) if role in (Column.HALL, Column.ROOM)]
    keys = {tuple(row[k].strip().casefold() for k in places) for row in rows}
    room = roles.index(Column.ROOM)
    if len({_BED_LETTER.sub("", row[room].strip()) for row in rows}) < len({*keys}):
        return None  # 101A and 101B may be beds of one double
    for column, name in enumerate(names):
        is_kind = re.fullmatch(_KIND, name) is not None
        if is_kind and any(_beds_of_kind(row[column]) is not None for row in rows):
            return column if len(keys) == len(rows) else None
    return None


def _beds_of_kind(text: str) -> int | None:
    """Return the beds of a kind of room, "Economy Triple" or "2-person"; None if it says none.

    A word for a number of beds counts, unless another one contradicts it: "Double as single".
    """
    words = " ".join(text.casefold().replace("_", " ").split())
    found = {
        beds
        for beds, pattern in enumerate(_KINDS, start=1)
        if re.search(rf"\b(?:{pattern})\b", words)
    }
    number = _NUMBER_OF_KIND.search(words)
    if number:
        found.add(int(number[1]) if number[1].isdecimal() else 1 + _NUMBERS.index(number[1]))
    return found.pop() if len(found) == 1 else None


def _is_second_choice(role: Column, words: str) -> bool:
    return re.fullmatch(_SECOND_CHOICE.get(role, ""), words) is not None


def _guess(words: str, cells: set[str], taken: Sequence[str], better: set[Column]) -> str:
    """Return the role of a column; ``better`` holds the roles that have a name of first choice."""
    if re.search(_NEED_WORDS, words) and cells <= YES | NO:
        return Column.NEED
    is_theme = re.match(_THEME, words) is not None
    for role, pattern in _NAMES:
        if role == Column.DESIGNATION and is_theme and cells & YES and cells <= YES | NO:
            continue  # a need: "Programme" with yes and no
        if role in better and _is_second_choice(role, words):
            continue
        if role == Column.STATE and not may_be_states(words, cells, is_further=role in taken):
            continue
        if re.fullmatch(pattern, words) and (role not in taken or role in MANY_COLUMNS):
            return role
    # A yes/no column with no other role is a need that rooms meet: "Visual alarm".
    return Column.NEED if cells & YES and cells <= YES | NO else Column.IGNORE


def read_rooms(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    row_numbers: Sequence[int],
    roles: Sequence[str],
) -> RoomFile:
    """Read rooms under the given roles of the columns.

    Without a column of capacities, or with a column of beds, lines of the same hall and room are
    its beds.
    """
    found = RoomFile()
    places = {role: index for index, role in enumerate(roles) if role not in MANY_COLUMNS}
    designated = [
        (index, header[index]) for index, role in enumerate(roles) if role == Column.DESIGNATION
    ]
    needs = [(index, header[index].strip()) for index, role in enumerate(roles) if role == "need"]
    states = [
        (
            index,
            StateColumn.of(
                _plain_name(header[index]), {row[index].strip().casefold() for row in rows}
            ),
        )
        for index, role in enumerate(roles)
        if role == Column.STATE
    ]
    if Column.ROOM not in places:
        found.problems.append(RoomProblem("No column names the rooms. Choose it, or call it Room."))
        return found
    found.one_line_a_bed = Column.BED in places or Column.CAPACITY not in places
    has_halls = Column.HALL in places and any(row[places[Column.HALL]].strip() for row in rows)
    usual_hall = "" if has_halls else "Main hall"
    read = [
        _read_row(found, row, line, number, places, designated, needs, states, usual_hall)
        for line, (row, number) in enumerate(zip(rows, row_numbers, strict=True))
    ]
    lines = [(number, room) for number, room in zip(row_numbers, read, strict=True) if room]
    lines = _named_in_suites(found, lines)
    if found.one_line_a_bed:
        _gather_beds(found, lines)
    else:
        _check_once(found, lines)
    _check_suites(found, row_numbers)
    return found


def is_list_of_needs(name: str) -> bool:
    """Return True if a column of this name lists the needs that rooms meet: "Features"."""
    return _role_by_name(name, Column.NEEDS)


def is_state(name: str) -> bool:
    """Return True if a column of this name says whether rooms are open: "Status"."""
    return _role_by_name(name, Column.STATE)


def is_designation(name: str) -> bool:
    """Return True if a column of this name says who may live in rooms: "Gender Designation"."""
    return _role_by_name(name, Column.DESIGNATION)


def _role_by_name(name: str, role: Column) -> bool:
    return re.fullmatch(dict(_NAMES)[role], _plain_name(name)) is not None


def _plain_name(name: str) -> str:
    return title_words(name.strip(" .:*?")).casefold()


class _RowError(ValueError):
    """Problem of a row, as the text that follows its number."""


def _read_row(
    found: RoomFile,
    row: Sequence[str],
    line: int,
    number: int,
    places: dict[str, int],
    designated: Sequence[tuple[int, str]],
    needs: Sequence[tuple[int, str]],
    states: Sequence[tuple[int, StateColumn]],
    usual_hall: str,
) -> RoomRow | None:
    def cell(role: Column) -> str:
        return " ".join(row[places[role]].split()) if role in places else ""

    name, hall = cell(Column.ROOM), cell(Column.HALL) or usual_hall
    designation = join_designations({title: row[index] for index, title in designated})
    try:
        _check_letters(hall, name, designation, cell)
        where = f"{hall} {name}"
        capacity = 1 if found.one_line_a_bed else _capacity(cell(Column.CAPACITY), where)
        most = _max_capacity(cell(Column.MAX_CAPACITY), capacity, where)
        state = worst(_state(column, row[index], where) for index, column in states)
        return RoomRow(
            hall,
            cell(Column.FLOOR),
            name,
            capacity,
            designation,
            _needs_met(row, cell(Column.NEEDS), needs),
            state,
            cell(Column.NOTE),
            most,
            cell(Column.BED),
            (line,),
            cell(Column.SUITE),
        )
    except _RowError as error:
        found.problems.append(RoomProblem(f"Row {number:,}{error}", number))
        return None


def _check_letters(hall: str, name: str, designation: str, cell: Callable[[Column], str]) -> None:
    if not name:
        raise _RowError(" has no room. Fill it in, or remove the row.")
    if not hall:
        raise _RowError(
            f", room {name[:40]}, has no hall, though other rows have one. Write the hall in every "
            "row, also where cells were merged."
        )
    others = [(role, cell(role)) for role in (Column.FLOOR, Column.NOTE, Column.SUITE)]
    others.append((Column.DESIGNATION, designation))
    for role, text in ((Column.HALL, hall), (Column.ROOM, name), *others):
        if len(text) > MOST_LETTERS[role]:
            raise _RowError(
                f", {LABELS[role].lower()}: “{text[:20]}…” is longer than {MOST_LETTERS[role]} "
                "characters. Shorten it, or leave the column out."
            )


def _capacity(text: str, where: str) -> int:
    beds = _beds_of_kind(text)
    if beds is not None and 1 <= beds <= LARGEST_CAPACITY:
        return beds
    text = re.sub(r"(?<=\d)[.,]0+$", "", text)  # Excel writes 2 as 2.0
    if not text.isdecimal() or not 1 <= int(text[:6]) <= LARGEST_CAPACITY:
        raise _RowError(
            f", {where}: “{text[:20]}” is no number of beds from 1 to {LARGEST_CAPACITY}."
        )
    return int(text)


def _max_capacity(text: str, capacity: int, where: str) -> int:
    """Return the beds with extra beds; no cell means that there are no extra beds."""
    if text in ("", "-"):
        return capacity
    most = _capacity(text, where)
    if most < capacity:
        raise _RowError(
            f", {where}: {counted(most, 'bed')} with extra beds cannot be fewer than its "
            f"{counted(capacity, 'bed')}."
        )
    return most


def _needs_met(
    row: Sequence[str], listed: str, columns: Sequence[tuple[int, str]]
) -> tuple[str, ...]:
    """Return the listed needs, and the needs whose own column says yes."""
    met = [need.strip() for need in _NEEDS_APART.split(listed) if need.strip()]
    for index, need in columns:
        answer = row[index].strip()
        if answer.casefold() in YES:
            met.append(need)
        elif answer.casefold() not in NO:
            raise _RowError(f", {need}: “{answer[:20]}” is neither yes nor no.")
    for need in met:
        if len(need) > MOST_LETTERS[Column.NEEDS]:
            raise _RowError(
                f", needs: “{need[:20]}…” is longer than {MOST_LETTERS[Column.NEEDS]} characters. "
                "Put commas between needs, or shorten it."
            )
    return tuple(dict.fromkeys(met))


def _state(column: StateColumn, text: str, where: str) -> RoomState:
    state = column.state(text)
    if state is None:
        raise _RowError(f", {where}: “{text.strip()[:20]}” is none of open, kept and offline.")
    return state


def _named_in_suites(
    found: RoomFile, lines: Sequence[tuple[int, RoomRow]]
) -> list[tuple[int, RoomRow]]:
    """Return the lines with names that are unique in their hall: room A of suite 201 is 201-A.

    Only the names of rooms that occur in several suites of one hall change.
    """
    suites: dict[tuple[str, str], set[str]] = {}
    for _, room in lines:
        key = (room.hall.casefold(), room.name.casefold())
        suites.setdefault(key, set()).add(room.suite.casefold())
    named = []
    for number, room in lines:
        if len(suites[room.hall.casefold(), room.name.casefold()]) > 1 and room.suite:
            name = f"{room.suite}-{room.name}"
            if len(name) > MOST_LETTERS[Column.ROOM]:
                sentence = (
                    f"Row {number:,}, room: “{name[:20]}…”, the suite with the room, is longer "
                    f"than {MOST_LETTERS[Column.ROOM]} characters. Shorten one of them."
                )
                found.problems.append(RoomProblem(sentence, number))
                continue
            room = replace(room, name=name)
        named.append((number, room))
    return named


def _check_suites(found: RoomFile, row_numbers: Sequence[int]) -> None:
    """Refuse suites that are too large to be suites: the column may name parts of a campus."""
    suites: dict[tuple[str, str], list[RoomRow]] = {}
    for room in found.rooms:
        if room.suite:
            suites.setdefault((room.hall, room.suite.casefold()), []).append(room)
    for rooms in suites.values():
        beds, first = sum(room.max_capacity for room in rooms), rooms[0]
        if beds > LARGEST_SUITE:
            number = row_numbers[first.lines[0]]
            found.problems.append(
                RoomProblem(
                    f"Row {number:,}: suite {first.suite} of {first.hall} has {beds} beds; a suite "
                    f"has at most {LARGEST_SUITE}. Leave the column out, or name smaller suites.",
                    number,
                )
            )


def _check_once(found: RoomFile, lines: Sequence[tuple[int, RoomRow]]) -> None:
    seen: dict[tuple[str, str], int] = {}
    for number, room in lines:
        key = (room.hall.casefold(), room.name.casefold())
        if key in seen:
            found.problems.append(
                RoomProblem(
                    f"Row {number:,}: {room.hall} {room.name} appears twice, first in row "
                    f"{seen[key]:,}. Leave one out, or choose a column of beds.",
                    number,
                )
            )
            continue
        seen[key] = number
        found.rooms.append(room)


def _gather_beds(found: RoomFile, lines: Sequence[tuple[int, RoomRow]]) -> None:
    beds: dict[tuple[str, str], list[tuple[int, RoomRow]]] = {}
    for number, room in lines:
        beds.setdefault((room.hall.casefold(), room.name.casefold()), []).append((number, room))
    for group in beds.values():
        number, first = group[0]
        if len(group) > LARGEST_CAPACITY:
            found.problems.append(
                RoomProblem(
                    f"Row {number:,}: {first.hall} {first.name} has {counted(len(group), 'bed')}; "
                    f"at most {LARGEST_CAPACITY} are placed together.",
                    number,
                )
            )
            continue
        sentence, row = _contradiction(group)
        if sentence:
            found.problems.append(RoomProblem(sentence, row))
            continue
        found.rooms.append(
            RoomRow(
                first.hall,
                first.floor,
                first.name,
                len(group),
                first.designation,
                first.meets,
                worst(room.state for _, room in group),
                first.note,
                max(len(group), first.max_capacity),
                lines=tuple(line for _, room in group for line in room.lines),
                suite=first.suite,
            )
        )


def _contradiction(group: Sequence[tuple[int, RoomRow]]) -> tuple[str, int]:
    """Return how the lines of one room contradict each other, and the row; "" if they agree."""
    number, first = group[0]
    label = f"{first.hall} {first.name}"
    beds: dict[str, int] = {}
    for row, room in group:
        if room.designation != first.designation:
            return (
                f"Row {row:,}: the beds of {label} are for different people, first in row "
                f"{number:,}. Make them agree."
            ), row
        if room.floor != first.floor:
            return (
                f"Row {row:,}: {label} is on another floor than in row {number:,}. Make them "
                "agree, or give one of the rooms another name."
            ), row
        if set(room.meets) != set(first.meets):
            return (
                f"Row {row:,}: the beds of {label} meet different needs, first in row "
                f"{number:,}. A room meets a need for everybody in it: make them agree."
            ), row
        bed = room.bed.casefold()
        if bed and bed in beds:
            return (
                f"Row {row:,}: bed {room.bed} of {label} appears twice, first in row "
                f"{beds[bed]:,}. Leave one out."
            ), row
        beds[bed] = row
    return "", number
