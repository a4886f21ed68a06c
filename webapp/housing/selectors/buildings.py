"""Building lists with their counts, and their rooms by hall."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet, Sum

from webapp.accounts.models import User
from webapp.common.listing import Listing, Tally, list_page
from webapp.common.selectors import owned_by
from webapp.housing.models import BuildingList, Room, RoomState


@dataclass(frozen=True, slots=True)
class HallCounts:
    """One hall of a list: rooms, beds that are open, beds that are not."""

    name: str
    rooms: int
    beds: int
    closed: int


def building_listing(user: User, parameters: Mapping[str, str]) -> Listing[BuildingList]:
    """Return a page of the building lists; each knows ``n_rooms`` and ``n_beds``."""
    numbers = {"n_rooms": Count("pk"), "n_beds": Sum("capacity", default=0)}
    tally = Tally(Room.objects.all(), "buildings", numbers)
    return list_page(owned_by(BuildingList, user), parameters, tally)


def with_open_beds(lists: QuerySet[BuildingList]) -> QuerySet[BuildingList]:
    """Return lists that know ``n_open_beds``, the beds of their open rooms."""
    is_open = Q(rooms__state=RoomState.OPEN)
    return lists.annotate(n_open_beds=Sum("rooms__capacity", filter=is_open, default=0))


def halls_of(buildings: BuildingList) -> list[HallCounts]:
    """Return the halls of a list in the order of the file."""
    found: dict[str, list[int]] = {}
    for hall, capacity, state in buildings.rooms.values_list("hall", "capacity", "state"):
        entry = found.setdefault(hall, [0, 0, 0])
        entry[0] += 1
        entry[1 if state == RoomState.OPEN else 2] += capacity
    return [HallCounts(name, *counts) for name, counts in found.items()]


def rooms_matching(buildings: BuildingList, hall: str, query: str) -> QuerySet[Room]:
    """Return the rooms of one hall, or of all, whose name holds what was typed."""
    rooms = buildings.rooms.all()
    if hall:
        rooms = rooms.filter(hall=hall)
    for word in query.split():
        rooms = rooms.filter(Q(name__icontains=word) | Q(hall__icontains=word))
    return rooms


def needs_of(buildings: BuildingList) -> list[str]:
    """Return every need that a room of the list meets, sorted."""
    return sorted(
        {need for meets in buildings.rooms.values_list("meets", flat=True) for need in meets}
    )
