"""Undo: restore exactly the changes of one act, unless they were changed again since."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.late_arrivals import undo_refusals
from webapp.cohorts.models import LateArrivals
from webapp.cohorts.services.latecomers import latecomers_undo
from webapp.housing.errors import PlacesChangedError
from webapp.housing.models import (
    ActKind,
    Place,
    Placement,
    PlacementEvent,
    Room,
    RoomState,
)
from webapp.housing.pairs.records import contradiction_of_pairs, no_change, put_back
from webapp.housing.pairs.rule_record import restore_rules, reversed_rules
from webapp.housing.services.closing import closed_words, drafts_leave, students_to_move_out
from webapp.housing.services.conflicts import beds_of
from webapp.housing.services.history import event_record, state_of, state_put, unsettles
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.reviews import put_sides, sides
from webapp.housing.services.seats import Row, Seat, row_of, seats_put
from webapp.housing.services.stays import days_of, days_put
from webapp.housing.services.waiting import turns_put
from webapp.housing.stays import ALWAYS, Stay, stays_in
from webapp.translation.lazy import gettext_lazy

ARRIVED_BEFORE = gettext_lazy("These students came before such an addition could be undone.")
ROOM_GONE = gettext_lazy(
    "A room that they had is not in the building list any more. Nothing was changed."
)


@transaction.atomic
def decision_undo(
    *, user: User, placement: Placement, event: PlacementEvent, confirmed: int = 0
) -> str:
    """Reverse the changes of one act; return one sentence. The undo is an act of its own.

    Parameters
    ----------
    confirmed : int
        Number of published beds in the question. An undo that changes another number of published
        beds is refused.

    Raises HousingError if somebody changed one of the students or rooms since, if a rule would
    break, or if the change of published beds was not confirmed.
    """
    if event.kind == ActKind.ARRIVED:
        return _arrivals_undo(user, placement, event)
    placement = lock_placement(placement)
    event = PlacementEvent.objects.select_for_update().get(pk=event.pk)
    check_undo(placement, event)
    concerned = beds_changed(event)
    if placement.is_published and len(concerned) != confirmed:
        raise PlacesChangedError(
            _(
                "%(placement)s is published, and this changes the beds of %(concerned)s of "
                "its students. Nothing was changed; confirm it first."
            )
            % {"placement": placement.name, "concerned": len(concerned)}
        )
    before_state = state_of(placement)
    if event.rooms:
        _put_rooms_back(user, placement, event)
    states = event.details.get("state")
    if states:
        later = max(placement.changes - states[1]["changes"], 0)
        state_put(placement, {**states[0], "changes": states[0]["changes"] + later})
    seats = {
        number: Seat(room, bed, is_locked, has_left)
        for number, room, bed, is_locked, has_left in event.before
    }
    pairs = event.details.get("pairs")
    rules = event.details.get("rules", {})
    if rules:
        restore_rules(user, placement, rules)
    put = put_back(placement, pairs) if pairs else None
    seating = seats_put(placement, seats)
    turns = event.details.get("turns", [])
    turns_put(placement, {number: old for number, old, _ in turns})
    dates = event.details.get("dates", [])
    days_put(placement, {number: old for number, old, _ in dates})
    mark_undone(placement, event)
    details: dict[str, Any] = {}
    if states:
        details["state"] = [before_state, state_of(placement)]
    if turns:
        details["turns"] = [[number, new, old] for number, old, new in turns]
    if dates:
        details["dates"] = [[number, new, old] for number, old, new in dates]
    if put is not None:
        details["pairs"] = put
    if rules:
        details["rules"] = reversed_rules(rules)
    if "unsettles" in event.details:
        details["unsettles"] = event.details["unsettles"]
    sentence = _("Undone: %(sentence)s") % {"sentence": event.sentence}
    event_record(
        user=user,
        placement=placement,
        kind=ActKind.UNDONE,
        verb="undid",
        sentence=sentence,
        before=seating.before,
        after=seating.after,
        rooms=[[key, new, old] for key, old, new in event.rooms],
        details=details,
        undoes=event,
        is_by_hand=False,
    )
    return sentence


def _arrivals_undo(user: User, placement: Placement, event: PlacementEvent) -> str:
    """Remove the late arrivals that an act added, from their cohort and all its placements."""
    check_undo(placement, event)
    arrivals = LateArrivals.objects.get(pk=event.details["arrival"])
    return latecomers_undo(user=user, arrivals=arrivals)


def _put_rooms_back(user: User, placement: Placement, event: PlacementEvent) -> None:
    """Restore states and acceptances of rooms; students of drafts leave rooms that close again."""
    state = {key: old[0] for key, old, new in event.rooms if old[0] != new[0]}
    closing = [key for key, wanted in state.items() if wanted != RoomState.OPEN]
    rooms = list(Room.objects.select_for_update().filter(pk__in=closing))
    for room in rooms:
        room.state = state[room.pk]
    leaving = students_to_move_out(rooms)
    put_sides(placement, {key: (old[0], old[1]) for key, old, _ in event.rooms})
    if rooms:
        why = closed_words(rooms, rooms[0].state)
        drafts_leave(user=user, leaving=leaving, why=why, skip=placement)


def mark_undone(placement: Placement, event: PlacementEvent) -> None:
    """Set the date of the undo; undoing an undo makes the first act valid again."""
    event.undone_at = timezone.now()
    event.save(update_fields=["undone_at"])
    if event.undoes_id is not None:
        PlacementEvent.objects.filter(pk=event.undoes_id).update(undone_at=None)
    if "state" in event.details or not unsettles(event.before, event.after, event.details):
        return
    step = 1 if _undoes_an_act(event) else -1
    if placement.best_at is None or event.created_at > placement.best_at:
        Placement.objects.filter(pk=placement.pk).update(changes=Greatest(F("changes") + step, 0))
        placement.refresh_from_db(fields=["changes"])


def _undoes_an_act(event: PlacementEvent) -> bool:
    """Return True for the undo of an act; the undo of such an undo does what the act did."""
    is_undo, now = event.kind == ActKind.UNDONE, event.undoes
    while now is not None and now.undoes is not None:
        is_undo, now = not is_undo, now.undoes
    return is_undo


def beds_changed(event: PlacementEvent) -> list[tuple[Row, Row]]:
    """Return the rows (now, then) of the students whose bed an undo would change."""
    then = {row[0]: row for row in event.before}
    pairs = [(row, then[row[0]]) for row in event.after if row[0] in then]
    return [(now, old) for now, old in pairs if beds_of([now]) != beds_of([old])]


class Situation:
    """Current beds, rooms and turns, read once to check several acts for contradictions."""

    def __init__(
        self,
        rows: Mapping[int, Row],
        turns: Mapping[int, int],
        room_sides: Mapping[int, tuple[str, list[int] | None]],
        rooms: set[int],
        lived_in: set[int],
        version: int | None,
        late: Mapping[int, str],
        pairs: Mapping[int, int],
        stays: Mapping[int, Stay],
        days: Mapping[int, list[str | None]],
    ) -> None:
        self.rows, self.turns, self.sides = rows, turns, room_sides
        self.rooms, self.lived_in, self.version = rooms, lived_in, version
        self.pairs = pairs  # versions of the rows of pairs, by key
        self.late = late  # why late arrivals cannot be removed, by key
        self.stays, self.days = stays, days  # of students with dates of their own
        self.beds: dict[tuple[Any, Any], list[int]] = defaultdict(list)
        for number, row in rows.items():
            if row[1]:
                self.beds[row[1], row[2]].append(number)

    def holder(self, row: Row, moved: Collection[int]) -> int | None:
        """Return another student with the bed of a row on the same days; ``moved`` leave it."""
        own = self.stays.get(row[0], ALWAYS)
        return next(
            (
                number
                for number in self.beds.get((row[1], row[2]), ())
                if number not in moved and own.overlaps(self.stays.get(number, ALWAYS))
            ),
            None,
        )


def situation_of(placement: Placement, events: Sequence[PlacementEvent]) -> Situation:
    """Return the current state that acts of a placement are checked against."""
    places = list(placement.places.all())
    reviewed = {key for event in events for key, _, _ in event.rooms}
    binding = Q(placement=placement) | Q(placement__published_at__isnull=False)
    lived_in = Place.objects.filter(binding, room__in=reviewed).values_list("room_id", flat=True)
    return Situation(
        {place.number: row_of(place) for place in places},
        {place.number: place.turn for place in places},
        sides(placement, sorted(reviewed)) if reviewed else {},
        set(Room.objects.filter(buildings=placement.buildings_id).values_list("pk", flat=True)),
        set(lived_in) if reviewed else set(),
        placement.current_id,
        _refusals_of_arrivals(placement, events),
        dict(placement.pairs.values_list("pk", "version")) if placement.is_pairs else {},
        stays_in(placement),
        {place.number: days_of(place) for place in places},
    )


def _refusals_of_arrivals(placement: Placement, events: Sequence[PlacementEvent]) -> dict[int, str]:
    keys = [event.details.get("arrival") for event in events if event.kind == ActKind.ARRIVED]
    arrivals = list(LateArrivals.objects.filter(pk__in=[key for key in keys if key]))
    return undo_refusals(placement.cohort, arrivals) if arrivals else {}


def check_undo(placement: Placement, event: PlacementEvent) -> None:
    """Raise HousingError if a later act contradicts an act that is to be undone."""
    problem = contradiction(placement, event, situation_of(placement, [event]))
    if problem:
        raise PlacesChangedError(_("%(problem)s Nothing was changed.") % {"problem": problem})


def contradiction(placement: Placement, event: PlacementEvent, now: Situation) -> str:
    """Return why an act cannot be undone, in one sentence, or "".

    Rules are checked only when the act is undone.
    """
    if event.undone_at is not None:
        return _("This was undone already.")
    if not event.can_be_undone:
        return _("There is nothing to put back.")
    if not (event.before or event.after or event.rooms or event.details):
        return _("There is nothing to put back.")
    if event.kind == ActKind.ARRIVED:
        return now.late.get(event.details.get("arrival", 0), ARRIVED_BEFORE)
    if "arrival" in event.details:
        return _("Import the students again instead.")
    changed = contradiction_of_pairs(event.details.get("pairs") or no_change(), now.pairs)
    if changed:
        return changed
    moved = {row[0] for row in event.after}
    for row in event.after:
        if now.rows.get(row[0]) != row:
            return _("S-%(row)s was changed since.") % {"row": row[0]}
    for row in event.before:
        if row[1] is None:
            continue
        if row[1] not in now.rooms:
            return _("The room of S-%(row)s is not in the building list any more.") % {
                "row": row[0]
            }
        holder = now.holder(row, moved)
        if holder is not None:
            return _("S-%(holder)s has the bed of S-%(row)s by now.") % {
                "holder": holder,
                "row": row[0],
            }
    for number, _rest, turn in event.details.get("turns", []):
        if now.turns.get(number) != turn:
            return _("S-%(number)s was put elsewhere on the waiting list since.") % {
                "number": number
            }
    for number, _rest, days in event.details.get("dates", []):
        if now.days.get(number) != days:
            return _("The dates of S-%(number)s were changed since.") % {"number": number}
    states = event.details.get("state")
    if states and now.version != states[1]["version"]:
        return _("Another version was taken into force since.")
    return _contradiction_of_rooms(event, now)


def _contradiction_of_rooms(event: PlacementEvent, now: Situation) -> str:
    for key, old, new in event.rooms:
        if key not in now.sides or list(now.sides[key]) != new:
            return _("A room was changed since.")
        if old[0] != new[0] and old[0] != RoomState.OPEN and key in now.lived_in:
            return _("Somebody lives in one of these rooms by now.")
    return ""
