"""A small demonstration campus: rooms for the first-year cohort, with a few to spare."""

from webapp.accounts.models import Organisation, User
from webapp.audit.services import audit
from webapp.common.formats import counted
from webapp.housing.models import BuildingList, Room, RoomState

NAME = "Demonstration campus"
# Hall, floors, then the rooms of each floor by capacity.
_HALLS = (
    ("Alder Hall", ("1", "2", "3"), (2,) * 22 + (3,) * 2 + (1,) * 2),
    ("Birch Hall", ("1", "2"), (2,) * 24 + (4, 4)),
    ("Cedar House", ("G", "1"), (2,) * 16 + (3,) * 4 + (1,) * 6),
)
_APARTMENTS = ("Cedar House", "1", 16)  # hall, floor and its first rooms, two to an apartment


def load(organisation: Organisation, user: User) -> str:
    """Create the demonstration campus unless it exists; return a sentence on what exists."""
    found, is_new = BuildingList.objects.get_or_create(
        organisation=organisation, name=NAME, defaults={"created_by": user}
    )
    if is_new:
        Room.objects.bulk_create(_rooms(found))
        audit(user, "made for the demonstration", found, rooms=found.rooms.count())
    return f"{NAME}: {counted(found.rooms.count(), 'room')}"


def _rooms(buildings: BuildingList) -> list[Room]:
    rooms: list[Room] = []
    for hall, floors, capacities in _HALLS:
        for floor in floors:
            for k, capacity in enumerate(capacities, start=1):
                room = Room(
                    buildings=buildings,
                    hall=hall,
                    floor=floor,
                    name=f"{floor}{k:02d}",
                    capacity=capacity,
                    suite=_suite(hall, floor, k),
                    meets=["Accessible"] if floor in ("G", "1") and k <= 4 else [],
                    position=len(rooms),
                )
                if k == len(capacities):
                    room.state, room.note = RoomState.KEPT, "Kept for the RA"
                rooms.append(room)
    rooms[5].state, rooms[5].note = RoomState.OFFLINE, "Water damage"
    return rooms


def _suite(hall: str, floor: str, number: int) -> str:
    is_shared = (hall, floor) == _APARTMENTS[:2] and number <= _APARTMENTS[2]
    return f"Apartment {(number + 1) // 2}" if is_shared else ""
