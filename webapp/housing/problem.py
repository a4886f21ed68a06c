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
from webapp.housing.stays import ALWAYS, Stay, stays_in, successive_groups

# Names of the columns that rules refer to. Conflicts show some of these to staff in words; needs
# use their own names, and "!" keeps other names distinct from these.
DESIGNATED, HALL, KIND, NEED = "who may live there", "!hall", "!kind", ""
ORDER = "!order"


@dataclass(slots=True)
class PlacementProblem:
    """The engine's input for a placement, with the keys that lead back to rows.

    ``survey`` holds the students who have not left, in the order of ``students``; ``rooms`` the
    rooms that are open and free, in the order of ``room_keys``. A room that people use one after
    the other has several positions with the same key: see :class:`_Following`. ``apart`` are the
    pairs of positions to keep apart, ``stays`` the days of students with dates of their own, by
    number.
    """

    scores: Scores
    survey: Survey
    students: list[Student]
    rooms: Rooms
    room_keys: list[int]
    rules: RoomRules
    previous: NDArray[np.int64]
    apart: tuple[tuple[int, int], ...]
    stays: Mapping[int, Stay]

    def roommates(self) -> list[tuple[int, int]]:
        """Return the pairs of positions of students who now share a room on at least one day."""
        members: dict[int, list[int]] = defaultdict(list)
        for k, room in enumerate(self.previous.tolist()):
            if room >= 0:
                members[self.room_keys[room]].append(k)
        days = [self.stays.get(student.number, ALWAYS) for student in self.students]
        return [
            (a, b)
            for people in members.values()
            for i, a in enumerate(people)
            for b in people[i + 1 :]
            if days[a].overlaps(days[b])
        ]


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
    stays = stays_in(placement)
    following = _Following(places.values(), stays, {room.pk for room in open_rooms})
    requests = CohortWishes(placement.cohort_id).requests
    survey = scores.survey.take(np.array(kept, dtype=np.int64))
    in_use = Counter(place.room_id for place in places.values()) if keeps_beds else Counter()
    designations = _designations(open_rooms, rules, survey)
    survey = _with_columns(survey, designations)
    if keeps_beds:
        rules = replace(rules, order=())
    index = {student.number: k for k, student in enumerate(students)}
    apart = _pairs_of(forbidden_numbers(placement), index)
    position = following.positions(open_rooms)
    return PlacementProblem(
        scores=scores,
        survey=survey,
        students=students,
        rooms=_rooms(open_rooms, students, rules, in_use, designations, held, following),
        room_keys=[room.pk for room in open_rooms] + following.keys,
        rules=_rules(
            placement,
            rules,
            index,
            [*apart, *_pairs_of(following.kept_out(apart, students), index)],
            _needs(rules, students),
            following.outside(requests),
            designations,
            _assigned(students, places, position, set(pinned) | following.numbers, chosen or {}),
        ),
        previous=np.array(
            [_room_position(places.get(s.pk), position) for s in students], dtype=np.int64
        ),
        apart=tuple(apart),
        stays=stays,
    )


class _Following:
    """People who use a bed one after the other; they keep their rooms in a computation.

    The engine knows no days. A room with such people is one room with one person in every bed in
    use, and for the others a full room of their own, so that no room has more people than beds.

    Attributes
    ----------
    keys : keys of the rooms of the others, in the order of their positions.
    sizes : people of each of them.
    numbers : everybody in a room that people use one after the other.
    """

    def __init__(
        self, places: Collection[Place], stays: Mapping[int, Stay], open_keys: Collection[int]
    ) -> None:
        self.keys: list[int] = []
        self.sizes: list[int] = []
        self.numbers: set[int] = set()
        self._part: dict[int, int] = {}  # of the others: index of their room among `keys`
        self._first: dict[int, list[int]] = {}  # the people of the first group, by room
        self._room: dict[int, int] = {}
        beds: dict[int, dict[int, tuple[int, Stay]]] = defaultdict(dict)
        for place in places:
            if place.room_id in open_keys and place.room_id is not None and place.bed is not None:
                stay = stays.get(place.number, ALWAYS)
                beds[place.room_id][place.number] = (place.bed, stay)
        for room, people in beds.items():
            if len({bed for bed, _ in people.values()}) == len(people):
                continue
            first, *others = successive_groups(people)
            self.numbers |= set(people)
            self._first[room] = first
            self._room |= dict.fromkeys(people, room)
            for group in others:
                self._part |= dict.fromkeys(group, len(self.keys))
                self.keys.append(room)
                self.sizes.append(len(group))

    def n_others(self, room: int) -> int:
        """Return how many people of a room are outside its first group."""
        return sum(size for key, size in zip(self.keys, self.sizes, strict=True) if key == room)

    def positions(self, rooms: Sequence[Room]) -> "_Positions":
        """Return the positions of rooms in the problem."""
        numbers = {number: len(rooms) + part for number, part in self._part.items()}
        return _Positions({room.pk: k for k, room in enumerate(rooms)}, numbers)

    def outside(self, requests: RequestPairs) -> RequestPairs:
        """Return the requests without those of two people of one room of this kind."""

        def kept(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
            room = self._room
            return [(a, b) for a, b in pairs if a not in room or room[a] != room.get(b)]

        return replace(requests, mutual=kept(requests.mutual), one_sided=kept(requests.one_sided))

    def kept_out(
        self, apart: Sequence[tuple[int, int]], students: Sequence[Student]
    ) -> set[frozenset[int]]:
        """Return pairs that keep a student out of a room for the sake of people who follow there.

        Somebody to be kept apart from one of the others is kept apart from the first group.
        """
        found = set()
        for pair in apart:
            a, b = (students[k].number for k in pair)
            for one, other in ((a, b), (b, a)):
                if one in self._part and other not in self.numbers:
                    found.add(frozenset((self._first[self._room[one]][0], other)))
        return found


@dataclass(frozen=True, slots=True)
class _Positions:
    """Positions of rooms in the problem: by key, and of students with a position of their own."""

    rooms: Mapping[int, int]
    numbers: Mapping[int, int]

    def of(self, number: int, room: int) -> int | None:
        """Return the position of a student's room; None if it is not open."""
        return self.numbers.get(number, self.rooms.get(room))


def _pairs_of(pairs: Collection[frozenset[int]], index: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return pairs of numbers as pairs of positions, without students who left."""
    named = sorted(tuple(sorted(pair)) for pair in pairs)
    return [(index[a], index[b]) for a, b in named if a in index and b in index]


def _room_position(place: Place | None, position: _Positions) -> int:
    if place is None or place.room_id is None:
        return -1
    found = position.of(place.number, place.room_id)
    return -1 if found is None else found


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
    following: _Following,
) -> Rooms:
    """Return the rooms with their columns; beds ``in_use`` now are not extra beds.

    Beds that are ``held`` for an offer of a waiting list are left out. The rooms of people who
    follow others come last.
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
    n_held = np.array([len(held.get(room.pk, ())) for room in rooms], dtype=np.int64)
    largest = np.array([room.max_capacity for room in rooms], dtype=np.int64) - n_held
    used = [in_use.get(room.pk, 0) - following.n_others(room.pk) for room in rooms]
    normal = [min(max(r.capacity, n), r.max_capacity) for r, n in zip(rooms, used, strict=True)]
    capacities = np.array(normal, dtype=np.int64) - n_held
    at = {room.pk: k for k, room in enumerate(rooms)}
    origins = [*range(len(rooms)), *(at[key] for key in following.keys)]
    return Rooms(
        tuple(str(room.pk) for room in rooms)
        + tuple(f"{key}, {k}" for k, key in enumerate(following.keys)),
        np.concatenate([capacities, np.array(following.sizes, dtype=np.int64)]),
        {name: tuple(column[k] for k in origins) for name, column in attributes.items()},
        np.concatenate([largest, np.array(following.sizes, dtype=np.int64)]),
    )


def _assigned(
    students: list[Student],
    places: Mapping[int, Place],
    position: _Positions,
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
        where = None if room is None else position.of(student.number, room)
        if where is not None:
            found.append((k, where))
    return found


def _needs(rules: PlacementRules, students: Sequence[Student]) -> list[Need]:
    return [
        Need(k, NEED + need)
        for k, student in enumerate(students)
        for need in needs_of_student(student, rules.needs)
    ]


def _rules(
    placement: Placement,
    rules: PlacementRules,
    index: Mapping[int, int],
    apart: Sequence[tuple[int, int]],
    needs: Sequence[Need],
    requests: RequestPairs,
    designations: Mapping[str, Designation],
    assigned: Sequence[tuple[int, int]],
) -> RoomRules:
    return RoomRules(
        forbids=tuple(apart),
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
