"""Checks of students in rooms: beds, designations, needs, requests, other cohorts.

Every act and every computed placement passes these checks before it is stored, so that no order of
decisions breaks a rule.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.cohorts.models import Student
from webapp.common.formats import moment
from webapp.housing.errors import HousingError
from webapp.housing.models import Place, Placement, Room, RoommateRequest, WaitingOffer
from webapp.housing.request_graph import Pair, request_pairs
from webapp.housing.rules import MUST, PlacementRules, apart_in_suite, broken_rule
from webapp.housing.selectors.suites import suite_mates
from webapp.housing.selectors.waiting import held_beds
from webapp.housing.stays import Stay, place_stay, stay_of, stay_of_term, stays_in
from webapp.matching.models import ForbiddenPair

NAMED_STUDENTS = 8  # students with another bed whom a sentence names
NAMED_BEDS = 3  # beds of other cohorts that a sentence names


def check_rooms(
    placement: Placement,
    members: Mapping[Room, Sequence[Student]],
    known: Mapping[int, Sequence[Student]] | None = None,
) -> None:
    """Raise HousingError with one sentence if people cannot live in these rooms together.

    The people of the other rooms of a suite count as they are in ``known``, by key of the room, or
    as stored for rooms that it does not name.
    A bed that is offered to a student on the waiting list counts as taken by that student.
    """
    rules = PlacementRules.from_json(placement.rules)
    forbidden = forbidden_numbers(placement)
    held = held_beds(placement) if placement.is_published else {}
    stays = stays_in(placement)
    known = {room.pk: students for room, students in members.items()} | dict(known or {})
    in_suite = suite_mates(placement, members, known)
    for room, students in members.items():
        beside = in_suite.get(room.pk, ())
        sentence = broken_rule(room, students, rules, forbidden, stays, beside)
        if sentence:
            raise HousingError(sentence)
        inside = {student.number for student in students}
        offers = [one for one in held.get(room.pk, ()) if one.student.number not in inside]
        expected = [*students, *(offer.student for offer in offers)]
        sentence = broken_rule(room, expected, rules, forbidden, stays, beside) if offers else ""
        if sentence:
            raise HousingError(f"{offer_in_words(room, offers[0])} {sentence}")
    if placement.is_published:
        usual = stay_of_term(placement.term)
        own = {
            room.pk: [stays.get(student.number, usual) for student in students]
            for room, students in members.items()
            if students
        }
        taken = _clashes(placement, own)
        if taken:
            raise HousingError(_taken_sentence(taken))
        everybody = [student.number for students in members.values() for student in students]
        check_no_other_bed(placement, {number: stays.get(number, usual) for number in everybody})


def check_suites(placement: Placement) -> None:
    """Raise HousingError if people share a suite of a placement who must not."""
    rooms = list(placement.buildings.rooms.exclude(suite=""))
    if not rooms:
        return
    rules, forbidden = PlacementRules.from_json(placement.rules), forbidden_numbers(placement)
    living: dict[int, list[Student]] = {room.pk: [] for room in rooms}
    places = placement.places.filter(room__in=rooms).select_related("student")
    for place in places.defer("student__answers").order_by("number"):
        living[place.room_id or 0].append(place.student)
    beside = suite_mates(placement, rooms, living)
    for room in rooms:
        for one in living[room.pk]:
            for other in beside.get(room.pk, ()):
                sentence = apart_in_suite(room, one, other, rules, forbidden)
                if sentence:
                    raise HousingError(
                        _("%(sentence)s Move one of them first.") % {"sentence": sentence}
                    )


def offer_in_words(room: Room, offer: WaitingOffer) -> str:
    """Return the sentence on a bed that is held for an offer, with what to do."""
    return _(
        "A bed in %(room)s is offered to %(student)s until %(deadline)s. Withdraw the "
        "offer first, or wait for the answer."
    ) % {"room": room, "student": offer.student.label, "deadline": moment(offer.deadline)}


def check_musts(placement: Placement, moved: Mapping[int, int | None]) -> None:
    """Raise HousingError if a request that is a must would not be honoured any more.

    ``moved`` gives the next room, by key, of everybody who moves, by number. If both students of a
    request have rooms, they must be in the same room. Only requests of and for students who move
    are checked.
    """
    pairs = musts(placement, moved)
    if not pairs:
        return
    concerned = {number for pair in pairs for number in pair}
    living = placement.places.filter(number__in=concerned, has_left=False, room__isnull=False)
    where: dict[int, int | None] = dict(living.values_list("number", "room_id"))
    where |= moved
    for a, b in pairs:
        if where.get(a) is not None and where.get(b) is not None and where[a] != where[b]:
            raise HousingError(
                _(
                    "S-%(a)s and S-%(b)s asked to live together, which is a must here. Move "
                    "both, or leave their request out first."
                )
                % {"a": a, "b": b}
            )


def musts(placement: Placement, numbers: Collection[int]) -> list[Pair]:
    """Return the pairs, with a member among ``numbers``, whose request must be honoured.

    Requests that contradict other rules, and that the rooms in force left out, are excluded.
    """
    rules = PlacementRules.from_json(placement.rules)
    if MUST not in (rules.mutual, rules.one_sided):
        return []
    requests = RoommateRequest.objects.filter(cohort=placement.cohort_id).filter(
        Q(student__number__in=numbers) | Q(target__number__in=numbers)
    )
    found = request_pairs(requests)
    pairs = found.mutual if rules.mutual == MUST else []
    pairs = pairs + (found.one_sided if rules.one_sided == MUST else [])
    out = left_out_pairs(placement.figures)
    return [pair for pair in pairs if frozenset(pair) not in out]


def left_out_pairs(figures: Mapping[str, Any]) -> set[frozenset[int]]:
    """Return the pairs whose request a run left out because other rules contradict it."""
    entries = figures.get("left_out", ())
    return {frozenset(pair) for entry in entries for pair in entry["requests"]}


def forbidden_numbers(placement: Placement) -> set[frozenset[int]]:
    """Return the pairs of students to keep apart: in the cohort, or in this placement."""
    whose = Q(placement=None) | Q(placement=placement)
    rules = ForbiddenPair.objects.filter(whose, cohort=placement.cohort_id)
    return {frozenset(pair) for pair in rules.values_list("first__number", "second__number")}


def rooms_taken_elsewhere(
    placement: Placement, rooms: Collection[int] | None = None
) -> dict[int, Place]:
    """Return the rooms used by other published placements, each with one place there.

    A placement of the same cohort and term is left out: only one of them is published. Only beds
    that are taken on a day of this placement's term count; without a term, every day counts.
    ``rooms`` limits the search to some rooms, by key.
    """
    found = _places_elsewhere(placement, rooms)
    return {place.room_id: place for place in found if place.room_id is not None}


def _places_elsewhere(placement: Placement, rooms: Collection[int] | None) -> QuerySet[Place]:
    """Return the beds of other published placements on the days of a placement's term."""
    window = stay_of_term(placement.term)
    same_days = Q(
        placement__term__starts_on__lte=window.last, placement__term__ends_on__gte=window.first
    )
    places = Place.objects.filter(
        Q(placement__term=None) | same_days,
        Q(arrives_on=None) | Q(arrives_on__lte=window.last),
        Q(leaves_on=None) | Q(leaves_on__gte=window.first),
        placement__buildings=placement.buildings_id,
        placement__in=Placement.objects.filter(published_at__isnull=False).exclude(
            placement.same_term
        ),
        room__isnull=False,
    ).exclude(placement=placement)
    if rooms is not None:
        places = places.filter(room__in=rooms)
    return places.select_related("placement__term", "room")


def check_free_elsewhere(placement: Placement) -> None:
    """Raise HousingError if publishing would give a bed, or a student, away twice on the same day.

    A student of a cohort with placements for several terms has at most one bed on a day.
    """
    own: dict[int, list[Stay]] = defaultdict(list)
    people: dict[int, Stay] = {}
    rows = placement.places.with_bed().values_list("room_id", "number", "arrives_on", "leaves_on")
    for room, number, arrives_on, leaves_on in rows:
        if room is not None:
            people[number] = stay_of(placement.term, arrives_on, leaves_on)
            own[room].append(people[number])
    check_no_other_bed(placement, people)
    taken = _clashes(placement, own)
    if taken:
        raise HousingError(
            _(
                "%(taken_sentence)s Choose a term that does not overlap, or place again: "
                "rooms that others have are left out then."
            )
            % {"taken_sentence": _taken_sentence(taken)}
        )


def check_no_other_bed(placement: Placement, people: Mapping[int, Stay]) -> None:
    """Raise HousingError if students have a bed elsewhere in their cohort on the same days.

    Beds count in the cohort's published placements for other terms. ``people`` are the days of the
    beds in ``placement``, by number.
    """
    others = Placement.objects.filter(cohort=placement.cohort_id, published_at__isnull=False)
    others = others.exclude(placement.same_term).exclude(pk=placement.pk)
    places = Place.objects.filter(placement__in=others, room__isnull=False, number__in=people)
    twice = [
        place
        for place in places.select_related("placement__term").order_by("number")
        if place_stay(place, place.placement.term).overlaps(people[place.number])
    ]
    if not twice:
        return
    first = twice[0]
    named = ", ".join(place.label for place in twice[:NAMED_STUDENTS])
    rest = len(twice) - NAMED_STUDENTS
    more = (
        " "
        + ngettext("and %(count)s other student", "and %(count)s other students", rest)
        % {"count": f"{rest:,}"}
        if rest > 0
        else ""
    )
    when = place_stay(first, first.placement.term).words
    days = f" ({when})" if when else ""
    raise HousingError(
        ngettext(
            "%(named)s%(more)s has a bed on the same days in %(placement)s%(days)s, which is "
            "published. Choose terms or dates that do not overlap, or withdraw that publication "
            "first.",
            "%(named)s%(more)s have a bed on the same days in %(placement)s%(days)s, which is "
            "published. Choose terms or dates that do not overlap, or withdraw that publication "
            "first.",
            len(twice),
        )
        % {"named": named, "more": more, "placement": first.placement, "days": days}
    )


def _clashes(placement: Placement, own: Mapping[int, Sequence[Stay]]) -> list[Place]:
    """Return the beds of other cohorts in rooms, by key, on a day of one of the own stays there."""
    return [
        place
        for place in _places_elsewhere(placement, list(own))
        if any(
            place_stay(place, place.placement.term).overlaps(stay)
            for stay in own[place.room_id or 0]
        )
    ]


def _taken_sentence(taken: Sequence[Place]) -> str:
    first = taken[0]
    beds = [
        _("%(room)s, bed %(bed)s") % {"room": place.room, "bed": place.bed}
        for place in taken[:NAMED_BEDS]
    ]
    rest = len(taken) - len(beds)
    more = (
        " "
        + ngettext("and %(count)s other bed", "and %(count)s other beds", rest)
        % {"count": f"{rest:,}"}
        if rest
        else ""
    )
    when = place_stay(first, first.placement.term).words
    days = f" ({when})" if when else ""
    return ngettext(
        "%(beds)s%(more)s is taken in %(placement)s%(days)s, which is published.",
        "%(beds)s%(more)s are taken in %(placement)s%(days)s, which is published.",
        len(taken),
    ) % {
        "beds": "; ".join(beds),
        "more": more,
        "placement": first.placement,
        "days": days,
    }
