"""Arranging the people of suites: rooms of one door, whose people live together to a degree.

The search of `place_in_rooms` knows rooms only. `arrange_in_suites` moves people and whole rooms
after it, for the best sum of room values and suite terms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.progress import StopCallback, never_stop
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.atoms import sum_over_atoms
from engine.rooms.formulation import Attributes, Formulation, formulate

DIVIDED = 8  # atoms of a suite up to whose number its division among the rooms is exact
MAX_ROUNDS = 6  # rounds of exchanges between suites
TRIED = 3  # exchanges that are evaluated exactly for one atom or room
NEVER = 1e6  # nats that a pair costs that must not share a suite: above all scores together
SMALLEST_GAIN = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """Rooms of students after the suites are arranged.

    Parameters
    ----------
    room : ndarray, shape (n,), int64, index into the rooms, -1 for students without a room.
    gain : float, nats, change of the value of the rooms: scores, wishes, preferences, moves.
    suite_score : float, nats
        Half the sum over students of the mean score with the people of the other rooms of their
        suite, without the weight.
    left_out : tuple of (student, other)
        Students who lost their room, because ``other`` must not live in their suite and no exchange
        parts the two.
    """

    room: IntArray
    gain: float
    suite_score: float
    left_out: tuple[tuple[int, int], ...]


def apart_in_suites(
    n: int, forbids: Sequence[tuple[int, int]], columns: Sequence[Sequence[str]]
) -> BoolArray:
    """Return the mask of the pairs who must not share a suite, shape (n, n), symmetric.

    ``forbids`` are pairs to keep apart, ``columns`` (each of length n) those in which all people of
    a suite agree.
    """
    apart = np.zeros((n, n), dtype=bool)
    for i, j in forbids:
        apart[i, j] = apart[j, i] = True
    for column in columns:
        value = np.unique(np.array(column, dtype=np.str_), return_inverse=True)[1].ravel()
        apart |= value[:, np.newaxis] != value
    return apart


def suite_score(scores: FloatArray, room: IntArray, suite_of: IntArray) -> float:
    """Return half the sum over students of their mean score with people of other rooms of a suite.

    Students whose suite has nobody in other rooms count 0.
    """
    total = 0.0
    suite = np.where(room >= 0, suite_of[room], -1)
    for one in np.unique(suite[suite >= 0]):
        people = np.flatnonzero(suite == one)
        is_other = room[people, np.newaxis] != room[people]
        mates = is_other.sum(axis=1)
        sums = np.where(is_other, scores[np.ix_(people, people)], 0.0).sum(axis=1)
        total += float((sums / np.maximum(mates, 1)).sum()) / 2.0
    return total


def arrange_in_suites(
    scores: FloatArray,
    attributes: Attributes,
    rooms: Rooms,
    rules: RoomRules,
    room: IntArray,
    suite_of: IntArray,
    apart: BoolArray,
    *,
    weight: float,
    previous: IntArray | None = None,
    move_cost: float = 0.0,
    max_rounds: int = MAX_ROUNDS,
    should_stop: StopCallback = never_stop,
) -> Arrangement:
    """Improve a placement for its suites, without using more extra beds or later rooms.

    The value is that of the rooms plus ``weight`` times `suite_score`. The people of a suite of up
    to `DIVIDED` atoms are divided among its rooms exactly; between suites, whole rooms and single
    people change places as long as the value grows. Pairs in ``apart`` are worth so little that
    such changes part them; where none does, one of the two loses the room (``left_out``).

    Parameters
    ----------
    scores : ndarray, shape (n, n), symmetric, nats.
    room : ndarray, shape (n,), the placement, -1 for students without a room.
    suite_of : ndarray, shape (r,), suite of each room, -1 for none.
    apart : ndarray, shape (n, n), bool, pairs who must not share a suite.
    weight : float, at least 0, what a suite mate counts as a share of a roommate.
    previous, move_cost : see `place_in_rooms`.
    """
    search = _Suites(
        formulate(
            scores, attributes, rooms, rules, previous, move_cost,
            joins_assigned=False, with_levels=False,
        ),
        _suite_pairs(scores, apart, weight),
        np.asarray(room, dtype=np.int64),
        suite_of,
    )  # fmt: skip
    before = search.room_value()
    if weight == 0.0 and not search.has_pairs(apart):
        max_rounds = 0  # suites play no part
    for _ in range(max_rounds):
        if should_stop():
            break
        if not (search.divide() | search.exchange_rooms() | search.exchange_people()):
            break
    left_out = search.part(apart, {student for student, _ in rules.assigned})
    if left_out:
        search.divide()
    found = search.room_of_students()
    plain = np.array(scores, dtype=np.float64)
    return Arrangement(
        room=found,
        gain=search.room_value() - before,
        suite_score=suite_score(plain, found, suite_of),
        left_out=left_out,
    )


def _suite_pairs(scores: FloatArray, apart: BoolArray, weight: float) -> FloatArray:
    """Return what each pair counts as suite mates, shape (n, n)."""
    pairs = weight * np.array(scores, dtype=np.float64)
    pairs[apart] -= NEVER
    np.fill_diagonal(pairs, 0.0)
    return pairs


class _Suites:
    """Placement of atoms in rooms with suites, and the exchanges that improve it.

    A room of c people in a suite of P people counts, for the suite, the sum of the pairs of its
    people with those of other rooms over 2 (P - c): each student counts the mean over suite mates.
    """

    def __init__(
        self, formulation: Formulation, pairs: FloatArray, room: IntArray, suite_of: IntArray
    ) -> None:
        self._formulation, self._problem = formulation, formulation.problem
        self._suite_of = suite_of
        self._pairs = sum_over_atoms(pairs, formulation.atom_of)[0]
        self._room = np.full(self._problem.n_atoms, -1, dtype=np.int64)
        self._room[formulation.atom_of] = room
        n_rooms = len(suite_of)
        self._row = np.full(n_rooms, -1, dtype=np.int64)
        self._row[formulation.room_of_row] = np.arange(len(formulation.room_of_row))
        self._kind = formulation.kind_of
        self._is_open = self._kind >= 0
        self._rooms_of = [
            np.flatnonzero(suite_of == s) for s in range(suite_of.max(initial=-1) + 1)
        ]
        scores = self._problem.scores
        self._finite = np.where(np.isfinite(scores), scores, -NEVER)
        shape = (self._problem.n_atoms, n_rooms)
        self._inside, self._beside = np.full(shape, -np.inf), np.zeros(shape)

    def room_of_students(self) -> IntArray:
        """Return the room of every student, shape (n,)."""
        return self._room[self._formulation.atom_of].copy()

    def room_value(self) -> float:
        """Return the value of all rooms without the suite terms."""
        used = np.unique(self._room[self._room >= 0])
        return float(self._values([(np.flatnonzero(self._room == r), r) for r in used]).sum())

    def _values(self, groups: Sequence[tuple[IntArray, int]]) -> FloatArray:
        """Return the values of groups of atoms in rooms, -inf where one may not live there."""
        problem = self._problem
        width = max([8, *(len(atoms) for atoms, _ in groups)])
        members = np.full((len(groups), width), -1, dtype=np.int64)
        for k, (atoms, _) in enumerate(groups):
            members[k, : len(atoms)] = atoms
        rooms = np.array([room for _, room in groups], dtype=np.int64)
        kind, row = self._kind[rooms], self._row[rooms]
        total = problem.group_values(members, kind, row)
        view = problem.view[kind]
        may = np.where(members >= 0, problem.allowed[view[:, np.newaxis], members], True)
        people = np.where(members >= 0, problem.sizes[members], 0).sum(axis=1)
        fits = may.all(axis=1) & (people <= problem.capacity[kind])
        return np.where(fits, total, -np.inf)

    def _suite_term(self, suite: int, living: Mapping[int, IntArray]) -> float:
        """Return what the people of a suite count for it; ``living`` gives the atoms by room."""
        rooms = self._rooms_of[suite].tolist()
        atoms = np.concatenate([living[room] for room in rooms])
        people = int(self._problem.sizes[atoms].sum())
        sums = self._pairs[np.ix_(atoms, atoms)].sum(axis=1)
        total, start = 0.0, 0
        for room in rooms:
            own = living[room]
            end = start + len(own)
            others = people - int(self._problem.sizes[own].sum())
            if len(own) and others:
                inside = float(self._pairs[np.ix_(own, own)].sum())
                total += (float(sums[start:end].sum()) - inside) / (2.0 * others)
            start = end
        return total

    def _value_at(self, changes: Mapping[int, int]) -> float:
        """Return the value of the rooms and suites that changes of atoms touch, once made."""
        room = self._room.copy()
        touched = set()
        for atom, new in changes.items():
            touched |= {int(room[atom]), new}
            room[atom] = new
        for atom in changes:
            touched.add(int(self._room[atom]))
        suites = {int(self._suite_of[r]) for r in touched if r >= 0} - {-1}
        rooms = {r for r in touched if r >= 0}
        rooms |= {int(r) for s in suites for r in self._rooms_of[s]}
        living = {r: np.flatnonzero(room == r) for r in sorted(rooms)}
        groups = [(atoms, r) for r, atoms in living.items() if len(atoms)]
        total = float(self._values(groups).sum()) if groups else 0.0
        return total + sum(self._suite_term(s, living) for s in sorted(suites))

    def _try(self, changes: Mapping[int, int]) -> bool:
        """Make changes of atoms if they improve the value; return whether they do."""
        now = {atom: int(self._room[atom]) for atom in changes}
        if self._value_at(changes) <= self._value_at(now) + SMALLEST_GAIN:
            return False
        for atom, room in changes.items():
            self._room[atom] = room
        return True

    def divide(self) -> bool:
        """Divide the people of each suite among its rooms, exactly; return whether any moved."""
        moved = [self._divide(suite) for suite in range(len(self._rooms_of))]
        return any(moved)

    def _divide(self, suite: int) -> bool:
        rooms = [int(r) for r in self._rooms_of[suite] if self._is_open[r]]
        living = [np.flatnonzero(self._room == r) for r in rooms]
        atoms = np.concatenate(living) if living else np.empty(0, dtype=np.int64)
        if len(rooms) < 2 or not 1 < len(atoms) <= DIVIDED:
            return False
        problem, sizes = self._problem, self._problem.sizes
        kinds = self._kind[rooms]
        ranks = problem.rank[problem.view[kinds]]
        taken = np.array([int(sizes[own].sum()) for own in living])
        most = np.maximum(problem.normal[kinds], taken)
        is_fixed = len(np.unique(ranks)) > 1 or problem.must_fill
        masks = np.arange(1 << len(atoms))
        has = (masks[:, np.newaxis] >> np.arange(len(atoms))) & 1 == 1
        people = has @ sizes[atoms]
        pairs = self._pairs[np.ix_(atoms, atoms)]
        inside = np.einsum("ma,ab,mb->m", has, pairs, has)
        others = np.maximum(people[-1] - people, 1)
        cross = (has @ pairs.sum(axis=1) - inside) / (2.0 * others)
        value = np.full((len(rooms), len(masks)), -np.inf)
        for k, room in enumerate(rooms):
            may = people == taken[k] if is_fixed else people <= most[k]
            chosen = np.flatnonzero(may & (masks > 0))
            if len(chosen):
                own = self._values([(atoms[has[mask]], room) for mask in chosen])
                value[k, chosen] = own + cross[chosen]
            if not is_fixed or taken[k] == 0:
                value[k, 0] = 0.0
        best, choice = _best_division(value)
        place = np.repeat(np.arange(len(rooms)), [len(own) for own in living])
        now = [int(sum(1 << a for a in np.flatnonzero(place == k))) for k in range(len(rooms))]
        if best <= sum(value[k, mask] for k, mask in enumerate(now)) + SMALLEST_GAIN:
            return False
        for room, mask in zip(rooms, choice, strict=True):
            self._room[atoms[has[mask]]] = room
        return True

    def _refresh(self, rooms: IntArray) -> None:
        """Estimate again what each atom would count in some rooms and those of their suites.

        Estimates suppose that the numbers of people stay as they are, and that nobody else moves.
        """
        problem = self._problem
        suites = np.unique(self._suite_of[rooms])
        for room in rooms:
            living = np.flatnonzero(self._room == room)
            kind = max(int(self._kind[room]), 0)
            own = 1.0 / max(int(problem.sizes[living].sum()) - 1, 1)
            column = (self._finite[:, living].sum(axis=1) + problem.own_score) * own
            if len(problem.bonus):
                column += problem.bonus[:, living].sum(axis=1)
            column += problem.preference[problem.view[kind]]
            may = problem.allowed[problem.view[kind]] & self._is_open[room]
            self._inside[:, room] = np.where(may, column, -np.inf)
        for suite in suites[suites >= 0]:
            members = self._rooms_of[suite]
            living_of = [np.flatnonzero(self._room == room) for room in members]
            people = np.array([problem.sizes[own].sum() for own in living_of])
            sums = np.stack([self._pairs[:, own].sum(axis=1) for own in living_of], axis=1)
            half = 0.5 / np.maximum(people.sum() - people, 1)
            share = half[:, np.newaxis] + half
            np.fill_diagonal(share, 0.0)
            self._beside[:, members] = sums @ share

    def _near(self, rooms: set[int]) -> IntArray:
        """Return some rooms with all rooms of their suites."""
        suites = {int(self._suite_of[room]) for room in rooms} - {-1}
        near = rooms | {int(room) for suite in suites for room in self._rooms_of[suite]}
        return np.array(sorted(near), dtype=np.int64)

    def exchange_people(self) -> bool:
        """Exchange atoms of one size between a suite and any room; return whether any moved."""
        problem, improved = self._problem, False
        self._refresh(np.arange(len(self._suite_of)))
        for atom in np.flatnonzero(self._in_suite()):
            here = int(self._room[atom])
            others = np.flatnonzero((self._room >= 0) & (problem.sizes == problem.sizes[atom]))
            there = self._room[others]
            total = self._inside[atom] + self._beside[atom]
            gain = total[there] - total[here]
            gain += self._inside[others, here] + self._beside[others, here]
            gain -= self._inside[others, there] + self._beside[others, there]
            gain -= self._finite[atom, others] * (self._share(here) + self._shares[there])
            gain[there == here] = -np.inf
            for k in np.argsort(-gain, kind="stable")[:TRIED]:
                if not gain[k] > SMALLEST_GAIN:
                    break
                if self._try({int(atom): int(there[k]), int(others[k]): here}):
                    improved = True
                    self._refresh(self._near({here, int(there[k])}))
                    break
        return improved

    def _share(self, room: int) -> float:
        return float(self._shares[room])

    @property
    def _shares(self) -> FloatArray:
        """The share that a pair counts in each room: 1 / (people - 1), shape (rooms,)."""
        placed = self._room >= 0
        people = np.bincount(
            self._room[placed], weights=self._problem.sizes[placed], minlength=len(self._suite_of)
        )
        return np.asarray(1.0 / np.maximum(people - 1, 1))

    def _in_suite(self) -> BoolArray:
        """Return the mask of the atoms who live in a suite, shape (atoms,)."""
        return np.asarray((self._room >= 0) & (np.append(self._suite_of, -1)[self._room] >= 0))

    def exchange_rooms(self) -> bool:
        """Exchange the people of whole rooms between suites; return whether any moved."""
        problem, improved, n_rooms = self._problem, False, len(self._suite_of)
        self._refresh(np.arange(n_rooms))
        kinds = np.maximum(self._kind, 0)
        capacity, normal, view = (
            x[kinds] for x in (problem.capacity, problem.normal, problem.view)
        )
        rank = problem.rank[view]
        liked = self._liked(np.arange(n_rooms), view)
        for room in np.flatnonzero((self._suite_of >= 0) & self._is_open):
            living = np.flatnonzero(self._room == room)
            if not len(living):
                continue
            placed = np.flatnonzero(self._room >= 0)
            where = self._room[placed]

            gain = liked[living].sum(axis=0) - liked[living, room].sum()
            gain += np.bincount(where, weights=liked[placed, room], minlength=n_rooms)
            gain -= np.bincount(where, weights=liked[placed, where], minlength=n_rooms)
            people = np.bincount(where, weights=problem.sizes[placed], minlength=n_rooms)
            is_alike = (capacity == capacity[room]) & (normal == normal[room])
            may = (people == people[room]) | (is_alike & (rank == rank[room]))
            may &= (people <= capacity[room]) & (people[room] <= capacity) & self._is_open
            gain[~may | (self._suite_of == self._suite_of[room])] = -np.inf
            for other in np.argsort(-gain, kind="stable")[:TRIED]:
                if not gain[other] > SMALLEST_GAIN:
                    break
                changes = {int(atom): int(other) for atom in living}
                changes |= {int(atom): int(room) for atom in np.flatnonzero(self._room == other)}
                if self._try(changes):
                    improved = True
                    near = self._near({int(room), int(other)})
                    self._refresh(near)
                    liked[:, near] = self._liked(near, view)
                    break
        return improved

    def _liked(self, rooms: IntArray, view: IntArray) -> FloatArray:
        """Return what each atom counts in some rooms beside its roommates, (atoms, rooms)."""
        liked = self._problem.preference[view[rooms]].T + self._beside[:, rooms]
        return np.where(np.isfinite(self._inside[:, rooms]), liked, -1e3 * NEVER)

    def has_pairs(self, apart: BoolArray) -> bool:
        """Return True if a pair of a mask (n, n) shares a suite."""
        room = self._room[self._formulation.atom_of]
        suite = np.where(room >= 0, self._suite_of[room], -1)
        return any(
            bool(apart[np.ix_(people, people)].any())
            for one in range(len(self._rooms_of))
            if len(people := np.flatnonzero(suite == one))
        )

    def part(self, apart: BoolArray, kept: set[int]) -> tuple[tuple[int, int], ...]:
        """Take the room of one of each pair who must not share a suite and still does.

        ``kept`` are students who keep their room if the other has not one of these. Return the
        students who lost their room, each with the other.
        """
        atom_of = self._formulation.atom_of
        found = []
        for rooms in self._rooms_of:
            students = np.flatnonzero(np.isin(self._room[atom_of], rooms))
            for i, j in combinations(students.tolist(), 2):
                homes = self._room[atom_of[i]], self._room[atom_of[j]]
                if not apart[i, j] or homes[0] == homes[1] or min(homes) < 0:
                    continue
                if {i, j} <= kept:
                    continue
                leaves, stays = (j, i) if j not in kept else (i, j)
                self._room[atom_of[leaves]] = -1
                group = np.flatnonzero(atom_of == atom_of[leaves])
                found += [(student, stays) for student in group.tolist()]
        return tuple(found)


def _best_division(value: FloatArray) -> tuple[float, list[int]]:
    """Return the best sum of one subset for each room that divides all, and the subsets.

    ``value`` (rooms, 2^a) gives what each subset of a atoms, as a bit mask, counts in each room.
    """
    n_rooms, n_masks = value.shape
    best = np.full((n_rooms + 1, n_masks), -np.inf)
    choice: NDArray[np.int64] = np.zeros((n_rooms, n_masks), dtype=np.int64)
    best[0, 0] = 0.0
    masks = np.arange(n_masks)
    for room in range(n_rooms):
        for subset in np.flatnonzero(np.isfinite(value[room])):
            before = masks[masks & subset == 0]
            after = before | subset
            reached = best[room, before] + value[room, subset]
            better = reached > best[room + 1, after]
            best[room + 1, after[better]] = reached[better]
            choice[room, after[better]] = subset
    subsets, mask = [], n_masks - 1
    for room in range(n_rooms - 1, -1, -1):
        subsets.append(int(choice[room, mask]))
        mask &= ~choice[room, mask]
    return float(best[n_rooms, n_masks - 1]), subsets[::-1]
