"""Files about students: stored as a draft, changed, and imported whole or not at all."""

from collections.abc import Callable
from dataclasses import replace

from django.db import transaction
from django.utils.translation import gettext as _

from engine.tabular.source import Source
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Draft
from webapp.cohorts.services.drafts import (
    DraftChangedError,
    draft_keep,
    draft_table,
    draft_update,
)
from webapp.cohorts.student_files import (
    IGNORE,
    FileChoices,
    StudentFile,
    StudentFileError,
    StudentFileKind,
    student_file_kind,
    table_of_students,
)
from webapp.cohorts.student_finder import StudentFinder
from webapp.files.quota import with_fresh_count
from webapp.tabular.reading import read_source


@with_fresh_count
def student_file_create(
    *,
    user: User,
    cohort: Cohort,
    purpose: str,
    filename: str,
    size: int,
    read: Callable[[], bytes],
    back: str,
) -> Draft:
    """Read an upload about a cohort's students and guess its columns; nothing is imported yet.

    Raises TableRefusal, QuotaError or StudentFileError in one sentence.
    """
    return student_file_keep(
        user=user,
        cohort=cohort,
        purpose=purpose,
        filename=filename,
        source=read_source(size, read),
        back=back,
    )


def student_file_keep(
    *, user: User, cohort: Cohort, purpose: str, filename: str, source: Source, back: str
) -> Draft:
    """Store a file that was read already, such as the survey of a cohort, and guess its columns.

    Raises TableRefusal, QuotaError or StudentFileError in one sentence.
    """
    kind = _kind(purpose)
    finder = StudentFinder(cohort)
    table = table_of_students(kind, finder, source)
    uses = tuple(kind.guess(cohort, finder, table))
    choices = FileChoices(uses, layout=table.layout, back=back)
    return draft_keep(
        user=user,
        filename=filename,
        source=source,
        table=table,
        choices=choices.to_json(),
        cohort=cohort,
        purpose=purpose,
    )


def student_file_preview(draft: Draft) -> StudentFile:
    """Return the content of a draft under its present choices."""
    choices, finder = FileChoices.from_json(draft.choices), StudentFinder(draft.own_cohort)
    return _kind(draft.purpose).read(draft.own_cohort, finder, draft_table(draft), choices)


def student_file_use(*, draft: Draft, column: int | None, use: str, version: int) -> None:
    """Give a column another use; a use for a single column is removed from its earlier column.

    Raises StudentFileError if there is no such column or use.
    """
    kind, choices = _kind(draft.purpose), FileChoices.from_json(draft.choices)
    if column is None or column >= len(choices.uses) or use not in kind.uses(draft.own_cohort):
        raise StudentFileError(_("There is no such column or use of a column."))
    uses = list(choices.uses)
    if kind.single(use):
        uses = [IGNORE if own == use else own for own in uses]
    uses[column] = use
    draft_update(draft=draft, choices=replace(choices, uses=tuple(uses)).to_json(), version=version)


def student_file_same(*, draft: Draft, key: str, position: int | None, version: int) -> None:
    """Set the student of a row, by the student's position in the cohort."""
    choices = FileChoices.from_json(draft.choices)
    if position is None or position >= draft.own_cohort.n_students:
        raise StudentFileError(_("There is no such student."))
    same = {**choices.same, key[:2_000]: position}
    draft_update(draft=draft, choices=replace(choices, same=same).to_json(), version=version)


def student_file_flag(*, draft: Draft, flag: str, version: int) -> None:
    """Toggle a switch of a file: rows left out, or unknown answers as blanks."""
    choices = FileChoices.from_json(draft.choices)
    if flag not in ("without", "as_blank"):
        raise StudentFileError(_("There is no such action."))
    if flag == "without":
        changed = replace(choices, without=not choices.without)
    else:
        changed = replace(choices, as_blank=not choices.as_blank)
    draft_update(draft=draft, choices=changed.to_json(), version=version)


@transaction.atomic
def student_file_import(*, user: User, draft: Draft, version: int) -> str:
    """Import the content of a checked file, all or nothing; return one sentence.

    Raises StudentFileError while problems remain, DraftChangedError if it changed meanwhile.
    """
    Cohort.objects.select_for_update().get(pk=draft.own_cohort.pk)
    found = student_file_preview(draft)
    if found.obstacles:
        raise StudentFileError(
            _("%(problem)s Nothing was imported.") % {"problem": found.obstacles[0]}
        )
    if not found.can_import:
        why = found.why_nothing or _("No row belongs to a student of this cohort.")
        raise StudentFileError(_("%(problem)s Nothing was imported.") % {"problem": why})
    claimed, _rest = Draft.objects.filter(pk=draft.pk, version=version).delete()
    if not claimed:
        raise DraftChangedError(_("This import was changed or finished by somebody else."))
    return _kind(draft.purpose).save(user, draft.own_cohort, found, draft.filename)


def _kind(purpose: str) -> StudentFileKind:
    kind = student_file_kind(purpose)
    if kind is None:
        raise StudentFileError(_("There is no such kind of file."))
    return kind
