"""Conversion of the rules of a placement in pairs to those of the engine."""

from dataclasses import replace

from django.db.models import Q, QuerySet

from engine import Rules
from webapp.cohorts.selectors.surveys import cohort_positions
from webapp.housing.models import HELD_STATES, PlacedPair, Placement
from webapp.matching.models import ForbiddenPair


def number_of(label: str) -> int:
    """Return the number in a label such as S-1001."""
    return int(label.removeprefix("S-"))


def pair_rules(placement: Placement, *, with_locks: bool = True) -> Rules:
    """Return the rules of a placement as positions in the survey of its cohort.

    Without locks they allow every pair that a given pair may be compared with. Students who
    withdrew stay single.
    """
    place = cohort_positions(placement.cohort).__getitem__
    rules = Rules(
        forbids=tuple((place(first), place(second)) for first, second in _forbids(placement)),
        same=tuple(placement.same),
        single=tuple(place(number) for number in _singles(placement)),
    )
    return add_locks(placement, rules) if with_locks else rules


def add_locks(placement: Placement, rules: Rules) -> Rules:
    """Return the rules of a placement with the locks of its pairs."""
    place = cohort_positions(placement.cohort).__getitem__
    locks = tuple((place(first), place(second)) for first, second in _locks(placement))
    return replace(rules, locks=locks)


def held_pairs(placement: Placement) -> QuerySet[PlacedPair]:
    """Return the held pairs in no order: for one, SQLite would read all pairs of the placement."""
    return placement.pairs.filter(state__in=HELD_STATES).order_by()


def _locks(placement: Placement) -> list[tuple[int, int]]:
    """Return held pairs, then locks of other pairs, by the students' numbers."""
    rules = placement.locks.values_list("first__number", "second__number")
    pairs = [*held_pairs(placement).values_list("first_number", "second_number")]
    return list(dict.fromkeys(pairs + [(min(rule), max(rule)) for rule in rules]))


def _singles(placement: Placement) -> list[int]:
    gone = placement.places.filter(has_left=True).values_list("number", flat=True)
    return sorted({*placement.singles, *gone})


def forbids_of(placement: Placement) -> QuerySet[ForbiddenPair]:
    """Return the rules about pairs rejected in this placement or forbidden in its cohort."""
    whose = Q(placement=None) | Q(placement=placement)
    return ForbiddenPair.objects.filter(whose, cohort_id=placement.cohort_id)


def _forbids(placement: Placement) -> list[tuple[int, int]]:
    return list(forbids_of(placement).values_list("first__number", "second__number"))
