"""Students who come after the import: by a file of the same columns, or by hand; all or none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import FIRST_NUMBER, Cohort, Student
from webapp.cohorts.services.cohorts import CohortError
from webapp.cohorts.signals import students_added
from webapp.cohorts.tables.reading import check_file_size, read_table
from webapp.cohorts.tables.table import NOT_TEXT
from webapp.common.formats import counted

ID, EMAIL, NAME = "id", "email", "name"
_ID_WORDS = ("id", "student id", "student number", "student", "original id", "student_id")
_MAIL_WORDS = ("email", "e-mail", "mail", "email address")
_NAME_WORDS = ("name", "full name")
MAX_LATECOMERS = 2_000  # at once; more are a cohort of their own
MAX_VALUE = 200  # characters of a rule column: a group, not an essay
_SHOWN_LEVELS = 4


@dataclass(frozen=True, slots=True)
class Latecomers:
    """Who was added; ``blank`` are questions that nobody answered, ``unused`` columns unread."""

    numbers: tuple[int, ...]
    blank: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What happened, in words."""
        count = counted(len(self.numbers), "student")
        first, last = self.numbers[0], self.numbers[-1]
        ids = f"S-{first}" if first == last else f"S-{first} to S-{last}"
        parts = [f"{count} added: {ids}"]
        if self.blank:
            parts.append(f"{counted(len(self.blank), 'question')} without any answer")
        if self.unused:
            parts.append(f"{counted(len(self.unused), 'column')} not read: {self.unused[0]}")
        return "; ".join(parts) + "."


@transaction.atomic
def latecomers_import(
    *, user: User, cohort: Cohort, size: int, read: Callable[[], bytes]
) -> Latecomers:
    """Add the students of a file whose columns are called as the cohort's questions and rules.

    Raises
    ------
    TableError, CohortError
        One sentence that names row and column; nobody was added.
    """
    check_file_size(size)
    table = read_table(read())
    columns = _columns_of(cohort)
    used = [columns.get(_folded(title)) for title in table.header]
    if ID not in used:
        used[0] = ID
    twice = next((name for k, name in enumerate(used) if name and name in used[:k]), None)
    if twice is not None:
        raise CohortError(f"Two columns are called {twice}. Rename one of them.")
    rows = [
        {name: cell for name, cell in zip(used, row, strict=True) if name is not None}
        for row in table.rows
    ]
    unused = [title for title, name in zip(table.header, used, strict=True) if name is None]
    return latecomers_add(
        user=user, cohort=cohort, rows=rows, row_numbers=table.row_numbers, unused=unused
    )


@transaction.atomic
def latecomers_add(
    *,
    user: User,
    cohort: Cohort,
    rows: Sequence[Mapping[str, str]],
    row_numbers: Sequence[int] = (),
    unused: Sequence[str] = (),
) -> Latecomers:
    """Add students behind all others; each row maps "id", questions and rule columns to text.

    Raises CohortError in one sentence when an id is missing, is there already, or an answer is
    none of the question's; nobody was added.
    """
    if not rows:
        raise CohortError("The file names nobody. Give at least one student.")
    if len(rows) > MAX_LATECOMERS:
        raise CohortError(
            f"{len(rows):,} students are too many to come late. Import them as a cohort instead."
        )
    cohort = Cohort.objects.select_for_update().get(pk=cohort.pk)
    taken = {
        text.strip().casefold() for text in cohort.students.values_list("original_id", flat=True)
    }
    first = (cohort.students.aggregate(last=Max("number"))["last"] or FIRST_NUMBER - 1) + 1
    made = []
    for k, row in enumerate(rows):
        where = f"Row {row_numbers[k]}" if row_numbers else "This student"
        made.append(_student(cohort, row, first + k, where, taken))
    Student.objects.bulk_create(made, batch_size=500)
    Cohort.objects.filter(pk=cohort.pk).update(
        n_students=F("n_students") + len(made),
        revision=F("revision") + 1,
        updated_at=timezone.now(),
    )
    audit(user, "added latecomers", cohort, students=len(made))
    students_added.send(Cohort, cohort=cohort, user=user)
    names = [question["name"] for question in cohort.questions]
    blank = [name for k, name in enumerate(names) if all(s.answers[k] < 0 for s in made)]
    return Latecomers(tuple(s.number for s in made), tuple(blank), tuple(unused))


def _student(
    cohort: Cohort, row: Mapping[str, str], number: int, where: str, taken: set[str]
) -> Student:
    for name, text in row.items():
        if NOT_TEXT.search(text):
            raise CohortError(f"{where}, {name}: it holds a sign that is no text. Type it anew.")
        if name in cohort.constraints and len(text) > MAX_VALUE:
            raise CohortError(f"{where}, {name}: longer than {MAX_VALUE} characters. Shorten it.")
    original = row.get(ID, "").strip()
    if not original:
        raise CohortError(f"{where} has no id. Give each student the id of your housing system.")
    if len(original) > Student._meta.get_field("original_id").max_length:
        raise CohortError(f"{where}: the id is longer than 1,000 characters. Shorten it.")
    if original.casefold() in taken:
        raise CohortError(f"{where}: {original[:60]} is in {cohort.name} already. Leave it out.")
    taken.add(original.casefold())
    return Student(
        cohort=cohort,
        number=number,
        original_id=original,
        email=row.get(EMAIL, "").strip()[:254],
        name=row.get(NAME, "").strip()[:200],
        answers=[_code(q, row.get(q["name"], ""), where) for q in cohort.questions],
        attributes={name: row.get(name, "").strip() for name in cohort.constraints},
    )


def _code(question: Mapping[str, object], text: str, where: str) -> int:
    """Return the position of an answer, -1 for a blank."""
    wanted = _folded(text)
    if not wanted:
        return -1
    levels = [str(level) for level in question["levels"]]
    folded = [_folded(level) for level in levels]
    if wanted in folded:
        return folded.index(wanted)
    shown = ", ".join(f"“{level[:30]}”" for level in levels[:_SHOWN_LEVELS])
    more = f" and {len(levels) - _SHOWN_LEVELS} more" if len(levels) > _SHOWN_LEVELS else ""
    raise CohortError(
        f"{where}, {question['name']}: “{text.strip()[:40]}” is none of its answers, which are "
        f"{shown}{more}. Use one of them, or leave it blank. Nobody was added."
    )


def _columns_of(cohort: Cohort) -> dict[str, str]:
    """Return the columns that a file may have, by their titles without case."""
    found = dict.fromkeys(_ID_WORDS, ID)
    found |= dict.fromkeys(_MAIL_WORDS, EMAIL) | dict.fromkeys(_NAME_WORDS, NAME)
    for question in cohort.questions:
        found[_folded(str(question.get("wording", "")))] = question["name"]
    for name in [*(question["name"] for question in cohort.questions), *cohort.constraints]:
        found[_folded(name)] = name
    found.pop("", None)
    return found


def _folded(text: str) -> str:
    text = " ".join(text.split()).casefold()
    try:
        return f"{float(text):g}"  # 3 and 3.0 are one answer
    except ValueError:
        return text
