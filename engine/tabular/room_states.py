"""States of rooms in a list: columns such as "Status", "Offline" and "Reserved"."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class RoomState(StrEnum):
    """State of a room: open to placement, held back, or offline."""

    OPEN = "open"
    KEPT = "kept"
    OFFLINE = "offline"


YES = {"yes", "y", "true", "1", "x", "si", "sí", "ja", "oui"}
NO = {"no", "n", "false", "0", "", "-", "nein", "non", "none"}
_STATES = {
    RoomState.OPEN: {
        "", "open", "online", "available", "active", "yes", "in service", "ok", "vacant", "free",
        "empty", "frei", "verfügbar", "libre", "disponible",
    },
    RoomState.KEPT: {
        "kept", "keep", "held", "hold", "on hold", "reserved", "ra", "staff", "r.a.",
        "reserviert", "reservado", "réservé",
    },
    RoomState.OFFLINE: {
        "offline", "closed", "unavailable", "out of service", "out of order", "inactive", "no",
        "maintenance", "repair", "gesperrt", "geschlossen", "cerrado", "cerrada", "fermé", "fermée",
    },
}  # fmt: skip
_PEOPLE = r"(ra|staff)( room)?"
# Titles under which yes and no say whether a room is in that state.
_STATE_TITLES = {
    RoomState.OPEN: r"(is |room )?(available|open|active|in service|online|usable)|verfügbar|"
    r"disponible",
    RoomState.KEPT: r"(is )?(kept|held|hold|on hold|held back|reserved)|reserviert|reservad[oa]|"
    rf"réservée?|{_PEOPLE}",
    RoomState.OFFLINE: r"(is |room )?(offline|closed|unavailable|inactive|blocked)|"
    r"(is )?out of (service|order|use)|(under )?(maintenance|repair|renovation)|gesperrt|"
    r"geschlossen|cerrad[oa]|fermée?",
}
TITLES_OF_STATES = r"(room |bed )?(state|status|availability)|estado|état|statut|" + "|".join(
    _STATE_TITLES.values()
)


@dataclass(frozen=True, slots=True)
class StateColumn:
    """Meaning of yes, no and a blank in one column; ``yes`` is None under a title like "Status"."""

    yes: RoomState | None
    no: RoomState
    blank: RoomState

    @classmethod
    def of(cls, words: str, cells: set[str]) -> "StateColumn":
        """Return the meaning in a column with this title, in small letters, and these cells.

        Under "Offline", yes means offline. Under "Available", where only some cells are marked and
        none says no, a blank does.
        """
        yes = _state_of_title(words)
        no = RoomState.OFFLINE if yes in (None, RoomState.OPEN) else RoomState.OPEN
        only_marked = yes is RoomState.OPEN and cells & NO == {""} and cells & YES
        return cls(yes, no, no if only_marked else RoomState.OPEN)

    def state(self, text: str) -> RoomState | None:
        """Return the state that a cell says; None for other words."""
        words = " ".join(text.split()).casefold()
        if not words:
            return self.blank
        if self.yes is not None and words in YES | NO:
            return self.yes if words in YES else self.no
        return next((state for state, known in _STATES.items() if words in known), None)


def may_be_states(words: str, cells: set[str], *, is_further: bool) -> bool:
    """Return False for a column whose title names a state and whose cells are something else.

    Under "RA" there may be names, and a second "Availability" may hold anything: there, all of them
    must be states, or yes and no. Elsewhere a cell that is no state is a problem of its row.
    """
    may_differ = re.fullmatch(_PEOPLE, words) or (is_further and not _state_of_title(words))
    if may_differ and not cells <= {*YES, *NO}.union(*_STATES.values()):
        return False
    return not _are_counts(cells)


def _state_of_title(words: str) -> RoomState | None:
    """Return the state of rooms that say yes in a column: offline under "Offline"."""
    return next((s for s, title in _STATE_TITLES.items() if re.fullmatch(title, words)), None)


def _are_counts(cells: set[str]) -> bool:
    """Return True for numbers of beds, such as those that are available in each room."""
    numbers = cells - {""}
    return all(cell.isdecimal() for cell in numbers) and any(int(cell) > 1 for cell in numbers)


def worst(states: Iterable[str]) -> RoomState:
    """Return the most closed of the states of a room and its beds: half a room is not offered."""
    said = set(states)
    order = (RoomState.OFFLINE, RoomState.KEPT)
    return next((state for state in order if state in said), RoomState.OPEN)
