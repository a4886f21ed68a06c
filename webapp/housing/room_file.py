"""From an uploaded table to rooms: one line a room, or one line a bed.

Columns are told by their names and contents, and staff can say otherwise. Whatever cannot be read
is a problem with its row and one sentence; nothing is dropped in silence.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from webapp.common.formats import counted
from webapp.housing.models import MAX_BEDS, RoomState


class Column(StrEnum):
    """What a column of a list of rooms holds."""

    HALL = "hall"
    FLOOR = "floor"
    ROOM = "room"
    BED = "bed"
    CAPACITY = "capacity"
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
    Column.BED: "Bed",
    Column.CAPACITY: "Beds in the room",
    Column.DESIGNATION: "Who may live there",
    Column.NEED: "A need it meets (yes or no)",
    Column.NEEDS: "Needs it meets (a list)",
    Column.STATE: "Open, kept or offline",
    Column.NOTE: "Note",
    Column.IGNORE: "Leave out",
}
_NAMES = (
    (Column.BED, r"bed|bed ?(name|number|no|space|letter)|bedspace"),
    (Column.CAPACITY, r"capacity|beds|size|occupancy|number of beds|max(imum)? occupancy|places"),
    (Column.HALL, r"hall|building|residence|house|dorm(itory)?|community|hall name|building name"),
    (Column.FLOOR, r"floor|level|storey|story|wing|floor name"),
    (Column.ROOM, r"room|room ?(name|number|no|id)|unit|suite|space|number"),
    (Column.DESIGNATION, r"designation|gender|sex|room gender|restricted to|who"),
    (Column.NEEDS, r"needs( met| it meets)?|features|amenities|attributes|meets|accommodations?"),
    (Column.STATE, r"state|status|availability|offline|closed|available|in service"),
    (Column.NOTE, r"notes?|comments?|remarks?|reason"),
)
_NEED_WORDS = r"accessib|step.?free|wheelchair|\bada\b|quiet|ground.?floor|lift|elevator"
_YES = {"yes", "y", "true", "1", "x", "si", "sí", "ja", "oui"}
_NO = {"no", "n", "false", "0", "", "-", "nein", "non", "none"}
_STATES = {
    RoomState.OPEN: {"", "open", "online", "available", "active", "yes", "in service", "ok"},
    RoomState.KEPT: {"kept", "keep", "held", "hold", "reserved", "ra", "staff", "r.a."},
    RoomState.OFFLINE: {
        "offline", "closed", "unavailable", "out of service", "out of order", "inactive", "no",
        "maintenance", "repair",
    },
}  # fmt: skip
_ANYBODY = {"", "any", "anyone", "anybody", "all", "all genders", "mixed", "co-ed", "coed", "open"}


MOST_LETTERS = {
    Column.HALL: 80,
    Column.FLOOR: 20,
    Column.ROOM: 40,
    Column.DESIGNATION: 80,
    Column.NOTE: 120,
}


@dataclass(frozen=True, slots=True)
class RoomRow:
    """One room as it will be kept; ``bed`` names the bed where a line is one."""

    hall: str
    floor: str
    name: str
    capacity: int
    designation: str
    meets: tuple[str, ...]
    state: str
    note: str
    bed: str = ""


@dataclass(frozen=True, slots=True)
class RoomProblem:
    """What stops a list of rooms: one sentence, with the row of the file."""

    sentence: str
    row: int | None = None


@dataclass(slots=True)
class RoomFile:
    """What a file says under the roles chosen: rooms, or what is in their way."""

    rooms: list[RoomRow] = field(default_factory=list)
    problems: list[RoomProblem] = field(default_factory=list)
    one_line_a_bed: bool = False

    @property
    def n_beds(self) -> int:
        """Beds of all rooms."""
        return sum(room.capacity for room in self.rooms)

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
    """Return a role for every column, by its name and what stands in it.

    A role that can stand only once goes to the first column that fits; a column of yes and no
    whose name speaks of a need is one; what nothing fits is left out.
    """
    roles: list[str] = []
    for index, name in enumerate(header):
        words = re.sub(r"[\s_]+", " ", name.strip().casefold())
        cells = {row[index].strip().casefold() for row in rows}
        roles.append(_guess(words, cells, roles))
    return roles


def _guess(words: str, cells: set[str], taken: Sequence[str]) -> str:
    if re.search(_NEED_WORDS, words) and cells <= _YES | _NO:
        return Column.NEED
    for role, pattern in _NAMES:
        if re.fullmatch(pattern, words) and role not in taken:
            return role
    return Column.IGNORE


def read_rooms(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    row_numbers: Sequence[int],
    roles: Sequence[str],
) -> RoomFile:
    """Read rooms under the given roles of the columns.

    Without a column of capacities, or with one of beds, lines of the same hall and room are its
    beds.
    """
    found = RoomFile()
    places = {role: index for index, role in enumerate(roles) if role != Column.NEED}
    needs = [(index, header[index].strip()) for index, role in enumerate(roles) if role == "need"]
    if Column.ROOM not in places:
        found.problems.append(RoomProblem("No column holds the rooms. Choose the one that does."))
        return found
    found.one_line_a_bed = Column.BED in places or Column.CAPACITY not in places
    read = [
        _read_row(found, row, number, places, needs)
        for row, number in zip(rows, row_numbers, strict=True)
    ]
    lines = [(number, room) for number, room in zip(row_numbers, read, strict=True) if room]
    if found.one_line_a_bed:
        _gather_beds(found, lines)
    else:
        _check_once(found, lines)
    return found


class _RowError(ValueError):
    """What is wrong with a row, as it goes on after its number."""


def _read_row(
    found: RoomFile,
    row: Sequence[str],
    number: int,
    places: dict[str, int],
    needs: Sequence[tuple[int, str]],
) -> RoomRow | None:
    def cell(role: Column) -> str:
        return " ".join(row[places[role]].split()) if role in places else ""

    name, hall = cell(Column.ROOM), cell(Column.HALL) or "Main hall"
    designation = cell(Column.DESIGNATION)
    try:
        _check_letters(hall, name, cell)
        where = f"{hall} {name}"
        capacity = 1 if found.one_line_a_bed else _capacity(cell(Column.CAPACITY), where)
        state = _state(cell(Column.STATE), where)
        return RoomRow(
            hall,
            cell(Column.FLOOR),
            name,
            capacity,
            "" if designation.casefold() in _ANYBODY else designation,
            _needs_met(row, cell(Column.NEEDS), needs),
            state,
            cell(Column.NOTE),
            cell(Column.BED),
        )
    except _RowError as error:
        found.problems.append(RoomProblem(f"Row {number:,}{error}", number))
        return None


def _check_letters(hall: str, name: str, cell: Callable[[Column], str]) -> None:
    if not name:
        raise _RowError(" has no room. Fill it in, or remove the row.")
    others = [(role, cell(role)) for role in (Column.FLOOR, Column.DESIGNATION, Column.NOTE)]
    for role, text in ((Column.HALL, hall), (Column.ROOM, name), *others):
        if len(text) > MOST_LETTERS[role]:
            raise _RowError(
                f", {LABELS[role].lower()}: “{text[:20]}…” is longer than {MOST_LETTERS[role]} "
                "characters. Shorten it, or leave the column out."
            )


def _capacity(text: str, where: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= MAX_BEDS:
        raise _RowError(f", {where}: “{text[:20]}” is no number of beds from 1 to {MAX_BEDS}.")
    return int(text)


def _needs_met(
    row: Sequence[str], listed: str, columns: Sequence[tuple[int, str]]
) -> tuple[str, ...]:
    """Return the needs of a list, and those whose own column says yes."""
    met = [need.strip() for need in re.split(r"[;,|/]", listed) if need.strip()]
    for index, need in columns:
        answer = row[index].strip()
        if answer.casefold() in _YES:
            met.append(need)
        elif answer.casefold() not in _NO:
            raise _RowError(f", {need}: “{answer[:20]}” is neither yes nor no.")
    return tuple(dict.fromkeys(need[:80] for need in met))


def _state(text: str, where: str) -> str:
    words = text.casefold()
    for state, known in _STATES.items():
        if words in known:
            return state.value
    raise _RowError(f", {where}: “{text[:20]}” is none of open, kept and offline.")


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
        if len(group) > MAX_BEDS:
            found.problems.append(
                RoomProblem(
                    f"Row {number:,}: {first.hall} {first.name} has {counted(len(group), 'bed')}; "
                    f"at most {MAX_BEDS} are placed together.",
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
                _worst_state(group),
                first.note,
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


def _worst_state(group: Sequence[tuple[int, RoomRow]]) -> str:
    """A room is as closed as its most closed bed: half a room is not offered."""
    states = {room.state for _, room in group}
    return next(s for s in (RoomState.OFFLINE, RoomState.KEPT, RoomState.OPEN) if s in states)
