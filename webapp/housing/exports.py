"""Rosters for housing systems: by person or by room, with the columns that staff choose.

Ids leave as they came: a file that a housing system takes back may not change them. A spreadsheet
would take a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, so CSV offers both:
``safe`` marks such cells with an apostrophe (and the page says so), ``exact`` leaves them alone.
XLSX keeps them as text and needs no mark.
"""

from collections.abc import Callable, Sequence
from typing import Any

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.common.listing import light
from webapp.common.tables_out import table_file
from webapp.housing.errors import HousingError
from webapp.housing.models import Place, Placement
from webapp.housing.selectors.changes import ChangedPlace

COLUMNS: dict[str, tuple[str, Callable[[Place], Any]]] = {
    "id": ("Student ID", lambda p: p.student.original_id),
    "on_screen": ("On screen", lambda p: p.label),
    "hall": ("Building", lambda p: p.room.hall if p.room else ""),
    "floor": ("Floor", lambda p: p.room.floor if p.room else ""),
    "room": ("Room", lambda p: p.room.name if p.room else ""),
    "bed": ("Bed", lambda p: p.bed or ""),
    "kind": ("Room Type", lambda p: p.room.kind if p.room else ""),
    "space": ("Room Space", lambda p: f"{p.room.label}-{p.bed}" if p.room else ""),
    "score": ("Score", lambda p: "" if p.score is None else round(p.score, 4)),
    "locked": ("Locked", lambda p: "yes" if p.is_locked else "no"),
}
# Column orders that the named systems' importers are set up for most often; all can be changed.
SHAPES = {
    "plain": ("id", "hall", "floor", "room", "bed", "kind", "score"),
    "starrez": ("id", "space"),
    "erezlife": ("id", "hall", "room", "bed"),
    "housing-cloud": ("id", "hall", "floor", "room", "bed"),
    "banner": ("id", "hall", "room"),
}


def checked_columns(chosen: Sequence[str]) -> list[str]:
    """Return the chosen columns, or raise HousingError for one that there is not."""
    unknown = [name for name in chosen if name not in COLUMNS]
    if unknown or not chosen:
        raise HousingError("Choose at least one column of the roster.")
    return list(dict.fromkeys(chosen))


def roster_export(
    *, user: User, placement: Placement, columns: Sequence[str], file_format: str, exact: bool
) -> tuple[bytes, str]:
    """Return a roster by person and its content type, and write the audit line."""
    names = checked_columns(columns)
    places = light(placement.places.filter(has_left=False), "student", "room")
    header = [COLUMNS[name][0] for name in names]
    rows = [[COLUMNS[name][1](place) for name in names] for place in places]
    return _file(user, placement, "Roster", header, rows, file_format, exact)


def rooms_export(
    *, user: User, placement: Placement, file_format: str, exact: bool
) -> tuple[bytes, str]:
    """Return one line a room, with its people in one column each."""
    rooms = list(placement.buildings.rooms.all())
    people: dict[int, list[str]] = {room.pk: [] for room in rooms}
    places = light(placement.places.filter(room__isnull=False), "student")
    for place in places.order_by("bed"):
        people[place.room_id].append(place.student.original_id)
    widest = max((room.capacity for room in rooms), default=0)
    header = ["Building", "Floor", "Room", "Beds", *(f"Bed {k + 1}" for k in range(widest))]
    rows = [
        [room.hall, room.floor, room.name, room.capacity]
        + people[room.pk]
        + [""] * (widest - len(people[room.pk]))
        for room in rooms
    ]
    return _file(user, placement, "Rooms", header, rows, file_format, exact)


def scenarios_export(
    *, user: User, cohort: Cohort, rows: Sequence[Sequence[str]], file_format: str
) -> tuple[bytes, str]:
    """Return scenarios side by side and their content type, and write the audit line."""
    data, kind = table_file("Scenarios", rows, file_format)
    audit(user, "exported", cohort, what="Scenarios", rows=len(rows) - 1, format=file_format)
    return data, kind


def moves_export(
    *, user: User, placement: Placement, rows: Sequence[ChangedPlace], file_format: str
) -> tuple[bytes, str]:
    """Return who would move in a late change, with the reason of each, and write the audit line."""
    original = dict(placement.cohort.students.values_list("number", "original_id"))
    header = ["Student ID", "On screen", "Before", "After", "Why", "Own score changes by"]
    lines = [
        [
            original[row.number],
            row.label,
            row.before.label if row.before else "",
            row.after.label if row.after else "",
            row.reason,
            "" if row.gain is None else round(row.gain, 4),
        ]
        for row in rows
    ]
    return _file(user, placement, "Moves", header, lines, file_format, exact=False)


def _file(
    user: User,
    placement: Placement,
    title: str,
    header: list[str],
    rows: list[list[Any]],
    file_format: str,
    exact: bool,
) -> tuple[bytes, str]:
    data, kind = table_file(title, [header, *rows], file_format, exact=exact)
    audit(
        user, "exported", placement, rows=len(rows), format=file_format, what=title, exact_ids=exact
    )
    return data, kind
