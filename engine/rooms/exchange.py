"""Exchange search: better placements by swaps, moves and assignments of one atom per room."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.progress import StopCallback, never_stop
from engine.kernels.room_exchange import fill_tables, move_atoms, swap_while_better
from engine.kernels.room_tables import Occupancy, RoomObjective
from engine.rooms.clock import SearchClock
from engine.rooms.columns import pad
from engine.rooms.problem import LARGEST_ROOM, Groups, RoomProblem

NEVER = 1e7  # nats: minus this, or more if numbers are large, stands for -inf in sums
PENALTIES_IN_NEVER = 64.0  # a room of 8 divides a pair's cost by 7, and several atoms may gain
ENTRIES_IN_NEVER = 1024.0
FLOOR = 1.0 / 16.0  # share of never: rooms above it are valid, rooms below it break a rule
LEAST_GAIN = 1e-9
ASSIGNED_TOGETHER = 250  # rooms
SECONDS_A_SWAP = 2e-8  # measured: to evaluate one exchange, to check one room for one atom, and to
SECONDS_A_ROOM = 5e-8  # assign one room to one atom
SECONDS_AN_ASSIGNMENT = 1.2e-7


class Exchange:
    """Placement of every atom, in one of the rooms or outside, improved by exchanges.

    ``room_of`` (n,) numbers the rooms kind by kind and is changed in place; ``outside`` is the
    place of unplaced atoms; ``objective`` and ``occupancy`` are the records of the kernels;
    ``never`` stands for -inf, and sums below ``floor`` include it; ``clock`` counts the work.
    """

    def __init__(self, problem: RoomProblem, clock: SearchClock | None = None) -> None:
        self.problem, self.clock = problem, clock or SearchClock(None)
        self.kind_of_room = np.repeat(np.arange(problem.n_kinds), problem.count)
        self.outside = len(self.kind_of_room)
        self.row_of_room = np.full(self.outside, -1, dtype=np.int64)
        first = np.concatenate(([0], np.cumsum(problem.count)))
        taken = np.zeros(problem.n_kinds, dtype=np.int64)
        for row, kind in enumerate(problem.row_kind):
            self.row_of_room[first[kind] + taken[kind]] = row
            taken[kind] += 1
        self.capacity = np.append(problem.capacity[self.kind_of_room], problem.sizes.sum() + 1)
        self._normal = np.append(problem.normal[self.kind_of_room], problem.sizes.sum() + 1)
        self._rank = np.append(problem.rank[problem.view[self.kind_of_room]], 0)
        self.never = -max(
            NEVER,
            PENALTIES_IN_NEVER * float(problem.penalty.max(initial=0.0)),
            ENTRIES_IN_NEVER * problem.largest_entry,
        )
        self.floor = FLOOR * self.never
        self._scores = np.maximum(problem.scores, self.never)
        self._likes = self._make_likes()
        n, rooms = problem.n_atoms, self.outside + 1
        self._sums = np.zeros((rooms, n))
        self._wishes = np.zeros((rooms, n) if len(problem.bonus) else (0, 0))
        self._scored, self._liked = np.zeros(rooms), np.zeros(rooms)
        self._people = np.zeros(rooms, dtype=np.int64)
        self.room_of = np.full(n, self.outside, dtype=np.int64)
        self.objective = RoomObjective(
            *(self._scores, problem.bonus, problem.own_score, problem.sizes, self._likes),
            *(self.capacity, self._normal, float(problem.extra_price)),
            *(self.outside, bool(problem.must_fill)),
        )
        self.occupancy = Occupancy(
            self.room_of, self._sums, self._wishes, self._scored, self._liked, self._people
        )
        fill_tables(self.objective, self.occupancy)

    def _make_likes(self) -> FloatArray:
        problem = self.problem
        views = problem.view[self.kind_of_room]
        likes = np.empty((self.outside + 1, problem.n_atoms))
        here = problem.preference[views] + problem.own_bonus
        likes[:-1] = np.where(problem.allowed[views], here, self.never)
        room_of_row = np.empty(len(problem.row_kind), dtype=np.int64)
        mine = np.flatnonzero(self.row_of_room >= 0)
        room_of_row[self.row_of_room[mine]] = mine
        np.add.at(likes, (room_of_row[problem.stay_row], problem.stay_atom), problem.stay_refund)
        likes[-1] = -problem.penalty
        return likes

    @property
    def value(self) -> float:
        """Total value, including the penalties of unplaced atoms."""
        return float(self._worth(self._scored, self._liked, self._people, self._normal).sum())

    @property
    def value_outside(self) -> float:
        """Contribution of unplaced atoms to the total: minus their penalties."""
        return float(self._likes[-1, self.room_of == self.outside].sum())

    @property
    def n_outside(self) -> tuple[int, int]:
        """Number of people with needs without a room, and of all people without a room."""
        out = self.room_of == self.outside
        return int(self.problem.with_needs[out].sum()), int(self.problem.sizes[out].sum())

    @property
    def levels(self) -> tuple[int, int]:
        """Number of people in extra beds, and sum of the positions of all people in the order."""
        if not self.problem.has_levels:
            return 0, 0
        extra = np.maximum(self._people - self._normal, 0)[:-1].sum() if self._has_extra else 0
        later = self._people @ self._rank if self.problem.rank_price > 0.0 else 0
        return int(extra), int(later)

    @property
    def _has_extra(self) -> bool:
        return self.problem.extra_price > 0.0

    @property
    def tolls(self) -> float:
        """Price of the levels."""
        extra, later = self.levels
        return self.problem.extra_price * extra + self.problem.rank_price * later

    def tables(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return scores (n, n), bonuses and likes (rooms, n), with finite numbers for -inf."""
        return self._scores, self.problem.bonus, self._likes

    def values_of(self, rooms: IntArray) -> FloatArray:
        """Return the current values of rooms."""
        return self._worth(
            self._scored[rooms], self._liked[rooms], self._people[rooms], self._normal[rooms]
        )

    def start(self, room_of: IntArray) -> None:
        """Start from a given placement."""
        self.room_of[:] = room_of
        fill_tables(self.objective, self.occupancy)

    def place_greedily(self, rng: np.random.Generator) -> None:
        """Place unplaced atoms, large ones first, wherever the total rises most."""
        problem = self.problem
        waiting = np.flatnonzero(self.room_of == self.outside)
        order = rng.permutation(waiting)
        freedom = problem.allowed[problem.view].sum(axis=0)[order]
        order = order[np.lexsort((freedom, -problem.sizes[order]))]
        for atom in order:
            gain = self.gains_of_joining(int(atom))
            room = int(np.argmax(gain))
            if gain[room] > self.floor:  # a broken rule costs a room of 8 a seventh
                self.move(np.array([atom]), np.array([room]))
        if problem.must_fill:
            self.empty_rooms_with_free_beds()

    def empty_rooms_with_free_beds(self) -> None:
        """Remove everybody who does not live in a full room."""
        short = self._people < self.capacity
        atoms = np.flatnonzero(short[self.room_of] & (self.room_of != self.outside))
        self.move(atoms, np.full(len(atoms), self.outside))

    def rooms_with_free_beds(self) -> IntArray:
        """Return the rooms that are not full."""
        return np.flatnonzero(self._people[:-1] < self.capacity[:-1])

    def can_join(self, room: int) -> BoolArray:
        """Return which atoms could join a room in its current state, shape (n,)."""
        sizes = self.problem.sizes
        self.clock.charge(SECONDS_A_SWAP * len(sizes))
        fits = self._people[room] + sizes <= self.capacity[room]
        fits &= (self._likes[room] > self.floor) & (self._sums[room] > self.floor)
        return np.asarray(fits & (self.room_of != room))

    def can_replace(self, atom: int) -> BoolArray:
        """Return which atoms' places an atom could take, shape (n,)."""
        sizes, rooms = self.problem.sizes, self.room_of
        self.clock.charge(SECONDS_A_ROOM * len(sizes))
        fits = self._people[rooms] + sizes[atom] - sizes <= self.capacity[rooms]
        fits &= self._likes[rooms, atom] > self.floor
        fits &= self._sums[rooms, atom] - self._scores[atom] > self.floor
        return np.asarray(fits & (rooms != self.outside) & (rooms != rooms[atom]))

    def gains_of_joining(self, atom: int) -> FloatArray:
        """Return each room's gain from one more atom, -inf where the atom does not fit."""
        own = self.problem.own_score[atom]
        self.clock.charge(SECONDS_A_ROOM * len(self.capacity))
        wish = self._wishes[:, atom] if len(self._wishes) else 0.0
        size = self.problem.sizes[atom]
        scored = self._scored + self._sums[:, atom] + own
        liked = self._liked + self._likes[:, atom] + wish
        after = self._worth(scored, liked, self._people + size, self._normal)
        gain = after - self._worth(self._scored, self._liked, self._people, self._normal)
        gain[self._people + size > self.capacity] = -np.inf
        gain[-1] = -np.inf
        return gain

    def swap(self, rng: np.random.Generator) -> float:
        """Give every atom its best exchange once, in a random order; return the gain."""
        n = self.problem.n_atoms
        self.clock.charge(SECONDS_A_SWAP * n * (n + len(self.capacity)))
        order = rng.permutation(n)
        gain: float = swap_while_better(self.objective, self.occupancy, order, LEAST_GAIN)
        return gain

    def reassign(self, rng: np.random.Generator) -> float:
        """Take one person or a free bed from every room, and assign them again optimally.

        Rooms exchange in parts of a few hundred: the time of an assignment is the cube of its size.
        """
        rooms, atoms = self._draw_one_a_room(rng)
        order = rng.permutation(len(rooms))
        parts = np.array_split(order, max(1, -(-len(order) // ASSIGNED_TOGETHER)))
        return sum(self._reassign(rooms[part], atoms[part]) for part in parts if len(part) > 1)

    def assign_rooms(self) -> float:
        """Give every group the room that is best for all groups together; return the gain.

        Groups stay as they are. Choices of hall, needs and moves decide, which exchanges of single
        people hardly improve.
        """
        problem = self.problem
        order = np.argsort(self.room_of, kind="stable")
        order = order[self.room_of[order] < self.outside]
        rooms, start = np.unique(self.room_of[order], return_index=True)
        if not len(rooms) or not self.is_allowed():
            return 0.0
        people = self._people[rooms]
        fits = self.capacity[: self.outside] >= people[:, np.newaxis]
        if problem.must_fill:
            fits = self.capacity[: self.outside] == people[:, np.newaxis]
        likes = np.add.reduceat(self._likes[:-1, order], start, axis=1).T
        likes -= problem.extra_price * np.maximum(people[:, np.newaxis] - self._normal[:-1], 0)
        likes = np.where(fits, np.maximum(likes, self.never), 2.0 * self.never)
        self.clock.charge(SECONDS_AN_ASSIGNMENT * likes.size)
        chosen = linear_sum_assignment(likes, maximize=True)[1]
        here = np.arange(len(rooms))
        change = float(likes[here, chosen].sum() - likes[here, rooms].sum())
        if change <= LEAST_GAIN:
            return 0.0
        room_of = self.room_of.copy()
        room_of[order] = np.repeat(chosen, np.diff(np.append(start, len(order))))
        before, gone = self.value, self.room_of.copy()
        self.start(room_of)
        if not (self.is_allowed() and self.value > before):
            self.start(gone)
            return 0.0
        return self.value - before

    def _reassign(self, rooms: IntArray, atoms: IntArray) -> float:
        problem = self.problem
        present = np.flatnonzero(atoms >= 0)
        self.clock.charge(SECONDS_AN_ASSIGNMENT * len(atoms) * len(present))
        people = self._people[rooms].copy()
        scored, liked = self._scored[rooms].copy(), self._liked[rooms].copy()
        taken, own = atoms[present], problem.own_score[atoms[present]]
        place = np.ix_(rooms, taken)
        sums, likes = self._sums[place], self._likes[place]
        wishes = self._wishes[place] if len(self._wishes) else None
        diagonal = (present, np.arange(len(present)))
        scored[present] -= sums[diagonal] + own
        liked[present] -= likes[diagonal]
        people[present] -= 1
        sums[present] -= self._scores[np.ix_(taken, taken)]
        if wishes is not None:
            liked[present] -= wishes[diagonal]
            wishes[present] -= problem.bonus[np.ix_(taken, taken)]
            likes += wishes
        normal = self._normal[rooms]
        left = self._worth(scored, liked, people, normal)
        scale = np.where(people > 0, 1.0 / np.maximum(people, 1), 0.0)
        gain = (scored[:, np.newaxis] + sums + own) * scale[:, np.newaxis] + likes
        gain += (liked - left)[:, np.newaxis]
        gain -= (problem.extra_price * np.maximum(people + 1 - normal, 0))[:, np.newaxis]
        chosen = linear_sum_assignment(np.maximum(gain.T, self.never), maximize=True)[1]
        change = float(gain[chosen, np.arange(len(taken))].sum() - gain[diagonal].sum())
        if change <= LEAST_GAIN:
            return 0.0
        moves = chosen != present
        self.move(taken[moves], rooms[chosen[moves]])
        return change

    def _draw_one_a_room(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw one atom of one person from each room, or -1 for a free bed."""
        problem = self.problem
        lone = np.flatnonzero(problem.sizes == 1)
        order = rng.permutation(lone)
        pick = np.full(self.outside + 1, -1, dtype=np.int64)
        pick[self.room_of[order]] = order
        spare = self._people < self.capacity
        spare[-1] = False
        if problem.must_fill:
            spare[:] = False
        rooms = np.flatnonzero((pick >= 0) | spare)
        rooms = rooms[rooms != self.outside]
        draws = rng.random(len(rooms)) < 0.5
        atoms = np.where(spare[rooms] & draws, -1, pick[rooms])
        keep = (atoms >= 0) | spare[rooms]
        return rooms[keep], atoms[keep]

    def groups(self) -> Groups:
        """Return the current groups: members (g, 8), kinds and rows (g,)."""
        inside = np.flatnonzero(self.room_of < self.outside)
        order = inside[np.argsort(self.room_of[inside], kind="stable")]
        rooms, start = np.unique(self.room_of[order], return_index=True)
        members = np.full((len(rooms), LARGEST_ROOM), -1, dtype=np.int64)
        place = np.arange(len(order)) - np.repeat(start, np.diff(np.append(start, len(order))))
        members[np.searchsorted(rooms, self.room_of[order]), place] = order
        return pad(members), self.kind_of_room[rooms], self.row_of_room[rooms]

    def is_allowed(self) -> bool:
        """Return True if nobody breaks a rule, and no free bed is in a room that must be full."""
        inside = self.room_of < self.outside
        people = self._people[:-1]
        if self.problem.must_fill and ((people > 0) & (people < self.capacity[:-1])).any():
            return False
        worst = self._liked[: self.outside].min(initial=0.0)
        is_fine = worst > self.floor and self._scored.min(initial=0.0) > self.floor
        return bool(is_fine or not inside.any())

    def move(self, atoms: IntArray, rooms: IntArray) -> None:
        """Move atoms to rooms; the caller checks that they may live there."""
        move_atoms(self.objective, self.occupancy, atoms, rooms)

    def _worth(
        self, scored: FloatArray, liked: FloatArray, people: IntArray, normal: IntArray
    ) -> FloatArray:
        """Return the values of rooms; the last one, outside, has no scores in its sums."""
        worth: FloatArray = liked + np.where(people > 1, scored / np.maximum(people - 1, 1), 0.0)
        if self._has_extra:
            worth -= self.problem.extra_price * np.maximum(people - normal, 0)
        return worth


def improve(
    exchange: Exchange,
    rng: np.random.Generator,
    *,
    reassignments: int = 20,
    should_stop: StopCallback = never_stop,
) -> None:
    """Swap to a local optimum, then reassign until ``reassignments`` in a row gain nothing."""
    while exchange.swap(rng) > 0.0 and not should_stop():
        pass
    idle = 0
    while idle < reassignments and not should_stop():
        if exchange.reassign(rng) > 0.0:
            idle = 0
            exchange.swap(rng)
        else:
            idle += 1
            if idle == reassignments and exchange.assign_rooms() > 0.0:
                idle = 0
