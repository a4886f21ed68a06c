"""The kind of a file: a list of rooms, a roster of residents, or a survey."""

from enum import StrEnum

from engine.tabular.choices import Role
from engine.tabular.guesses import guess_choices
from engine.tabular.id_column import is_id_title
from engine.tabular.makers import is_e_mail_name
from engine.tabular.personal import is_e_mail, looks_like_person
from engine.tabular.rooms import Column, guess_roles, read_rooms
from engine.tabular.table import Table

_ENOUGH = 0.5
_MIN_QUESTIONS = 3
_MAX_OTHERS = 3  # columns of a roster that are neither of people nor of rooms
_MAX_BAD_ROWS = 0.1
_PLACES = (Column.HALL, Column.FLOOR, Column.ROOM, Column.BED, Column.CAPACITY)
_OF_PEOPLE = frozenset({
    "resident", "residents", "student", "name", "full name", "student name", "resident name",
    "occupant", "first name", "last name", "bewohner", "residente", "estudiante", "résident",
    "étudiant", "vorname", "nachname", "nombre", "apellidos", "nom", "prénom",
})  # fmt: skip


class FileKind(StrEnum):
    """The kinds of files that are recognised by their columns."""

    ROOMS = "rooms"
    ROSTER = "roster"
    SURVEY = "survey"


def kind_of_file(table: Table) -> FileKind | None:
    """Return the kind of a file by its titles and cells; None if it is of no kind for sure.

    Rooms have no column of people; a roster has people and their rooms; a survey has at least three
    questions and people or the marks of a survey program.
    """
    if "kind" not in table.memo:
        table.memo["kind"] = _kind(table)
    kind: FileKind | None = table.memo["kind"]
    return kind


def _kind(table: Table) -> FileKind | None:
    roles = guess_roles(table.header, table.rows)
    places = [k for k, role in enumerate(roles) if role in _PLACES]
    people = [k for k in range(table.n_columns) if k not in places and _is_of_people(table, k)]
    others = [
        k
        for k, role in enumerate(roles)
        if k not in people and role == Column.IGNORE and table.answers(k)
    ]
    has_room = Column.ROOM in roles or Column.BED in roles
    if has_room and people and len(others) <= _MAX_OTHERS:
        return FileKind.ROSTER
    if has_room and not people and len(places) > 1 and _reads_as_rooms(table, roles):
        return FileKind.ROOMS
    return FileKind.SURVEY if _is_survey(table, len(people)) else None


def _is_of_people(table: Table, index: int) -> bool:
    """Return True for a column, filled in at least half of the rows, that identifies people."""
    answers = table.answers(index)
    enough = _ENOUGH * answers.total()
    if not answers or answers.total() < _ENOUGH * table.n_rows:
        return False
    title = table.header[index].strip().casefold()
    if title in _OF_PEOPLE or is_e_mail_name(title) or is_id_title(title):
        return True
    if sum(n for cell, n in answers.items() if is_e_mail(cell)) >= enough:
        return True
    return "name" in title and enough <= sum(
        n for cell, n in answers.items() if looks_like_person(cell)
    )


def _reads_as_rooms(table: Table, roles: list[str]) -> bool:
    found = read_rooms(table.header, table.rows, table.row_numbers, roles)
    return bool(found.rooms) and len(found.problems) <= _MAX_BAD_ROWS * table.n_rows


def _is_survey(table: Table, n_people: int) -> bool:
    choices = guess_choices(table, most_questions=None)
    questions = sum(column.role is Role.QUESTION for column in choices.columns)
    return questions >= _MIN_QUESTIONS and bool(n_people or table.layout.maker)
