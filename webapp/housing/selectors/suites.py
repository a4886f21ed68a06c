"""Suites: rooms of one hall with the same suite name, and the people of their other rooms."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from webapp.cohorts.models import Student
from webapp.housing.models import Placement, Room, SuiteKey


def suite_neighbours(rooms: Iterable[Room]) -> dict[int, tuple[int, ...]]:
    """Return the keys of the other rooms of the suite, by the key of each room that has some."""
    suites: dict[SuiteKey, list[int]] = defaultdict(list)
    for room in rooms:
        if room.suite_key is not None:
            suites[room.suite_key].append(room.pk)
    return {
        key: tuple(other for other in keys if other != key)
        for keys in suites.values()
        for key in keys
        if len(keys) > 1
    }


def rooms_of_suite(room: Room) -> list[Room]:
    """Return all rooms of the suite of a room, in the order of the list; none without a suite."""
    if room.suite_key is None:
        return []
    others = Room.objects.filter(buildings=room.buildings_id, hall=room.hall).exclude(suite="")
    return [other for other in others if other.suite_key == room.suite_key]


def neighbours_in_list(buildings_id: UUID, rooms: Iterable[Room]) -> dict[int, tuple[int, ...]]:
    """Return the keys of the other rooms of the suites of some rooms of one building list.

    ``rooms`` count as they are, saved or not. Without suites, nothing is read.
    """
    chosen = {room.pk: room for room in rooms}
    if not any(room.suite for room in chosen.values()):
        return {}
    saved = Room.objects.filter(buildings=buildings_id).exclude(suite="")
    everything = {room.pk: room for room in saved} | chosen
    found = suite_neighbours(everything.values())
    return {key: others for key, others in found.items() if key in chosen}


def suite_mates(
    placement: Placement, rooms: Iterable[Room], known: Mapping[int, Sequence[Student]]
) -> dict[int, list[Student]]:
    """Return the people of the other rooms of the suite of each of some rooms, by its key.

    ``known`` gives the people of some rooms by key; those of other rooms are read. Rooms in no
    suite, and suites of one room, are left out. Without suites, nothing is read.
    """
    neighbours = neighbours_in_list(placement.buildings_id, rooms)
    unknown = {key for others in neighbours.values() for key in others} - known.keys()
    people = {key: list(students) for key, students in known.items()}
    if unknown:
        places = placement.places.filter(room__in=unknown).select_related("student")
        for place in places.defer("student__answers").order_by("number"):
            people.setdefault(place.room_id or 0, []).append(place.student)
    return {
        key: [student for other in others for student in people.get(other, ())]
        for key, others in neighbours.items()
    }
