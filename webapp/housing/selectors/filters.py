"""Filters of the rooms on a page, read from its address."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

from webapp.common.formats import per_cent
from webapp.housing.selectors.placements import Person, PlacementRooms, RoomCard
from webapp.translation.lazy import format_lazy
from webapp.translation.lazy import gettext_lazy as _

DOUBTFUL = 0.6  # share of likely roommates from which a room counts as doubtful
# Filters of the address, and their words on the page.
LOOKS = {
    "undecided": _("Undecided"),
    "accepted": _("Accepted"),
    "locked": _("Locked"),
    "missed": _("Requests missed"),
    "doubtful": format_lazy(_("Uncertainty of {share} or more"), share=per_cent(DOUBTFUL, 0)),
    "pulled": _("Somebody pulls it down"),
    "free": _("Free beds"),
    "empty": _("Empty"),
    "shut": _("Held back or offline"),
}
ANYBODY = "anybody"
MISSED = "missed"


def looks_without_requests() -> dict[str, str]:
    """Return the filters for those who do not see requests."""
    return {key: words for key, words in LOOKS.items() if key != MISSED}


@dataclass(frozen=True, slots=True)
class RoomFilter:
    """The filters of an address; an empty filter admits every room.

    Parameters
    ----------
    hall, floor : str, as the building list says; ``floor`` only within a hall.
    q : str, part of an id on screen or of a room's name; or a name, number or e-mail, see people.
    kind : str, number of beds without extra beds.
    look : str, a key of ``LOOKS``.
    designation : str, as rooms say, or "anybody".
    people : students whom ``q`` means by name, number or e-mail, for those who see names.
    """

    hall: str = ""
    floor: str = ""
    q: str = ""
    kind: str = ""
    look: str = ""
    designation: str = ""
    people: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls, parameters: Mapping[str, str], people: Callable[[str], frozenset[int]]
    ) -> "RoomFilter":
        """Read the filters of an address; ``people`` finds students by name, number or e-mail."""
        names = [f.name for f in fields(cls) if f.name != "people"]
        sent = {name: parameters.get(name, "").strip()[:80] for name in names}
        return cls(**sent, people=people(sent["q"]))

    @property
    def narrows(self) -> bool:
        """Return True if a filter other than the hall is set."""
        return bool(self.floor or self.q or self.kind or self.look or self.designation)

    def names(self, person: Person) -> bool:
        """Return True if the search means this student."""
        return person.number in self.people or self.q.casefold() in person.label.casefold()

    def lets(self, card: RoomCard) -> bool:
        """Return True if a room passes the filters."""
        room = card.room
        if self.hall and room.hall != self.hall:
            return False
        if self.hall and self.floor and room.floor != self.floor:
            return False
        if self.kind and str(room.capacity) != self.kind:
            return False
        if self.designation and (room.designation or ANYBODY) != self.designation:
            return False
        return _looks(card, self.look) and (not self.q or self._finds(card))

    def _finds(self, card: RoomCard) -> bool:
        words = f"{card.room.label} {card.room.suite_in_words}"
        is_room = self.q.casefold() in words.casefold()
        return is_room or any(self.names(person) for person in card.people)


def matching_cards(rooms: PlacementRooms, wanted: RoomFilter) -> list[RoomCard]:
    """Return the rooms that pass, in the order of the list; a search looks in every hall."""
    if wanted.q:
        wanted = replace(wanted, hall="", floor="", designation="")
    return [card for card in rooms.cards() if wanted.lets(card)]


def _looks(card: RoomCard, look: str) -> bool:
    match look:
        case "undecided":
            return bool(card.people) and not card.is_accepted and not card.is_locked
        case "accepted":
            return card.is_accepted
        case "locked":
            return card.is_locked
        case "missed":
            return card.n_honoured < card.n_asked
        case "doubtful":
            return card.doubt is not None and card.doubt >= DOUBTFUL
        case "pulled":
            return any(person.pulls_down for person in card.people)
        case "free":
            return card.free > 0 or card.free_extra > 0
        case "empty":
            return card.room.is_open and not card.people
        case "shut":
            return not card.room.is_open
    return True
