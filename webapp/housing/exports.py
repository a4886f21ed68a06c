"""Rosters for housing systems: by person or by room, with the columns that staff choose.

A spreadsheet program reads a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, so
CSV marks such cells with an apostrophe. With ``exact``, the office's own values (halls, rooms,
headings) stay unmarked for a housing system; values typed by students are always marked. XLSX
stores everything as text.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import check_may_name, shown_names
from webapp.common.listing import light
from webapp.housing.errors import HousingError
from webapp.housing.models import Place, Placement
from webapp.housing.selectors.changes import ChangedPlace
from webapp.tabular.tables_out import Verbatim, table_file

# Columns that say who a student is, for those who see names.
IDENTITY = ("name", "preferred", "pronouns", "email")
COLUMNS: dict[str, tuple[str, Callable[[Place], Any]]] = {
    "id": ("Student ID", lambda p: p.student.original_id),
    "on_screen": ("On screen", lambda p: p.label),
    "name": ("Name", lambda p: p.student.name),
    "preferred": ("Preferred Name", lambda p: p.student.preferred),
    "pronouns": ("Pronouns", lambda p: p.student.pronouns),
    "email": ("Email", lambda p: p.student.email),
    "hall": ("Building", lambda p: p.room.hall if p.room else ""),
    "floor": ("Floor", lambda p: p.room.floor if p.room else ""),
    "room": ("Room", lambda p: p.room.name if p.room else ""),
    "bed": ("Bed", lambda p: p.bed or ""),
    "kind": ("Room Type", lambda p: p.room.kind if p.room else ""),
    "space": ("Room Space", lambda p: f"{p.room.label}-{p.bed}" if p.room else ""),
    "score": ("Score", lambda p: "" if p.score is None else round(p.score, 4)),
    "locked": ("Locked", lambda p: "yes" if p.is_locked else "no"),
}
# Columns whose values an office wrote; only these may stay unmarked in a CSV.
_OF_THE_OFFICE = {"hall", "floor", "room", "kind", "space"}
# Usual column orders of the named systems' importers; staff can change all of them.
SHAPES = {
    "names": (
        "id",
        "on_screen",
        "name",
        "preferred",
        "pronouns",
        "email",
        "hall",
        "floor",
        "room",
        "bed",
    ),
    "plain": ("id", "hall", "floor", "room", "bed", "kind", "score"),
    "starrez": ("id", "space"),
    "erezlife": ("id", "hall", "room", "bed"),
    "housing-cloud": ("id", "hall", "floor", "room", "bed"),
    "banner": ("id", "hall", "room"),
}


def check_columns_of_names(user: User, columns: Iterable[str]) -> None:
    """Raise NamesRefusedError if columns hold names, and the person does not see names now."""
    if any(name in IDENTITY for name in columns):
        check_may_name(user)


def checked_columns(chosen: Sequence[str]) -> list[str]:
    """Return the chosen columns. Raise HousingError for an unknown column."""
    unknown = [name for name in chosen if name not in COLUMNS]
    if unknown or not chosen:
        raise HousingError("Choose at least one column of the roster.")
    return list(dict.fromkeys(chosen))


def roster_export(
    *, user: User, placement: Placement, columns: Sequence[str], file_format: str, exact: bool
) -> tuple[bytes, str]:
    """Return a roster by person and its content type, and write the audit line."""
    names = checked_columns(columns)
    check_columns_of_names(user, names)
    places = light(placement.places.present(), "student", "room")
    rows = roster_rows([(name, COLUMNS[name][0]) for name in names], places, exact=exact)
    return _file(user, placement, "Roster", rows, file_format, exact)


def roster_rows(
    columns: Sequence[tuple[str, str]], places: Iterable[Place], *, exact: bool
) -> list[list[Any]]:
    """Return the headings of some columns, then one row of values for each place."""
    rows: list[list[Any]] = [[_own(heading, exact) for _, heading in columns]]
    getters = [(COLUMNS[name][1], exact and name in _OF_THE_OFFICE) for name, _ in columns]
    rows += [[_own(get(place), is_exact) for get, is_exact in getters] for place in places]
    return rows


def _own(value: Any, exact: bool) -> Any:
    """Return a value unmarked where the office wrote it and the reader chose ``exact``."""
    return Verbatim(value) if exact and isinstance(value, str) else value


def rooms_export(
    *, user: User, placement: Placement, file_format: str, exact: bool, with_names: bool = False
) -> tuple[bytes, str]:
    """Return the roster by room, one line for each room with one column for each student.

    ``with_names`` adds a column with the name after each student; raises NamesRefusedError for a
    person who does not see names now.
    """
    if with_names:
        check_may_name(user)
    rooms = list(placement.buildings.rooms.all())
    people: dict[int, list[str]] = {room.pk: [] for room in rooms}
    names = shown_names(user, placement.cohort) if with_names else None
    n_columns = 1 if names is None else 2  # of one student
    places = light(placement.places.with_bed(), "student")
    for place in places.order_by("bed"):
        if place.room_id is not None:
            people[place.room_id].append(place.student.original_id)
            if names is not None:
                people[place.room_id].append(names.name(place.number))
    widest = n_columns * max((room.capacity for room in rooms), default=0)
    header = ["Building", "Floor", "Room", "Beds"]
    header += [f"Bed {k // n_columns + 1}{' Name' if k % n_columns else ''}" for k in range(widest)]
    rows = [
        [_own(room.hall, exact), _own(room.floor, exact), _own(room.name, exact), room.capacity]
        + people[room.pk]
        + [""] * (widest - len(people[room.pk]))
        for room in rooms
    ]
    return _file(user, placement, "Rooms", [header, *rows], file_format, exact)


def scenarios_export(
    *, user: User, cohort: Cohort, rows: Sequence[Sequence[str]], file_format: str
) -> tuple[bytes, str]:
    """Return the comparison of scenarios and its content type, and write the audit line."""
    data, kind = table_file("Scenarios", rows, file_format)
    audit(user, "exported", cohort, what="Scenarios", rows=len(rows) - 1, format=file_format)
    return data, kind


def moves_export(
    *, user: User, placement: Placement, rows: Sequence[ChangedPlace], file_format: str
) -> tuple[bytes, str]:
    """Return the moves of a late change with reasons, and write the audit line."""
    original = dict(placement.cohort.students.values_list("number", "original_id"))
    names = shown_names(user, placement.cohort)
    header = ["Student ID", "On screen", "Before", "After", "Why", "Own score changes by", "Name"]
    lines = [
        [
            original[row.number],
            row.label,
            row.before.label if row.before else "",
            row.after.label if row.after else "",
            row.reason,
            "" if row.gain is None else round(row.gain, 4),
            names.name(row.number),
        ]
        for row in rows
    ]
    return _file(user, placement, "Moves", [header, *lines], file_format, exact=False)


def _file(
    user: User,
    placement: Placement,
    title: str,
    rows: list[list[Any]],
    file_format: str,
    exact: bool,
) -> tuple[bytes, str]:
    data, kind = table_file(title, rows, file_format)
    audit(
        user, "exported", placement, rows=len(rows) - 1, format=file_format, what=title, exact=exact
    )
    return data, kind
