"""Importing and settling roommate requests and preferences of a cohort."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.services.drafts import clean_filename
from webapp.cohorts.tables.reading import check_file_size, read_table
from webapp.common.parameters import digits_of, whole_number
from webapp.housing.errors import HousingError
from webapp.housing.models import Preference, RoommateRequest
from webapp.housing.request_graph import Pair
from webapp.housing.rules import said_needs
from webapp.housing.student_finder import StudentFinder, columns_of

SEVERAL = re.compile(r"[;,|/\n]")
# Names of columns, as surveys and files call them.
WANTED = r"want|request|roommate|wish|with"
CHOSEN = r"choice|prefer|hall|building|room type|kind|first|second|third|fourth|fifth|\d|rank"
NEEDED = r"need|accessib|accommodation|step.?free|ground floor|quiet"
NO_REQUESTS = "Two columns are expected: who asks, and whom they want."
NO_CHOICES = "Two columns are expected: who chooses, and the first choice."
NO_NEEDS = "Two columns are expected: who has a need, and what they need."
NEEDS_COLUMN = "Needs"  # rule column of a cohort that a file of needs fills


@dataclass(frozen=True, slots=True)
class ImportedRequests:
    """What a file of requests held: how many were kept, and what was left out and why."""

    kept: int
    unknown: int
    themselves: int
    twice: int
    strangers: int

    @property
    def sentence(self) -> str:
        """What happened, in one sentence."""
        parts = [f"{self.kept:,} requests imported"]
        for count, words in (
            (self.unknown, "name nobody known yet"),
            (self.themselves, "asked for themselves"),
            (self.twice, "said twice and counted once"),
            (self.strangers, "by ids that are not in this cohort were left out"),
        ):
            if count:
                parts.append(f"{count:,} {words}")
        return "; ".join(parts) + "."


@transaction.atomic
def requests_import(
    *, user: User, cohort: Cohort, filename: str, size: int, read: Callable[[], bytes]
) -> ImportedRequests:
    """Add the requests of a file: who asks, then whom they want, in one or more columns.

    People are named by id, e-mail, name or code. The file may be the survey itself: columns are
    found by their names. Several people in one cell are told apart by commas, semicolons or bars.
    Requests that are there already are counted once.

    Raises
    ------
    TableError, HousingError
        One sentence; nothing was changed.
    """
    check_file_size(size)
    table = read_table(read())
    asker, wanted = columns_of(table, WANTED, NO_REQUESTS)
    wanted = wanted if re.search(WANTED, table.header[wanted[0]].casefold()) else wanted[:1]
    Cohort.objects.select_for_update().get(pk=cohort.pk)
    finder = StudentFinder(cohort)
    source = clean_filename(filename)[:120]
    fields = ("student_id", "target_id", "written")
    seen = set(RoommateRequest.objects.filter(cohort=cohort).values_list(*fields))
    asked: list[tuple[int, int | None, str]] = []  # the fields, in the file's order
    twice = strangers = 0
    for row in table.rows:
        student = finder.find(row[asker])
        names = [name for k in wanted for name in _named_in(row[k], finder)]
        if student is None:
            strangers += len(names)
            continue
        for name in names:
            target = finder.find(name)
            key = (student.pk, target and target.pk, "" if target else name[:120])
            if key in seen:
                twice += 1
                continue
            seen.add(key)
            asked.append(key)
    themselves = sum(target == student for student, target, _ in asked)
    if themselves and themselves == len(asked) and not twice:
        raise HousingError(
            f"Every row of {source} asks for the student themselves. Choose the file in which the "
            "second column says whom they want."
        )
    if not asked and not twice:
        raise HousingError(
            f"No row of {source} names a student of {cohort.name} and whom they want. "
            "People are named by id, e-mail, name or code."
        )
    made = [
        RoommateRequest(cohort=cohort, source=source, **dict(zip(fields, key, strict=True)))
        for key in asked
    ]
    RoommateRequest.objects.bulk_create(made, batch_size=500)
    unknown = sum(target is None for _, target, _ in asked)
    audit(user, "imported requests", cohort, requests=len(made), file=source)
    return ImportedRequests(len(made) - themselves, unknown, themselves, twice, strangers)


def _named_in(cell: str, finder: StudentFinder) -> list[str]:
    """Return whom one cell names: "Ash, Ada" is one where somebody is called so."""
    if finder.find(cell) is not None:
        return [cell.strip()]
    return [part.strip() for part in SEVERAL.split(cell) if part.strip()]


def requests_add(*, cohort: Cohort, source: str, pairs: Sequence[tuple[int, int]]) -> None:
    """Keep requests between students of a cohort, each (who asks, whom) by number on screen.

    Call it in the transaction that makes the cohort.
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
    """Say whom an unknown request means (an id), or leave it out (a blank answer).

    What was typed is forgotten as soon as it is matched.
    """
    request = (
        RoommateRequest.objects.select_for_update(of=("self",))
        .select_related("student")
        .filter(cohort=cohort, pk=request_id)
        .first()
    )
    if request is None:
        raise HousingError("This request was removed meanwhile.")
    if not answer.strip():
        request.is_ignored = True
        request.save(update_fields=["is_ignored"])
        audit(user, "left out a request", cohort, student=request.student.label)
        return request
    finder = StudentFinder(cohort)
    number = whole_number(digits_of(answer.strip()))
    target = finder.find(answer) or finder.find(f"S-{number}" if number is not None else "")
    if target is None:
        raise HousingError(f"“{answer.strip()[:30]}” is no student of {cohort.name}.")
    if target.pk == request.student_id:
        raise HousingError(f"{target.label} cannot ask for themselves.")
    _match(request, target.pk)
    audit(user, "matched a request", cohort, student=request.student.label, means=target.label)
    return request


def _match(request: RoommateRequest, target: int) -> None:
    """Point a request at a student, by key; one that stands already makes it superfluous."""
    same = RoommateRequest.objects.filter(student=request.student_id, target=target)
    if same.exclude(pk=request.pk).exists():
        request.delete()
        return
    request.target_id, request.written = target, ""
    request.save(update_fields=["target", "written"])


@transaction.atomic
def requests_match_close(*, user: User, cohort: Cohort) -> int:
    """Match every unknown request that can mean one student alone; return how many."""
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
        raise HousingError("No unknown request can mean one student alone.")
    audit(user, "matched requests", cohort, requests=matched)
    return matched


@transaction.atomic
def requests_leave_out(*, user: User, cohort: Cohort) -> int:
    """Leave out every unknown request that nobody of the cohort is close to; return how many."""
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
        raise HousingError("Every unknown request is close to somebody of this cohort.")
    RoommateRequest.objects.filter(pk__in=keys).update(is_ignored=True)
    audit(user, "left out requests", cohort, requests=len(keys))
    return len(keys)


@transaction.atomic
def requests_cut(*, user: User, cohort: Cohort, pairs: Sequence[tuple[int, int]]) -> int:
    """Leave out the requests between these students, both ways; return how many."""
    wanted = {pair for a, b in pairs for pair in ((a, b), (b, a))}
    counting = RoommateRequest.objects.filter(cohort=cohort, is_ignored=False, target__isnull=False)
    asked = counting.values_list("pk", "student__number", "target__number")
    keys = [key for key, asker, target in asked if (asker, target) in wanted]
    cut = counting.filter(pk__in=keys).update(is_ignored=True)
    audit(user, "left out requests", cohort, pairs=[f"S-{a} + S-{b}" for a, b in pairs])
    return cut


@transaction.atomic
def requests_keep(*, user: User, cohort: Cohort, keys: Collection[int] | None = None) -> int:
    """Count requests again that were left out, by key, or all of them; return how many.

    Raises HousingError when none of them is left out.
    """
    left = RoommateRequest.objects.filter(cohort=cohort, is_ignored=True)
    if keys is not None:
        left = left.filter(pk__in=keys)
    students = [f"S-{number}" for number in left.values_list("student__number", flat=True)]
    if not left.update(is_ignored=False):
        raise HousingError("None of these requests is left out. Nothing was changed.")
    audit(user, "counted requests again", cohort, students=students[:50], requests=len(students))
    return len(students)


@transaction.atomic
def requests_clear(*, user: User, cohort: Cohort) -> int:
    """Remove all requests of a cohort; return how many."""
    count, _ = RoommateRequest.objects.filter(cohort=cohort).delete()
    audit(user, "removed requests", cohort, requests=count)
    return count


@transaction.atomic
def preferences_import(
    *, user: User, cohort: Cohort, filename: str, size: int, read: Callable[[], bytes]
) -> tuple[int, int]:
    """Replace the ranked preferences of a cohort by those of a file, or of the survey itself.

    One column says who a row is of; those that are named for choices, halls or preferences hold
    them in their order, and all other columns where none is named so. Returns (choices kept, rows
    whose person is not in the cohort).
    """
    check_file_size(size)
    table = read_table(read())
    who, wanted = columns_of(table, CHOSEN, NO_CHOICES)
    Cohort.objects.select_for_update().get(pk=cohort.pk)
    finder = StudentFinder(cohort)
    made: list[Preference] = []
    seen: set[int] = set()
    strangers = 0
    for number, row in zip(table.row_numbers, table.rows, strict=True):
        student = finder.find(row[who])
        if student is None:
            strangers += 1
            continue
        if student.pk in seen:
            raise HousingError(f"Row {number:,}: {row[who][:30]} appears twice. Leave one out.")
        seen.add(student.pk)
        cells = (row[k] for k in wanted)
        choices = dict.fromkeys(" ".join(cell.split())[:80] for cell in cells if cell.strip())
        made += [
            Preference(cohort=cohort, student_id=student.pk, rank=rank, wanted=wanted)
            for rank, wanted in enumerate(choices, start=1)
        ]
    if not made:
        raise HousingError(
            f"No row names a student of {cohort.name} and a choice. "
            "Students are named by id, e-mail, name or code."
        )
    Preference.objects.filter(cohort=cohort).delete()
    Preference.objects.bulk_create(made, batch_size=500)
    audit(user, "imported preferences", cohort, choices=len(made))
    return len(made), strangers


@transaction.atomic
def needs_import(
    *, user: User, cohort: Cohort, filename: str, size: int, read: Callable[[], bytes]
) -> tuple[int, int]:
    """Replace what students of a cohort need by a file, or by columns of the survey.

    One column says who a row is of; those that are named for needs hold words ("accessible,
    quiet") or a yes. The needs become a rule column of the cohort that placements count. Returns
    (students with a need, rows whose person is not in the cohort).
    """
    check_file_size(size)
    table = read_table(read())
    who, wanted = columns_of(table, NEEDED, NO_NEEDS)
    cohort = Cohort.objects.select_for_update().get(pk=cohort.pk)
    finder = StudentFinder(cohort)
    needs: dict[int, dict[str, None]] = {}
    strangers = 0
    for row in table.rows:
        student = finder.find(row[who])
        if student is None:
            strangers += 1
            continue
        found = needs.setdefault(student.pk, {})
        for k in wanted:
            for word in said_needs(table.header[k], row[k]):
                found[word] = None
    if not any(needs.values()):
        raise HousingError(
            f"No row names a student of {cohort.name} and a need. "
            "Students are named by id, e-mail, name or code."
        )
    students = list(cohort.students.only("pk", "attributes"))
    for student in students:
        words = ", ".join(needs.get(student.pk, {}))
        student.attributes = {**student.attributes, NEEDS_COLUMN: words}
    Student.objects.bulk_update(students, ["attributes"], batch_size=200)
    if NEEDS_COLUMN not in cohort.constraints:
        cohort.constraints = [*cohort.constraints, NEEDS_COLUMN]
    cohort.revision += 1
    cohort.save(update_fields=["constraints", "revision"])
    count = sum(bool(words) for words in needs.values())
    audit(user, "imported needs", cohort, students=count, file=clean_filename(filename)[:120])
    return count, strangers


@transaction.atomic
def requests_close_circle(*, user: User, cohort: Cohort, circle: Sequence[Pair]) -> int:
    """Count who asked each other around a circle as asked back; return how many were added."""
    keys = dict(cohort.students.values_list("number", "pk"))
    made = 0
    for asker, target in circle:
        _, is_new = RoommateRequest.objects.get_or_create(
            cohort=cohort,
            student_id=keys[target],
            target_id=keys[asker],
            defaults={"source": "Circles, asked back by staff"},
        )
        made += is_new
    audit(user, "closed a circle", cohort, requests=made)
    return made


@transaction.atomic
def requests_drop_selves(*, user: User, cohort: Cohort) -> int:
    """Leave out every request of somebody for themselves; return how many."""
    found = RoommateRequest.objects.filter(
        cohort=cohort, student_id=F("target_id"), is_ignored=False
    )
    count = found.update(is_ignored=True)
    if not count:
        raise HousingError("Nobody asked for themselves.")
    audit(user, "left out requests", cohort, requests=count, why="asked for themselves")
    return count
