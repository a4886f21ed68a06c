"""Lists and tables of cohorts for pages."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Draft, PastPair, Student
from webapp.cohorts.naming import Search
from webapp.cohorts.selectors.surveys import cohort_survey, rule_value_counts
from webapp.common.formats import counted
from webapp.common.hooks import cohort_progress
from webapp.common.listing import PAGE_SIZE, ArrayLength, Listing, Tally, light, list_page
from webapp.common.parameters import digits_of
from webapp.common.selectors import owned_by

_PLACEMENTS = Tally(
    Cohort.objects.filter(placements__isnull=False), "pk", {"n_placements": Count("placements")}
)


def cohort_listing(
    user: User, parameters: Mapping[str, str], size: int = PAGE_SIZE
) -> Listing[Cohort]:
    """Return a page of the organisation's cohorts, last changed first.

    Each has ``n_questions``, ``n_placements`` and its ``progress``, None if there is none.
    """
    cohorts = light(owned_by(Cohort, user)).annotate(n_questions=ArrayLength("questions"))
    listing = list_page(cohorts, parameters, _PLACEMENTS, size=size)
    progress = cohort_progress([cohort.pk for cohort in listing.rows])
    for cohort in listing.rows:
        cohort.progress = progress.get(cohort.pk)
    return listing


def cohort_choices(cohorts: QuerySet[Cohort]) -> list[tuple[str, str]]:
    """Return key and label of each cohort, for a field that chooses one."""
    rows = cohorts.values_list("pk", "name", "n_students", "n_pairs")
    return [
        (str(pk), _choice_words(name, counted(students, "student"), has_pairs=bool(pairs)))
        for pk, name, students, pairs in rows
    ]


@dataclass(frozen=True, slots=True)
class Group:
    """Students of a cohort with one value of a rule column; blanks are a group too."""

    column: str
    value: str
    size: int

    @property
    def is_odd(self) -> bool:
        """Return True if pairs within the group leave one student over."""
        return self.size % 2 == 1


def rule_groups(cohort: Cohort) -> list[Group]:
    """Return the groups of a cohort by each rule column, largest first."""
    return [
        Group(column, value, size)
        for column, counts in rule_value_counts(cohort).items()
        for value, size in sorted(counts.items(), key=lambda found: (-found[1], found[0]))
    ]


def halves_within(cohort: Cohort) -> list[Cohort]:
    """Return the halves of a cohort and their halves, recursively, a half after its whole."""
    found: list[Cohort] = []
    level = [cohort]
    while level:
        level = list(Cohort.objects.filter(half_of__in=level).order_by("name"))
        found += level
    return found


def wholes_of(cohort: Cohort) -> list[Cohort]:
    """Return the cohort that this one is a half of, then that cohort's whole, and so on."""
    found: list[Cohort] = []
    while cohort.half_of is not None:
        cohort = cohort.half_of
        found.append(cohort)
    return found


def share_students(one: Cohort, other: Cohort) -> bool:
    """Return True if two cohorts share students: they are equal, or one is a whole of the other."""
    return one == other or one in wholes_of(other) or other in wholes_of(one)


def open_drafts(user: User) -> QuerySet[Draft]:
    """Return unfinished uploads, newest first."""
    return light(owned_by(Draft, user), "cohort")


@dataclass(frozen=True, slots=True)
class AnswerShare:
    """One answer of a question: its count, and its share of the largest count."""

    text: str
    count: int
    percent: float
    bar: float


KINDS = {
    "binary": gettext_lazy("Binary"),
    "ordinal": gettext_lazy("Ordinal"),
    "nominal": gettext_lazy("Nominal"),
}


@dataclass(frozen=True, slots=True)
class QuestionSummary:
    """One question of a cohort with its answers in order."""

    number: int
    name: str
    kind: str
    answers: tuple[AnswerShare, ...]
    n_blank: int

    @property
    def kind_in_words(self) -> str:
        """The kind of the question in the language of the page."""
        return str(KINDS.get(self.kind, self.kind))

    @property
    def bars(self) -> tuple[float, ...]:
        """Shares of the largest count, in order."""
        return tuple(answer.bar for answer in self.answers)

    @property
    def spoken(self) -> str:
        """The counts in words, for readers without the chart."""
        return ", ".join(f"{answer.text}: {answer.percent:.0f} %" for answer in self.answers)


def question_summaries(cohort: Cohort) -> list[QuestionSummary]:
    """Return every question of a cohort with the counts of its answers."""
    columns = cohort_survey(cohort).answers.T
    return [
        _summary(number, question, Counter(column.tolist()))
        for number, (question, column) in enumerate(
            zip(cohort.questions, columns, strict=True), start=1
        )
    ]


def _summary(number: int, question: dict[str, Any], counter: Counter[int]) -> QuestionSummary:
    n_blank = counter.pop(-1, 0)
    total = counter.total() or 1
    largest = max(counter.values(), default=1)
    answers = tuple(
        AnswerShare(text, counter[code], 100 * counter[code] / total, counter[code] / largest)
        for code, text in enumerate(question["levels"])
    )
    return QuestionSummary(number, question["name"], question["kind"], answers, n_blank)


def constraint_groups(cohort: Cohort) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return [(column, [(value, students)])] for every constraint column; '' is a blank."""
    columns = cohort_survey(cohort).attributes
    return [(name, sorted(Counter(values).items())) for name, values in columns.items()]


def find_students(
    cohort: Cohort, query: str, *, originals: bool = False, by_name: bool = False
) -> QuerySet[Student]:
    """Return the students whose number on screen contains the digits of the query.

    With ``by_name``, also those whom the query names. With ``originals``, also the student whose
    original id is the whole query. The caller then shows original ids, and must audit that.
    """
    if not query:
        return cohort.students.all()
    if by_name:
        named = Search(query).find(cohort, by_name=True)
        if named:
            return cohort.students.filter(number__in=[one.number for one in named])
    digits = digits_of(query)
    is_meant = Q(number__contains=digits) if digits else Q(pk__in=())
    if originals:
        is_meant |= Q(original_id=query)
    return cohort.students.filter(is_meant)


def past_pairs(
    cohort: Cohort, query: str = "", *, originals: bool = False, by_name: bool = False
) -> QuerySet[PastPair]:
    """Return past pairs, limited to those with a student from :func:`find_students`."""
    pairs = cohort.past_pairs.select_related("first", "second")
    if not query:
        return pairs
    found = find_students(cohort, query, originals=originals, by_name=by_name).order_by()
    return pairs.filter(Q(first__in=found) | Q(second__in=found))


def _choice_words(name: str, students: str, *, has_pairs: bool) -> str:
    facts = {"name": name, "students": students}
    if has_pairs:
        return _("%(name)s, %(students)s, has pairs") % facts
    return _("%(name)s, %(students)s") % facts


def is_original_id(cohort: Cohort, text: str) -> bool:
    """Return True if a student was imported with this id; generated ids do not count."""
    return not cohort.ids_made and cohort.students.filter(original_id=text).exists()


def answers_in_words(cohort: Cohort, student: Student) -> list[tuple[str, str]]:
    """Return [(question, answer)] of a student; a blank is ""."""
    return [
        (question["name"], "" if answer < 0 else question["levels"][answer])
        for question, answer in zip(cohort.questions, student.answers, strict=True)
    ]
