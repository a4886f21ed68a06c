"""Conversion of scores, rooms and rules to the arrays of the solver, and back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import ANYBODY, Designation, RoomRules
from engine.crf.rooms import Rooms, plain_value, reader_of
from engine.rooms.atoms import join_students, sum_over_atoms
from engine.rooms.problem import RoomProblem

Attributes = Mapping[str, tuple[str, ...]]
FEW = 64  # people: up to this number, a person with a need outweighs all people; above it,
PEOPLE_FOR_NEED = 8  # this many people in the sums of a search
PEOPLE_FOR_HOUSED = 10.0
EXACT_LEVELS = 12  # people up to whose number the prices of levels exceed all scores together
LARGEST = 1e5  # nats, of a score or weight: far from the value of -inf in the exchanges


@dataclass(frozen=True, slots=True, eq=False)
class RoomLayout:
    """Groups who must share a room and rooms where they may live; scores are not used.

    ``atom_of`` (n,); ``sizes`` (atoms,); ``kind_of`` (r,) kind of each room, -1 for rooms that take
    nobody; ``capacity``, ``normal``, ``count``, ``view`` (T,) of each kind; ``allowed``,
    ``preference`` (V, atoms); ``rank`` (V,) position in the order in which rooms fill.
    """

    atom_of: IntArray
    sizes: IntArray
    kind_of: IntArray
    capacity: IntArray
    normal: IntArray
    count: IntArray
    view: IntArray
    allowed: BoolArray
    preference: FloatArray
    rank: IntArray
    must_fill: bool

    @property
    def choices(self) -> BoolArray:
        """Mask of the atoms that fit alone in each kind of room, shape (T, atoms)."""
        fits: BoolArray = self.sizes <= self.capacity[:, np.newaxis]
        return np.asarray(self.allowed[self.view] & fits, dtype=np.bool_)


def lay_out(
    n: int,
    attributes: Attributes,
    rooms: Rooms,
    rules: RoomRules,
    *,
    joins_assigned: bool = True,
) -> RoomLayout:
    """Sort students into atoms and rooms into kinds.

    Students who are assigned to one room are one atom if ``joins_assigned``. This is right only
    where everybody can have a bed: otherwise one of them may have to make way alone.
    """
    musts = tuple((r.student, r.wants) for r in rules.requests if r.is_must)
    together = _students_by_room(rules.assigned) if joins_assigned else []
    atom_of = join_students(n, (*rules.locks, *musts, *together))
    sizes = np.bincount(atom_of, minlength=int(atom_of.max(initial=-1)) + 1).astype(np.int64)
    rank_of = _ranks(rooms, rules)
    kind_of, table, views = _kinds(rooms, rules, rank_of)
    count = np.bincount(kind_of[kind_of >= 0], minlength=len(table)).astype(np.int64)
    allowed, preference = _views(attributes, rooms, rules, views, atom_of, sizes)
    capacity, normal, view = (table[:, k].copy() for k in range(3))
    rank = rank_of[np.array(views, dtype=np.int64)]
    return RoomLayout(
        *(atom_of, sizes, kind_of, capacity, normal, count, view),
        *(allowed, preference, rank, rules.must_fill),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Formulation:
    """Problem arrays, with the indices that map them back to students and rooms.

    Parameters
    ----------
    problem : RoomProblem
    atom_of : ndarray, shape (n,), the atom of every student.
    kind_of : ndarray, shape (r,), the kind of every room, -1 for rooms that take nobody.
    room_of_row : ndarray, shape (R,), the room of every row that somebody may stay in.
    offset : float, added to the value of every placement: minus the price of all moves.
    """

    problem: RoomProblem
    atom_of: IntArray
    kind_of: IntArray
    room_of_row: IntArray
    offset: float


def formulate(
    scores: FloatArray,
    attributes: Attributes,
    rooms: Rooms,
    rules: RoomRules,
    previous: IntArray | None = None,
    move_cost: float = 0.0,
    *,
    joins_assigned: bool = True,
    with_levels: bool = True,
) -> Formulation:
    """Convert a placement problem to arrays.

    Parameters
    ----------
    scores : ndarray, shape (n, n), symmetric, nats.
    attributes : survey columns by name.
    previous : ndarray, shape (n,), previous room of each student, -1 for none.
    move_cost : float, nats for each student who leaves a room.
    joins_assigned : bool, see `lay_out`.
    with_levels : bool
        Whether extra beds and later rooms have a price, above what any score can gain.

    Raises
    ------
    InvalidProblemError
        If a score or weight is above `LARGEST`: it would look like a pair that never shares.
    """
    _check_size(scores, rules, move_cost)
    layout = lay_out(len(scores), attributes, rooms, rules, joins_assigned=joins_assigned)
    atom_of = layout.atom_of
    pair_scores = _forbid(_add_alike(scores, attributes, rules), attributes, rules)
    atom_scores, own_score = sum_over_atoms(pair_scores, atom_of)
    bonus, own_bonus = _wishes(rules, atom_of, len(layout.sizes))
    atom, row, refund, room_of_row = _stays(previous, move_cost, layout.kind_of, atom_of)
    offset = 0.0 if previous is None else -move_cost * int((np.asarray(previous) >= 0).sum())
    with_needs = _people(atom_of, [need.student for need in rules.needs])
    problem = RoomProblem(
        scores=atom_scores,
        bonus=bonus,
        sizes=layout.sizes,
        with_needs=with_needs,
        penalty=np.zeros(len(layout.sizes)),
        own_score=own_score,
        own_bonus=own_bonus,
        capacity=layout.capacity,
        normal=layout.normal,
        count=layout.count,
        view=layout.view,
        allowed=layout.allowed,
        preference=layout.preference,
        rank=layout.rank,
        extra_price=0.0,
        rank_price=0.0,
        stay_atom=atom,
        stay_row=row,
        stay_refund=refund,
        row_kind=layout.kind_of[room_of_row],
        must_fill=layout.must_fill,
    )
    housed = [student for student, _ in rules.assigned]
    if previous is not None:
        housed += np.flatnonzero(np.asarray(previous) >= 0).tolist()
    if with_levels:
        problem = _with_levels(problem)
    problem = replace(problem, penalty=_penalties(problem, _people(atom_of, housed)))
    return Formulation(problem, atom_of, layout.kind_of, room_of_row, offset)


def _people(atom_of: IntArray, students: list[int]) -> IntArray:
    """Return the number of these students in each atom."""
    chosen = atom_of[np.unique(np.array(students, dtype=np.int64))]
    return np.bincount(chosen, minlength=int(atom_of.max(initial=-1)) + 1).astype(np.int64)


def _penalties(problem: RoomProblem, housed: IntArray) -> FloatArray:
    """Return the cost of leaving out each atom: more than any atom can add to a placement.

    People with needs come first, then as many people as possible, preferring those who already
    had a bed or whom staff have assigned one.
    """
    largest = int((problem.capacity - problem.normal).max(initial=0))
    most = _most_of_one(problem) + problem.extra_price * largest
    step, people = 2.0 * most + 1.0, int(problem.sizes.sum())
    by_person = (PEOPLE_FOR_HOUSED if housed.any() else 1.0) * step
    by_need = (people if people <= FEW else PEOPLE_FOR_NEED) * by_person
    penalty: FloatArray = problem.sizes * by_person + problem.with_needs * by_need + housed * step
    return penalty


def _most_of_one(problem: RoomProblem) -> float:
    """Return an upper limit on what one atom adds to the value of a placement."""
    finite = problem.scores[np.isfinite(problem.scores)]
    most = 4.0 * np.abs(finite).max(initial=0.0) + np.abs(problem.preference).max(initial=0.0)
    most += np.abs(problem.bonus).sum(axis=1).max(initial=0.0) if len(problem.bonus) else 0.0
    most += np.abs(problem.stay_refund).max(initial=0.0)
    most += np.abs(problem.own_score).max(initial=0.0) + np.abs(problem.own_bonus).max(initial=0.0)
    return float(most)


def _with_levels(problem: RoomProblem) -> RoomProblem:
    """Return the problem with prices of extra beds and of later rooms.

    A bound minus the prices that a placement pays holds at any price. For few people the prices
    exceed what all scores can gain; above, what one person gains, because large prices slow the
    search, and :class:`engine.rooms.best.Best` compares the levels first anyway.
    """
    people = int(problem.sizes.sum())
    has_extra = bool(((problem.capacity > problem.normal) & (problem.count > 0)).any())
    ranks = problem.rank[problem.view[problem.count > 0]]
    has_order = len(np.unique(ranks)) > 1
    if not (has_extra or has_order):
        return problem
    unit = (_most_of_one(problem) + 1.0) * (min(people, EXACT_LEVELS) if people <= FEW else 0.5)
    rank_price = unit if has_order else 0.0
    later = rank_price * float(np.ptp(ranks)) if has_order else 0.0
    extra_price = later * (min(people, EXACT_LEVELS) if people <= FEW else 1.0) + unit
    preference = problem.preference - rank_price * problem.rank[:, np.newaxis] * problem.sizes
    return replace(
        problem,
        preference=preference,
        extra_price=extra_price if has_extra else 0.0,
        rank_price=rank_price,
    )


def _check_size(scores: FloatArray, rules: RoomRules, move_cost: float) -> None:
    weights = [request.weight for request in rules.requests]
    weights += [preference.weight for preference in rules.preferences]
    weights += [weight for _, weight in rules.alike]
    told: dict[str, FloatArray] = {
        "scores": scores,
        "weights of rules": np.array(weights, dtype=np.float64),
        "move_cost": np.array(move_cost, dtype=np.float64),
    }
    for name, numbers in told.items():
        size = float(np.abs(numbers).max(initial=0.0))
        if size > LARGEST:
            raise InvalidProblemError(
                f"{name}: expected at most {LARGEST:,.0f} nats in size, received {size:,.6g}."
            )


def _students_by_room(assigned: tuple[tuple[int, int], ...]) -> list[tuple[int, ...]]:
    by_room: dict[int, list[int]] = {}
    for student, room in assigned:
        by_room.setdefault(room, []).append(student)
    return [tuple(students) for students in by_room.values()]


def _add_alike(scores: FloatArray, attributes: Attributes, rules: RoomRules) -> FloatArray:
    total = np.array(scores, dtype=np.float64, copy=True)
    for name, weight in rules.alike:
        column = np.unique(survey_column(attributes, name), return_inverse=True)[1]
        total += weight * (column[:, np.newaxis] == column)
    return total


def _forbid(scores: FloatArray, attributes: Attributes, rules: RoomRules) -> FloatArray:
    """Write -inf for pairs of students who never share a room."""
    for name in rules.same:
        column = np.unique(survey_column(attributes, name), return_inverse=True)[1]
        scores[column[:, np.newaxis] != column] = -np.inf
    for i, j in rules.forbids:
        scores[i, j] = scores[j, i] = -np.inf
    alone = list(rules.single)
    scores[alone, :] = -np.inf
    scores[:, alone] = -np.inf
    return scores


def survey_column(attributes: Attributes, name: str) -> tuple[str, ...]:
    """Return a column of the survey, or raise InvalidProblemError with the existing names."""
    if name not in attributes:
        known = ", ".join(attributes) or "none"
        raise InvalidProblemError(f"{name} names no column of the survey; there are: {known}.")
    return attributes[name]


def _wishes(rules: RoomRules, atom_of: IntArray, n_atoms: int) -> tuple[FloatArray, FloatArray]:
    own = np.zeros(n_atoms)
    wishes = [r for r in rules.requests if not r.is_must and r.weight != 0.0]
    if not wishes:
        return np.empty((0, 0)), own
    bonus = np.zeros((n_atoms, n_atoms))
    for wish in wishes:
        a, b = atom_of[wish.student], atom_of[wish.wants]
        if a == b:
            own[a] += wish.weight
        else:
            bonus[a, b] += wish.weight
            bonus[b, a] += wish.weight
    return bonus, own


def _ranks(rooms: Rooms, rules: RoomRules) -> IntArray:
    """Return the position of each room in the order in which rooms fill, shape (r,)."""
    rank = np.full(rooms.n_rooms, len(rules.order), dtype=np.int64)
    for k in range(len(rules.order) - 1, -1, -1):
        name, value = rules.order[k]
        column = rooms.column(name)
        read = reader_of(column)
        rank[[read(cell) == read(value) for cell in column]] = k
    return rank


def _kinds(
    rooms: Rooms, rules: RoomRules, rank_of: IntArray
) -> tuple[IntArray, IntArray, list[int]]:
    """Sort rooms into kinds: kind of each room; (capacity, normal, view) by kind; a room per view.

    Rooms have one view if rules can distinguish them only by their capacity.
    """
    columns: list[list[object]] = [rank_of.tolist()]
    for designation in rules.designations:  # compared as text: "F" is not the "no" of a need
        column = rooms.column(designation.room_column)
        columns.append([cell.strip().lower() for cell in column])
    for need in dict.fromkeys(need.column for need in rules.needs):
        columns.append([plain_value(cell) for cell in rooms.column(need)])
    for liked in dict.fromkeys(preference.column for preference in rules.preferences):
        read = reader_of(rooms.column(liked))
        columns.append([read(cell) for cell in rooms.column(liked)])
    special = {room for _, room in rules.assigned} | set(rules.kept)
    view_of: dict[tuple[object, ...], int] = {}
    kinds: dict[tuple[int, int, int], int] = {}
    largest = rooms.capacities if rules.must_fill else rooms.max_capacities
    examples: list[int] = []
    kind_of = np.full(rooms.n_rooms, -1, dtype=np.int64)
    closed = set(rules.closed)
    for room in range(rooms.n_rooms):
        if room in closed:
            continue
        own = room if room in special else -1
        signature = (own, *(column[room] for column in columns))
        if signature not in view_of:
            view_of[signature] = len(view_of)
            examples.append(room)
        key = (int(largest[room]), int(rooms.capacities[room]), view_of[signature])
        kind_of[room] = kinds.setdefault(key, len(kinds))
    return kind_of, np.array(list(kinds), dtype=np.int64).reshape(-1, 3), examples


def _views(
    attributes: Attributes,
    rooms: Rooms,
    rules: RoomRules,
    examples: list[int],
    atom_of: IntArray,
    sizes: IntArray,
) -> tuple[BoolArray, FloatArray]:
    """Return who is allowed in, and likes, the rooms of every view; examples are a room of each."""
    n, shown = len(atom_of), np.array(examples, dtype=np.int64)
    allowed = np.ones((len(shown), n), dtype=bool)
    liked = np.zeros((len(shown), n))
    is_home = np.zeros((len(shown), n), dtype=bool)
    for student, room in rules.assigned:
        is_home[:, student] |= shown == room
        allowed[:, student] &= shown == room
    is_kept = np.isin(shown, rules.kept)
    allowed[is_kept] &= is_home[is_kept]
    for designation in rules.designations:
        allowed &= _admitted(designation, attributes, rooms, examples)
    shown_cells: dict[str, NDArray[np.str_]] = {}
    for need in rules.needs:
        if need.column not in shown_cells:
            shown_cells[need.column] = _cells(rooms, need.column, examples, plain_value)
        allowed[:, need.student] &= shown_cells[need.column] == plain_value(need.value)
    liked_columns = dict.fromkeys(p.column for p in rules.preferences)
    readers = {name: reader_of(rooms.column(name)) for name in liked_columns}
    wanted = {name: _cells(rooms, name, examples, read) for name, read in readers.items()}
    for preference in rules.preferences:
        read = readers[preference.column]
        ranked = dict.fromkeys(read(value) for value in preference.values)
        for k, value in enumerate(ranked):
            share = (len(ranked) - k) / len(ranked)
            liked[wanted[preference.column] == value, preference.student] += (
                preference.weight * share
            )
    atom_allowed = np.ones((len(shown), len(sizes)), dtype=bool)
    atom_liked = np.zeros((len(shown), len(sizes)))
    for v in range(len(shown)):
        atom_allowed[v] = np.bincount(atom_of[allowed[v]], minlength=len(sizes)) == sizes
        atom_liked[v] = np.bincount(atom_of, weights=liked[v], minlength=len(sizes))
    return atom_allowed, atom_liked


def _cells(
    rooms: Rooms, name: str, examples: list[int], read: Callable[[str], str]
) -> NDArray[np.str_]:
    column = rooms.column(name)
    return np.array([read(column[room]) for room in examples])


def _admitted(
    designation: Designation, attributes: Attributes, rooms: Rooms, examples: list[int]
) -> BoolArray:
    """Return the students that the designations of rooms admit, shape (rooms, n)."""
    values, value_of = np.unique(
        [value.strip().lower() for value in survey_column(attributes, designation.student_column)],
        return_inverse=True,
    )
    column, known = rooms.column(designation.room_column), set(values.tolist())
    admitted = np.zeros((len(examples), len(values)), dtype=bool)
    for v, room in enumerate(examples):
        cell = column[room].strip().lower()
        wanted = {part.strip() for part in cell.split("|")} & known
        admitted[v] = True if cell in ANYBODY else np.isin(values, list(wanted))
    return np.asarray(admitted[:, value_of.ravel()])


def _stays(
    previous: IntArray | None, move_cost: float, kind_of: IntArray, atom_of: IntArray
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Return atom, row and refund of everybody who may stay, and the room of each row."""
    none = np.empty(0, dtype=np.int64)
    if previous is None or move_cost == 0.0:
        return none, none, np.empty(0), none
    previous = np.asarray(previous, dtype=np.int64)
    may = (previous >= 0) & (np.append(kind_of, -1)[previous] >= 0)
    keys = np.column_stack((atom_of[may], previous[may]))
    pairs, counts = np.unique(keys, axis=0, return_counts=True)
    room_of_row, row = np.unique(pairs[:, 1], return_inverse=True)
    return (
        pairs[:, 0].copy(),
        row.astype(np.int64),
        np.asarray(move_cost * counts, dtype=np.float64),
        room_of_row,
    )


def rooms_of_groups(
    formulation: Formulation,
    members: IntArray,
    kind: IntArray,
    row: IntArray,
    previous: IntArray | None,
) -> IntArray:
    """Return the room of every student, shape (n,), -1 for students in no group.

    Groups that stay keep their room. The others get rooms of their kind, where possible those in
    which most of their members lived before.
    """
    problem = formulation.problem
    room_of_group = np.where(row >= 0, np.append(formulation.room_of_row, -1)[row], -1)
    group_of_atom = np.full(problem.n_atoms, -1, dtype=np.int64)
    for k in range(members.shape[1]):
        there = members[:, k] >= 0
        group_of_atom[members[there, k]] = np.flatnonzero(there)
    group_of = group_of_atom[formulation.atom_of]
    for t in np.unique(kind):
        groups = np.flatnonzero((kind == t) & (row < 0))
        free = np.flatnonzero(formulation.kind_of == t)
        free = np.setdiff1d(free, room_of_group)
        stay = np.zeros((len(groups), len(free)))
        if previous is not None:
            _count_stays(group_of, np.asarray(previous), groups, free, stay)
        rows, columns = linear_sum_assignment(stay, maximize=True)
        room_of_group[groups[rows]] = free[columns]
    return np.where(group_of >= 0, np.append(room_of_group, -1)[group_of], -1)


def _count_stays(
    group_of: IntArray, previous: IntArray, groups: IntArray, rooms: IntArray, out: FloatArray
) -> None:
    here = np.isin(group_of, groups) & np.isin(previous, rooms)
    places = np.searchsorted(groups, group_of[here]), np.searchsorted(rooms, previous[here])
    np.add.at(out, places, 1.0)
