"""What must hold once students live in rooms: beds, designations, needs, requests, other cohorts.

Every act and every computed placement passes here before it is kept, so that no order of decisions
breaks a rule.
"""

from collections.abc import Collection, Mapping, Sequence

from django.db.models import Q

from webapp.cohorts.models import Student
from webapp.common.formats import counted
from webapp.housing.errors import HousingError
from webapp.housing.models import Place, Placement, Room, RoommateRequest
from webapp.housing.request_graph import Pair, request_pairs
from webapp.housing.rules import MUST, PlacementRules, broken_rule
from webapp.matching.models import ForbiddenPair


def check_rooms(placement: Placement, members: Mapping[Room, Sequence[Student]]) -> None:
    """Raise HousingError with one sentence when people cannot live in these rooms together."""
    rules = PlacementRules.from_json(placement.rules)
    forbidden = forbidden_numbers(placement)
    for room, students in members.items():
        sentence = broken_rule(room, students, rules, forbidden)
        if sentence:
            raise HousingError(sentence)
    if placement.is_published:
        taken = rooms_taken_elsewhere(placement, [r.pk for r, who in members.items() if who])
        if taken:
            raise HousingError(_taken_sentence(taken))


def check_musts(placement: Placement, numbers: Collection[int]) -> None:
    """Raise HousingError when a request that is a must would not be honoured any more.

    Two who have rooms live in the same one; who has no room yet breaks no request. Only requests of
    and for ``numbers`` are looked at: nobody else was moved.
    """
    where = dict(
        placement.places.filter(has_left=False, room__isnull=False).values_list("number", "room_id")
    )
    for a, b in musts(placement, numbers):
        if a in where and b in where and where[a] != where[b]:
            raise HousingError(
                f"S-{a} and S-{b} asked to live together, which is a must here. Move both, or "
                "leave their request out first."
            )


def musts(placement: Placement, numbers: Collection[int]) -> list[Pair]:
    """Return the pairs, one of each among ``numbers``, whose request must be honoured."""
    rules = PlacementRules.from_json(placement.rules)
    if MUST not in (rules.mutual, rules.one_sided):
        return []
    requests = RoommateRequest.objects.filter(cohort=placement.cohort_id).filter(
        Q(student__number__in=numbers) | Q(target__number__in=numbers)
    )
    found = request_pairs(requests)
    pairs = found.mutual if rules.mutual == MUST else []
    return pairs + (found.one_sided if rules.one_sided == MUST else [])


def forbidden_numbers(placement: Placement) -> set[frozenset[int]]:
    """Return the pairs of students of the cohort who are never to share a room."""
    rules = ForbiddenPair.objects.filter(cohort=placement.cohort_id, proposal=None)
    return {frozenset(pair) for pair in rules.values_list("first__number", "second__number")}


def rooms_taken_elsewhere(
    placement: Placement, rooms: Collection[int] | None = None
) -> dict[int, Place]:
    """Return rooms in which another cohort's published placement has somebody, with that place.

    ``rooms`` limits the question to some rooms, by key.
    """
    places = Place.objects.filter(
        placement__buildings=placement.buildings_id,
        placement__published_at__isnull=False,
        room__isnull=False,
    ).exclude(placement__cohort=placement.cohort_id)
    if rooms is not None:
        places = places.filter(room__in=rooms)
    return {place.room_id: place for place in places.select_related("placement", "room")}


def check_free_elsewhere(placement: Placement) -> None:
    """Raise HousingError when publishing would put two cohorts into one room."""
    own = placement.places.filter(room__isnull=False).values_list("room_id", flat=True)
    taken = rooms_taken_elsewhere(placement, set(own))
    if taken:
        raise HousingError(
            f"{_taken_sentence(taken)} Place again: rooms that others have are left out then."
        )


def _taken_sentence(taken: Mapping[int, Place]) -> str:
    first = next(iter(taken.values()))
    rest = len(taken) - 1
    more = f" and {counted(rest, 'other room')}" if rest else ""
    verb = "are" if rest else "is"
    return f"{first.room}{more} {verb} taken in {first.placement}, which is published."
