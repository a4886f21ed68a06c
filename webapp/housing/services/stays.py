"""Dates of a student's bed, where they differ from those of the term; an act of the history."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date

from django.db import transaction
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.database.rows import update_rows
from webapp.housing.errors import HousingError
from webapp.housing.models import ActKind, Place, Placement, PlacementEvent, Room
from webapp.housing.scores import Scores
from webapp.housing.services.checks import check_rooms
from webapp.housing.services.conflicts import check_unchanged
from webapp.housing.services.history import event_record
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.seats import row_of
from webapp.housing.stays import place_stay, stay_of_term

Days = list[str | None]  # first and last day as ISO text; None is the day of the term


@transaction.atomic
def place_dates_set(
    *,
    user: User,
    placement: Placement,
    number: int,
    arrives_on: date | None,
    leaves_on: date | None,
    version: int,
) -> PlacementEvent:
    """Set the first and the last day of a student's bed; None is the day of the term.

    Raises
    ------
    HousingError
        If the days are in the wrong order or outside the term, if the bed is somebody else's on one
        of these days, or if the room has too few beds.
    PlacesChangedError
        If somebody else changed the student since ``version``.
    """
    placement = lock_placement(placement)
    check_unchanged(placement, version, students=[number])
    place = placement.places.select_related("room", "student").filter(number=number).first()
    if placement.is_pairs or place is None or place.has_left:
        raise HousingError(
            _("S-%(number)s has no place among the rooms of this placement.") % {"number": number}
        )
    usual = stay_of_term(placement.term)
    arrives_on = None if arrives_on == usual.first else arrives_on
    leaves_on = None if leaves_on == usual.last else leaves_on
    for day, name in ((arrives_on, "arrives_on"), (leaves_on, "leaves_on")):
        if day is not None and not usual.first <= day <= usual.last:
            raise HousingError(
                _("The term goes from %(words)s. Choose a day of the term.")
                % {"words": usual.words},
                name,
            )
    if (arrives_on or usual.first) > (leaves_on or usual.last):
        raise HousingError(_("The last day is before the first day. Check the days."), "leaves_on")
    before = days_of(place)
    place.arrives_on, place.leaves_on = arrives_on, leaves_on
    if days_of(place) == before:
        raise HousingError(_("These are the dates of %(place)s already.") % {"place": place.label})
    days_put(placement, {number: days_of(place)})
    words = place_stay(place, placement.term).words
    sentence = _("Dates of %(student)s: %(dates)s.") if words else _("Dates of %(student)s: none.")
    return event_record(
        user=user,
        placement=placement,
        kind=ActKind.DATES,
        verb="changed dates",
        sentence=sentence % {"student": place.label, "dates": words},
        before=[row_of(place)],
        after=[row_of(place)],
        details={"dates": [[number, before, days_of(place)]]},
    )


def days_of(place: Place) -> Days:
    """Return a student's own first and last day, as the history keeps them."""
    return [
        day.isoformat() if day is not None else None for day in (place.arrives_on, place.leaves_on)
    ]


def days_put(placement: Placement, days: Mapping[int, Sequence[str | None]]) -> None:
    """Write the days of students' beds. Raise HousingError if a bed would be taken twice."""
    if not days:
        return
    places = list(placement.places.select_related("room").filter(number__in=list(days)))
    for place in places:
        first, last = days[place.number]
        place.arrives_on = None if first is None else date.fromisoformat(first)
        place.leaves_on = None if last is None else date.fromisoformat(last)
    rooms = [place.room for place in places if place.room is not None]
    own = {place.number: place for place in places}
    living = placement.places.select_related("student").filter(room__in=rooms)
    members: dict[int, list[Place]] = {room.pk: [] for room in rooms}
    for other in living.defer("student__answers"):
        members[other.room_id or 0].append(own.get(other.number, other))
    for room in rooms:
        _check_beds(placement, room, members[room.pk], set(own))
    update_rows(places, ["arrives_on", "leaves_on"])
    students = {other.number: other.student for other in living}
    check_rooms(placement, {r: [students[p.number] for p in members[r.pk]] for r in rooms})
    _score_again(placement, [other for people in members.values() for other in people])


def _score_again(placement: Placement, people: Sequence[Place]) -> None:
    """Write the scores of people in rooms where the days changed: others may be roommates now."""
    members: dict[int, list[int]] = defaultdict(list)
    for place in people:
        members[place.room_id or 0].append(place.number)
    scores = Scores(placement).of_rooms(list(members.values()))
    changed = []
    for place in people:
        score = scores.get(place.number)
        if place.score != score:
            place.score = score
            changed.append(place)
    update_rows(changed, ["score"])


def _check_beds(
    placement: Placement, room: Room, people: Sequence[Place], changed: set[int]
) -> None:
    """Raise HousingError if two people of a room have one bed on the same day."""
    for k, one in enumerate(people):
        for other in people[k + 1 :]:
            if one.bed != other.bed or not {one.number, other.number} & changed:
                continue
            days = place_stay(other, placement.term)
            if place_stay(one, placement.term).overlaps(days):
                who, taken = (one, other) if one.number in changed else (other, one)
                words = place_stay(taken, placement.term).words or _("on every day")
                raise HousingError(
                    _(
                        "Bed %(bed)s of %(room)s is the bed of %(taken)s (%(words)s). Choose "
                        "other days for %(who)s, or move one of them first."
                    )
                    % {
                        "bed": one.bed,
                        "room": room,
                        "taken": taken.label,
                        "words": words,
                        "who": who.label,
                    }
                )
