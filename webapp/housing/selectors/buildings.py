"""Building lists with their counts, and their rooms by hall."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from django.db.models import Count, Q, QuerySet, Sum

from webapp.accounts.models import User
from webapp.common.listing import Listing, Tally, list_page
from webapp.common.parameters import whole_number
from webapp.common.selectors import owned_by
from webapp.housing.models import BuildingList, Place, Room, RoomsChange, RoomState

SHOWN_CHANGES = 8


@dataclass(frozen=True, slots=True)
class HallCounts:
    """Counts of one hall of a list: rooms, open beds, beds that are not open, open extra beds."""

    name: str
    rooms: int
    beds: int
    closed: int
    extra: int


def building_listing(user: User, parameters: Mapping[str, str]) -> Listing[BuildingList]:
    """Return a page of the building lists, annotated with ``n_rooms`` and ``n_beds``."""
    numbers = {"n_rooms": Count("pk"), "n_beds": Sum("capacity", default=0)}
    tally = Tally(Room.objects.all(), "buildings", numbers)
    return list_page(owned_by(BuildingList, user), parameters, tally)


def with_open_beds(lists: QuerySet[BuildingList]) -> QuerySet[BuildingList]:
    """Return lists with ``n_open_beds`` of open rooms, and ``n_suite_rooms``, those in suites."""
    is_open = Q(rooms__state=RoomState.OPEN)
    return lists.annotate(
        n_open_beds=Sum("rooms__capacity", filter=is_open, default=0),
        n_suite_rooms=Count("rooms", filter=~Q(rooms__suite="")),
    )


def halls_of(buildings: BuildingList) -> list[HallCounts]:
    """Return the halls of a list in the order of the file."""
    found: dict[str, list[int]] = {}
    columns = ("hall", "capacity", "extra_beds", "state")
    for hall, capacity, extra, state in buildings.rooms.values_list(*columns):
        entry = found.setdefault(hall, [0, 0, 0, 0])
        entry[0] += 1
        is_open = state == RoomState.OPEN
        entry[1 if is_open else 2] += capacity
        entry[3] += extra if is_open else 0
    return [HallCounts(name, *counts) for name, counts in found.items()]


def floors_by_hall(buildings: BuildingList) -> dict[str, list[str]]:
    """Return the floors of every hall, both in the order of the file."""
    found: dict[str, dict[str, None]] = {}
    for hall, floor in buildings.rooms.values_list("hall", "floor"):
        found.setdefault(hall, {})[floor] = None
    return {hall: [floor for floor in floors if floor] for hall, floors in found.items()}


def halls_by_list(lists: Iterable[BuildingList]) -> dict[BuildingList, list[str]]:
    """Return the halls of the building lists that have several, in the order of their files."""
    known = {buildings.pk: buildings for buildings in lists}
    found: dict[BuildingList, dict[str, None]] = {}
    rooms = Room.objects.filter(buildings__in=known).order_by("buildings", "position", "pk")
    for key, hall in rooms.values_list("buildings_id", "hall"):
        found.setdefault(known[key], {})[hall] = None
    return {buildings: list(halls) for buildings, halls in found.items() if len(halls) > 1}


def latest_changes(buildings: BuildingList) -> QuerySet[RoomsChange]:
    """Return the latest changes of many rooms, latest first."""
    return buildings.changes.select_related("created_by")[:SHOWN_CHANGES]


def floors_of(buildings: BuildingList, hall: str) -> list[str]:
    """Return the floors of one hall in the order of the file."""
    floors = buildings.rooms.filter(hall=hall).exclude(floor="").values_list("floor", flat=True)
    return list(dict.fromkeys(floors)) if hall else []


def rooms_matching(
    buildings: BuildingList, hall: str, query: str, floor: str = ""
) -> QuerySet[Room]:
    """Return the rooms of one hall and floor, or of all, whose name or suite contains the query."""
    rooms = buildings.rooms.all()
    if hall:
        rooms = rooms.filter(hall=hall)
    if hall and floor:
        rooms = rooms.filter(floor=floor)
    for word in query.split():
        is_named = Q(name__icontains=word) | Q(hall__icontains=word)
        rooms = rooms.filter(is_named | Q(suite__icontains=word))
    return rooms


@dataclass(frozen=True, slots=True)
class RoomsWanted:
    """Filters of rooms that change together, read from an address; blank admits every room."""

    hall: str = ""
    floor: str = ""
    q: str = ""
    kind: str = ""
    state: str = ""
    designation: str = ""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> "RoomsWanted":
        """Read the filters of an address."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: parameters.get(name, "").strip()[:200] for name in names})

    @property
    def parameters(self) -> dict[str, str]:
        """The filters that are set, as parameters of an address."""
        return {name: value for name, value in asdict(self).items() if value}


def rooms_wanted(buildings: BuildingList, wanted: RoomsWanted) -> QuerySet[Room]:
    """Return the rooms that pass the filters, in the order of the list."""
    rooms = rooms_matching(buildings, wanted.hall, wanted.q, wanted.floor)
    if wanted.kind:
        rooms = rooms.filter(capacity=whole_number(wanted.kind) or 0)
    if wanted.state:
        rooms = rooms.filter(state=wanted.state)
    if wanted.designation:
        rooms = rooms.filter(designation=wanted.designation)
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
