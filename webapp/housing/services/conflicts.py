"""Conflicts between decisions: changes of the same rooms or students by somebody else.

A page names the placement's count of acts that it showed (``Placement.version``). The history holds
every later act with its students and rooms.
"""

from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from webapp.housing.errors import PlacesChangedError
from webapp.housing.models import ActKind, Placement, PlacementEvent, Room
from webapp.translation.lazy import gettext_lazy

OUT_OF_DATE = gettext_lazy("This page is out of date. Nothing was changed; load it again.")


def check_unchanged(
    placement: Placement,
    seen: int,
    *,
    students: Collection[int] = (),
    rooms: Collection[int] = (),
) -> None:
    """Raise PlacesChangedError if one of these students or rooms changed since ``seen``.

    ``students`` are numbers on screen, ``rooms`` keys.
    """
    wanted, keys = set(students), set(rooms)
    for event in acts_since(placement, seen):
        same = sorted(wanted & students_of(event))
        if same:
            raise PlacesChangedError(_words(f"S-{same[0]}", event))
        shared = keys & rooms_of(event)
        if shared:
            room = Room.objects.filter(pk=min(shared)).first()
            raise PlacesChangedError(_words(str(room or _("This room")), event))


def check_nobody_moved(placement: Placement, seen: int) -> None:
    """Raise PlacesChangedError if any student got another bed since ``seen``."""
    for event in acts_since(placement, seen):
        is_version = event.kind == ActKind.VERSION  # the first has no rows: every place is new
        if is_version or beds_of(event.before) != beds_of(event.after):
            raise PlacesChangedError(_words(_("A room"), event))


def is_unchanged(
    placement: Placement, seen: int, *, students: Collection[int], rooms: Collection[int]
) -> bool:
    """Return True if none of these students and rooms changed since ``seen``."""
    try:
        check_unchanged(placement, seen, students=students, rooms=rooms)
    except PlacesChangedError:
        return False
    return True


def rooms_changed_since(placement: Placement, seen: int) -> set[int]:
    """Return the keys of the rooms concerned by any act since ``seen``."""
    return {key for event in acts_since(placement, seen) for key in rooms_of(event)}


def acts_since(placement: Placement, seen: int) -> QuerySet[PlacementEvent]:
    """Return the acts since a page was made, latest first.

    Raises PlacesChangedError for a count that the placement never had.
    """
    if not 0 <= seen <= placement.version:
        raise PlacesChangedError(OUT_OF_DATE)
    return placement.events.filter(version__gt=seen).select_related("user").defer("details")


def students_of(event: PlacementEvent) -> set[int]:
    """Return the numbers of the students whom an act concerned."""
    return {row[0] for row in (*event.before, *event.after)}


def rooms_of(event: PlacementEvent) -> set[int]:
    """Return the keys of the rooms that an act concerned."""
    lived_in = {row[1] for row in (*event.before, *event.after) if row[1] is not None}
    return lived_in | {key for key, _, _ in event.rooms}


def beds_of(rows: Collection[list[Any]]) -> dict[int, tuple[object, ...]]:
    """Return room, bed and withdrawal of rows of the history, by number."""
    return {row[0]: (row[1], row[2], row[4]) for row in rows}


def _words(what: str, event: PlacementEvent) -> str:
    who = event.user.get_username() if event.user else _("the system")
    return _(
        "%(what)s was changed since this page was loaded: “%(sentence)s” (%(who)s). "
        "Nothing was changed by you; look at it as it is now."
    ) % {"what": what, "sentence": event.sentence, "who": who}
