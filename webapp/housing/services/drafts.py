"""Drafts of late changes by hand: a person's decisions about a published placement.

Nothing moves before the draft is confirmed. A draft stores where students are to be, not where they
were: the page that asks always compares it with the current rooms.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import ActKind, Placement, PlacementEvent, ProposedChange
from webapp.housing.services.conflicts import check_unchanged
from webapp.housing.services.decisions import Decision, check_decision
from webapp.housing.services.history import event_record
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.seats import Row, Seat, Seating, places_of
from webapp.translation.lazy import gettext_lazy

_SUMS: tuple[tuple[str, Any], ...] = (
    (
        "change",
        ngettext_lazy("%(count)s person changes rooms", "%(count)s people change rooms", "number"),
    ),
    ("get", ngettext_lazy("%(count)s person gets a bed", "%(count)s people get a bed", "number")),
    (
        "lose",
        ngettext_lazy(
            "%(count)s person loses their bed", "%(count)s people lose their bed", "number"
        ),
    ),
    (
        "withdraw",
        ngettext_lazy("%(count)s person withdraws", "%(count)s people withdraw", "number"),
    ),
    (
        "return",
        ngettext_lazy("%(count)s person comes back", "%(count)s people come back", "number"),
    ),
)
DISCARDED = gettext_lazy("This draft was confirmed or discarded meanwhile. Nothing was changed.")


@transaction.atomic
def draft_add(
    *, user: User, placement: Placement, decision: Decision, version: int
) -> ProposedChange | None:
    """Add a decision to a person's draft; return None if nothing of the draft is left to do.

    Raises
    ------
    HousingError
        If the placement is not published, or the decision could not be carried out.
    PlacesChangedError
        If somebody else changed one of the students or rooms since ``version``.
    """
    placement = lock_placement(placement)
    if not placement.is_published:
        raise HousingError(
            _("%(placement)s is not published. Decide about its rooms directly.")
            % {"placement": placement.name}
        )
    check_decision(placement, decision, version)
    draft = _own_draft(user, placement)
    seats = seats_of(draft) if draft else {}
    seats |= {
        number: Seat(s.room, has_left=bool(s.has_left)) for number, s in decision.seats.items()
    }
    seats = _still_to_do(placement, seats)
    Seating(placement, seats).check()
    draft = draft or ProposedChange(placement=placement, is_by_hand=True, owner=user)
    if not seats:
        if draft.pk:
            draft.delete()
        return None
    draft.seats = {str(number): [seat.room, bool(seat.has_left)] for number, seat in seats.items()}
    draft.is_ready = True
    draft.save()
    audit(user, "drafted late changes", placement, what=decision.sentence, people=len(seats))
    return draft


@transaction.atomic
def draft_drop(*, user: User, draft: ProposedChange, number: int) -> ProposedChange | None:
    """Remove one student from a draft; return None if the draft is then empty."""
    placement = lock_placement(draft.placement)
    draft = _locked_draft(placement, draft.pk)
    if draft.seats.pop(str(number), None) is None:
        raise HousingError(_("S-%(number)s is not in this draft any more.") % {"number": number})
    audit(user, "drafted late changes", placement, what=f"S-{number} left out.")
    if not draft.seats:
        draft.delete()
        return None
    draft.save(update_fields=["seats", "updated_at"])
    return draft


@transaction.atomic
def draft_discard(*, user: User, draft: ProposedChange) -> None:
    """Delete a draft; nothing else changes."""
    placement = lock_placement(draft.placement)
    draft = _locked_draft(placement, draft.pk)
    audit(user, "discarded late changes", placement, people=len(draft.seats))
    draft.delete()


@transaction.atomic
def draft_confirm(
    *, user: User, draft: ProposedChange, people: int, version: int
) -> PlacementEvent:
    """Apply a draft, all or none.

    Parameters
    ----------
    people : number of students in the question that was confirmed.
    version : the placement's count of acts when the question was shown.

    Raises
    ------
    PlacesChangedError
        If the draft, or one of its students or rooms, changed since the question was shown.
    HousingError
        If a rule would break.
    """
    placement = lock_placement(draft.placement)
    draft = _locked_draft(placement, draft.pk)
    seats = _still_to_do(placement, seats_of(draft))
    if not seats or len(seats) != people:
        raise PlacesChangedError(
            _(
                "This draft is not what the page showed any more. Nothing was changed; look "
                "at it again."
            )
        )
    seating = Seating(placement, seats)
    check_unchanged(placement, version, students=seats, rooms=seating.rooms)
    check_not_locked(placement, seats)
    seating.check()
    seating.write()
    changes = seating_words(seating)
    sentence = _("Late changes confirmed: %(changes)s.") % {"changes": changes}
    event = event_record(
        user=user,
        placement=placement,
        kind=ActKind.LATE,
        verb="confirmed late changes",
        sentence=sentence,
        before=seating.before,
        after=seating.after,
    )
    draft.delete()
    return event


def seats_of(draft: ProposedChange) -> dict[int, Seat]:
    """Return the future seats of the students of a draft by hand, by number."""
    return {
        int(number): Seat(room, has_left=has_left)
        for number, (room, has_left) in draft.seats.items()
    }


def check_not_locked(placement: Placement, seats: Mapping[int, Seat]) -> None:
    """Raise HousingError if a student who would move is locked; a withdrawal ends a lock."""
    for number, place in places_of(placement, seats).items():
        seat = seats[number]
        if place.is_locked and not seat.has_left and seat.room != place.room_id:
            raise HousingError(
                _("S-%(number)s is locked into %(room)s. Release it first.")
                % {"number": number, "room": place.room}
            )


def seating_words(seating: Seating) -> str:
    """Return the effect of a change in words: "2 people change rooms, 1 person loses their bed"."""
    kinds = [change_of(old, new) for old, new in zip(seating.before, seating.after, strict=True)]
    return kinds_in_words(kinds)


def kinds_in_words(kinds: Sequence[str]) -> str:
    """Return how many people change rooms, get or lose a bed, withdraw or come back."""
    counts = [(words, kinds.count(key)) for key, words in _SUMS if key in kinds]
    return ", ".join(str(words % {"number": n, "count": f"{n:,}"}) for words, n in counts)


def change_of(old: Row, new: Row) -> str:
    """Return the kind of a student's change: "withdraw", "return", "lose", "get" or "change"."""
    if old[4] != new[4]:
        return "withdraw" if new[4] else "return"
    if new[1] is None:
        return "lose"
    return "get" if old[1] is None else "change"


def _still_to_do(placement: Placement, seats: Mapping[int, Seat]) -> dict[int, Seat]:
    """Return the seats that differ from the students' present ones."""
    places = places_of(placement, seats)
    return {
        number: seat
        for number, seat in seats.items()
        if number in places
        and (seat.room, bool(seat.has_left)) != (places[number].room_id, places[number].has_left)
    }


def _own_draft(user: User, placement: Placement) -> ProposedChange | None:
    drafts = placement.proposed_changes.select_for_update()
    return drafts.filter(is_by_hand=True, owner=user).first()


def _locked_draft(placement: Placement, key: int) -> ProposedChange:
    drafts = placement.proposed_changes.select_for_update().filter(is_by_hand=True)
    draft = drafts.filter(pk=key).first()
    if draft is None:
        raise HousingError(DISCARDED)
    return draft
