"""Conversion of a proposal's rules to those of the engine."""

from django.db.models import Q, QuerySet

from engine import Rules
from webapp.cohorts.selectors.surveys import cohort_positions
from webapp.matching.models import ForbiddenPair, PairState, Proposal

HELD_STATES = (PairState.ACCEPTED, PairState.LOCKED, PairState.SWAPPED)


def number_of(label: str) -> int:
    """Return the number in a label such as S-1001."""
    return int(label.removeprefix("S-"))


def proposal_rules(proposal: Proposal, *, with_locks: bool = True) -> Rules:
    """Return the rules of a proposal as positions in the survey of its cohort.

    Without locks they allow every pair that a given pair may be compared with.
    """
    place = cohort_positions(proposal.cohort).__getitem__
    locks = _locks(proposal) if with_locks else []
    return Rules(
        locks=tuple((place(first), place(second)) for first, second in locks),
        forbids=tuple((place(first), place(second)) for first, second in _forbids(proposal)),
        same=tuple(proposal.same),
        single=tuple(place(number) for number in proposal.singles),
    )


def _locks(proposal: Proposal) -> list[tuple[int, int]]:
    """Return held pairs, then lock rules about other pairs, by the students' numbers."""
    held = proposal.pairs.filter(state__in=HELD_STATES)
    rules = proposal.locks.values_list("first__number", "second__number")
    pairs = [*held.values_list("first_number", "second_number")]
    return list(dict.fromkeys(pairs + [(min(rule), max(rule)) for rule in rules]))


def forbids_of(proposal: Proposal) -> QuerySet[ForbiddenPair]:
    """Return the rules about pairs rejected in this proposal or forbidden in its cohort."""
    whose = Q(proposal=None) | Q(proposal=proposal)
    return ForbiddenPair.objects.filter(whose, cohort_id=proposal.cohort_id)


def _forbids(proposal: Proposal) -> list[tuple[int, int]]:
    return list(forbids_of(proposal).values_list("first__number", "second__number"))
