"""Effects of a change of the building list on the students who live there.

A draft never prevents closing a room: its students then need another room, and its history records
that. A published bed does: no student loses it without a late change.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts.models import Student
from webapp.common.formats import counted
from webapp.housing.errors import HousingError
from webapp.housing.models import ActKind, BuildingList, Place, Placement, Room, RoomState
from webapp.housing.rules import PlacementRules, misfits
from webapp.housing.selectors.suites import neighbours_in_list
from webapp.housing.services.checks import forbidden_numbers
from webapp.housing.services.history import event_record
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.seats import Seat, seats_put
from webapp.housing.stays import stays_in


def rooms_in_words(rooms: Sequence[Room]) -> str:
    """Return the only room of a list, or how many there are, in words."""
    return str(rooms[0]) if len(rooms) == 1 else counted(len(rooms), "room")


def students_to_move_out(rooms: Sequence[Room]) -> dict[Placement, dict[int, str]]:
    """Return students who must leave changed rooms, with reasons by placement and number.

    ``rooms`` hold the new values; they need not be saved yet.
    """
    by_key = {room.pk: room for room in rooms}
    places = Place.objects.filter(room__in=list(by_key)).order_by("number")
    members: dict[Placement, dict[int, list[Place]]] = defaultdict(lambda: defaultdict(list))
    read = places.select_related("placement", "student").defer("student__answers")
    for place in read:
        if place.room_id is not None:
            members[place.placement][place.room_id].append(place)
    found: dict[Placement, dict[int, str]] = {}
    neighbours = neighbours_in_list(rooms[0].buildings_id, rooms) if rooms else {}
    for placement, by_room in members.items():
        rules, forbidden = PlacementRules.from_json(placement.rules), forbidden_numbers(placement)
        leaving: dict[int, str] = {}
        stays = stays_in(placement)
        kept = _people_beside(placement, neighbours, by_key)
        for key, people in by_room.items():
            students = [place.student for place in people]
            beside = [one for other in neighbours.get(key, ()) for one in kept.get(other, ())]
            refused = misfits(by_key[key], students, rules, forbidden, stays, beside)
            kept[key] = [student for student in students if student.number not in refused]
            leaving |= refused
        if leaving:
            found[placement] = leaving
    return found


def _people_beside(
    placement: Placement, neighbours: Mapping[int, Sequence[int]], changed: Collection[int]
) -> dict[int, list[Student]]:
    """Return the people of the rooms, by key, that share a suite with changed rooms.

    Those of the changed rooms themselves are left out: they have not been checked yet.
    """
    keys = {key for others in neighbours.values() for key in others} - set(changed)
    found: dict[int, list[Student]] = defaultdict(list)
    if keys:
        places = placement.places.filter(room__in=keys).select_related("student")
        for place in places.defer("student__answers").order_by("number"):
            found[place.room_id or 0].append(place.student)
    return found


def check_no_published_bed(leaving: dict[Placement, dict[int, str]], rooms: Sequence[Room]) -> None:
    """Raise HousingError if a student would lose a published bed."""
    for placement, students in leaving.items():
        if placement.is_published:
            first = next(iter(students))
            named = (
                f"S-{first}"
                if len(students) == 1
                else _("S-%(first)s and others") % {"first": first}
            )
            raise HousingError(
                ngettext(
                    "%(count)s student has a bed in %(rooms)s by %(placement)s, which is "
                    "published: %(named)s. Move them by late changes first. Nothing was changed.",
                    "%(count)s students have beds in %(rooms)s by %(placement)s, which is "
                    "published: %(named)s. Move them by late changes first. Nothing was changed.",
                    len(students),
                )
                % {
                    "count": f"{len(students):,}",
                    "rooms": rooms_in_words(rooms),
                    "placement": placement,
                    "named": named,
                }
            )


def drafts_leave(
    *, user: User, leaving: dict[Placement, dict[int, str]], why: str, skip: Placement | None = None
) -> str:
    """Move students of drafts out of rooms that close, and return a sentence on it, or "".

    Call it once the rooms are saved, with the building list locked. ``skip`` is the placement whose
    own act closes them.
    """
    words = []
    for found, students in leaving.items():
        if skip is not None and found.pk == skip.pk:
            continue
        placement = lock_placement(found)
        seating = seats_put(placement, {number: Seat(None) for number in students})
        count = f"{len(students):,}"
        sentence = ngettext(
            "%(count)s student needs another room.",
            "%(count)s students need another room.",
            len(students),
        ) % {"count": count}
        event_record(
            user=user,
            placement=placement,
            kind=ActKind.CLOSED,
            verb="closed rooms",
            sentence=f"{why} {sentence}",
            before=seating.before,
            after=seating.after,
        )
        words.append(
            ngettext(
                "%(count)s student needs another room in the draft %(placement)s.",
                "%(count)s students need another room in the draft %(placement)s.",
                len(students),
            )
            % {"count": count, "placement": placement.name}
        )
    return " ".join(words)


def closed_words(rooms: Sequence[Room], state: str) -> str:
    """Return a sentence on the new state of rooms, such as "Alder 312 was held back"."""
    n = len(rooms)
    if state == RoomState.KEPT:
        words = ngettext("%(rooms)s was held back.", "%(rooms)s were held back.", n)
    elif state == RoomState.OFFLINE:
        words = ngettext("%(rooms)s was taken offline.", "%(rooms)s were taken offline.", n)
    else:
        words = ngettext("%(rooms)s was opened.", "%(rooms)s were opened.", n)
    return words % {"rooms": rooms_in_words(rooms)}


def lock_buildings(buildings: BuildingList) -> None:
    """Lock a building list until the transaction ends; every act does this first."""
    BuildingList.everything.select_for_update().get(pk=buildings.pk)
