"""E-mails, names and pronouns of a cohort from a file, when the survey has none."""

from collections.abc import Callable, Mapping

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.tabular.choices import Role
from engine.tabular.facts import facts_of
from engine.tabular.identity import identity_roles
from engine.tabular.personal import personal_kind
from engine.tabular.student_files import (
    e_mail_column,
    in_name_order,
    name_columns,
    who_columns,
)
from engine.tabular.table import Table
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.student_files import (
    IGNORE,
    WHO,
    FileChoices,
    RowStudents,
    StudentFile,
    StudentFileKind,
    left_out_words,
    read_student_file,
)
from webapp.cohorts.student_finder import StudentFinder
from webapp.letters.errors import LetterError
from webapp.translation.lazy import gettext_lazy

EMAIL, NAME, PREFERRED, PRONOUNS = "email", "name", "preferred", "pronouns"
_FIELDS = (EMAIL, NAME, PREFERRED, PRONOUNS)
USES = {
    WHO: gettext_lazy("The student"),
    EMAIL: "E-mail",
    NAME: gettext_lazy("Name, or a part of it"),
    PREFERRED: gettext_lazy("Preferred name"),
    PRONOUNS: gettext_lazy("Pronouns"),
    IGNORE: gettext_lazy("Leave out"),
}
_SHOWN = 8


def addresses_import(
    *, user: User, cohort: Cohort, filename: str, size: int, read: Callable[[], bytes]
) -> tuple[int, int]:
    """Import e-mails, and names if there are any, from a file whose rows identify students.

    Students are found by id, by the id on screen, by e-mail or by name; ids may be the e-mails
    themselves. Columns with a title for names make up the name, the family name last. A blank cell
    changes nothing.

    Returns
    -------
    (int, int) : students found, rows without a student.

    Raises
    ------
    LetterError, TableRefusal, StudentFileError
        One sentence; nothing was changed.
    """
    with transaction.atomic():
        found = read_student_file(ADDRESSES, cohort, size, read)
        if not found.n_kept:
            raise LetterError(_("No column holds ids of this cohort. Nothing was changed."))
        _save(user, cohort, found, filename)
    return found.n_kept, found.n_unknown_rows


def _guess(cohort: Cohort, finder: StudentFinder, table: Table) -> list[str]:
    who = who_columns(table, finder.all_of)
    mail = e_mail_column(table, who)
    uses = [WHO if k in who else IGNORE for k in range(table.n_columns)]
    for k in name_columns(table, who):
        uses[k] = NAME
    if mail is not None and mail not in who:
        uses[mail] = EMAIL
    rest = [k for k, use in enumerate(uses) if use in (IGNORE, NAME)]
    kinds = {k: personal_kind(table.header[k], "", table.answers(k)) for k in rest}
    for k, role in identity_roles(facts_of(table), kinds).items():
        if role in (Role.PREFERRED, Role.PRONOUNS) and k in rest:
            uses[k] = role.value
    return uses


def _read(cohort: Cohort, finder: StudentFinder, table: Table, choices: FileChoices) -> StudentFile:
    """Return what the file says about each student with a row; blank if the row has none."""
    rows = RowStudents(finder, table, choices)
    mails = choices.columns(EMAIL) or [
        k for k in choices.columns(WHO) if any("@" in cell for cell in table.column(k))
    ]
    names = in_name_order(table, choices.columns(NAME))
    further = [choices.columns(use)[:1] for use in (PREFERRED, PRONOUNS)]
    problems = []
    if not (mails or names):
        problems.append(_("No column contains e-mail addresses or names. Choose the column."))
    kept: dict[int, tuple[str, ...]] = {}
    sample: list[tuple[str, ...]] = []
    for position, row in enumerate(table.rows):
        student = rows.of(position)
        if student is None:
            continue
        mail = next((row[k].strip() for k in mails if row[k]), "")
        if mail and not _is_e_mail(mail):
            number = table.row_numbers[position]
            problems.append(
                _("Row %(number)s: “%(mail)s” is not an e-mail address. Correct it.")
                % {"number": f"{number:,}", "mail": mail[:60]}
            )
            continue
        name = " ".join(row[k] for k in names if row[k])
        kept[student.pk] = (mail, name, *("".join(row[k] for k in one) for one in further))
        if len(sample) < _SHOWN:
            sample.append((student.label, mail, name))
    found = StudentFile(
        content=kept,
        n_kept=len(kept),
        words=ngettext("e-mails of %(count)s student", "e-mails of %(count)s students", len(kept))
        % {"count": f"{len(kept):,}"},
        facts=[_("Blank cells change nothing.")],
        problems=problems,
        sample_header=(_("Student"), "E-mail", _("Name")),
        sample=sample,
    )
    return rows.finish(found)


def _is_e_mail(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True


def _save(user: User, cohort: Cohort, found: StudentFile, filename: str) -> str:
    kept: Mapping[int, tuple[str, ...]] = found.content
    changed = []
    for student in cohort.students.filter(pk__in=kept).only("cohort", *_FIELDS):
        new = {use: text for use, text in zip(_FIELDS, kept[student.pk], strict=True) if text}
        if any(getattr(student, use) != text for use, text in new.items()):
            vars(student).update(new)
            changed.append(student)
    Student.objects.bulk_update(changed, _FIELDS, batch_size=200)
    Cohort.objects.filter(pk=cohort.pk).update(revision=F("revision") + 1)
    audit(user, "imported addresses", cohort, students=len(kept), file=filename[:200])
    return ngettext(
        "%(count)s student found%(left_out)s.",
        "%(count)s students found%(left_out)s.",
        found.n_kept,
    ) % {"count": f"{found.n_kept:,}", "left_out": left_out_words(found.n_unknown_rows)}


ADDRESSES = StudentFileKind(
    key="addresses",
    title=gettext_lazy("Check the e-mails"),
    uses=lambda cohort: USES,
    single=lambda use: use in (EMAIL, PREFERRED, PRONOUNS),
    guess=_guess,
    read=_read,
    save=_save,
)
