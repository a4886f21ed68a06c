"""Changing many rooms of a building list at once, and undoing it."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import MAX_BEDS, BuildingList, Room, RoomsChange, RoomState
from webapp.housing.services.buildings import (
    buildings_touch,
    check_beds,
    need_meanings_of,
    number_beds,
)
from webapp.housing.services.closing import (
    check_no_published_bed,
    drafts_leave,
    lock_buildings,
    students_to_move_out,
)
from webapp.housing.services.need_meanings import meanings_apply
from webapp.translation.lazy import gettext_lazy

FIELDS = ("state", "capacity", "extra_beds", "designation", "meets", "suite", "note")
WORDS = {
    "state": gettext_lazy("state"),
    "capacity": gettext_lazy("beds"),
    "max_capacity": gettext_lazy("beds with extra beds"),
    "designation": gettext_lazy("who may live there"),
    "meets": gettext_lazy("needs they meet"),
    "suite": gettext_lazy("suite"),
    "note": gettext_lazy("note"),
}

Values = Mapping[str, Any]  # state, capacity, max_capacity, designation, meets, suite, note


def rooms_as_changed(rooms: Sequence[Room], values: Values) -> list[Room]:
    """Return the rooms that new values change, with these values, unsaved.

    Raises HousingError if a room would have more beds than allowed, or fewer with extra beds.
    """
    found = []
    for room in rooms:
        before = values_of(room)
        most = values.get("max_capacity", room.max_capacity) or 0
        room.capacity = values.get("capacity", room.capacity)
        if "max_capacity" not in values:
            most = max(most, room.capacity) if room.extra_beds else room.capacity
        most = most or room.capacity
        if not 1 <= room.capacity <= most <= MAX_BEDS:
            raise HousingError(
                ngettext(
                    "%(room)s has %(count)s bed, so it cannot have %(most)s with extra beds. "
                    "Change both numbers, or leave the room out.",
                    "%(room)s has %(count)s beds, so it cannot have %(most)s with extra "
                    "beds. Change both numbers, or leave the room out.",
                    room.capacity,
                )
                % {"room": room, "count": f"{room.capacity:,}", "most": most},
                "max_capacity",
            )
        room.extra_beds = most - room.capacity
        for name in ("state", "designation", "meets", "suite", "note"):
            setattr(room, name, values.get(name, getattr(room, name)))
        if values_of(room) != before:
            found.append(room)
    return found


def values_of(room: Room) -> dict[str, Any]:
    """Return the values of a room that a change of many rooms may set."""
    return {name: getattr(room, name) for name in FIELDS}


@transaction.atomic
def rooms_change(
    *, user: User, buildings: BuildingList, rooms: Sequence[int], values: Values
) -> tuple[RoomsChange, str]:
    """Set values of many rooms, all or none; return the change and a sentence on drafts.

    Raises
    ------
    HousingError
        If nothing would change, a value is invalid, or a student with a published bed could not
        live there any more.
    """
    lock_buildings(buildings)
    if values.get("state", RoomState.OPEN) not in RoomState.values:
        raise HousingError(_("A room is open, held back or offline."), "state")
    found = list(buildings.rooms.select_for_update().filter(pk__in=list(rooms)))
    before = {room.pk: values_of(room) for room in found}
    changed = rooms_as_changed(found, values)
    if not changed:
        raise HousingError(_("These rooms have these values already. Nothing was changed."))
    what = ", ".join(str(words) for name, words in WORDS.items() if name in values)
    sentence = ngettext(
        "%(count)s room: %(values)s changed.",
        "%(count)s rooms: %(values)s changed.",
        len(changed),
    ) % {"count": f"{len(changed):,}", "values": what}
    note = _write(user, buildings, changed, sentence)
    change = RoomsChange.objects.create(
        organisation=user.own_organisation,
        created_by=user,
        buildings=buildings,
        sentence=sentence,
        before=[[room.pk, before[room.pk]] for room in changed],
        after=[[room.pk, values_of(room)] for room in changed],
    )
    audit(user, "changed rooms", buildings, rooms=len(changed), what=sentence)
    return change, note


@transaction.atomic
def rooms_change_undo(*, user: User, change: RoomsChange) -> str:
    """Give the rooms of a change their former values; return one sentence.

    Students of drafts who had to leave stay where they are now. Raises HousingError if the change
    was undone, a room changed since, or a student would lose a published bed.
    """
    lock_buildings(change.buildings)
    change = RoomsChange.objects.select_for_update().get(pk=change.pk)
    if change.undone_at is not None:
        raise PlacesChangedError(_("This change was undone already."))
    after, before = dict(change.after), dict(change.before)
    found = list(change.buildings.rooms.select_for_update().filter(pk__in=list(after)))
    if len(found) < len(after):
        raise HousingError(_("A room of this change was removed since. Nothing was changed."))
    for room in found:
        if values_of(room) != values_of(room) | after[room.pk]:
            raise HousingError(
                _("%(room)s was changed again since. Nothing was changed.") % {"room": room}
            )
        for name, value in before[room.pk].items():
            setattr(room, name, value)
    sentence = _("Undone: %(sentence)s") % {"sentence": change.sentence}
    note = _write(user, change.buildings, found, sentence)
    change.undone_at = timezone.now()
    change.save(update_fields=["undone_at"])
    audit(user, "changed rooms", change.buildings, rooms=len(found), what=sentence)
    return f"{sentence} {note}".strip()


def _write(user: User, buildings: BuildingList, rooms: list[Room], why: str) -> str:
    """Save rooms that drafts may leave; return a sentence on the students of drafts, or ""."""
    leaving = students_to_move_out(rooms)
    check_no_published_bed(leaving, rooms)
    for room in rooms:
        check_beds(room)
    Room.objects.bulk_update(rooms, FIELDS, batch_size=200)
    meanings_apply(rooms, need_meanings_of(user))
    note = drafts_leave(user=user, leaving=leaving, why=why)
    for room in rooms:
        number_beds(room)
    buildings_touch(buildings)
    return note
