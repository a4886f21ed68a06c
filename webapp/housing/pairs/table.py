"""Table of the pairs of a placement: tabs, sorting, filtering and paging, all from the URL."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.core.paginator import Page
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.naming import numbers_meant
from webapp.common.listing import light, page_at
from webapp.common.parameters import digits_of, whole_number
from webapp.common.selectors import owned_by
from webapp.housing.models import APART, PairState, PlacedPair, Placement
from webapp.housing.pairs.conflicts import Conflict
from webapp.housing.pairs.rules import forbids_of
from webapp.matching.models import ForbiddenPair, LearnedModel
from webapp.translation.lazy import gettext_lazy

PAGE_SIZE = 50
MAX_PEOPLE = 10_000  # of a search; SQLite takes at most 32,766 values in one query
SORTS = {
    "pair": ("first_number",),
    "score": ("score", "first_number"),
    "probability": ("probability", "first_number"),
    "doubt": ("doubt_share", "first_number"),
}
ALL = "all"
DEFAULT_SORT = "-doubt"
SORT_WORDS = {
    "doubt": gettext_lazy("Most certain first"),
    "-doubt": gettext_lazy("Least certain first"),
    "score": gettext_lazy("Lowest score first"),
    "-score": gettext_lazy("Highest score first"),
    "probability": gettext_lazy("Least likely first"),
    "-probability": gettext_lazy("Likeliest first"),
    "pair": gettext_lazy("By student"),
    "-pair": gettext_lazy("By student, last first"),
}


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab of the table with its count."""

    key: str
    label: str
    count: int


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Number of the pairs of a placement by state, and the sum of all their scores."""

    by_state: Mapping[str, int]
    total_score: float | None

    @property
    def total(self) -> int:
        """Number of all pairs."""
        return sum(self.by_state.values())

    def of(self, *states: str) -> int:
        """Return the number of pairs in any of the given states."""
        return sum(self.by_state.get(state, 0) for state in states)


@dataclass(frozen=True, slots=True)
class PairTable:
    """Contents of a placement's table at one URL."""

    tab: str
    page: Page[Any]
    sort: str
    query: str
    against: str
    conflicted: Mapping[int, str] = field(default_factory=dict)

    @property
    def sort_words(self) -> str:
        """Sort order in words."""
        return SORT_WORDS[self.sort]


def pairs_of(user: User) -> QuerySet[Placement]:
    """Return the placements in pairs of the user's organisation, last changed first."""
    return light(owned_by(Placement, user).filter(is_pairs=True), "cohort", "model", "job")


def with_questions() -> QuerySet[Placement]:
    """Return all placements in pairs with their questions, without the weights, for their pages."""
    heavy = [f"model__{name}" for name in LearnedModel.HEAVY if name != "questions"]
    placements = Placement.objects.filter(is_pairs=True)
    return placements.select_related("cohort", "model", "job", "buildings").defer(*heavy)


def being_decided(user: User) -> QuerySet[Placement]:
    """Return the placements with undecided pairs."""
    return pairs_of(user).filter(n_open__gt=0)


def pair_counts(placement: Placement) -> PairCounts:
    """Return the counts by state, in one query."""
    rows = list(
        placement.pairs.order_by()
        .values_list("state")
        .annotate(count=Count("pk"), score=Sum("score"))
    )
    scores = [score for _, _, score in rows]
    return PairCounts(
        {state: count for state, count, _ in rows}, math.fsum(scores) if scores else None
    )


def forbidden_pairs(*placements: Placement) -> QuerySet[PlacedPair]:
    """Return the pairs of placements that a rule of the placement or of its cohort now forbids."""
    rules = ForbiddenPair.objects.filter(
        Q(placement=None) | Q(placement=OuterRef("placement")),
        cohort=OuterRef("placement__cohort"),
        first=OuterRef("first"),
        second=OuterRef("second"),
    )
    # Rules are few and pairs many: the query starts from the students in any rule.
    named = ForbiddenPair.objects.filter(cohort__in={each.cohort_id for each in placements})
    return PlacedPair.objects.filter(
        Exists(rules), placement__in=placements, first__in=named.values("first")
    )


def forbidden_counts(placements: Sequence[Placement]) -> dict[UUID, int]:
    """Return the number of forbidden pairs of each placement that has any."""
    pairs = forbidden_pairs(*placements).order_by().values_list("placement")
    return dict(pairs.annotate(count=Count("pk")))


def standing_pairs(placement: Placement) -> QuerySet[PlacedPair]:
    """Return the pairs that are neither rejected nor forbidden, here or in another placement."""
    pairs = placement.pairs.exclude(state__in=APART)
    return pairs.exclude(pk__in=forbidden_pairs(placement).values("pk"))


def count_standing(counts: PairCounts, forbidden: Iterable[str]) -> int:
    """Return the number of `standing_pairs`, from all states and those of forbidden pairs."""
    apart_by_rule = sum(state not in APART for state in forbidden)
    return counts.total - counts.of(*APART) - apart_by_rule


def pair_table(
    placement: Placement, parameters: Mapping[str, str], conflicts: list[Conflict], user: User
) -> PairTable:
    """Return the tab, order, filter and page of a URL; invalid values read as defaults.

    A search means students by id on screen and, for those who see names, by name, number or e-mail.
    """
    conflicted = _conflicted_pairs(placement, conflicts)
    tab = parameters.get("tab", "")
    tab = tab if tab in (*PairState.values, ALL) else PairState.OPEN.value
    sort = parameters.get("sort", DEFAULT_SORT)
    sort = sort if sort in SORT_WORDS else DEFAULT_SORT
    query = parameters.get("q", "").strip()[:80]
    people = numbers_meant(user, placement.cohort, query)
    against = parameters.get("against", "")
    against = against if whole_number(against) is not None else ""
    rows = (
        _apart_rows(placement, tab, query, people)
        if tab in APART
        else _pair_rows(placement, tab, sort, (query, people), against, set(conflicted))
    )
    page = page_at(rows, parameters.get("page"), PAGE_SIZE)
    return PairTable(tab, page, sort, query, against, conflicted)


def apart_counts(placement: Placement) -> dict[str, int]:
    """Return the number of rules that keep pairs apart, by the state of such a pair."""
    return forbids_of(placement).aggregate(
        **{state: Count("pk", filter=Q(placement=_owner(placement, state))) for state in APART}
    )


def pair_tabs(counts: PairCounts, apart: Mapping[str, int], shown: str) -> list[Tab]:
    """Return the tabs with their counts; rejected pairs have a tab if there are any."""
    tabs = [
        Tab(state.value, str(state.label), counts.of(state))
        for state in (PairState.OPEN, PairState.ACCEPTED, PairState.LOCKED, PairState.SWAPPED)
    ]
    tabs += [
        Tab(state.value, str(state.label), apart[state])
        for state in APART
        if apart[state] or state in (PairState.NEVER, shown)
    ]
    return [*tabs, Tab(ALL, _("All"), counts.total)]


def _pair_rows(
    placement: Placement,
    tab: str,
    sort: str,
    search: tuple[str, frozenset[int]],
    against: str,
    conflicted: set[int],
) -> QuerySet[PlacedPair]:
    rows = placement.pairs.all()
    if tab == PairState.OPEN:
        rows = rows.filter(Q(state=PairState.OPEN) | Q(pk__in=conflicted))
    elif tab != ALL:
        rows = rows.filter(state=tab)
    query, people = search
    if query:
        rows = rows.filter(_means("first_number", query, people))
    if against:
        rows = rows.filter(weak__contains=f"|{against}|")
    is_down = sort.startswith("-")
    first, *rest = SORTS[sort.removeprefix("-")]
    return rows.order_by(f"-{first}" if is_down else first, *rest)


def _kept_apart(placement: Placement, state: str) -> QuerySet[ForbiddenPair]:
    """Return the rules that keep pairs apart: rejected in this placement, or never at all."""
    owner = _owner(placement, state)
    return ForbiddenPair.objects.filter(cohort_id=placement.cohort_id, placement=owner)


def _owner(placement: Placement, state: str) -> Placement | None:
    return placement if state == PairState.REJECTED else None


def _apart_rows(
    placement: Placement, state: str, query: str, people: frozenset[int]
) -> QuerySet[ForbiddenPair]:
    rows = light(_kept_apart(placement, state), "first", "second")
    return rows.filter(_means("first__number", query, people)) if query else rows


def _means(first: str, query: str, people: frozenset[int]) -> Q:
    """Return the condition that a search means one of two students, whose fields are alike."""
    digits, wanted = digits_of(query), sorted(people)[:MAX_PEOPLE]
    condition = Q(pk__in=[])
    for field_name in (first, first.replace("first", "second")):
        condition |= Q(**{f"{field_name}__in": wanted})
        if digits:
            condition |= Q(**{f"{field_name}__contains": digits})
    return condition


def _conflicted_pairs(placement: Placement, conflicts: list[Conflict]) -> dict[int, str]:
    """Return {pair key: short words} of the decided pairs that take part in a conflict."""
    marked: dict[int, str] = {}
    for conflict in conflicts:
        if len(conflict.numbers) < 2:
            continue
        numbers = conflict.numbers
        pairs = placement.pairs.exclude(state=PairState.OPEN).filter(
            first_number__in=numbers, second_number__in=numbers
        )
        marked.update(dict.fromkeys(pairs.values_list("pk", flat=True), conflict.short))
    return marked


def current_pairs(placement: Placement, numbers: list[int]) -> dict[int, PlacedPair]:
    """Return the current pair of each of the students, by number."""
    found = placement.pairs.filter(Q(first_number__in=numbers) | Q(second_number__in=numbers))
    by_number: dict[int, PlacedPair] = {}
    for pair in found:
        by_number[pair.first_number] = pair
        by_number[pair.second_number] = pair
    return by_number
