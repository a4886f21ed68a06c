"""Rosters for student systems: by person or by room, with the columns that staff choose.

A spreadsheet program reads a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, so
CSV marks such cells with an apostrophe. With ``exact``, the office's own values (halls, rooms,
headings) stay unmarked for a housing system; values typed by students are always marked. XLSX
stores everything as text.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.utils.translation import gettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import check_may_name, shown_names
from webapp.common.listing import light
from webapp.housing.errors import HousingError
from webapp.housing.models import Place, Placement, Term
from webapp.housing.selectors.changes import ChangedPlace
from webapp.housing.stays import ALWAYS, place_stay
from webapp.tabular.tables_out import Verbatim, table_file


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a roster: its usual heading, and its value for a place and the term.

    ``is_identity`` marks columns that say who a student is, for those who see names. The values of
    columns with ``is_of_office`` were written by an office; only these may stay unmarked in a CSV.
    """

    heading: str
    value: Callable[[Place, Term | None], Any]
    is_identity: bool = False
    is_of_office: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """A stored layout: columns in order, each with its heading, and the format of dates."""

    title: str
    columns: tuple[tuple[str, str], ...]
    dates: str = "iso"


def _days(place: Place, term: Term | None) -> list[date | str]:
    """Return the first and the last day of a student's bed; "" for one that nobody set."""
    stay = place_stay(place, term) if place.room_id is not None else ALWAYS
    return ["" if day in (ALWAYS.first, ALWAYS.last) else day for day in (stay.first, stay.last)]


COLUMNS: dict[str, Column] = {
    "id": Column("Student ID", lambda p, _: p.student.original_id),
    "on_screen": Column("On screen", lambda p, _: p.label),
    "name": Column("Name", lambda p, _: p.student.name, is_identity=True),
    "preferred": Column("Preferred Name", lambda p, _: p.student.preferred, is_identity=True),
    "pronouns": Column("Pronouns", lambda p, _: p.student.pronouns, is_identity=True),
    "email": Column("Email", lambda p, _: p.student.email, is_identity=True),
    "hall": Column("Building", lambda p, _: p.room.hall if p.room else "", is_of_office=True),
    "floor": Column("Floor", lambda p, _: p.room.floor if p.room else "", is_of_office=True),
    "room": Column("Room", lambda p, _: p.room.name if p.room else "", is_of_office=True),
    "suite": Column("Suite", lambda p, _: p.room.suite if p.room else "", is_of_office=True),
    "place": Column(
        "Suite and Room",
        lambda p, _: p.room.place_in_words if p.room else "",
        is_of_office=True,
    ),
    "bed": Column("Bed", lambda p, _: p.bed or ""),
    "kind": Column("Room Type", lambda p, _: p.room.kind if p.room else "", is_of_office=True),
    "space": Column(
        "Room Space",
        lambda p, _: f"{p.room.label}-{p.bed}" if p.room else "",
        is_of_office=True,
    ),
    "score": Column("Score", lambda p, _: "" if p.score is None else round(p.score, 4)),
    "locked": Column("Locked", lambda p, _: "yes" if p.is_locked else "no"),
    "term": Column("Term", lambda _, term: term.name if term else "", is_of_office=True),
    "term_code": Column(
        "Term Code", lambda _, term: term.system_name if term else "", is_of_office=True
    ),
    "starts_on": Column("Start Date", lambda p, term: _days(p, term)[0]),
    "ends_on": Column("End Date", lambda p, term: _days(p, term)[1]),
}
# A column of the survey: this and the name of the column. Students typed its values.
OWN = "own:"
MAX_COLUMNS = 100
MAX_HEADING = 60
_MAX_KEY = 1_000
DATES = {
    "iso": ("2026-08-20", "%Y-%m-%d"),
    "us": ("08/20/2026", "%m/%d/%Y"),
    "eu": ("20/08/2026", "%d/%m/%Y"),
    "month": ("20-AUG-2026", "%d-%b-%Y"),
}
# Usual columns of the importers of the named systems, which differ from one installation to the
# next; staff can change and keep all of them.
SYSTEMS: dict[str, Layout] = {
    "starrez": Layout(
        "StarRez",
        (
            ("id", "ID1"),
            ("space", "RoomSpace"),
            ("term_code", "TermSession"),
            ("starts_on", "CheckInDate"),
            ("ends_on", "CheckOutDate"),
        ),
        "us",
    ),
    "erezlife": Layout(
        "eRezLife",
        (
            ("id", "Student ID"),
            ("hall", "Building"),
            ("room", "Room"),
            ("bed", "Bed"),
            ("term", "Term"),
            ("starts_on", "Start Date"),
            ("ends_on", "End Date"),
        ),
    ),
    "housing-cloud": Layout(
        "Housing.Cloud",
        (
            ("id", "Student ID"),
            ("hall", "Building"),
            ("floor", "Floor"),
            ("room", "Room"),
            ("bed", "Bed"),
            ("term", "Term"),
            ("starts_on", "Move In Date"),
            ("ends_on", "Move Out Date"),
        ),
        "us",
    ),
    "banner": Layout(
        "Banner",
        (
            ("id", "SPRIDEN_ID"),
            ("term_code", "SLRRASG_TERM_CODE"),
            ("hall", "SLRRASG_BLDG_CODE"),
            ("room", "SLRRASG_ROOM_NUMBER"),
            ("starts_on", "SLRRASG_BEGIN_DATE"),
            ("ends_on", "SLRRASG_END_DATE"),
        ),
        "month",
    ),
    "jenzabar": Layout(
        "Jenzabar",
        (
            ("id", "ID_NUM"),
            ("term_code", "SESS_CDE"),
            ("hall", "BLDG_CDE"),
            ("room", "ROOM_CDE"),
            ("bed", "ROOM_SLOT_NUM"),
            ("starts_on", "BEGIN_DTE"),
            ("ends_on", "END_DTE"),
        ),
        "us",
    ),
}


def _usual(title: str, *keys: str) -> Layout:
    return Layout(title, tuple((key, COLUMNS[key].heading) for key in keys))


LAYOUTS: dict[str, Layout] = {
    "plain": _usual(
        "Every column of the room",
        *("id", "hall", "floor", "room", "bed", "kind", "score", "term", "starts_on", "ends_on"),
    ),
    "names": _usual(
        "Names",
        *("id", "on_screen", "name", "preferred", "pronouns", "email", "hall", "floor", "room"),
        *("bed", "term", "starts_on", "ends_on"),
    ),
    **SYSTEMS,
}


def is_column(key: str) -> bool:
    """Return True if a roster can have this column: one of ours, or one of a survey."""
    return key in COLUMNS or (key.startswith(OWN) and len(OWN) < len(key) <= _MAX_KEY)


def usual_heading(key: str) -> str:
    """Return the heading of a column that staff did not rename."""
    return COLUMNS[key].heading if key in COLUMNS else key.removeprefix(OWN)


def own_columns(cohort: Cohort) -> list[str]:
    """Return the keys of the columns of a cohort's survey: rules and needs, then questions."""
    names = [*cohort.constraints, *(question["name"] for question in cohort.questions)]
    return [OWN + name for name in dict.fromkeys(names)]


def check_columns_of_names(user: User, columns: Iterable[str]) -> None:
    """Raise NamesRefusedError if columns hold names, and the person does not see names now."""
    if any(key in COLUMNS and COLUMNS[key].is_identity for key in columns):
        check_may_name(user)


def checked_columns(chosen: Sequence[str]) -> list[str]:
    """Return the chosen columns. Raise HousingError for an unknown column."""
    if not chosen or len(chosen) > MAX_COLUMNS or not all(map(is_column, chosen)):
        raise HousingError(gettext("Choose at least one column of the roster."))
    return list(dict.fromkeys(chosen))


def roster_export(
    *,
    user: User,
    placement: Placement,
    layout: Layout,
    file_format: str,
    exact: bool,
    title: str = "Roster",
) -> tuple[bytes, str]:
    """Return a roster by student in a layout and its content type, and write the audit line.

    Raises NamesRefusedError if a column holds names and the person does not see names now.
    """
    names = checked_columns([key for key, _ in layout.columns])
    check_columns_of_names(user, names)
    rows = roster_rows(placement, layout, exact=exact)
    return _file(user, placement, title, rows, file_format, exact, columns=names)


def layout_of_columns(chosen: Sequence[str]) -> Layout:
    """Return the layout of chosen columns with their usual headings."""
    keys = checked_columns(chosen)
    return Layout("Roster", tuple((key, usual_heading(key)) for key in keys))


def roster_rows(placement: Placement, layout: Layout, *, exact: bool) -> list[list[Any]]:
    """Return the headings of a layout, then one row of values for each student."""
    has_own = any(key.startswith(OWN) for key, _ in layout.columns)
    present = placement.places.present()
    places = (
        present.select_related("student", "room") if has_own else light(present, "student", "room")
    )
    getters = [_getter(key, placement.cohort, layout.dates) for key, _ in layout.columns]
    marks = [exact and key in COLUMNS and COLUMNS[key].is_of_office for key, _ in layout.columns]
    rows: list[list[Any]] = [[_own(heading, exact) for _, heading in layout.columns]]
    for place in places:
        values = [get(place, placement.term) for get in getters]
        rows.append([_own(value, mark) for value, mark in zip(values, marks, strict=True)])
    return rows


def _getter(key: str, cohort: Cohort, dates: str) -> Callable[[Place, Term | None], Any]:
    """Return the function that finds the value of a column; a date is text in a format."""
    if key.startswith(OWN):
        return _own_getter(key.removeprefix(OWN), cohort)
    value, date_format = COLUMNS[key].value, DATES.get(dates, DATES["iso"])[1]

    def get(place: Place, term: Term | None) -> Any:
        found = value(place, term)
        return found.strftime(date_format).upper() if isinstance(found, date) else found

    return get


def _own_getter(name: str, cohort: Cohort) -> Callable[[Place, Term | None], Any]:
    """Return the function that finds a value of a survey; blank in a survey without the column."""
    if name in cohort.constraints:
        return lambda place, _: place.student.attributes.get(name, "")
    questions = [question["name"] for question in cohort.questions]
    if name not in questions:
        return lambda *_: ""
    position = questions.index(name)
    levels = cohort.questions[position]["levels"]

    def get(place: Place, _: Term | None) -> str:
        answer = place.student.answers[position]
        return "" if answer < 0 else str(levels[answer])

    return get


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
    most = max((room.max_capacity for room in rooms), default=0)
    widest = max([n_columns * most, *(len(living) for living in people.values())])
    has_suites = any(room.suite for room in rooms)
    header = ["Building", "Floor", *(["Suite"] if has_suites else []), "Room", "Beds"]
    header += [f"Bed {k // n_columns + 1}{' Name' if k % n_columns else ''}" for k in range(widest)]
    rows = [
        [_own(room.hall, exact), _own(room.floor, exact)]
        + ([_own(room.suite, exact)] if has_suites else [])
        + [_own(room.name, exact), room.capacity]
        + people[room.pk]
        + [""] * (widest - len(people[room.pk]))
        for room in rooms
    ]
    return _file(user, placement, "Rooms", [header, *rows], file_format, exact)


def floors_export(*, user: User, placement: Placement, file_format: str) -> tuple[bytes, str]:
    """Return the floor lists, one line for each bed, free beds too, and write the audit line.

    Names are in the file for a person who sees them now; others get ids on screen alone.
    """
    names = shown_names(user, placement.cohort)
    beds: dict[int, dict[int, list[Place]]] = {}
    for place in placement.places.with_bed().order_by("arrives_on", "number"):
        living = beds.setdefault(place.room_id or 0, {})
        living.setdefault(place.bed or 0, []).append(place)
    rows: list[list[Any]] = []
    rooms = list(placement.buildings.rooms.all())
    has_suites = any(room.suite for room in rooms)
    for room in rooms:
        where = [room.hall, room.floor, *([room.suite] if has_suites else []), room.name]
        living = beds.get(room.pk, {})
        shown = range(1, room.capacity + 1) if room.is_open else ()
        for bed in sorted({*living, *shown}):
            who = [
                [place.label, names.name(place.number), *_days(place, placement.term)]
                for place in living.get(bed, ())
            ]
            for cells in who or [["", "", "", ""]]:
                rows.append([*where, bed, *cells, room.note])
    header = ["Building", "Floor", *(["Suite"] if has_suites else []), "Room", "Bed"]
    header += ["Student", "Name", "First day", "Last day", "Note"]
    return _file(user, placement, "Floor lists", [header, *rows], file_format, exact=False)


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
    **details: Any,
) -> tuple[bytes, str]:
    data, kind = table_file(title, rows, file_format)
    details |= {"rows": len(rows) - 1, "format": file_format, "what": title, "exact": exact}
    audit(user, "exported", placement, **details)
    return data, kind
