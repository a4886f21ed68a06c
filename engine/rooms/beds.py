"""Seat as many people as can have a bed, by a plan that changes as little as possible."""

from collections import Counter

import numpy as np
from scipy.sparse.csgraph import connected_components

from engine.core.arguments import BoolArray, FloatArray
from engine.rooms.bed_plan import BedDemand, BedPlan, BedPlanner, Held, Way
from engine.rooms.ejection import place_by_chains
from engine.rooms.exchange import Exchange
from engine.rooms.problem import RoomProblem

CLOSED = -2  # key of a room without residents
SWAPS = 20  # passes of exchanges to separate people who never share


def demand_of(problem: RoomProblem) -> BedDemand:
    """Return the demand for beds; people who may never share with anybody live alone."""
    may_share = np.isfinite(problem.scores)
    np.fill_diagonal(may_share, False)
    is_alone: BoolArray = np.logical_not(may_share.any(axis=1))
    key = connected_components(may_share, directed=False)[1] if len(may_share) else is_alone
    fits = problem.sizes <= problem.capacity[:, np.newaxis]
    return BedDemand(
        problem.sizes,
        np.where(is_alone, -1, key).astype(np.int64),
        is_alone,
        problem.with_needs,
        problem.allowed[problem.view] & fits,
        problem.capacity,
        problem.count,
        problem.must_fill,
        problem.normal if problem.extra_price > 0.0 else None,
        problem.rank[problem.view] if problem.rank_price > 0.0 else None,
    )


class Beds:
    """Beds for as many people as can have one, in one exchange.

    The limits ``most_with_needs`` and ``most_people`` are proved, and no placement of as many
    people has lower levels (:class:`engine.rooms.best.Best`) than ``least_levels``.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._demand = demand_of(exchange.problem)
        self._planner = BedPlanner(self._demand, exchange.clock)
        self._plan = self._planner.most()
        self.most_with_needs = self._plan.most_with_needs
        self.most_people = self._plan.most_people
        self.least_levels = self._plan.least_levels

    def holds(self, n_outside: tuple[int, int]) -> bool:
        """Return True if as many have a bed as can; ``n_outside`` counts people without a bed."""
        problem = self._exchange.problem
        most_outside = (
            problem.with_needs.sum() - self.most_with_needs,
            problem.sizes.sum() - self.most_people,
        )
        return bool(n_outside <= most_outside)

    def holds_levels(self, levels: tuple[int, int]) -> bool:
        """Return True if no placement of as many people uses fewer extra beds, or rooms earlier."""
        return levels <= self.least_levels

    def begin(self, rng: np.random.Generator) -> None:
        """Seat everybody by the plan, in the rooms where the total rises most."""
        self._seat_by_plan(rng)
        place_by_chains(self._exchange, rng, self._exchange.clock.is_over)

    def complete(self, rng: np.random.Generator) -> None:
        """Give beds to people without one; the others stay where they are if they can.

        Seats go where the total rises most, then by chains. If that is not enough, everybody is
        seated by the plan that keeps as many people and rooms as possible.
        """
        exchange = self._exchange
        exchange.place_greedily(rng)
        place_by_chains(exchange, rng, exchange.clock.is_over)
        if self.holds(exchange.n_outside):
            return
        before, outside = exchange.room_of.copy(), exchange.n_outside
        self.begin(rng)
        if exchange.n_outside > outside:
            exchange.start(before)

    def _seat_by_plan(self, rng: np.random.Generator) -> None:
        exchange = self._exchange
        plan = self._planner.nearest(self._plan, _held(exchange, self._demand, self._plan))
        _Seating(exchange, self._demand, plan).seat(rng)
        _part(exchange, rng)


def _held(exchange: Exchange, demand: BedDemand, plan: BedPlan) -> Held:
    """Return the current number of atoms of a type, and rooms of a key, per class of rooms."""
    inside = np.flatnonzero(exchange.room_of < exchange.outside)
    rooms = exchange.room_of[inside]
    class_of = plan.class_of[exchange.kind_of_room[rooms]]
    seats = np.zeros_like(plan.seats)
    np.add.at(seats, (plan.type_of[inside], class_of), 1)
    shared = np.unique(np.column_stack((rooms, class_of, demand.key[inside])), axis=0)
    return Held(seats, Counter((c, key) for _, c, key in shared.tolist() if key >= 0))


class _Seating:
    """Seating of atoms by a plan: rooms get a pattern, atoms a place of their size."""

    def __init__(self, exchange: Exchange, demand: BedDemand, plan: BedPlan) -> None:
        self._exchange, self._demand, self._plan = exchange, demand, plan
        self._class_of_room = plan.class_of[exchange.kind_of_room]
        self._ways_left: dict[tuple[int, int], Counter[Way]] = {}
        for berth in plan.berths:
            ways = self._ways_left.setdefault((berth.rooms_of, berth.key), Counter())
            ways[berth.way] += berth.count
        largest = int(demand.sizes.max(initial=0))
        self._key_of_room = np.full(exchange.outside, CLOSED, dtype=np.int64)
        self._places = np.zeros((exchange.outside, largest + 1), dtype=np.int64)
        self._missing = plan.seats.copy()

    def seat(self, rng: np.random.Generator) -> None:
        """Keep the atoms that can stay, and seat the others where the total rises most.

        Atoms that find only rooms with somebody they never share with come last.
        """
        self._keep_rooms()
        self._put_out_excess()
        exchange = self._exchange
        waiting = rng.permutation(np.flatnonzero(exchange.room_of == exchange.outside))
        freedom = (self._missing[self._plan.type_of[waiting]] > 0).sum(axis=1)
        order = np.lexsort((freedom, -self._demand.sizes[waiting]))
        late = [a for a in waiting[order].tolist() if not self._seat_one(a, exchange.floor)]
        for atom in late:
            self._seat_one(atom, -np.inf)

    def _keep_rooms(self) -> None:
        """Give rooms in use a pattern that fits their residents; empty rooms without one."""
        exchange, demand = self._exchange, self._demand
        groups = exchange.groups()[0]
        rooms = np.unique(exchange.room_of[exchange.room_of < exchange.outside])
        for k in np.argsort(-exchange.values_of(rooms), kind="stable").tolist():
            members, room = groups[k][groups[k] >= 0], int(rooms[k])
            inside = Counter(demand.sizes[members].tolist())
            if not self._open(room, int(demand.key[members[0]]), inside):
                exchange.move(members, np.full(len(members), exchange.outside))
                continue
            np.subtract.at(self._places[room], demand.sizes[members], 1)
            types, c = self._plan.type_of[members], self._class_of_room[room]
            np.subtract.at(self._missing, (types, np.full(len(members), c)), 1)

    def _open(self, room: int, key: int, inside: "Counter[int]") -> bool:
        """Choose a pattern for a room that includes these sizes; return False if none is left."""
        ways = self._ways_left.get((int(self._class_of_room[room]), key), Counter())
        fitting = [way for way, count in ways.items() if count > 0 and inside <= Counter(way)]
        if not fitting:
            return False
        way = min(fitting, key=lambda way: (sum(way), way))
        ways[way] -= 1
        self._key_of_room[room] = key
        self._places[room] = np.bincount(way, minlength=self._places.shape[1])
        return True

    def _put_out_excess(self) -> None:
        """Remove atoms of a type from classes of rooms where the plan has fewer of them."""
        exchange, type_of = self._exchange, self._plan.type_of
        for t, c in np.argwhere(self._missing < 0).tolist():
            there = np.flatnonzero(type_of == t)
            there = there[exchange.room_of[there] < exchange.outside]
            there = there[self._class_of_room[exchange.room_of[there]] == c]
            out = there[: -self._missing[t, c]]
            np.add.at(self._places, (exchange.room_of[out], self._demand.sizes[out]), 1)
            self._missing[t, c] = 0
            exchange.move(out, np.full(len(out), exchange.outside))

    def _seat_one(self, atom: int, least: float) -> bool:
        """Seat an atom where the total rises most; return False if that is under ``least``."""
        exchange, size = self._exchange, int(self._demand.sizes[atom])
        key, t = int(self._demand.key[atom]), int(self._plan.type_of[atom])
        may = self._missing[t, self._class_of_room] > 0
        has_place = (self._key_of_room == key) & (self._places[:, size] > 0)
        can_open = (self._key_of_room == CLOSED) & self._has_way(key, size)[self._class_of_room]
        fits: BoolArray = may & (has_place | can_open)
        if not fits.any():
            return True  # the plan leaves this one out
        gain: FloatArray = np.where(fits, exchange.gains_of_joining(atom)[:-1], -np.inf)
        room = int(np.argmax(gain))
        if not gain[room] > least:
            return False
        if self._key_of_room[room] == CLOSED:
            self._open(room, key, Counter([size]))
        self._places[room, size] -= 1
        self._missing[t, self._class_of_room[room]] -= 1
        exchange.move(np.array([atom]), np.array([room]))
        return True

    def _has_way(self, key: int, size: int) -> BoolArray:
        """Return the classes where a room can still be opened for an atom, shape (classes,)."""
        out = np.zeros(self._missing.shape[1], dtype=bool)
        for c in range(len(out)):
            ways = self._ways_left.get((c, key), Counter())
            out[c] = any(count > 0 and size in way for way, count in ways.items())
        return out


def _part(exchange: Exchange, rng: np.random.Generator) -> None:
    """Exchange people until no rule is broken; remove people who still break one."""
    for _ in range(SWAPS):
        if exchange.is_allowed() or not exchange.swap(rng) > -exchange.floor:
            break
    if exchange.is_allowed():
        return
    for room in np.unique(exchange.room_of[exchange.room_of < exchange.outside]).tolist():
        members = np.flatnonzero(exchange.room_of == room)
        exchange.move(members, np.full(len(members), exchange.outside))
        for atom in members.tolist():
            if exchange.can_join(room)[atom]:
                exchange.move(np.array([atom]), np.array([room]))
    if exchange.problem.must_fill:
        exchange.empty_rooms_with_free_beds()
