"""A placement as input of the engine: survey, rooms, rules, and students with a fixed room."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine import Designation, Need, Preference, Request, RoomRules, Rooms, Survey
from webapp.cohorts.models import Student
from webapp.housing.models import Place, Placement, Room
from webapp.housing.request_graph import RequestPairs
from webapp.housing.rules import MUST, NO, PlacementRules, needs_of_student, place_in_order
from webapp.housing.scores import Scores
from webapp.housing.selectors.waiting import held_beds
from webapp.housing.selectors.wishes import CohortWishes
from webapp.housing.services.checks import forbidden_numbers, rooms_taken_elsewhere

# Names of the columns that rules refer to. Conflicts show some of these to staff in words; needs
# use their own names, and "!" keeps other names distinct from these.
DESIGNATED, HALL, KIND, NEED = "who may live there", "!hall", "!kind", ""
ORDER = "!order"


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
    *,
    keeps_beds: bool = False,
) -> PlacementProblem:
    """Read a placement for the engine.

    Parameters
    ----------
    pinned : collection of numbers on screen
        Students who keep their room, in addition to locked students.
    chosen : mapping of numbers on screen to keys of rooms that staff chose.
    rules : those of the placement by default.
    keeps_beds : bool
        Whether nobody moves only to leave an extra bed or a later hall, as in late changes.
    """
    rules = rules or PlacementRules.from_json(placement.rules)
    places = {place.student_id: place for place in placement.places.all()}
    gone = {key for key, place in places.items() if place.has_left}
    scores = Scores(placement)
    everybody = list(placement.cohort.students.all())
    kept = [k for k, student in enumerate(everybody) if student.pk not in gone]
    students = [everybody[k] for k in kept]
    taken = rooms_taken_elsewhere(placement)
    held = held_beds(placement) if placement.is_published else {}
    open_rooms = [
        room
        for room in placement.buildings.rooms.all()
        if room.is_open and room.pk not in taken and room.capacity > len(held.get(room.pk, ()))
    ]
    position = {room.pk: k for k, room in enumerate(open_rooms)}
    requests = CohortWishes(placement.cohort_id).requests
    survey = scores.survey.take(np.array(kept, dtype=np.int64))
    in_use = Counter(place.room_id for place in places.values()) if keeps_beds else Counter()
    shared = _beds_used_twice(places.values())
    designations = _designations(open_rooms, rules, survey)
    survey = _with_columns(survey, designations)
    if keeps_beds:
        rules = replace(rules, order=())
    return PlacementProblem(
        scores=scores,
        survey=survey,
        students=students,
        rooms=_rooms(open_rooms, students, rules, in_use, designations, held, shared),
        room_keys=[room.pk for room in open_rooms],
        rules=_rules(
            placement,
            rules,
            students,
            requests,
            designations,
            _assigned(
                students, places, position, set(pinned) | _following(places, shared), chosen or {}
            ),
        ),
        previous=np.array(
            [_room_position(places.get(s.pk), position) for s in students], dtype=np.int64
        ),
    )


def _beds_used_twice(places: Collection[Place]) -> dict[int, int]:
    """Return how many people of each room use a bed after somebody else, by key of the room.

    The engine knows no days. Where people follow each other, it keeps them there and counts a bed
    for each of them, so that the other beds are left.
    """
    beds: dict[int, list[int | None]] = defaultdict(list)
    for place in places:
        if place.room_id is not None:
            beds[place.room_id].append(place.bed)
    found = {room: len(taken) - len(set(taken)) for room, taken in beds.items()}
    return {room: extra for room, extra in found.items() if extra}


def _following(places: Mapping[int, Place], shared: Mapping[int, int]) -> set[int]:
    """Return the numbers of the people in rooms where people follow each other."""
    return {place.number for place in places.values() if place.room_id in shared}


def _room_position(place: Place | None, position: Mapping[int, int]) -> int:
    return -1 if place is None or place.room_id is None else position.get(place.room_id, -1)


def _designations(
    rooms: Sequence[Room], rules: PlacementRules, survey: Survey
) -> dict[str, Designation]:
    """Return the designations of the rooms by their column, without case; "" for the rules' own.

    A column that the cohort does not have is added blank: nobody may live in such rooms.
    """
    known = {name.casefold(): name for name in survey.attributes}
    named = dict.fromkeys(column for room in rooms for column in room.admits)
    found = {}
    for column in named:
        own = known.get(column, column) if column else rules.designation
        if own:
            found[column] = Designation(f"{DESIGNATED}: {column}" if column else DESIGNATED, own)
    return found


def _with_columns(survey: Survey, designations: Mapping[str, Designation]) -> Survey:
    """Return the survey with a blank column for each designation that no column answers."""
    missing = {rule.student_column for rule in designations.values()} - set(survey.attributes)
    if not missing:
        return survey
    blank = dict.fromkeys(sorted(missing), ("",) * survey.n_students)
    return replace(survey, attributes={**survey.attributes, **blank})


def _rooms(
    rooms: list[Room],
    students: list[Student],
    rules: PlacementRules,
    in_use: Mapping[int | None, int],
    designations: Mapping[str, Designation],
    held: Mapping[int, Sized],
    shared: Mapping[int, int],
) -> Rooms:
    """Return the rooms with their columns; beds ``in_use`` now are not extra beds.

    Beds that are ``held`` for an offer of a waiting list are left out; ``shared`` are counts of
    beds to add for people who follow others.
    """
    needs = {need for s in students for need in needs_of_student(s, rules.needs)}
    met, order = [room.met_needs for room in rooms], dict(rules.order)
    attributes = {
        **{
            rule.room_column: tuple("|".join(room.admits.get(column, ())) for room in rooms)
            for column, rule in designations.items()
        },
        ORDER: tuple(str(place_in_order(room, order) or "") for room in rooms),
        HALL: tuple(room.hall for room in rooms),
        KIND: tuple(room.kind for room in rooms),
    } | {
        NEED + need: tuple("yes" if need.casefold() in known else "no" for known in met)
        for need in needs
    }
    n_more = np.array(
        [shared.get(room.pk, 0) - len(held.get(room.pk, ())) for room in rooms], dtype=np.int64
    )
    largest = np.array([room.max_capacity for room in rooms], dtype=np.int64) + n_more
    used = [in_use.get(room.pk, 0) - shared.get(room.pk, 0) for room in rooms]
    normal = [min(max(r.capacity, n), r.max_capacity) for r, n in zip(rooms, used, strict=True)]
    capacities = np.array(normal, dtype=np.int64) + n_more
    return Rooms(tuple(str(room.pk) for room in rooms), capacities, attributes, largest)


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
    designations: Mapping[str, Designation],
    assigned: Sequence[tuple[int, int]],
) -> RoomRules:
    index = {student.number: k for k, student in enumerate(students)}
    forbids = [tuple(sorted(pair)) for pair in forbidden_numbers(placement)]
    needs = [
        Need(k, NEED + need)
        for k, student in enumerate(students)
        for need in needs_of_student(student, rules.needs)
    ]
    return RoomRules(
        forbids=tuple((index[a], index[b]) for a, b in forbids if a in index and b in index),
        same=rules.same,
        assigned=tuple(assigned),
        designations=tuple(designations.values()),
        order=tuple((ORDER, str(k)) for k in sorted({number for _, number in rules.order})),
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
