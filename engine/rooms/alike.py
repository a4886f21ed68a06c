"""Integer programme over patterns of student types, used instead of a search.

Where many students are alike, huge numbers of placements have the same value, and a search that
tells the students apart never ends. A pattern is the number of students of each type in a room; the
programme has one whole number for every pattern and kind of room.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.rooms.clock import SearchClock
from engine.rooms.problem import LARGEST_ROOM, Groups, RoomProblem
from engine.rooms.programme import EXACT, maximise, rounded_up

MOST_TYPES = 250  # more types have too many patterns of two to solve
MOST_PATTERNS = 20_000
ALIKE = 1e-12  # times the largest score: scores this near differ only by rounding
BEST = 1e-9  # largest relative gap of the programme that counts as rounding


@dataclass(frozen=True, slots=True)
class TypedPlacement:
    """Result of the integer programme over types.

    Parameters
    ----------
    groups : members (g, 8), kinds and rows (g,) of the placement; empty if the time ran out first.
    bound : float, upper bound on the value of every placement, penalties included.
    is_best : bool, whether no placement is better, apart from rounding.
    """

    groups: Groups
    bound: float
    is_best: bool


def place_by_types(
    problem: RoomProblem, gap: float, clock: SearchClock, seconds: float
) -> TypedPlacement | None:
    """Place atoms of few types; return None for too many types or if atoms may stay in rooms.

    Parameters
    ----------
    gap : float, relative gap at which the programme ends.
    seconds : float, budget of the programme in counted seconds.
    """
    if len(problem.stay_atom):
        return None
    found = find_types(problem)
    if found is None:
        return None
    type_of, deviation = found
    patterns = _list_patterns(problem, type_of)
    if patterns is None:
        return None
    counts, bound, is_best = _solve(problem, type_of, patterns, gap, clock, seconds)
    bound += 2.0 * problem.n_atoms * deviation
    return TypedPlacement(_seat(type_of, patterns, counts), bound, is_best)


def find_types(problem: RoomProblem) -> tuple[IntArray, float] | None:
    """Return the type of every atom (n,) and the largest score difference within a type, nats.

    Two atoms are of one type if exchanging them changes the value of no placement. Return None if
    there are too many types, or fewer than two atoms of each.
    """
    n = problem.n_atoms
    is_finite = np.isfinite(problem.scores)
    size = float(np.abs(problem.scores[is_finite]).max(initial=0.0))
    scores = np.where(is_finite, problem.scores, -4.0 * size - 1.0)
    allowance = ALIKE * size
    sums = scores.sum(axis=1)
    type_of = np.full(n, -1, dtype=np.int64)
    deviation, n_types = 0.0, 0
    for atom in range(n):
        if type_of[atom] >= 0:
            continue
        if n_types == min(MOST_TYPES, n // 2):
            return None
        near = np.abs(sums - sums[atom]) <= 2.0 * n * allowance
        near &= (type_of < 0) & _has_same_rules(problem, atom)
        others = np.flatnonzero(near)
        apart = _apart(scores, atom, others)
        is_same = apart <= allowance
        if len(problem.bonus):
            is_same &= _apart(problem.bonus, atom, others) == 0.0
        type_of[others[is_same]] = n_types
        deviation = max(deviation, float(apart[is_same].max(initial=0.0)))
        n_types += 1
    return type_of, deviation


def _has_same_rules(problem: RoomProblem, atom: int) -> BoolArray:
    """Return which atoms have the size, allowed rooms, preferences and penalty of an atom."""
    same = problem.sizes == problem.sizes[atom]
    same &= problem.own_score == problem.own_score[atom]
    same &= problem.own_bonus == problem.own_bonus[atom]
    same &= problem.penalty == problem.penalty[atom]
    for table in (problem.allowed, problem.preference):
        same &= (table == table[:, atom, None]).all(axis=0)
    return np.asarray(same)


def _apart(matrix: FloatArray, atom: int, others: IntArray) -> FloatArray:
    """Return the largest change in a symmetric matrix when an atom and another are exchanged."""
    apart = np.abs(matrix[others] - matrix[atom])
    apart[:, atom] = 0.0
    apart[np.arange(len(others)), others] = 0.0
    return np.asarray(apart.max(axis=1, initial=0.0))


def _list_patterns(problem: RoomProblem, type_of: IntArray) -> Groups | None:
    """Return every pattern in every kind of room, as a group of the first atoms of its types.

    Return None if there are too many patterns.
    """
    order = np.argsort(type_of, kind="stable")
    start = np.searchsorted(type_of[order], np.arange(type_of.max(initial=-1) + 2))
    found: list[Groups] = []
    n_found = 0
    for view in np.unique(problem.view[problem.count > 0]):
        kinds = np.flatnonzero((problem.view == view) & (problem.count > 0))
        largest = int(problem.capacity[kinds].max())
        types = np.unique(type_of[problem.allowed[view]])
        groups = np.empty((1, 0), dtype=np.int64)
        for _ in range(largest):
            groups = _extend(problem, groups, types, type_of, order, start)
            people = problem.sizes[groups].sum(axis=1)
            groups, people = groups[people <= largest], people[people <= largest]
            for t in kinds.tolist():
                fits = people <= problem.capacity[t]
                if problem.must_fill:
                    fits = people == problem.capacity[t]
                padded = np.full((int(fits.sum()), LARGEST_ROOM), -1, dtype=np.int64)
                padded[:, : groups.shape[1]] = groups[fits]
                n_found += len(padded)
                found.append((padded, np.full(len(padded), t), np.full(len(padded), -1)))
            if n_found > MOST_PATTERNS or len(groups) > MOST_PATTERNS:
                return None
    if not found:
        return None
    members, kind, row = (np.concatenate(part) for part in zip(*found, strict=True))
    return members, kind, row


def _extend(
    problem: RoomProblem,
    groups: IntArray,
    types: IntArray,
    type_of: IntArray,
    order: IntArray,
    start: IntArray,
) -> IntArray:
    """Add the next atom of every type to groups, in the order of types."""
    longer = []
    for k in types.tolist():
        fits = (type_of[groups] <= k).all(axis=1)
        held = (type_of[groups] == k).sum(axis=1)
        fits &= held < start[k + 1] - start[k]
        own, place = groups[fits], start[k] + held[fits]
        atoms = order[place]
        mates = np.isfinite(problem.scores[own, atoms[:, None]]).all(axis=1)
        longer.append(np.concatenate((own[mates], atoms[mates, None]), axis=1))
    return np.concatenate(longer) if longer else np.empty((0, groups.shape[1] + 1), dtype=np.int64)


def _solve(
    problem: RoomProblem,
    type_of: IntArray,
    patterns: Groups,
    gap: float,
    clock: SearchClock,
    seconds: float,
) -> tuple[IntArray, float, bool]:
    """Return the uses of each pattern (g,), a bound, and whether the solution is optimal.

    The columns are patterns, then the atoms of each type that are left out.
    """
    members, kind, row = patterns
    n_types, t = int(type_of.max(initial=-1)) + 1, problem.n_kinds
    amount = np.bincount(type_of, minlength=n_types)
    penalty = problem.penalty[np.unique(type_of, return_index=True)[1]]
    worth = np.concatenate((problem.group_values(members, kind, row), -penalty))
    held = np.zeros((n_types + t, len(worth)))
    group, place = np.nonzero(members >= 0)
    np.add.at(held, (type_of[members[group, place]], group), 1.0)
    held[n_types + kind, np.arange(len(kind))] = 1.0
    held[np.arange(n_types), np.arange(len(kind), len(worth))] = 1.0
    lower = np.concatenate((amount, np.full(t, -np.inf)))
    upper = np.concatenate((amount, problem.count)).astype(np.float64)
    columns: tuple[FloatArray, FloatArray] = (
        np.zeros(len(worth)),
        np.full(len(worth), float(problem.n_atoms)),
    )
    whole = np.ones(len(worth), dtype=bool)
    options = {"mip_rel_gap": gap, **EXACT}
    matrix = csc_array(held)
    found = maximise(worth, matrix, (lower, upper), columns, whole, clock, seconds, options)
    bound = rounded_up(found.bound, worth, problem.n_atoms)
    if found.values is None:
        return np.zeros(len(kind), dtype=np.int64), bound, False
    used = np.rint(found.values[: len(kind)]).astype(np.int64)
    return used, bound, found.mip_gap <= BEST


def _seat(type_of: IntArray, patterns: Groups, counts: IntArray) -> Groups:
    """Assign different atoms to every use of a pattern."""
    members, kind, row = (np.repeat(part, counts, axis=0) for part in patterns)
    group, place = np.nonzero(members >= 0)
    types = type_of[members[group, place]]
    order, waiting = np.argsort(types, kind="stable"), np.argsort(type_of, kind="stable")
    amount = np.bincount(types, minlength=int(type_of.max(initial=-1)) + 1)
    first = np.searchsorted(type_of[waiting], np.arange(len(amount)))
    within = np.arange(len(types)) - np.repeat(np.cumsum(amount) - amount, amount)
    members[group[order], place[order]] = waiting[first[types[order]] + within]
    return members, kind, row
