"""Plan of beds: how many people can have a bed, and in which rooms, whoever they live with.

People are counted by type and rooms by class, so that 2,500 students make an integer programme of
some hundred numbers. The plan ignores only pairs who never share a room within their own group: no
placement houses more people than the plan, and without such pairs the plan can be seated as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import coo_array, csc_array

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.rooms.clock import SearchClock
from engine.rooms.programme import maximise, row_prices

WORK = 5.0  # counted seconds for one programme
ROUNDING = 1e-6  # tolerance on a bound that is a whole number

Way = tuple[int, ...]  # people of each atom that has a place in a room, the largest first
AtLeast = tuple[FloatArray, int]  # coefficients of the columns, and the least value of their sum


@dataclass(frozen=True, slots=True, eq=False)
class BedDemand:
    """Atoms that need beds, and the available kinds of rooms.

    Parameters
    ----------
    sizes : ndarray, shape (n,), people of each atom.
    key : ndarray, shape (n,), atoms of different keys never share a room.
    is_alone : ndarray, shape (n,), atoms that share with no other.
    with_needs : ndarray, shape (n,), people with needs in each atom.
    choices : ndarray, shape (T, n), whether an atom fits in rooms of a kind and may live there.
    capacity, count : ndarray, shape (T,), of the kinds.
    must_fill : bool, whether a room in use has no free bed.
    normal : ndarray, shape (T,), optional, beds without extra beds, which are used last.
    rank : ndarray, shape (T,), optional, positions of the kinds in the order in which rooms fill.
    """

    sizes: IntArray
    key: IntArray
    is_alone: BoolArray
    with_needs: IntArray
    choices: BoolArray
    capacity: IntArray
    count: IntArray
    must_fill: bool
    normal: IntArray | None = None
    rank: IntArray | None = None


@dataclass(frozen=True, slots=True)
class Berth:
    """Rooms of a class that are used by the same pattern.

    Parameters
    ----------
    rooms_of : int, the class.
    key : int, the key of the atoms that live there; -1 for an atom that lives alone.
    way : tuple of int, the pattern: people of each atom that has a place there.
    count : int, number of rooms.
    """

    rooms_of: int
    key: int
    way: Way
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class BedPlan:
    """Upper bound on the people who can have a bed, and a plan that houses as many as it can.

    Parameters
    ----------
    most_with_needs : int, largest number of people with needs who can have a bed.
    most_people : int, largest number of people who can have a bed if ``most_with_needs`` do.
    type_of : ndarray, shape (n,), type of each atom.
    class_of : ndarray, shape (T,), class of each kind of room, -1 for kinds without rooms.
    seats : ndarray, shape (types, classes), atoms of a type in rooms of a class.
    berths : tuple of Berth
    least_levels : tuple of int
        Fewest people in extra beds, and then the least sum of the positions of all people in the
        order of the rooms, of any placement of as many people.
    limits : tuple of (coefficients of the columns, least sum), what an equally good plan keeps.
    """

    most_with_needs: int
    most_people: int
    type_of: IntArray
    class_of: IntArray
    seats: IntArray
    berths: tuple[Berth, ...]
    least_levels: tuple[int, int] = (0, 0)
    limits: tuple[AtLeast, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Current placement by type and class, which a plan changes as little as possible.

    Parameters
    ----------
    seats : ndarray, shape (types, classes), atoms of a type in rooms of a class.
    rooms : mapping of (class, key) to the number of rooms that atoms of the key live in.
    """

    seats: IntArray
    rooms: Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class Shortage:
    """People who compete for too few beds, and the kinds of rooms that they may use."""

    atoms: IntArray
    kinds: IntArray


class BedPlanner:
    """Planner of beds for one demand."""

    def __init__(self, demand: BedDemand, clock: SearchClock) -> None:
        self._model, self._clock = _Model(demand), clock

    def most(self) -> BedPlan:
        """Plan beds for as many people as possible: first for people with needs, then for all.

        A person with a need is never left out for people without needs, however many.
        """
        model = self._model
        best = model.solve(model.people, (), self._clock)
        most_with_needs = int(model.with_needs @ model.amount)
        if best.most < int(model.size @ model.amount) and most_with_needs:
            needs = model.solve(model.needs, (), self._clock)
            people = model.solve(model.people, ((model.needs, needs.reached),), self._clock)
            best = people if len(people.values) else replace(needs, most=people.most)
            most_with_needs = needs.most
        plan = model.plan(best.values, most_with_needs, best.most)
        return self._with_levels(plan, best) if model.levels and len(best.values) else plan

    def _with_levels(self, plan: BedPlan, best: "_Solved") -> BedPlan:
        """Return the plan of as many people with the fewest extra beds, then the earliest rooms.

        A limit is what the plan before reached, so that every plan found is as good as it.
        """
        model = self._model
        reached = [
            (worth, round(float(worth @ best.values))) for worth in (model.needs, model.people)
        ]
        values, least = best.values, [0, 0]
        for place, cost in model.levels.items():
            found = model.solve(-cost, reached, self._clock)
            if len(found.values):
                values = found.values
            least[place] = max(-found.most, 0)
            reached.append((-cost, -round(float(cost @ values))))
        again = model.plan(values, plan.most_with_needs, plan.most_people)
        return replace(again, least_levels=(least[0], least[1]), limits=tuple(reached))

    def nearest(self, plan: BedPlan, held: Held) -> BedPlan:
        """Return the equally large plan that changes least, or the given plan if none is found."""
        near = self._model.stay_near(plan, held)
        values = near.solve(self._clock)
        if not len(values):
            return plan
        again = self._model.plan(values, plan.most_with_needs, plan.most_people)
        return replace(again, least_levels=plan.least_levels, limits=plan.limits)

    def shortage(self) -> Shortage:
        """Return the types that compete for too few beds: one more of them would find none.

        Uses the prices of the relaxation; if rounding alone is the cause, everybody is returned.
        """
        types, classes = self._model.shortage()
        kinds = np.append(classes, False)[self._model.class_of]
        return Shortage(np.flatnonzero(types[self._model.type_of]), np.flatnonzero(kinds))


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """Bound on a programme's value, value of the solution, and solution (empty if not found)."""

    most: int
    reached: int
    values: IntArray


@dataclass(slots=True)
class _Rows:
    """Sparse matrix that grows row by row, with limits on its rows."""

    row: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(self, low: float, high: float) -> int:
        """Add a row and return its number."""
        self.low.append(low)
        self.high.append(high)
        return len(self.low) - 1

    def put(self, row: int, column: int, value: float) -> None:
        """Add one entry to the matrix."""
        self.row.append(row)
        self.column.append(column)
        self.value.append(value)

    def matrix(self, n_columns: int) -> csc_array:
        """Return the rows as a sparse matrix with a given number of columns."""
        entries = (self.value, (self.row, self.column))
        return csc_array(coo_array(entries, shape=(len(self.low), n_columns)))

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper limits of the rows."""
        return np.array(self.low, dtype=np.float64), np.array(self.high, dtype=np.float64)


class _Model:
    """Programme over atoms of a type in rooms of a class (seats) and rooms by pattern (berths).

    The columns are seats, then berths. A berth of a key holds atoms of sizes that fit in a room
    together. A seat takes one of these places; an atom that lives alone takes a whole room.
    """

    def __init__(self, demand: BedDemand) -> None:
        self._demand = demand
        table = np.column_stack(
            (demand.sizes, demand.key, demand.is_alone, demand.with_needs, demand.choices.T)
        ).astype(np.int64)
        types, type_of, self.amount = np.unique(
            table, axis=0, return_inverse=True, return_counts=True
        )
        self.type_of = type_of.ravel().astype(np.int64)
        self.size, self.with_needs = types[:, 0], types[:, 3]
        self._key, self._is_alone = types[:, 1], types[:, 2] == 1
        self.class_of, self._beds, self._normal, self._rank, self._count = self._classes(
            types[:, 4:].T
        )
        may = np.zeros((len(types), len(self._beds)), dtype=bool)
        is_open = self.class_of >= 0
        may[:, self.class_of[is_open]] = types[:, 4:][:, is_open]
        if demand.must_fill:
            may &= ~self._is_alone[:, None] | (self.size[:, None] == self._beds)
        self._type_at, self._class_at = np.nonzero(may)
        self._ways = self._list_ways(may)
        none = np.zeros(len(self._ways))
        self.people: FloatArray = np.concatenate((self.size[self._type_at], none))
        self.needs: FloatArray = np.concatenate((self.with_needs[self._type_at], none))
        self.levels = self._list_levels()

    def _list_levels(self) -> dict[int, FloatArray]:
        """Return the costs of the columns by level: people in extra beds, and positions."""
        levels: dict[int, FloatArray] = {}
        sizes, none = self.size[self._type_at], np.zeros(len(self._ways))
        if self._demand.normal is not None:
            above = np.maximum(sizes - self._normal[self._class_at], 0)
            lone = np.where(self._is_alone[self._type_at], above, 0)
            ways = [max(sum(way) - int(self._normal[c]), 0) for c, _, way in self._ways]
            levels[0] = np.concatenate((lone, np.array(ways, dtype=np.float64)))
        if self._demand.rank is not None:
            levels[1] = np.concatenate((self._rank[self._class_at] * sizes, none))
        return levels

    def _classes(
        self, choices: IntArray
    ) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """Join kinds of rooms that take the same atoms.

        Return the class of each kind, and beds, beds without extra beds, position and number of
        rooms of each class.
        """
        demand = self._demand
        class_of = np.full(len(demand.count), -1, dtype=np.int64)
        open_ = np.flatnonzero(demand.count > 0)
        normal = demand.capacity if demand.normal is None else demand.normal
        rank = np.zeros_like(demand.capacity) if demand.rank is None else demand.rank
        alike = np.column_stack(
            (demand.capacity[open_], normal[open_], rank[open_], choices[open_])
        )
        found, inverse = np.unique(alike, axis=0, return_inverse=True)
        class_of[open_] = inverse.ravel()
        count = np.bincount(class_of[open_], weights=demand.count[open_], minlength=len(found))
        beds, normal, rank = found[:, :3].astype(np.int64).T
        return class_of, beds, normal, rank, count.astype(np.int64)

    def _list_ways(self, may: BoolArray) -> list[tuple[int, int, Way]]:
        """List (class, key, pattern) for every pattern of atoms of one key in a room of a class."""
        found = []
        for c, beds in enumerate(self._beds.tolist()):
            shared = may[:, c] & ~self._is_alone
            for key in np.unique(self._key[shared]).tolist():
                sizes = np.unique(self.size[shared & (self._key == key)]).tolist()
                ways = dict.fromkeys(
                    way
                    for used in range(int(self._normal[c]), beds + 1)
                    for way in fillings(used, sizes, must_fill=self._demand.must_fill)
                )
                found += [(c, int(key), way) for way in ways]
        return found

    def rows(self) -> _Rows:
        """Return the rows: atoms of each type, rooms of each class, places of each size."""
        rows, n_types, n_seats = _Rows(), len(self.amount), len(self._type_at)
        for amount in (*self.amount.tolist(), *self._count.tolist()):
            rows.add(-np.inf, float(amount))
        least = 0.0 if self._demand.must_fill else -np.inf
        places: dict[tuple[int, int, int], int] = {}
        for k, (t, c) in enumerate(np.column_stack((self._type_at, self._class_at)).tolist()):
            rows.put(t, k, 1.0)
            place = (c, int(self._key[t]), int(self.size[t]))
            if self._is_alone[t]:
                rows.put(n_types + c, k, 1.0)
                continue
            if place not in places:
                places[place] = rows.add(least, 0.0)
            rows.put(places[place], k, 1.0)
        for k, (c, key, way) in enumerate(self._ways, start=n_seats):
            rows.put(n_types + c, k, 1.0)
            for size in sorted(set(way)):
                if (c, key, size) in places:
                    rows.put(places[c, key, size], k, -float(way.count(size)))
        return rows

    def most_of_columns(self) -> FloatArray:
        """Return the largest value of every column."""
        ways = self._count[[c for c, _, _ in self._ways]] if self._ways else np.empty(0)
        return np.concatenate((self.amount[self._type_at], ways)).astype(np.float64)

    def solve(self, worth: FloatArray, least: Sequence[AtLeast], clock: SearchClock) -> _Solved:
        """Maximise the sum of the worth of the columns, with lower limits on other sums."""
        none = np.empty(0, dtype=np.int64)
        if not len(worth):
            return _Solved(0, 0, none)
        rows = self.rows()
        _demand_at_least(rows, least)
        columns = np.zeros(len(worth)), self.most_of_columns()
        matrix, whole = rows.matrix(len(worth)), np.ones(len(worth), dtype=bool)
        found = maximise(worth, matrix, rows.limits(), columns, whole, clock, WORK)
        most = float(np.maximum(worth, 0.0) @ columns[1])
        bound = int(np.floor(min(found.bound, most) + ROUNDING))
        if found.values is None:
            return _Solved(bound, 0, none)
        values = np.rint(found.values).astype(np.int64)
        return _Solved(bound, round(float(worth @ values)), values)

    def stay_near(self, plan: BedPlan, held: Held) -> "_Near":
        """Return the programme for equally many people that changes least."""
        now = plan.seats[self._type_at, self._class_at]
        n_seats = len(now)
        with_needs = round(float(self.needs[:n_seats] @ now))
        people = round(float(self.people[:n_seats] @ now))
        rows = self.rows()
        limits = plan.limits or ((self.needs, with_needs), (self.people, people))
        _demand_at_least(rows, limits)
        near = _Near(self, rows, self.most_of_columns())
        for k, (t, c) in enumerate(np.column_stack((self._type_at, self._class_at)).tolist()):
            near.keep([k], int(held.seats[t, c]), float(self.size[t]))
        alike: dict[tuple[int, int], list[int]] = {}
        for k, (c, key, _) in enumerate(self._ways, start=n_seats):
            alike.setdefault((c, key), []).append(k)
        for (c, key), columns in alike.items():
            near.keep(columns, held.rooms.get((c, key), 0), float(self._beds[c]))
        return near

    def plan(self, values: IntArray, most_with_needs: int, most_people: int) -> BedPlan:
        """Convert a solution to a plan."""
        n_seats = len(self._type_at)
        seats = np.zeros((len(self.amount), len(self._beds)), dtype=np.int64)
        berths: list[Berth] = []
        if len(values):
            seats[self._type_at, self._class_at] = values[:n_seats]
            counts = values[n_seats : n_seats + len(self._ways)].tolist()
            for way, count in zip(self._ways, counts, strict=True):
                berths += [Berth(*way, count)] * (count > 0)
            for t in np.flatnonzero(self._is_alone).tolist():
                for c in np.flatnonzero(seats[t]).tolist():
                    berths.append(Berth(c, -1, (int(self.size[t]),), int(seats[t, c])))
        return BedPlan(
            most_with_needs, most_people, self.type_of, self.class_of, seats, tuple(berths)
        )

    def shortage(self) -> tuple[BoolArray, BoolArray]:
        """Return the types without a bed for one more, and the classes of room that they lack."""
        n_types, n_classes = len(self.amount), len(self._beds)
        everything = np.ones(n_types, dtype=bool), np.ones(n_classes, dtype=bool)
        if not len(self.people):
            return everything
        rows, free = self.rows(), np.full(len(self.people), np.inf)
        matrix = rows.matrix(len(self.people))
        price = row_prices(self.people, matrix, rows.limits(), (np.zeros_like(free), free))
        short = price[:n_types] < 1e-9
        lacking = price[n_types : n_types + n_classes] > 1e-9
        return (short, lacking) if short.any() and lacking.any() else everything


class _Near:
    """Programme with one more column for every number that should stay as it is."""

    def __init__(self, model: _Model, rows: _Rows, most: FloatArray) -> None:
        self._model, self._rows = model, rows
        self._most, self._worth = most.tolist(), [0.0] * len(most)
        self._n_columns = len(most)

    def keep(self, columns: list[int], now: int, worth: float) -> None:
        """Reward the sum of some columns, up to ``now``."""
        if now <= 0:
            return
        kept = len(self._most)
        self._most.append(float(now))
        self._worth.append(worth)
        row = self._rows.add(-np.inf, 0.0)
        self._rows.put(row, kept, 1.0)
        for column in columns:
            self._rows.put(row, column, -1.0)

    def solve(self, clock: SearchClock) -> IntArray:
        """Return the model's columns in the best solution; empty if none was found."""
        worth, most = np.array(self._worth), np.array(self._most)
        whole = np.arange(len(worth)) < self._n_columns
        matrix = self._rows.matrix(len(worth))
        columns = np.zeros(len(worth)), most
        found = maximise(worth, matrix, self._rows.limits(), columns, whole, clock, WORK)
        if found.values is None:
            return np.empty(0, dtype=np.int64)
        return np.rint(found.values[: self._n_columns]).astype(np.int64)


def _demand_at_least(rows: _Rows, least: Sequence[AtLeast]) -> None:
    for counted, amount in least:
        row = rows.add(float(amount), np.inf)
        for column in np.flatnonzero(counted).tolist():
            rows.put(row, column, float(counted[column]))


def fillings(beds: int, sizes: list[int], *, must_fill: bool) -> list[Way]:
    """Return the sets of sizes that fit in a room and leave no bed for one more.

    With ``must_fill`` they leave no free bed.

    Examples
    --------
    >>> fillings(4, [1, 3], must_fill=False), fillings(4, [3], must_fill=True)
    ([(1, 1, 1, 1), (3, 1)], [])
    """
    found: list[Way] = []

    def extend(chosen: Way, left: int) -> None:
        most = chosen[-1] if chosen else beds
        if chosen and (left == 0 if must_fill else left < min(sizes)):
            found.append(chosen)
        for size in sizes:
            if size <= min(left, most):
                extend((*chosen, size), left - size)

    extend((), beds)
    return found
