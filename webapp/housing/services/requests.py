"""Importing and settling roommate requests and preferences of a cohort."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.db import transaction
from rapidfuzz import fuzz, process

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.services.drafts import clean_filename
from webapp.cohorts.tables.people import People, fold_name
from webapp.cohorts.tables.reading import check_file_size, read_table
from webapp.cohorts.tables.table import Table
from webapp.common.parameters import digits_of, whole_number
from webapp.housing.errors import HousingError
from webapp.housing.models import Preference, RoommateRequest

CLOSE = 80.0  # per cent of equal letters from which another spelling is offered
SEVERAL = re.compile(r"[;,|/\n]")


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
            (self.themselves, "asked for themselves and were left out"),
            (self.twice, "said twice and counted once"),
            (self.strangers, "by ids that are not in this cohort were left out"),
        ):
            if count:
                parts.append(f"{count:,} {words}")
        return "; ".join(parts) + "."


@dataclass(frozen=True, slots=True)
class Candidates:
    """Whom a text may mean, nearest first; ``is_sure`` where it is one and nobody else is close."""

    students: tuple[Student, ...]
    is_sure: bool

    def but(self, key: int) -> "Candidates":
        """Return the same without one student: nobody asks for themselves."""
        rest = tuple(student for student in self.students if student.pk != key)
        return Candidates(rest, self.is_sure and len(rest) == 1)


class StudentFinder:
    """Finds a student of one cohort by id, by the id on screen, by e-mail or by name.

    What two share, such as a name, finds neither: both are candidates.
    """

    def __init__(self, cohort: Cohort) -> None:
        fields = ("pk", "number", "original_id", "email", "name", "cohort")
        self.students = list(cohort.students.only(*fields))
        self._by_id = {s.original_id.strip().casefold(): s for s in self.students}
        self._by_number = {s.number: s for s in self.students}

    @cached_property
    def _people(self) -> People:
        return People(
            labels=tuple(s.original_id.strip() for s in self.students),
            emails=tuple(s.email for s in self.students),
            names=tuple(s.name for s in self.students),
        )

    @cached_property
    def _by_letters(self) -> dict[str, list[Student]]:
        return _grouped((_letters(s.original_id), s) for s in self.students)

    @cached_property
    def _namesakes(self) -> dict[str, list[Student]]:
        return _grouped((fold_name(s.name), s) for s in self.students)

    def find(self, text: str) -> Student | None:
        """Return the student whom a text names for sure."""
        text = text.strip()
        known = self._by_id.get(text.casefold())
        if known is not None:
            return known
        if re.fullmatch(r"[sS]-\d{1,9}", text):
            return self._by_number.get(int(text[2:]))
        found = self._people.find(text)
        return None if found is None else self.students[found]

    def close(self, text: str, limit: int = 3) -> Candidates:
        """Return students whose id is a letter or two away, or who are called so or nearly so.

        An id that differs in spaces, signs and case alone stands by itself.
        """
        same = self._by_letters.get(_letters(text), ())
        if _letters(text) and len(same) == 1:
            return Candidates(tuple(same), is_sure=True)
        namesakes = self._namesakes.get(fold_name(text), ())
        if fold_name(text) and namesakes:
            return Candidates(tuple(namesakes[:limit]), is_sure=len(namesakes) == 1)
        named = self._people.near(text)
        if named is not None:
            return Candidates((self.students[named.position],), named.is_sure)
        wanted = text.strip().casefold()
        near = process.extract(
            wanted, self._by_id.keys(), scorer=fuzz.ratio, score_cutoff=CLOSE, limit=limit
        )
        return Candidates(tuple(self._by_id[name] for name, *_ in near), is_sure=len(near) == 1)


def _grouped(pairs: Iterable[tuple[str, Student]]) -> dict[str, list[Student]]:
    found: dict[str, list[Student]] = defaultdict(list)
    for key, student in pairs:
        found[key].append(student)
    return found


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


@transaction.atomic
def requests_import(
    *, user: User, cohort: Cohort, filename: str, size: int, read: Callable[[], bytes]
) -> ImportedRequests:
    """Add the requests of a file: the asker's id, then whom they want, in one or more columns.

    Several ids in one cell are told apart by commas, semicolons or bars. Requests that are there
    already are counted once.

    Raises
    ------
    TableError, HousingError
        One sentence; nothing was changed.
    """
    check_file_size(size)
    table = read_table(read())
    asker, wanted = _request_columns(table)
    Cohort.objects.select_for_update().get(pk=cohort.pk)
    finder = StudentFinder(cohort)
    source = clean_filename(filename)[:120]
    seen = set(
        RoommateRequest.objects.filter(cohort=cohort).values_list(
            "student_id", "target_id", "written"
        )
    )
    made: list[RoommateRequest] = []
    themselves = twice = strangers = 0
    for row in table.rows:
        student = finder.find(row[asker])
        names = [name for k in wanted for name in _named_in(row[k], finder)]
        if student is None:
            strangers += len(names)
            continue
        for name in names:
            target = finder.find(name)
            if target == student:
                themselves += 1
                continue
            key = (student.pk, target and target.pk, "" if target else name[:120])
            if key in seen:
                twice += 1
                continue
            seen.add(key)
            made.append(
                RoommateRequest(
                    cohort=cohort, student=student, target=target, written=key[2], source=source
                )
            )
    if themselves and not made and not twice:
        raise HousingError(
            f"Every row of {source} asks for the student themselves. Choose the file in which the "
            "second column says whom they want."
        )
    if not made and not twice:
        raise HousingError(
            f"No row of {source} names a student of {cohort.name} and whom they want. "
            "The first column is read as the id of who asks."
        )
    RoommateRequest.objects.bulk_create(made, batch_size=500)
    unknown = sum(request.target is None for request in made)
    audit(user, "imported requests", cohort, requests=len(made), file=source)
    return ImportedRequests(len(made), unknown, themselves, twice, strangers)


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


def _request_columns(table: Table) -> tuple[int, list[int]]:
    """Return the column of the asker and those of whom they want, by name, else by place."""
    names = [name.casefold() for name in table.header]
    wanted = [k for k, n in enumerate(names) if re.search(r"want|request|roommate|wish|with", n)]
    rest = [k for k in range(len(names)) if k not in wanted]
    if table.n_columns < 2 or not rest:
        raise HousingError(
            "Two columns are expected: the id of who asks, and the id of whom they want."
        )
    asker = next((k for k in rest if re.search(r"student|\bid\b|from|asker|by", names[k])), rest[0])
    return asker, wanted or [k for k in range(len(names)) if k != asker][:1]


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
    _match(request, target)
    audit(user, "matched a request", cohort, student=request.student.label, means=target.label)
    return request


def _match(request: RoommateRequest, target: Student) -> None:
    """Point a request at a student; one that stands already makes it superfluous."""
    same = RoommateRequest.objects.filter(student=request.student_id, target=target)
    if same.exclude(pk=request.pk).exists():
        request.delete()
        return
    request.target, request.written = target, ""
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
            _match(request, near.students[0])
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
    cut = 0
    for a, b in pairs:
        for asker, target in ((a, b), (b, a)):
            cut += RoommateRequest.objects.filter(
                cohort=cohort, student__number=asker, target__number=target
            ).update(is_ignored=True)
    audit(user, "left out requests", cohort, pairs=[f"S-{a} + S-{b}" for a, b in pairs])
    return cut


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
    """Replace the ranked preferences of a cohort by those of a file.

    The first column is the student's id; every further one a choice, in their order.
    Returns (choices kept, rows whose id is not in the cohort).
    """
    check_file_size(size)
    table = read_table(read())
    if table.n_columns < 2:
        raise HousingError("Two columns are expected: the student’s id, and the first choice.")
    Cohort.objects.select_for_update().get(pk=cohort.pk)
    finder = StudentFinder(cohort)
    made: list[Preference] = []
    seen: set[int] = set()
    strangers = 0
    for number, row in zip(table.row_numbers, table.rows, strict=True):
        student = finder.find(row[0])
        if student is None:
            strangers += 1
            continue
        if student.pk in seen:
            raise HousingError(f"Row {number:,}: {row[0][:30]} appears twice. Leave one out.")
        seen.add(student.pk)
        choices = dict.fromkeys(" ".join(cell.split())[:80] for cell in row[1:] if cell.strip())
        made += [
            Preference(cohort=cohort, student=student, rank=rank, wanted=wanted)
            for rank, wanted in enumerate(choices, start=1)
        ]
    if not made:
        raise HousingError(
            f"No row names a student of {cohort.name} and a choice. "
            "The first column is read as the student’s id."
        )
    Preference.objects.filter(cohort=cohort).delete()
    Preference.objects.bulk_create(made, batch_size=500)
    audit(user, "imported preferences", cohort, choices=len(made))
    return len(made), strangers
