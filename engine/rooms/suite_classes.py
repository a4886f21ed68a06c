"""Choosing whom each suite is for, where all people of a suite agree in some columns.

A class is one combination of values of these columns. The choice is made before the rooms are
computed, so that the search of `place_in_rooms` needs no rules across rooms.
"""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csc_array

from engine.core.arguments import FloatArray, IntArray
from engine.core.progress import StopCallback, never_stop
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.clock import SearchClock
from engine.rooms.formulation import Attributes, RoomLayout, lay_out
from engine.rooms.programme import maximise

PROGRAMME_SECONDS = 5.0  # counted seconds to choose whom each suite is for
EXTRA_BED = 0.5  # cost of an extra bed, in people who get a bed
LATER_ROOM = 1e-3  # cost of one position later in the order of the rooms, in people
SPARE = 1e-9  # share with which a class counts for spare suites where it can have no bed
FREE, MIXED = -2, -1


def classes_of_suites(
    attributes: Attributes,
    rooms: Rooms,
    rules: RoomRules,
    suite_of: IntArray,
    class_of: IntArray,
    previous: IntArray | None = None,
    *,
    keeps_present: bool = False,
    should_stop: StopCallback = never_stop,
) -> IntArray:
    """Choose one class of students for each suite, so that as many as possible get a bed.

    Parameters
    ----------
    suite_of : ndarray, shape (r,), suite of each room, -1 for none.
    class_of : ndarray, shape (n,), class of each student: people of one suite are of one class.
    previous : ndarray, shape (n,), room of each student now; suites keep the class that lives there
        where that costs no bed.
    keeps_present : bool, whether suites with residents keep the class of most of them at any cost.

    Returns
    -------
    ndarray, shape (suites,)
        The class of each suite; -1 for suites to whose rooms students of several classes are
        assigned: they are left as they are.
    """
    n_suites, n_classes = int(suite_of.max(initial=-1)) + 1, int(class_of.max(initial=-1)) + 1
    fixed = _fixed_classes(rules, suite_of, class_of, n_suites)
    present = np.zeros((n_suites, n_classes))
    if previous is not None:
        housed = np.flatnonzero(np.asarray(previous) >= 0)
        where = suite_of[np.asarray(previous)[housed]]
        np.add.at(present, (where[where >= 0], class_of[housed[where >= 0]]), 1.0)
    if keeps_present:
        lived = (fixed == FREE) & (present.sum(axis=1) > 0)
        fixed[lived] = present.argmax(axis=1)[lived]
    layout = lay_out(len(class_of), attributes, rooms, rules, joins_assigned=False)
    counts = _Counts(layout, suite_of, class_of, rules, fixed)
    numbers = counts.solve(should_stop)
    chosen = np.maximum(fixed, MIXED)
    for suites, of_classes in zip(counts.alike, numbers, strict=True):
        if fixed[suites[0]] != FREE:
            continue
        slots = np.repeat(np.arange(n_classes), of_classes)
        rows, columns = linear_sum_assignment(
            present[np.ix_(np.array(suites), slots)], maximize=True
        )
        chosen[np.array(suites)[rows]] = slots[columns]
    return chosen


def _fixed_classes(
    rules: RoomRules, suite_of: IntArray, class_of: IntArray, n_suites: int
) -> IntArray:
    """Return the class of suites to which students are assigned, `MIXED` or `FREE`."""
    fixed = np.full(n_suites, FREE, dtype=np.int64)
    for student, room in rules.assigned:
        suite = suite_of[room]
        if suite >= 0:
            own = class_of[student]
            fixed[suite] = own if fixed[suite] in (FREE, own) else MIXED
    return fixed


class _Counts:
    """Integer programme of how many suites of each kind every class gets.

    It counts beds, designations and needs of types of people, and leaves groups to the search.
    ``alike`` are the suites by kind: the same kinds of rooms and the same fixed class.
    """

    def __init__(
        self,
        layout: RoomLayout,
        suite_of: IntArray,
        class_of: IntArray,
        rules: RoomRules,
        fixed: IntArray,
    ) -> None:
        self._layout, self._fixed = layout, fixed
        self._people = np.bincount(class_of).astype(np.float64)
        self.alike = self._kinds(suite_of)
        self._places = self._places_of(suite_of)
        self._programme = _Programme()
        self._taken = self._numbers_of_suites()
        self._seated = self._seats(class_of, rules)
        for place in range(len(self._places)):
            self._limit_beds(place)

    def _kinds(self, suite_of: IntArray) -> list[list[int]]:
        alike: dict[tuple[int, ...], list[int]] = {}
        for suite in range(len(self._fixed)):
            kinds = np.sort(self._layout.kind_of[suite_of == suite])
            alike.setdefault((int(self._fixed[suite]), *kinds.tolist()), []).append(suite)
        return list(alike.values())

    def _places_of(self, suite_of: IntArray) -> list[tuple[int, int, int]]:
        """Return (kind of suite or -1, kind of room, rooms of it in one suite or in all)."""
        sets = [(-1, np.flatnonzero(suite_of < 0))]
        sets += [
            (group, np.flatnonzero(suite_of == suites[0]))
            for group, suites in enumerate(self.alike)
        ]
        places = []
        for group, rooms in sets:
            kinds = self._layout.kind_of[rooms]
            found, counts = np.unique(kinds[kinds >= 0], return_counts=True)
            places += [(group, int(k), int(c)) for k, c in zip(found, counts, strict=True)]
        return places

    def _numbers_of_suites(self) -> dict[tuple[int, int], int]:
        """Add the number of suites of each kind that each class gets; return the variables."""
        taken: dict[tuple[int, int], int] = {}
        for group, suites in enumerate(self.alike):
            own = int(self._fixed[suites[0]])
            for one in range(len(self._people)):
                if own in (FREE, MIXED, one):
                    variable = self._programme.variable(0.0, len(suites), is_integer=True)
                    taken[group, one] = variable
            if own != MIXED:  # a suite that is left as it is takes every class
                variables = [v for (g, _), v in taken.items() if g == group]
                self._programme.row(dict.fromkeys(variables, 1.0), len(suites))
        return taken

    def _seats(self, class_of: IntArray, rules: RoomRules) -> dict[tuple[int, int], list[int]]:
        """Add the people of each type in each place; return the variables by place and class."""
        with_needs = {need.student for need in rules.needs}
        types: dict[tuple[int, bool, bytes], int] = defaultdict(int)
        for student, atom in enumerate(self._layout.atom_of.tolist()):
            may = self._layout.choices[:, atom].tobytes()
            types[int(class_of[student]), student in with_needs, may] += 1
        seated: dict[tuple[int, int], list[int]] = defaultdict(list)
        for (one, needs, choices), people in types.items():
            allowed = np.frombuffer(choices, dtype=np.bool_)
            variables = []
            for place, (group, kind, _) in enumerate(self._places):
                if allowed[kind] and (group < 0 or (group, one) in self._taken):
                    rank = float(self._layout.rank[self._layout.view[kind]])
                    variables.append(
                        self._programme.variable(1.0 + needs - LATER_ROOM * rank, people)
                    )
                    seated[place, one].append(variables[-1])
            self._programme.row(dict.fromkeys(variables, 1.0), people)
        return seated

    def _limit_beds(self, place: int) -> None:
        """Limit the people of a place to its beds; in suites, to those of their own class."""
        group, kind, count = self._places[place]
        normal = count * float(self._layout.normal[kind])
        extra = count * float(self._layout.capacity[kind]) - normal
        classes = range(len(self._people))
        for chosen in [[one] for one in classes] if group >= 0 else [list(classes)]:
            people = [v for one in chosen for v in self._seated.get((place, one), ())]
            if not people:
                continue
            used = self._programme.variable(-EXTRA_BED, np.inf)
            beds = {**dict.fromkeys(people, 1.0), used: -1.0}
            if group < 0:
                self._programme.row(beds, normal)
                self._programme.row({used: 1.0}, extra)
            else:
                suites = self._taken[group, chosen[0]]
                self._programme.row({**beds, suites: -normal}, 0.0)
                self._programme.row({used: 1.0, suites: -extra}, 0.0)

    def solve(self, should_stop: StopCallback) -> list[IntArray]:
        """Return how many suites of each kind every class gets, shape (classes,) each."""
        values = self._programme.solve(SearchClock(None, should_stop, 2.0 * PROGRAMME_SECONDS))
        found = []
        for group, suites in enumerate(self.alike):
            numbers = np.zeros(len(self._people), dtype=np.int64)
            waiting = self._people * SPARE
            for one in range(len(numbers)):
                if (group, one) in self._taken:
                    numbers[one] = round(values[self._taken[group, one]])
                places = [k for k, (own, *_) in enumerate(self._places) if own == group]
                if any((place, one) in self._seated for place in places):
                    waiting[one] = self._people[one]
            while numbers.sum() < len(suites):  # spare suites go to classes by their people
                numbers[np.argmax(waiting / (numbers + 1.0))] += 1
            found.append(numbers)
        return found


class _Programme:
    """Integer programme that is filled variable by variable and row by row; it maximises."""

    def __init__(self) -> None:
        self._worth: list[float] = []
        self._most: list[float] = []
        self._is_integer: list[bool] = []
        self._entries: list[tuple[int, int, float]] = []
        self._limits: list[float] = []

    def variable(self, worth: float, most: float, *, is_integer: bool = False) -> int:
        """Add a variable from 0 to a limit; return its number."""
        self._worth.append(worth)
        self._most.append(most)
        self._is_integer.append(is_integer)
        return len(self._worth) - 1

    def row(self, entries: Mapping[int, float], most: float) -> None:
        """Add a row: a sum of variables that is at most a limit."""
        self._entries += [(len(self._limits), k, value) for k, value in entries.items()]
        self._limits.append(most)

    def solve(self, clock: SearchClock) -> FloatArray:
        """Return the values of the best solution found; zeros if there was no time for any."""
        rows, columns, data = (np.array(x) for x in zip(*self._entries, strict=True))
        shape = (len(self._limits), len(self._worth))
        found = maximise(
            np.array(self._worth),
            csc_array(coo_array((data, (rows, columns)), shape=shape)),
            (np.full(shape[0], -np.inf), np.array(self._limits, dtype=np.float64)),
            (np.zeros(shape[1]), np.array(self._most, dtype=np.float64)),
            np.array(self._is_integer, dtype=np.bool_),
            clock,
            PROGRAMME_SECONDS,
            {"mip_rel_gap": 1e-4},
        )
        return np.zeros(shape[1]) if found.values is None else found.values
