"""Rooms and roommates of students, in placements and in past years."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from webapp.cohorts.models import Cohort, Student
from webapp.common.listing import light
from webapp.housing.models import Place, Placement
from webapp.housing.selectors.publication import current_first
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
            return _("Past year")
        if self.has_left:
            return _("Withdrew")
        return _("Published") if self.placement.is_published else _("Draft")


def rooms_in_words(wanted: Collection[tuple[Cohort, int]]) -> dict[tuple[Any, int], str]:
    """Return the room of each student in words: of the published placement, else of the last.

    Of several published placements all are named, that of today first.
    """
    if not wanted:
        return {}
    is_meant = Q()
    for cohort, number in wanted:
        is_meant |= Q(placement__cohort=cohort.pk, number=number)
    places = Place.objects.filter(is_meant, room__isnull=False)
    rows = light(places, "room", "placement", "placement__term").order_by("placement__updated_at")
    drafts: dict[tuple[Any, int], str] = {}
    published: dict[tuple[Any, int], list[Place]] = {}
    for place in rows:
        key = (place.placement.cohort_id, place.number)
        if place.placement.is_published:
            published.setdefault(key, []).append(place)
        else:
            drafts[key] = _("%(bed)s in the draft %(placement)s") % {
                "bed": _bed_in_words(place),
                "placement": place.placement,
            }
    return drafts | {key: _beds_in_words(found) for key, found in published.items()}


def _bed_in_words(place: Place) -> str:
    return (
        f"{place.room}"
        if place.placement.is_pairs
        else _("%(room)s, bed %(bed)s") % {"room": place.room, "bed": place.bed}
    )


def _beds_in_words(places: Sequence[Place]) -> str:
    """Return the published beds of one student; with the term and days if there are several."""
    if len(places) == 1:
        return _bed_in_words(places[0])
    return "; ".join(
        " ".join(filter(None, (_bed_in_words(place), _term_in_words(place))))
        for place in current_first(places)
    )


def _term_in_words(place: Place) -> str:
    term = place.placement.term
    days = place_stay(place, term).words
    words = ": ".join(filter(None, (term.name if term is not None else "", days)))
    return f"({words})" if words else ""


def stays_of(student: Student) -> list[Stay]:
    """Return the rooms of a student in all placements of the cohort, published first.

    Of several published placements that of today comes first, then those of later terms.
    """
    places = student.places.select_related("placement__term", "room").order_by(
        "-placement__published_at", "-placement__updated_at"
    )
    rows = sorted(current_first(places), key=lambda place: not place.placement.is_published)
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
