"""Students who are alike, counted together: a small integer programme in place of a search.

Where many students are alike, placements come in huge numbers of the same value: mixtures use all
of them a little, and a search that tells them apart finds no end. What a room holds is then how
many of each type: the programme has one whole number for every such pattern and kind of room.
"""

from dataclasses import dataclass

import highspy
import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.progress import StopCallback
from engine.core.rounding import sum_allowance
from engine.rooms.problem import LARGEST_ROOM, Groups, RoomProblem

MOST_TYPES = 250  # beyond, patterns of two are as many as can be solved
MOST_PATTERNS = 20_000
ALIKE = 1e-12  # of the largest score: scores this near are the same, but for rounding
BEST = 1e-9  # relative gap of the programme below which it is rounding
TOLERANCE = 1e-10  # of the solver's duals: a group may miss its prices by so much (nats)


@dataclass(frozen=True, slots=True)
class TypedPlacement:
    """What the programme found.

    Parameters
    ----------
    groups : members (g, 8), kinds and rows (g,) of a placement; none where none was found in time.
    bound : float, what no placement is worth more than, penalties included.
    is_best : bool, whether no placement is better, but for rounding.
    """

    groups: Groups
    bound: float
    is_best: bool


def place_by_types(
    problem: RoomProblem, penalty: float, gap: float, seconds: float, should_stop: StopCallback
) -> TypedPlacement | None:
    """Place atoms of few types; None where they are of too many, or some may stay in their rooms.

    Parameters
    ----------
    penalty : float, nats, of a person left out.
    gap : float, relative, at which the programme ends.
    seconds : float, the programme's limit.
    should_stop : asked while the programme is solved.
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
    programme = _Programme(problem, type_of, patterns, penalty)
    counts, bound, is_best = programme.solve(gap, seconds, should_stop)
    bound += 2.0 * problem.n_atoms * deviation
    return TypedPlacement(_seat(type_of, patterns, counts), bound, is_best)


def find_types(problem: RoomProblem) -> tuple[IntArray, float] | None:
    """Return the type of every atom (n,) and by how much alike scores differ at most, nats.

    Two atoms are of one type if no placement's worth changes where they change places. None where
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
    """Return which atoms are of the size of one, may live where it may and like it as much."""
    same = problem.sizes == problem.sizes[atom]
    same &= problem.own_score == problem.own_score[atom]
    same &= problem.own_bonus == problem.own_bonus[atom]
    for table in (problem.allowed, problem.preference):
        same &= (table == table[:, atom, None]).all(axis=0)
    return np.asarray(same)


def _apart(matrix: FloatArray, atom: int, others: IntArray) -> FloatArray:
    """Return by how much a symmetric matrix changes where an atom and another change places."""
    apart = np.abs(matrix[others] - matrix[atom])
    apart[:, atom] = 0.0
    apart[np.arange(len(others)), others] = 0.0
    return np.asarray(apart.max(axis=1, initial=0.0))


def _list_patterns(problem: RoomProblem, type_of: IntArray) -> Groups | None:
    """Return every pattern in every kind of room, as a group of the first atoms of its types.

    None where they are too many.
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


class _Programme:
    """How often each pattern is used, and how many atoms of each type are left out."""

    def __init__(
        self, problem: RoomProblem, type_of: IntArray, patterns: Groups, penalty: float
    ) -> None:
        members, kind, row = patterns
        self._n_patterns = len(kind)
        n_types, t = int(type_of.max(initial=-1)) + 1, problem.n_kinds
        amount = np.bincount(type_of, minlength=n_types)
        sizes = problem.sizes[np.unique(type_of, return_index=True)[1]]
        costs = -np.concatenate((problem.group_values(members, kind, row), -penalty * sizes))
        n = problem.n_atoms  # groups and atoms left out, at most
        size = n * float(np.abs(costs).max(initial=0.0))
        self._allowance = TOLERANCE * n + sum_allowance(n, size)
        model = _quiet_solver()
        lower = np.concatenate((amount, np.full(t, -highspy.kHighsInf)))
        upper = np.concatenate((amount, problem.count)).astype(np.float64)
        none = np.empty(0, dtype=np.int32)
        model.addRows(n_types + t, lower, upper, 0, none, none, np.empty(0))
        held = np.zeros((len(costs), n_types + t), dtype=np.int64)
        group, place = np.nonzero(members >= 0)
        np.add.at(held, (group, type_of[members[group, place]]), 1)
        held[np.arange(len(kind)), n_types + kind] = 1
        held[np.arange(len(kind), len(costs)), np.arange(n_types)] = 1
        column, index = np.nonzero(held)
        first = np.searchsorted(column, np.arange(len(costs))).astype(np.int32)
        most = np.full(len(costs), float(problem.n_atoms))
        entries = held[column, index].astype(np.float64)
        model.addCols(
            *(len(costs), costs, np.zeros(len(costs)), most),
            *(len(index), first, index.astype(np.int32), entries),
        )
        whole = np.full(len(costs), highspy.HighsVarType.kInteger)
        model.changeColsIntegrality(len(costs), np.arange(len(costs), dtype=np.int32), whole)
        self._model = model

    def solve(
        self, gap: float, seconds: float, should_stop: StopCallback
    ) -> tuple[IntArray, float, bool]:
        """Return how often each pattern is used (g,), a bound, and whether it is the best use."""
        model = self._model
        model.setOptionValue("mip_rel_gap", gap)
        model.setOptionValue("time_limit", min(seconds, 1e6))

        def look(event: object) -> None:
            if should_stop():
                event.interrupt()  # type: ignore[attr-defined]

        model.cbMipInterrupt.subscribe(look)
        model.run()
        found = model.getInfo()
        bound = -float(found.mip_dual_bound) + self._allowance
        if found.primal_solution_status != 2:
            return np.zeros(self._n_patterns, dtype=np.int64), bound, False
        used = np.rint(np.array(model.getSolution().col_value)[: self._n_patterns])
        return used.astype(np.int64), bound, bool(found.mip_gap <= BEST)


def _quiet_solver() -> highspy.Highs:
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    model.setOptionValue("random_seed", 1)
    model.setOptionValue("mip_abs_gap", 1e-9)
    model.setOptionValue("mip_feasibility_tolerance", 1e-9)
    model.setOptionValue("primal_feasibility_tolerance", TOLERANCE)
    model.setOptionValue("dual_feasibility_tolerance", TOLERANCE)
    return model


def _seat(type_of: IntArray, patterns: Groups, counts: IntArray) -> Groups:
    """Give every use of a pattern atoms of its own."""
    members, kind, row = (np.repeat(part, counts, axis=0) for part in patterns)
    group, place = np.nonzero(members >= 0)
    types = type_of[members[group, place]]
    order, waiting = np.argsort(types, kind="stable"), np.argsort(type_of, kind="stable")
    amount = np.bincount(types, minlength=int(type_of.max(initial=-1)) + 1)
    first = np.searchsorted(type_of[waiting], np.arange(len(amount)))
    within = np.arange(len(types)) - np.repeat(np.cumsum(amount) - amount, amount)
    members[group[order], place[order]] = waiting[first[types[order]] + within]
    return members, kind, row
