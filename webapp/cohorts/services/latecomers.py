"""Late arrivals: students added after the import, by a file or by hand; all or none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.tabular.table import NOT_TEXT
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.late_arrivals import attributes_digest, undo_refusals
from webapp.cohorts.late_files import (
    EMAIL,
    ID,
    NAME,
    guess_late,
    late_uses,
    level_of,
    read_late,
    unknown_answer,
)
from webapp.cohorts.models import MAX_ID, Cohort, LateArrivals, Student
from webapp.cohorts.services.cohorts import CohortError
from webapp.cohorts.services.numbers import numbers_take
from webapp.cohorts.signals import late_undo_starting, students_added, students_leaving
from webapp.cohorts.student_files import (
    IGNORE,
    StudentFile,
    StudentFileKind,
    read_student_file,
)
from webapp.common.formats import counted
from webapp.translation.lazy import gettext_lazy

MAX_LATECOMERS = 2_000  # in one file; more students need their own cohort
MAX_VALUE = 200  # characters of a rule column's value
BY_HAND = gettext_lazy("Typed by hand")


@dataclass(frozen=True, slots=True)
class Latecomers:
    """The added students; ``blank`` are questions without answers, ``unused`` columns not read."""

    arrivals: LateArrivals
    numbers: tuple[int, ...]
    blank: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The result in words."""
        count = counted(len(self.numbers), "student")
        parts = [
            _("%(count)s added: %(labels)s") % {"count": count, "labels": self.arrivals.labels}
        ]
        if self.blank:
            parts.append(
                ngettext(
                    "%(count)s question without any answer",
                    "%(count)s questions without any answer",
                    len(self.blank),
                )
                % {"count": f"{len(self.blank):,}"}
            )
        if self.unused:
            parts.append(
                ngettext(
                    "%(count)s column not read: %(unused)s",
                    "%(count)s columns not read: %(unused)s",
                    len(self.unused),
                )
                % {"count": f"{len(self.unused):,}", "unused": self.unused[0]}
            )
        return "; ".join(parts) + "."


def latecomers_import(
    *, user: User, cohort: Cohort, size: int, read: Callable[[], bytes], filename: str = "a file"
) -> Latecomers:
    """Add the students of a file with the titles of the cohort's questions and rules, or an export.

    Raises
    ------
    TableRefusal, StudentFileError, CohortError
        One sentence that names row and column; nobody was added.
    """
    return _save(user, cohort, read_student_file(LATE, cohort, size, read), filename)


def _save(user: User, cohort: Cohort, found: StudentFile, filename: str) -> Latecomers:
    rows, numbers, unused = found.content
    return latecomers_add(
        user=user, cohort=cohort, rows=rows, source=filename, row_numbers=numbers, unused=unused
    )


def _save_file(user: User, cohort: Cohort, found: StudentFile, filename: str) -> str:
    return _save(user, cohort, found, filename).sentence


LATE = StudentFileKind(
    key="latecomers",
    title=gettext_lazy("Check the late arrivals"),
    uses=late_uses,
    single=lambda use: use not in (NAME, IGNORE),
    guess=guess_late,
    read=read_late,
    save=_save_file,
    has_header=True,
)


@transaction.atomic
def latecomers_add(
    *,
    user: User,
    cohort: Cohort,
    rows: Sequence[Mapping[str, str]],
    source: str = BY_HAND,
    row_numbers: Sequence[int] = (),
    unused: Sequence[str] = (),
) -> Latecomers:
    """Add students after all others; each row maps "id", questions and rule columns to text.

    ``source`` names the file or questionnaire that they come from.

    Raises CohortError in one sentence if an id is missing or exists already, or an answer is
    unknown; then nobody was added.
    """
    if not rows:
        raise CohortError(_("The file names nobody. Give at least one student."))
    if len(rows) > MAX_LATECOMERS:
        raise CohortError(
            _("%(rows)s students are too many to come late. Import them as a cohort instead.")
            % {"rows": f"{len(rows):,}"}
        )
    cohort = Cohort.objects.select_for_update().get(pk=cohort.pk)
    taken = {
        text.strip().casefold() for text in cohort.students.values_list("original_id", flat=True)
    }
    first = numbers_take(cohort.organisation, len(rows))
    made = []
    for k, row in enumerate(rows):
        where = _("Row %(row)s") % {"row": row_numbers[k]} if row_numbers else _("This student")
        made.append(_student(cohort, row, first + k, where, taken))
    Student.objects.bulk_create(made, batch_size=500)
    Cohort.objects.filter(pk=cohort.pk).update(
        n_students=F("n_students") + len(made),
        revision=F("revision") + 1,
        updated_at=timezone.now(),
    )
    arrivals = LateArrivals.objects.create(
        cohort=cohort,
        user=user,
        source=str(source)[:200],
        first_number=first,
        last_number=first + len(made) - 1,
        digests={str(one.number): attributes_digest(one.attributes) for one in made},
    )
    audit(user, "added latecomers", cohort, students=len(made), source=arrivals.source)
    students_added.send(Cohort, cohort=cohort, user=user, arrivals=arrivals)
    names = [question["name"] for question in cohort.questions]
    blank = [name for k, name in enumerate(names) if all(s.answers[k] < 0 for s in made)]
    return Latecomers(arrivals, tuple(s.number for s in made), tuple(blank), tuple(unused))


def latecomers_brought(arrivals: LateArrivals, brought: Mapping[str, Sequence[int]]) -> None:
    """Store what came with late arrivals, in the transaction that adds them.

    Their rules and needs as they are now count as what they came with.
    """
    students = arrivals.students.values_list("number", "attributes")
    arrivals.digests = {str(number): attributes_digest(own) for number, own in students}
    arrivals.brought = {name: list(keys) for name, keys in brought.items()}
    arrivals.save(update_fields=["digests", "brought"])


@transaction.atomic
def latecomers_undo(*, user: User, arrivals: LateArrivals) -> str:
    """Remove the students of one addition, with all that came with them; return one sentence.

    Raises CohortError in one sentence if this was undone already, or if anything was stored about
    one of the students since; then nobody was removed.
    """
    cohort = Cohort.objects.select_for_update().get(pk=arrivals.cohort_id)
    late_undo_starting.send(Cohort, cohort=cohort)
    arrivals = LateArrivals.objects.select_for_update().get(pk=arrivals.pk)
    arrivals.cohort = cohort
    keys = list(arrivals.students.select_for_update().values_list("pk", flat=True))
    refusal = undo_refusals(cohort, [arrivals])[arrivals.pk]
    if refusal:
        raise CohortError(_("%(refusal)s Nobody was removed.") % {"refusal": refusal})
    arrivals.undone_at, arrivals.undone_by = timezone.now(), user.get_username()
    arrivals.save(update_fields=["undone_at", "undone_by"])
    students_leaving.send(Cohort, cohort=cohort, user=user, arrivals=arrivals)
    Student.objects.filter(pk__in=keys).delete()
    Cohort.objects.filter(pk=cohort.pk).update(
        n_students=F("n_students") - len(keys),
        revision=F("revision") + 1,
        updated_at=timezone.now(),
    )
    count = counted(len(keys), "student")
    audit(
        user,
        "removed latecomers",
        cohort,
        students=len(keys),
        which=arrivals.labels,
        source=arrivals.source,
    )
    return _(
        "%(count)s removed from %(cohort)s: %(labels)s. To add them again, import them again."
    ) % {"count": count, "cohort": cohort.name, "labels": arrivals.labels}


def _student(
    cohort: Cohort, row: Mapping[str, str], number: int, where: str, taken: set[str]
) -> Student:
    for name, text in row.items():
        if NOT_TEXT.search(text):
            raise CohortError(
                _(
                    "%(where)s, %(name)s: it contains a character that cannot be saved. Type "
                    "it again."
                )
                % {"where": where, "name": name},
                name,
            )
        if name in cohort.constraints and len(text) > MAX_VALUE:
            raise CohortError(
                _("%(where)s, %(name)s: longer than %(max_value)s characters. Shorten it.")
                % {"where": where, "name": name, "max_value": MAX_VALUE},
                name,
            )
    original = row.get(ID, "").strip()
    if not original:
        raise CohortError(
            _("%(where)s has no id. Give each student the id of your housing system.")
            % {"where": where},
            ID,
        )
    if len(original) > MAX_ID:
        raise CohortError(
            _("%(where)s: the id is longer than 1,000 characters. Shorten it.") % {"where": where},
            ID,
        )
    if original.casefold() in taken:
        raise CohortError(
            _("%(where)s: %(original)s is in %(cohort)s already. Leave it out.")
            % {"where": where, "original": original[:60], "cohort": cohort.name},
            ID,
        )
    taken.add(original.casefold())
    return Student(
        cohort=cohort,
        number=number,
        original_id=original,
        email=row.get(EMAIL, "").strip(),
        name=row.get(NAME, "").strip(),
        answers=[_code(q, row.get(q["name"], ""), where) for q in cohort.questions],
        attributes={name: row.get(name, "").strip() for name in cohort.constraints},
    )


def _code(question: Mapping[str, Any], text: str, where: str) -> int:
    """Return the position of an answer, -1 for a blank."""
    levels = [str(level) for level in question["levels"]]
    level = level_of(text.strip(), levels)
    if level is None:
        said = unknown_answer(text, levels)
        raise CohortError(
            _("%(where)s, %(name)s: %(problem)s Nobody was added.")
            % {"where": where, "name": question["name"], "problem": said},
            question["name"],
        )
    return levels.index(level) if level else -1
