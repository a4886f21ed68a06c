"""Drafts of late changes by hand, as pages show them: students, their rooms and the question."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webapp.accounts.models import User
from webapp.housing.models import Place, Placement, PlacementEvent, ProposedChange, Room
from webapp.housing.services.drafts import change_of, kinds_in_words
from webapp.housing.services.seats import row_of
from webapp.housing.services.undo import beds_changed
from webapp.translation.lazy import gettext_lazy as _

WORDS = {
    "change": "",
    "get": _("gets a bed"),
    "lose": _("has no bed then"),
    "withdraw": _("withdraws"),
    "return": _("comes back and waits for a bed"),
}


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One student of a change: the present room, the next room, and the effect."""

    number: int
    before: Room | None
    after: Room | None
    kind: str

    @property
    def label(self) -> str:
        """The id on screen."""
        return f"S-{self.number}"

    @property
    def words(self) -> str:
        """The effect in words, if the rooms alone do not show it."""
        return WORDS[self.kind]

    @property
    def is_loss(self) -> bool:
        """Return True if the student loses a bed."""
        return self.before is not None and self.after is None


@dataclass(frozen=True, slots=True)
class DraftView:
    """A draft by hand with its lines for the current rooms."""

    draft: ProposedChange
    lines: Sequence[ChangeLine]
    is_own: bool

    @property
    def words(self) -> str:
        """The effect of the draft in words: "2 people change rooms, 1 person loses their bed"."""
        return lines_in_words(self.lines)

    @property
    def loses(self) -> bool:
        """Return True if a student loses a bed."""
        return any(line.is_loss for line in self.lines)


def lines_in_words(lines: Iterable[ChangeLine]) -> str:
    """Return how many people change rooms, get or lose a bed, withdraw or come back."""
    return kinds_in_words([line.kind for line in lines])


def drafts_of(placement: Placement, user: User) -> list[DraftView]:
    """Return the drafts by hand of a placement, those of the user first."""
    drafts = placement.proposed_changes.filter(is_by_hand=True).select_related("owner")
    found = [
        DraftView(draft, _lines(placement, draft), draft.owner_id == user.pk) for draft in drafts
    ]
    return sorted(found, key=lambda view: not view.is_own)


def _lines(placement: Placement, draft: ProposedChange) -> list[ChangeLine]:
    seats = {int(number): seat for number, seat in draft.seats.items()}
    places = placement.places.filter(number__in=seats).select_related("room")
    keys = {room for room, _ in seats.values() if room is not None}
    rooms = {room.pk: room for room in Room.objects.filter(pk__in=keys)}
    return [
        line for place in places if (line := _line(place, seats[place.number], rooms)) is not None
    ]


def _line(place: Place, seat: tuple[int | None, bool], rooms: dict[int, Room]) -> ChangeLine | None:
    """Return the line of one student, or None if nothing is left to do."""
    room, has_left = seat
    if (place.room_id, place.has_left) == (room, has_left):
        return None
    now = row_of(place)
    kind = change_of(now, [place.number, room, None, False, has_left])
    return ChangeLine(place.number, place.room, rooms.get(room) if room else None, kind)


def lines_of_undo(event: PlacementEvent) -> list[ChangeLine]:
    """Return the students whose bed the undo of an act would change."""
    rows = beds_changed(event)
    keys = {row[1] for pair in rows for row in pair if row[1] is not None}
    rooms = {room.pk: room for room in Room.objects.filter(pk__in=keys)}
    return [
        ChangeLine(now[0], rooms.get(now[1]), rooms.get(then[1]), change_of(now, then))
        for now, then in rows
    ]
