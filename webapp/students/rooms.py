"""Rooms and roommates of students, in placements and in past years."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from webapp.cohorts.models import Cohort, Student
from webapp.housing.models import Place, Placement
from webapp.housing.stays import Stay as Days
from webapp.housing.stays import place_stay, stay_of


@dataclass(frozen=True, slots=True)
class Stay:
    """A room of a student in one placement or past year, with the numbers of the roommates.

    ``placement`` is None for a room of an imported roster or pair.
    """

    cohort: Cohort
    placement: Placement | None
    room: str
    bed: int | None
    roommates: tuple[int, ...]
    has_left: bool = False
    dates: str = ""  # the days of the bed, in words

    @property
    def state(self) -> str:
        """Return the state in a word."""
        if self.placement is None:
            return "Past year"
        if self.has_left:
            return "Withdrew"
        return "Published" if self.placement.is_published else "Draft"


def rooms_in_words(wanted: Collection[tuple[Cohort, int]]) -> dict[tuple[Any, int], str]:
    """Return the room of each student in words: of the published placement, else of the last."""
    found: dict[tuple[Any, int], str] = {}
    if not wanted:
        return found
    is_meant = Q()
    for cohort, number in wanted:
        is_meant |= Q(placement__cohort=cohort.pk, number=number)
    places = Place.objects.filter(is_meant, room__isnull=False).select_related("room")
    rows = places.order_by("placement__published_at", "placement__updated_at").values_list(
        "placement__cohort", "number", "room__hall", "room__name", "bed",
        "placement__published_at", "placement__name", "placement__is_pairs",
    )  # fmt: skip
    drafts: dict[tuple[Any, int], str] = {}
    for cohort_pk, number, hall, room, bed, published, placement, is_pairs in rows:
        words = f"{hall} {room}" if is_pairs else f"{hall} {room}, bed {bed}"
        if published is None:
            drafts[cohort_pk, number] = f"{words} in the draft {placement}"
        else:
            found[cohort_pk, number] = words
    return drafts | found


def stays_of(student: Student) -> list[Stay]:
    """Return the rooms of a student in all placements of the cohort, published first."""
    places = student.places.select_related("placement__term", "room").order_by(
        "-placement__published_at", "-placement__updated_at"
    )
    rows = sorted(places, key=lambda place: not place.placement.is_published)
    keys = [place.room_id for place in rows if place.room_id]
    mates: dict[tuple[int, Any], list[tuple[int, Days]]] = {}
    others = Place.objects.filter(
        placement__in=[p.placement_id for p in rows], room__in=keys
    ).exclude(student=student)
    for room, placement, number, arrives_on, leaves_on in others.order_by("number").values_list(
        "room", "placement", "number", "arrives_on", "leaves_on"
    ):
        days = stay_of(None, arrives_on, leaves_on)
        mates.setdefault((room, placement), []).append((number, days))
    return [
        Stay(
            student.cohort,
            place.placement,
            place.room.label if place.room else "",
            None if place.placement.is_pairs else place.bed,
            tuple(
                number
                for number, days in mates.get((place.room_id or 0, place.placement_id), ())
                if days.overlaps(place_stay(place, None))
            ),
            place.has_left,
            place_stay(place, place.placement.term).words if place.room_id is not None else "",
        )
        for place in rows
    ]


def past_stay(student: Student) -> Stay | None:
    """Return the room or roommate that a file of a past year gave; None without one."""
    if student.past_room_id is not None and student.past_room is not None:
        others = student.past_room.residents.exclude(pk=student.pk).order_by("number")
        numbers = tuple(others.values_list("number", flat=True))
        return Stay(student.cohort, None, student.past_room.name, None, numbers)
    pair = getattr(student, "pair_as_first", None) or getattr(student, "pair_as_second", None)
    if pair is None:
        return None
    other = pair.second if pair.first_id == student.pk else pair.first
    return Stay(student.cohort, None, "", None, (other.number,))
