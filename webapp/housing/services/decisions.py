"""Decisions about students of a placement: move, swap, empty, lock, withdraw, come back.

Every act names the placement's count of acts that its page showed. It is refused, with one
sentence, if somebody else changed the same students or rooms since, or if a rule would break. Moves
in a published placement join a draft of late changes first (:mod:`webapp.housing.services.drafts`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.common.formats import counted
from webapp.housing.errors import HousingError
from webapp.housing.models import ActKind, Place, Placement, PlacementEvent
from webapp.housing.services.conflicts import check_unchanged
from webapp.housing.services.history import event_record
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.seats import Seat, places_of, row_of, seats_put

_VERBS = {
    ActKind.MOVED: "moved",
    ActKind.WITHDREW: "withdrew",
    ActKind.RETURNED: "took back",
}


@dataclass(frozen=True, slots=True)
class Move:
    """The next room of one student; None for no room."""

    number: int
    room: int | None


@dataclass(frozen=True, slots=True)
class Decision:
    """A staff decision about students: their seats by number, and the words of the history.

    ``rooms`` are keys of other rooms that the decision is about.
    """

    kind: ActKind
    seats: dict[int, Seat]
    sentence: str
    rooms: frozenset[int] = field(default_factory=frozenset)


def moving(moves: Sequence[Move], sentence: str) -> Decision:
    """Return the decision to move students; two moves at once are a swap."""
    seats = {move.number: Seat(move.room) for move in moves}
    return Decision(ActKind.MOVED, seats, sentence)


def emptying(numbers: Sequence[int], rooms: Sequence[int] = ()) -> Decision:
    """Return the decision to take students out of their rooms; ``rooms`` must be unchanged too.

    Raises HousingError if there are no students.
    """
    if not numbers:
        raise HousingError(_("Nobody lives there."))
    seats = {number: Seat(None) for number in numbers}
    words = ngettext("%(who)s moved out.", "%(who)s moved out.", len(numbers))
    return Decision(ActKind.MOVED, seats, words % {"who": who_of(numbers)}, frozenset(rooms))


def withdrawing(numbers: Sequence[int]) -> Decision:
    """Return the decision to mark students as withdrawn, which frees their beds."""
    seats = {number: Seat(None, is_locked=False, has_left=True) for number in numbers}
    words = ngettext("%(who)s withdrawn.", "%(who)s withdrawn.", len(seats))
    return Decision(ActKind.WITHDREW, seats, words % {"who": who_of(list(seats))})


def returning(numbers: Sequence[int]) -> Decision:
    """Return the decision to bring back students who withdrew; they then wait for a bed."""
    seats = {number: Seat(None, has_left=False) for number in numbers}
    words = ngettext("%(who)s came back.", "%(who)s came back.", len(seats))
    return Decision(ActKind.RETURNED, seats, words % {"who": who_of(list(seats))})


def who_of(numbers: Sequence[int]) -> str:
    """Return the only student of a list, or how many there are, in words."""
    return f"S-{numbers[0]}" if len(numbers) == 1 else counted(len(numbers), "person")


@transaction.atomic
def decision_make(
    *, user: User, placement: Placement, decision: Decision, version: int
) -> PlacementEvent:
    """Carry out a decision, all or none.

    Raises
    ------
    HousingError
        If the placement is published, a student is locked, has left or is unknown, or a rule would
        break; one sentence.
    PlacesChangedError
        If somebody else changed one of the students or rooms since ``version``.
    """
    placement = lock_placement(placement)
    if placement.is_published:
        raise HousingError(
            _("%(placement)s is published. Put this into a draft of late changes and confirm it.")
            % {"placement": placement.name}
        )
    check_decision(placement, decision, version)
    seating = seats_put(placement, decision.seats)
    return event_record(
        user=user,
        placement=placement,
        kind=decision.kind,
        verb=_VERBS[decision.kind],
        sentence=decision.sentence,
        before=seating.before,
        after=seating.after,
    )


def check_decision(placement: Placement, decision: Decision, version: int) -> None:
    """Raise if a decision's students changed since ``version``, or it is not possible for one."""
    places = places_of(placement, decision.seats)
    rooms = {place.room_id for place in places.values()} if _is_about_rooms(decision) else set()
    rooms |= {seat.room for seat in decision.seats.values()} | decision.rooms
    known = {room for room in rooms if room is not None}
    check_unchanged(placement, version, students=decision.seats, rooms=known)
    for number, seat in decision.seats.items():
        sentence = _refusal(decision.kind, number, places.get(number), seat)
        if sentence:
            raise HousingError(sentence)


def _is_about_rooms(decision: Decision) -> bool:
    """Return True if a decision depends on roommates, as a move does and a withdrawal does not."""
    return decision.kind == ActKind.MOVED


def _refusal(kind: ActKind, number: int, place: Place | None, seat: Seat) -> str:
    """Return why a decision about a student is not possible, or ""."""
    if kind == ActKind.WITHDREW:
        if place is None or place.has_left:
            return _("S-%(number)s is not in this placement, or has withdrawn already.") % {
                "number": number
            }
        return ""
    if kind == ActKind.RETURNED:
        if place is None or not place.has_left:
            return _("S-%(number)s has not withdrawn from this placement.") % {"number": number}
        return ""
    if place is None:
        return _("S-%(number)s is not in this placement.") % {"number": number}
    if place.has_left:
        return _("%(place)s has withdrawn.") % {"place": place.label}
    if place.is_locked and place.room_id != seat.room:
        return _("%(place)s is locked into %(room)s. Release it first.") % {
            "place": place.label,
            "room": place.room,
        }
    return ""


def places_move(
    *, user: User, placement: Placement, moves: Sequence[Move], version: int, sentence: str
) -> PlacementEvent:
    """Move students, all or none; two moves at once are a swap."""
    decision = moving(moves, sentence)
    return decision_make(user=user, placement=placement, decision=decision, version=version)


def students_withdraw(
    *, user: User, placement: Placement, numbers: Sequence[int], version: int
) -> PlacementEvent:
    """Mark students as withdrawn; their beds become free at once."""
    decision = withdrawing(numbers)
    return decision_make(user=user, placement=placement, decision=decision, version=version)


def students_return(
    *, user: User, placement: Placement, numbers: Sequence[int], version: int
) -> PlacementEvent:
    """Reverse the withdrawal of students; they wait for a bed like others without one."""
    decision = returning(numbers)
    return decision_make(user=user, placement=placement, decision=decision, version=version)


@transaction.atomic
def places_lock(
    *,
    user: User,
    placement: Placement,
    numbers: Sequence[int],
    locked: bool,
    version: int,
    rooms: Sequence[int] = (),
) -> PlacementEvent:
    """Lock students into their rooms, or release them; all or none.

    ``rooms`` are keys of the rooms shown, if whole rooms are locked.
    """
    placement = lock_placement(placement)
    check_unchanged(placement, version, students=numbers, rooms=rooms)
    places = list(
        placement.places.select_related("room").filter(number__in=numbers, room__isnull=False)
    )
    if not places:
        raise HousingError(_("Nobody lives there."))
    before = [row_of(place) for place in places]
    Place.objects.filter(pk__in=[p.pk for p in places]).update(is_locked=locked)
    for place in places:
        place.is_locked = locked
    n = len(places)
    if not locked:
        words = ngettext("%(who)s released.", "%(who)s released.", n)
    elif len({place.room_id for place in places}) == 1:
        words = ngettext("%(who)s locked into %(room)s.", "%(who)s locked into %(room)s.", n)
    else:
        words = ngettext("%(who)s locked.", "%(who)s locked.", n)
    who = who_of([place.number for place in places])
    return event_record(
        user=user,
        placement=placement,
        kind=ActKind.LOCKED,
        verb="locked" if locked else "released",
        sentence=words % {"who": who, "room": places[0].room},
        before=before,
        after=[row_of(place) for place in places],
    )
