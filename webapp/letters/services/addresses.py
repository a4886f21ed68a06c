"""E-mails and names of a cohort from a file: what letters need and a survey may not have."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.tables.reading import check_file_size, read_table
from webapp.letters.errors import LetterError

_NAME_WORDS = ("name", "nombre", "first", "last", "preferred")


def addresses_import(
    *, user: User, cohort: Cohort, filename: str, size: int, read: Callable[[], bytes]
) -> tuple[int, int]:
    """Take e-mails, and names if there are any, from a file with ids.

    The column of ids is the one that names most students by id or id on screen, the e-mails the one
    with most of them; names are every column whose heading says so, in the file's order. A blank
    cell changes nothing.

    Returns
    -------
    (int, int) : students who were found, rows of nobody.

    Raises
    ------
    LetterError, TableError
        One sentence; nothing was changed.
    """
    check_file_size(size)
    table = read_table(read())
    by_id = _students(cohort)
    columns = [[row[k].strip() for row in table.rows] for k in range(table.n_columns)]
    ids = max(columns, key=lambda cells: sum(cell.casefold() in by_id for cell in cells))
    if not any(cell.casefold() in by_id for cell in ids):
        raise LetterError("No column holds ids of this cohort. Nothing was changed.")
    mails = max(columns, key=lambda cells: sum("@" in cell for cell in cells))
    if mails is ids or not any("@" in cell for cell in mails):
        raise LetterError("No column beside the ids holds e-mails. Nothing was changed.")
    names = [
        cells
        for heading, cells in zip(table.header, columns, strict=True)
        if cells is not ids
        and cells is not mails
        and any(word in heading.casefold() for word in _NAME_WORDS)
    ]
    before = {student.pk: (student.email, student.name) for student in by_id.values()}
    found, strangers = _matched(by_id, ids, mails, names, table.row_numbers)
    changed = [s for s in found.values() if (s.email, s.name) != before[s.pk]]
    with transaction.atomic():
        Student.objects.bulk_update(changed, ["email", "name"], batch_size=400)
        audit(user, "imported addresses", cohort, students=len(found), file=filename[:200])
    return len(found), strangers


def _students(cohort: Cohort) -> dict[str, Student]:
    students = list(cohort.students.only("number", "original_id", "email", "name", "cohort"))
    on_screen = {student.label.casefold(): student for student in students}
    return on_screen | {student.original_id.strip().casefold(): student for student in students}


def _matched(
    by_id: dict[str, Student], ids: list[str], mails: list[str], names: list[list[str]], rows: Any
) -> tuple[dict[int, Student], int]:
    changed: dict[int, Student] = {}
    strangers = 0
    for k, (key, mail) in enumerate(zip(ids, mails, strict=True)):
        student = by_id.get(key.casefold())
        if student is None:
            strangers += bool(key)
            continue
        if mail:
            try:
                validate_email(mail)
            except ValidationError as error:
                raise LetterError(
                    f"Row {rows[k]}: “{mail[:60]}” is no e-mail. Nothing was changed."
                ) from error
            student.email = mail[:254]
        name = " ".join(cells[k] for cells in names if cells[k])[:200]
        student.name = name or student.name
        changed[student.pk] = student
    return changed, strangers
