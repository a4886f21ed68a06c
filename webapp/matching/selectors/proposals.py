"""Table of a proposal: tabs, sorting, filtering and paging, all from the URL."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.core.paginator import Page
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum

from webapp.accounts.models import User
from webapp.cohorts.naming import numbers_meant
from webapp.common.listing import Listing, light, list_page, page_at
from webapp.common.parameters import digits_of, whole_number
from webapp.common.selectors import owned_by
from webapp.matching.conflicts import Conflict
from webapp.matching.models import ForbiddenPair, LearnedModel, PairState, Proposal, ProposedPair
from webapp.matching.rules import forbids_of

PAGE_SIZE = 50
MAX_PEOPLE = 10_000  # of a search; SQLite takes at most 32,766 values in one query
SORTS = {
    "pair": ("first_number",),
    "score": ("score", "first_number"),
    "probability": ("probability", "first_number"),
    "doubt": ("doubt_share", "first_number"),
}
# States whose tabs list rules, which still hold when the pairs are no longer proposed.
APART = (PairState.REJECTED, PairState.NEVER)
ALL = "all"
DEFAULT_SORT = "-doubt"
SORT_WORDS = {
    "doubt": "Most certain first",
    "-doubt": "Least certain first",
    "score": "Lowest score first",
    "-score": "Highest score first",
    "probability": "Least likely first",
    "-probability": "Likeliest first",
    "pair": "By student",
    "-pair": "By student, last first",
}


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab of the table with its count."""

    key: str
    label: str
    count: int


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Number of a proposal's pairs by state, and the sum of all their scores."""

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
    """Contents of a proposal's table at one URL."""

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


def proposals_of(user: User) -> QuerySet[Proposal]:
    """Return the proposals of the user's organisation, last changed first."""
    return light(owned_by(Proposal, user), "cohort", "model", "job")


def with_questions() -> QuerySet[Proposal]:
    """Return all proposals with their questions and without the weights, for their pages."""
    heavy = [f"model__{name}" for name in LearnedModel.HEAVY if name != "questions"]
    return Proposal.objects.select_related("cohort", "model", "job").defer(*heavy)


def proposal_listing(user: User, parameters: Mapping[str, str]) -> Listing[Proposal]:
    """Return a page of the proposals."""
    return list_page(proposals_of(user), parameters)


def being_decided(user: User) -> QuerySet[Proposal]:
    """Return the proposals with undecided pairs."""
    return proposals_of(user).filter(n_open__gt=0)


def pair_counts(proposal: Proposal) -> PairCounts:
    """Return the counts by state, in one query."""
    rows = list(
        proposal.pairs.order_by()
        .values_list("state")
        .annotate(count=Count("pk"), score=Sum("score"))
    )
    scores = [score for _, _, score in rows]
    return PairCounts(
        {state: count for state, count, _ in rows}, math.fsum(scores) if scores else None
    )


def forbidden_pairs(*proposals: Proposal) -> QuerySet[ProposedPair]:
    """Return the pairs of proposals that a rule of the proposal or of its cohort now forbids."""
    rules = ForbiddenPair.objects.filter(
        Q(proposal=None) | Q(proposal=OuterRef("proposal")),
        cohort=OuterRef("proposal__cohort"),
        first=OuterRef("first"),
        second=OuterRef("second"),
    )
    # Rules are few and pairs many: the query starts from the students in any rule.
    named = ForbiddenPair.objects.filter(cohort__in={each.cohort_id for each in proposals})
    return ProposedPair.objects.filter(
        Exists(rules), proposal__in=proposals, first__in=named.values("first")
    )


def forbidden_counts(proposals: Sequence[Proposal]) -> dict[UUID, int]:
    """Return the number of forbidden pairs of each proposal that has any."""
    pairs = forbidden_pairs(*proposals).order_by().values_list("proposal")
    return dict(pairs.annotate(count=Count("pk")))


def standing_pairs(proposal: Proposal) -> QuerySet[ProposedPair]:
    """Return the pairs that are neither rejected nor forbidden, here or in another proposal."""
    pairs = proposal.pairs.exclude(state__in=APART)
    return pairs.exclude(pk__in=forbidden_pairs(proposal).values("pk"))


def count_standing(counts: PairCounts, forbidden: Iterable[str]) -> int:
    """Return the number of `standing_pairs`, from all states and those of forbidden pairs."""
    apart_by_rule = sum(state not in APART for state in forbidden)
    return counts.total - counts.of(*APART) - apart_by_rule


def pair_table(
    proposal: Proposal, parameters: Mapping[str, str], conflicts: list[Conflict], user: User
) -> PairTable:
    """Return the tab, order, filter and page of a URL; invalid values read as defaults.

    A search means students by id on screen and, for those who see names, by name, number or e-mail.
    """
    conflicted = _conflicted_pairs(proposal, conflicts)
    tab = parameters.get("tab", "")
    tab = tab if tab in (*PairState.values, ALL) else PairState.OPEN.value
    sort = parameters.get("sort", DEFAULT_SORT)
    sort = sort if sort in SORT_WORDS else DEFAULT_SORT
    query = parameters.get("q", "").strip()[:80]
    people = numbers_meant(user, proposal.cohort, query)
    against = parameters.get("against", "")
    against = against if whole_number(against) is not None else ""
    rows = (
        _apart_rows(proposal, tab, query, people)
        if tab in APART
        else _pair_rows(proposal, tab, sort, (query, people), against, set(conflicted))
    )
    page = page_at(rows, parameters.get("page"), PAGE_SIZE)
    return PairTable(tab, page, sort, query, against, conflicted)


def pair_tabs(proposal: Proposal, counts: PairCounts, shown: str) -> list[Tab]:
    """Return the tabs with their counts; rejected pairs have a tab if there are any."""
    apart = forbids_of(proposal).aggregate(
        **{state: Count("pk", filter=Q(proposal=_owner(proposal, state))) for state in APART}
    )
    tabs = [
        Tab(state.value, str(state.label), counts.of(state))
        for state in (PairState.OPEN, PairState.ACCEPTED, PairState.LOCKED, PairState.SWAPPED)
    ]
    tabs += [
        Tab(state.value, str(state.label), apart[state])
        for state in APART
        if apart[state] or state in (PairState.NEVER, shown)
    ]
    return [*tabs, Tab(ALL, "All", counts.total)]


def _pair_rows(
    proposal: Proposal,
    tab: str,
    sort: str,
    search: tuple[str, frozenset[int]],
    against: str,
    conflicted: set[int],
) -> QuerySet[ProposedPair]:
    rows = proposal.pairs.all()
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


def _kept_apart(proposal: Proposal, state: str) -> QuerySet[ForbiddenPair]:
    """Return the rules that keep pairs apart: rejected in this proposal, or never in the cohort."""
    owner = _owner(proposal, state)
    return ForbiddenPair.objects.filter(cohort_id=proposal.cohort_id, proposal=owner)


def _owner(proposal: Proposal, state: str) -> Proposal | None:
    return proposal if state == PairState.REJECTED else None


def _apart_rows(
    proposal: Proposal, state: str, query: str, people: frozenset[int]
) -> QuerySet[ForbiddenPair]:
    rows = light(_kept_apart(proposal, state), "first", "second")
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


def _conflicted_pairs(proposal: Proposal, conflicts: list[Conflict]) -> dict[int, str]:
    """Return {pair key: short words} of the decided pairs that take part in a conflict."""
    marked: dict[int, str] = {}
    for conflict in conflicts:
        if len(conflict.numbers) < 2:
            continue
        numbers = conflict.numbers
        pairs = proposal.pairs.exclude(state=PairState.OPEN).filter(
            first_number__in=numbers, second_number__in=numbers
        )
        marked.update(dict.fromkeys(pairs.values_list("pk", flat=True), conflict.short))
    return marked


def current_pairs(proposal: Proposal, numbers: list[int]) -> dict[int, ProposedPair]:
    """Return the current pair of each of the students, by number."""
    found = proposal.pairs.filter(Q(first_number__in=numbers) | Q(second_number__in=numbers))
    by_number: dict[int, ProposedPair] = {}
    for pair in found:
        by_number[pair.first_number] = pair
        by_number[pair.second_number] = pair
    return by_number
