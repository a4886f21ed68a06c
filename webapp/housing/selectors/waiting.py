"""The order of a waiting list, and the beds that are held for an offer."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.db.models import F

from webapp.cohorts.models import Student
from webapp.housing.models import OrderRule, Placement, WaitingList, WaitingOffer
from webapp.housing.rules import PlacementRules, needs_in

Row = Mapping[str, Any]  # number and turn of a place, and since when it waits


def waiting_list_of(placement: Placement) -> WaitingList:
    """Return the waiting list of a placement, with the defaults if staff changed nothing."""
    found = WaitingList.objects.filter(placement=placement).first()
    return found or WaitingList(placement=placement)


def waiting_order(placement: Placement) -> list[int]:
    """Return the numbers of the students without a bed, in the order of the waiting list."""
    rows = placement.places.without_bed().values("number", "turn", since=F("added_at"))
    return in_order(placement, list(rows))


def place_in_line(placement: Placement, number: int) -> tuple[int, int] | None:
    """Return a student's place on the waiting list and its length; None for others."""
    order = waiting_order(placement)
    return (order.index(number) + 1, len(order)) if number in order else None


def in_order(placement: Placement, rows: Sequence[Row]) -> list[int]:
    """Return the numbers of places in the order of the waiting list.

    Students whom staff moved by hand come first or last; the others follow the rule, then the date
    added, then the number.
    """
    if not rows:
        return []
    listed = waiting_list_of(placement)
    key = _key_of(listed, [row["number"] for row in rows])
    ordered = sorted(
        rows, key=lambda row: (row["turn"], key(row["number"]), row["since"], row["number"])
    )
    return [row["number"] for row in ordered]


def lottery_ticket(seed: str, number: int) -> str:
    """Return a student's ticket in a lottery: the SHA-256 digest of "seed:number"; lowest first."""
    return hashlib.sha256(f"{seed}:{number}".encode()).hexdigest()


def _key_of(listed: WaitingList, numbers: Collection[int]) -> Callable[[int], Any]:
    """Return a function from a number to its sort key by the rule."""
    if listed.rule == OrderRule.LOTTERY:
        return lambda number: lottery_ticket(listed.seed, number)
    if listed.rule == OrderRule.ADDED:
        return lambda number: 0
    students = Student.objects.filter(cohort=listed.placement.cohort_id, number__in=list(numbers))
    answers: dict[int, dict[str, str]] = dict(students.values_list("number", "attributes"))
    if listed.rule == OrderRule.NEEDS:
        columns = PlacementRules.from_json(listed.placement.rules).needs
        return lambda number: 0 if needs_in(answers.get(number, {}), columns) else 1
    place = {value.casefold(): k for k, value in enumerate(listed.first_values)}
    return lambda number: place.get(
        answers.get(number, {}).get(listed.column, "").strip().casefold(), len(place)
    )


def held_beds(placement: Placement) -> dict[int, list[WaitingOffer]]:
    """Return the open offers of a placement by the key of their room, oldest first."""
    held: dict[int, list[WaitingOffer]] = defaultdict(list)
    offers = placement.waiting_offers.holding().filter(room__isnull=False)
    for offer in offers.select_related("student").defer("student__answers").order_by("pk"):
        held[offer.room_id or 0].append(offer)
    return dict(held)
