"""Building lists with their counts, and their rooms by hall."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet, Sum

from webapp.accounts.models import User
from webapp.common.listing import Listing, Tally, list_page
from webapp.common.selectors import owned_by
from webapp.housing.models import BuildingList, Place, Room, RoomState


@dataclass(frozen=True, slots=True)
class HallCounts:
    """Counts of one hall of a list: rooms, open beds and beds that are not open."""

    name: str
    rooms: int
    beds: int
    closed: int


def building_listing(user: User, parameters: Mapping[str, str]) -> Listing[BuildingList]:
    """Return a page of the building lists, annotated with ``n_rooms`` and ``n_beds``."""
    numbers = {"n_rooms": Count("pk"), "n_beds": Sum("capacity", default=0)}
    tally = Tally(Room.objects.all(), "buildings", numbers)
    return list_page(owned_by(BuildingList, user), parameters, tally)


def with_open_beds(lists: QuerySet[BuildingList]) -> QuerySet[BuildingList]:
    """Return lists annotated with ``n_open_beds``, the beds of their open rooms."""
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


def floors_of(buildings: BuildingList, hall: str) -> list[str]:
    """Return the floors of one hall in the order of the file."""
    floors = buildings.rooms.filter(hall=hall).exclude(floor="").values_list("floor", flat=True)
    return list(dict.fromkeys(floors)) if hall else []


def rooms_matching(
    buildings: BuildingList, hall: str, query: str, floor: str = ""
) -> QuerySet[Room]:
    """Return the rooms of one hall and floor, or of all, whose name contains the query."""
    rooms = buildings.rooms.all()
    if hall:
        rooms = rooms.filter(hall=hall)
    if hall and floor:
        rooms = rooms.filter(floor=floor)
    for word in query.split():
        rooms = rooms.filter(Q(name__icontains=word) | Q(hall__icontains=word))
    return rooms


def people_of_drafts(rooms: Sequence[Room]) -> int:
    """Return how many students of unpublished placements live in some rooms."""
    places = Place.objects.filter(room__in=[room.pk for room in rooms])
    return places.filter(placement__published_at=None).values("student").distinct().count()


def needs_of(buildings: BuildingList) -> list[str]:
    """Return every need that a room of the list meets, sorted."""
    return sorted(
        {need for meets in buildings.rooms.values_list("meets", flat=True) for need in meets}
    )
