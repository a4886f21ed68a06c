"""A placement as input of the engine: survey, rooms, rules, and students with a fixed room."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine import Designation, Need, Preference, Request, RoomRules, Rooms, Survey
from webapp.cohorts.models import Student
from webapp.housing.models import Place, Placement, Room
from webapp.housing.request_graph import RequestPairs
from webapp.housing.rules import MUST, NO, PlacementRules, needs_of_student
from webapp.housing.scores import Scores
from webapp.housing.selectors.wishes import CohortWishes
from webapp.housing.services.checks import forbidden_numbers, rooms_taken_elsewhere

# Names of the columns that rules refer to. Conflicts show some of these to staff in words; needs
# use their own names, and "!" keeps other names distinct from these.
DESIGNATED, HALL, KIND, NEED = "who may live there", "!hall", "!kind", ""


@dataclass(slots=True)
class PlacementProblem:
    """The engine's input for a placement, with the keys that lead back to rows.

    ``survey`` holds the students who have not left, in the order of ``students``; ``rooms`` the
    rooms that are open and free, in the order of ``room_keys``.
    """

    scores: Scores
    survey: Survey
    students: list[Student]
    rooms: Rooms
    room_keys: list[int]
    rules: RoomRules
    previous: NDArray[np.int64]


def placement_problem(
    placement: Placement,
    pinned: Collection[int] = (),
    chosen: Mapping[int, int] | None = None,
    rules: PlacementRules | None = None,
) -> PlacementProblem:
    """Read a placement for the engine.

    Parameters
    ----------
    pinned : collection of numbers on screen
        Students who keep their room, in addition to locked students.
    chosen : mapping of numbers on screen to keys of rooms that staff chose.
    rules : those of the placement by default.
    """
    rules = rules or PlacementRules.from_json(placement.rules)
    places = {place.student_id: place for place in placement.places.all()}
    gone = {key for key, place in places.items() if place.has_left}
    scores = Scores(placement)
    everybody = list(placement.cohort.students.all())
    kept = [k for k, student in enumerate(everybody) if student.pk not in gone]
    students = [everybody[k] for k in kept]
    taken = rooms_taken_elsewhere(placement)
    open_rooms = [
        room for room in placement.buildings.rooms.all() if room.is_open and room.pk not in taken
    ]
    position = {room.pk: k for k, room in enumerate(open_rooms)}
    requests = CohortWishes(placement.cohort_id).requests
    return PlacementProblem(
        scores=scores,
        survey=scores.survey.take(np.array(kept, dtype=np.int64)),
        students=students,
        rooms=_rooms(open_rooms, students, rules),
        room_keys=[room.pk for room in open_rooms],
        rules=_rules(
            placement,
            rules,
            students,
            requests,
            _assigned(students, places, position, set(pinned), chosen or {}),
        ),
        previous=np.array(
            [_room_position(places.get(s.pk), position) for s in students], dtype=np.int64
        ),
    )


def _room_position(place: Place | None, position: Mapping[int, int]) -> int:
    return -1 if place is None or place.room_id is None else position.get(place.room_id, -1)


def _rooms(rooms: list[Room], students: list[Student], rules: PlacementRules) -> Rooms:
    needs = {need for s in students for need in needs_of_student(s, rules.needs)}
    met = [room.met_needs for room in rooms]
    attributes = {
        DESIGNATED: tuple(room.designation for room in rooms),
        HALL: tuple(room.hall for room in rooms),
        KIND: tuple(room.kind for room in rooms),
    } | {
        NEED + need: tuple("yes" if need.casefold() in known else "no" for known in met)
        for need in needs
    }
    capacities = np.array([room.capacity for room in rooms], dtype=np.int64)
    return Rooms(tuple(str(room.pk) for room in rooms), capacities, attributes)


def _assigned(
    students: list[Student],
    places: Mapping[int, Place],
    position: Mapping[int, int],
    pinned: set[int],
    chosen: Mapping[int, int],
) -> list[tuple[int, int]]:
    """Return the fixed (student, room) pairs: locked, staying, or placed there by staff."""
    found = []
    for k, student in enumerate(students):
        place = places.get(student.pk)
        room = chosen.get(student.number)
        if place is not None and (place.is_locked or student.number in pinned):
            room = place.room_id
        if room is not None and room in position:
            found.append((k, position[room]))
    return found


def _rules(
    placement: Placement,
    rules: PlacementRules,
    students: list[Student],
    requests: RequestPairs,
    assigned: Sequence[tuple[int, int]],
) -> RoomRules:
    index = {student.number: k for k, student in enumerate(students)}
    forbids = [tuple(sorted(pair)) for pair in forbidden_numbers(placement)]
    needs = [
        Need(k, NEED + need)
        for k, student in enumerate(students)
        for need in needs_of_student(student, rules.needs)
    ]
    designations = (Designation(DESIGNATED, rules.designation),) if rules.designation else ()
    return RoomRules(
        forbids=tuple((index[a], index[b]) for a, b in forbids if a in index and b in index),
        same=rules.same,
        assigned=tuple(assigned),
        designations=designations,
        needs=tuple(needs),
        requests=tuple(_requests(rules, requests, index)),
        preferences=tuple(_preferences(placement, rules, index)),
    )


def _requests(
    rules: PlacementRules, requests: RequestPairs, index: Mapping[int, int]
) -> list[Request]:
    """Return the engine's requests. A mutual request counts once, as one wish."""
    found = []
    for pairs, counts in ((requests.mutual, rules.mutual), (requests.one_sided, rules.one_sided)):
        if counts == NO:
            continue
        found += [
            Request(index[a], index[b], is_must=counts == MUST, weight=rules.wish)
            for a, b in pairs
            if a in index and b in index
        ]
    return found


def _preferences(
    placement: Placement, rules: PlacementRules, index: Mapping[int, int]
) -> list[Preference]:
    if not rules.preference:
        return []
    chosen: dict[int, list[str]] = defaultdict(list)
    for number, wanted in placement.cohort.preferences.values_list("student__number", "wanted"):
        if number in index:
            chosen[index[number]].append(wanted)
    return [
        Preference(student, column, tuple(values), rules.preference)
        for student, values in chosen.items()
        for column in (HALL, KIND)
    ]
