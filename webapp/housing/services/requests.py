"""Importing and resolving roommate requests and preferences of a cohort."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.services.drafts import clean_filename
from webapp.cohorts.student_files import (
    StudentFile,
    StudentFileKind,
    left_out_words,
    read_student_file,
)
from webapp.cohorts.student_finder import Found, StudentFinder
from webapp.common.parameters import digits_of, whole_number
from webapp.housing.errors import HousingError
from webapp.housing.models import Preference, RoommateRequest
from webapp.housing.request_files import (
    CHOICE_USES,
    NEED_USES,
    REQUEST_USES,
    AskedFor,
    guess_choices,
    guess_needs,
    guess_requests,
    read_choices,
    read_needs,
    read_requests,
)
from webapp.housing.request_graph import Pair
from webapp.housing.services.needs import NEEDS_COLUMN, needs_column_ensure
from webapp.housing.typed_students import SeveralStudentsError, students_typed
from webapp.translation.lazy import gettext_lazy


@dataclass(frozen=True, slots=True)
class ImportedRequests:
    """Result of importing requests: how many were stored, and what was left out and why."""

    kept: int
    unknown: int
    themselves: int
    twice: int
    strangers: int

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        kept, unknown, themselves = self.kept, self.unknown, self.themselves
        twice, strangers = self.twice, self.strangers
        parts = [
            (kept, ngettext("%(count)s request imported", "%(count)s requests imported", kept)),
            (
                unknown,
                ngettext("%(count)s name is unknown", "%(count)s names are unknown", unknown),
            ),
            (
                themselves,
                ngettext(
                    "%(count)s student asked for themselves",
                    "%(count)s students asked for themselves",
                    themselves,
                ),
            ),
            (
                twice,
                ngettext(
                    "%(count)s request repeated, counted once",
                    "%(count)s requests repeated, counted once",
                    twice,
                ),
            ),
            (
                strangers,
                ngettext(
                    "%(count)s request by a student outside this cohort left out",
                    "%(count)s requests by students outside this cohort left out",
                    strangers,
                ),
            ),
        ]
        shown = [
            words % {"count": f"{count:,}"}
            for k, (count, words) in enumerate(parts)
            if count or k == 0
        ]
        return "; ".join(shown) + "."


@transaction.atomic
def requests_import(
    *, user: User, cohort: Cohort, filename: str, size: int, read: Callable[[], bytes]
) -> ImportedRequests:
    """Add the requests of a file: the asker, then the requested students in one or more columns.

    People are named by id, e-mail, name or code. The file may be the survey itself: columns are
    found by their titles and by the students in their cells. Several people in one cell are parted
    by commas, semicolons or bars. Requests that are stored already are counted once.

    Raises
    ------
    TableRefusal, StudentFileError, HousingError
        One sentence; nothing was changed.
    """
    Cohort.objects.select_for_update().get(pk=cohort.pk)
    found = read_student_file(REQUESTS, cohort, size, read)
    source = clean_filename(filename)[:120]
    asked: AskedFor = found.content
    if not asked.new and not asked.twice:
        raise HousingError(
            _(
                "No row of %(source)s names a student of %(cohort)s and whom they want. "
                "People are named by id, e-mail, name or code."
            )
            % {"source": source, "cohort": cohort.name}
        )
    return _requests_save(user, cohort, asked, source)


def _requests_save(user: User, cohort: Cohort, asked: AskedFor, source: str) -> ImportedRequests:
    fields = ("student_id", "target_id", "written")
    made = [
        RoommateRequest(cohort=cohort, source=source, **dict(zip(fields, key, strict=True)))
        for key in asked.new
    ]
    RoommateRequest.objects.bulk_create(made, batch_size=500)
    audit(user, "imported requests", cohort, requests=len(made), file=source)
    return ImportedRequests(
        len(made) - asked.themselves, asked.unknown, asked.themselves, asked.twice, asked.strangers
    )


def requests_add(*, cohort: Cohort, source: str, pairs: Sequence[tuple[int, int]]) -> None:
    """Store requests between students of a cohort, each (asker, target) by number on screen.

    Call it in the transaction that creates the cohort.
    """
    keys = dict(cohort.students.values_list("number", "pk"))
    RoommateRequest.objects.bulk_create(
        (
            RoommateRequest(
                cohort=cohort, student_id=keys[asker], target_id=keys[wanted], source=source[:120]
            )
            for asker, wanted in dict.fromkeys(pairs)
        ),
        batch_size=500,
    )


@transaction.atomic
def request_settle(*, user: User, cohort: Cohort, request_id: int, answer: str) -> RoommateRequest:
    """Set the target of an unknown request (an id), or leave it out (a blank answer).

    The typed text is deleted as soon as it is matched.
    """
    request = (
        RoommateRequest.objects.select_for_update(of=("self",))
        .select_related("student")
        .filter(cohort=cohort, pk=request_id)
        .first()
    )
    if request is None:
        raise HousingError(_("This request was removed meanwhile."))
    if not answer.strip():
        request.is_ignored = True
        request.save(update_fields=["is_ignored"])
        audit(user, "left out a request", cohort, student=request.student.label)
        return request
    finder = StudentFinder(cohort)
    number = whole_number(digits_of(answer.strip()))
    target = finder.find(answer) or finder.find(f"S-{number}" if number is not None else "")
    if target is None:
        target = _named(user, cohort, finder, answer)
    if target is None:
        raise HousingError(
            _("“%(answer)s” is no student of %(cohort)s.")
            % {"answer": answer.strip()[:30], "cohort": cohort.name}
        )
    if target.pk == request.student_id:
        raise HousingError(_("%(target)s cannot ask for themselves.") % {"target": target.label})
    _match(request, target.pk)
    audit(user, "matched a request", cohort, student=request.student.label, means=target.label)
    return request


def _named(user: User, cohort: Cohort, finder: StudentFinder, text: str) -> Found | None:
    """Return the student whose name a text begins; raise SeveralStudentsError for several."""
    try:
        numbers = students_typed(user, cohort, [text])
    except SeveralStudentsError:
        raise
    except HousingError:
        return None
    return finder.find(f"S-{numbers[0]}") if len(numbers) == 1 else None


def _match(request: RoommateRequest, target: int) -> None:
    """Set the target of a request, by key; delete it if the same request exists already."""
    same = RoommateRequest.objects.filter(student=request.student_id, target=target)
    if same.exclude(pk=request.pk).exists():
        request.delete()
        return
    request.target_id, request.written = target, ""
    request.save(update_fields=["target", "written"])


@transaction.atomic
def requests_match_close(*, user: User, cohort: Cohort) -> int:
    """Match every unknown request that can mean only one student; return how many."""
    finder = StudentFinder(cohort)
    unknown = RoommateRequest.objects.select_for_update(of=("self",)).filter(
        cohort=cohort, target=None, is_ignored=False
    )
    matched = 0
    for request in unknown:
        near = finder.close(request.written).but(request.student_id)
        if near.is_sure:
            _match(request, near.students[0].pk)
            matched += 1
    if not matched:
        raise HousingError(_("No unknown name matches exactly one student."))
    audit(user, "matched requests", cohort, requests=matched)
    return matched


@transaction.atomic
def requests_leave_out(*, user: User, cohort: Cohort) -> int:
    """Leave out every unknown request that is close to no name in the cohort; return how many."""
    finder = StudentFinder(cohort)
    unknown = RoommateRequest.objects.select_for_update(of=("self",)).filter(
        cohort=cohort, target=None, is_ignored=False
    )
    keys = [
        request.pk
        for request in unknown
        if not finder.close(request.written).but(request.student_id).students
    ]
    if not keys:
        raise HousingError(_("Every unknown request is close to somebody of this cohort."))
    RoommateRequest.objects.filter(pk__in=keys).update(is_ignored=True)
    audit(user, "left out requests", cohort, requests=len(keys))
    return len(keys)


@transaction.atomic
def requests_cut(*, user: User, cohort: Cohort, pairs: Sequence[tuple[int, int]]) -> int:
    """Leave out the requests between these students, in both directions; return how many."""
    wanted = {pair for a, b in pairs for pair in ((a, b), (b, a))}
    counting = RoommateRequest.objects.filter(cohort=cohort, is_ignored=False, target__isnull=False)
    asked = counting.values_list("pk", "student__number", "target__number")
    keys = [key for key, asker, target in asked if (asker, target) in wanted]
    cut = counting.filter(pk__in=keys).update(is_ignored=True)
    audit(user, "left out requests", cohort, pairs=[f"S-{a} + S-{b}" for a, b in pairs])
    return cut


@transaction.atomic
def requests_keep(*, user: User, cohort: Cohort, keys: Collection[int] | None = None) -> int:
    """Count left-out requests again, by key, or all of them; return how many.

    Raises HousingError if none of them is left out.
    """
    left = RoommateRequest.objects.filter(cohort=cohort, is_ignored=True)
    if keys is not None:
        left = left.filter(pk__in=keys)
    students = [f"S-{number}" for number in left.values_list("student__number", flat=True)]
    if not left.update(is_ignored=False):
        raise HousingError(_("None of these requests is left out. Nothing was changed."))
    audit(user, "counted requests again", cohort, students=students[:50], requests=len(students))
    return len(students)


@transaction.atomic
def requests_clear(*, user: User, cohort: Cohort) -> int:
    """Remove all requests of a cohort; return how many."""
    count, _rest = RoommateRequest.objects.filter(cohort=cohort).delete()
    audit(user, "removed requests", cohort, requests=count)
    return count


@transaction.atomic
def preferences_import(
    *, user: User, cohort: Cohort, filename: str, size: int, read: Callable[[], bytes]
) -> tuple[int, int]:
    """Replace the ranked preferences of a cohort by those of a file, or of the survey itself.

    One column identifies the student of a row. Columns named for choices, halls or preferences hold
    them in order; without such columns, all others do. Returns (choices stored, rows whose person
    is not in the cohort).
    """
    Cohort.objects.select_for_update().get(pk=cohort.pk)
    found = read_student_file(CHOICES, cohort, size, read)
    if not found.n_kept:
        raise HousingError(
            _(
                "No row names a student of %(cohort)s and a choice. Students are named by "
                "id, e-mail, name or code."
            )
            % {"cohort": cohort.name}
        )
    _choices_save(user, cohort, found.content)
    return found.n_kept, found.n_unknown_rows


def _choices_save(user: User, cohort: Cohort, ranked: Mapping[int, Sequence[str]]) -> None:
    made = [
        Preference(cohort=cohort, student_id=student, rank=rank, wanted=wanted)
        for student, choices in ranked.items()
        for rank, wanted in enumerate(choices, start=1)
    ]
    Preference.objects.filter(cohort=cohort).delete()
    Preference.objects.bulk_create(made, batch_size=500)
    audit(user, "imported preferences", cohort, choices=len(made))


@transaction.atomic
def needs_import(
    *, user: User, cohort: Cohort, filename: str, size: int, read: Callable[[], bytes]
) -> tuple[int, int]:
    """Replace the needs of a cohort's students by those of a file, or of columns of the survey.

    One column identifies the student of a row; columns named for needs hold words ("accessible,
    quiet") or a yes. The needs become a rule column of the cohort that placements count. Returns
    (students with a need, rows whose person is not in the cohort).
    """
    cohort = Cohort.objects.select_for_update().get(pk=cohort.pk)
    found = read_student_file(NEEDS, cohort, size, read)
    if not found.n_kept:
        raise HousingError(
            _(
                "No row names a student of %(cohort)s and a need. Students are named by id, "
                "e-mail, name or code."
            )
            % {"cohort": cohort.name}
        )
    _needs_save(user, cohort, found.content, filename)
    return found.n_kept, found.n_unknown_rows


def _needs_save(
    user: User, cohort: Cohort, needs: Mapping[int, Collection[str]], filename: str
) -> None:
    students = list(cohort.students.only("cohort", "attributes"))
    for student in students:
        words = ", ".join(needs.get(student.pk, {}))
        student.attributes = {**student.attributes, NEEDS_COLUMN: words}
    Student.objects.bulk_update(students, ["attributes"], batch_size=200)
    needs_column_ensure(cohort)
    count = sum(bool(words) for words in needs.values())
    audit(user, "imported needs", cohort, students=count, file=clean_filename(filename)[:120])


@transaction.atomic
def requests_close_circle(*, user: User, cohort: Cohort, circle: Sequence[Pair]) -> int:
    """Add the return requests of a circle of one-sided requests; return how many were added."""
    keys = dict(cohort.students.values_list("number", "pk"))
    made = 0
    for asker, target in circle:
        _rest, is_new = RoommateRequest.objects.get_or_create(
            cohort=cohort,
            student_id=keys[target],
            target_id=keys[asker],
            defaults={"source": _("Circles, asked back by staff")[:120]},
        )
        made += is_new
    audit(user, "closed a circle", cohort, requests=made)
    return made


@transaction.atomic
def requests_drop_selves(*, user: User, cohort: Cohort) -> int:
    """Leave out every request of a student for themselves; return how many."""
    found = RoommateRequest.objects.filter(
        cohort=cohort, student_id=F("target_id"), is_ignored=False
    )
    count = found.update(is_ignored=True)
    if not count:
        raise HousingError(_("Nobody asked for themselves."))
    audit(user, "left out requests", cohort, requests=count, why="asked for themselves")
    return count


def _save_requests(user: User, cohort: Cohort, found: StudentFile, filename: str) -> str:
    return _requests_save(user, cohort, found.content, filename[:120]).sentence


def _save_choices(user: User, cohort: Cohort, found: StudentFile, filename: str) -> str:
    _choices_save(user, cohort, found.content)
    return ngettext(
        "%(count)s choice imported%(left_out)s.",
        "%(count)s choices imported%(left_out)s.",
        found.n_kept,
    ) % {"count": f"{found.n_kept:,}", "left_out": left_out_words(found.n_unknown_rows)}


def _save_needs(user: User, cohort: Cohort, found: StudentFile, filename: str) -> str:
    _needs_save(user, cohort, found.content, filename)
    return ngettext(
        "%(count)s student has a need now%(left_out)s. Earlier placements do not count them yet.",
        "%(count)s students have needs now%(left_out)s. Earlier placements do not count them yet.",
        found.n_kept,
    ) % {"count": f"{found.n_kept:,}", "left_out": left_out_words(found.n_unknown_rows)}


REQUESTS = StudentFileKind(
    key="requests",
    title=gettext_lazy("Check the requests"),
    uses=lambda cohort: REQUEST_USES,
    guess=guess_requests,
    read=read_requests,
    save=_save_requests,
)
CHOICES = StudentFileKind(
    key="preferences",
    title=gettext_lazy("Check the choices"),
    uses=lambda cohort: CHOICE_USES,
    guess=guess_choices,
    read=read_choices,
    save=_save_choices,
)
NEEDS = StudentFileKind(
    key="needs",
    title=gettext_lazy("Check the needs"),
    uses=lambda cohort: NEED_USES,
    guess=guess_needs,
    read=read_needs,
    save=_save_needs,
)
