"""Placement of students in rooms: the best one found, and a bound on all placements."""

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field, fields

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray, as_finite_array, read_only
from engine.core.checkpoint import Checkpoint, OwnCheckpoint, State
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.gap import relative_gap
from engine.core.options import (
    check_callables,
    check_choice,
    check_flag,
    check_generator,
    check_number,
    check_seconds,
)
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.core.status import Status
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.crf.survey import Survey
from engine.kernels.threads import one_blas_thread
from engine.learning.roommates.model import RoommateModel
from engine.rooms.clock import SearchClock
from engine.rooms.conflicts import (
    RoomConflict,
    check_references,
    check_room_rules,
    more_left_out,
    name_crowding,
)
from engine.rooms.crowding import leaves_somebody_out
from engine.rooms.dropping import DroppedRule, drop_contradictions
from engine.rooms.formulation import Attributes, Formulation, formulate, rooms_of_groups
from engine.rooms.part import restrict
from engine.rooms.problem import RoomProblem
from engine.rooms.rule_entries import DROPPABLE
from engine.rooms.search import STATE_VERSION, Report, Search
from engine.rooms.seating import seat_atoms

RELATIVE_GAP = 0.005  # between bound and placement, at which the search stops by default
MAX_SECONDS = 120.0  # of processor time by default
CROWDING_SECONDS = 5.0  # counted seconds, to explain why people were left out
SAVE_EVERY = 5.0  # seconds between two saved states
ROUNDING = 1e-9  # relative gap below which bound and placement agree


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Room of every student, with a certificate of quality.

    Parameters
    ----------
    room : ndarray, shape (n,), int64, index into the rooms, -1 for students without a room.
    score : float, nats
        Sum over rooms of the pair scores divided by (people in the room - 1), as learned; a student
        alone scores 0.
    extras : float, nats
        Sum of wishes, preferences and ``alike``, minus the price of all moves.
    upper_bound : float, nats
        Upper bound on score and extras together, over placements of as many people, as many with
        needs, as many people in extra beds and the same sum of positions in the order of rooms.
    status : Status, CONVERGED when the requested gap was reached.
    n_moved : int, students who had a room before and are not in it now.
    student_scores : ndarray, shape (n,), nats
        Mean of the pair scores with the roommates, 0 alone, NaN without a room.
    honoured : ndarray, shape (requests,), bool, requests of the rules that the placement honours.
    conflicts : tuple of RoomConflict, reasons why people are without a room.
    seconds : float, processor time, including that of an interrupted run before.
    rules : RoomRules, the rules that the placement keeps: the given ones without dropped rules.
    dropped : tuple of DroppedRule, rules dropped for some people: see ``allow_unplaced``.
    most_placed : int
        Largest number of people who can have a room if as many as possible with needs have one.
    most_with_needs : int, largest number of people with needs who can have a room.
    n_extra_beds : int, people in extra beds.
    least_extra_beds : int
        Proved lower limit of people in extra beds, if as many people as possible have a room.
    is_repeatable : bool
        Whether the same input, seed and limits give this placement again: neither the limit in
        processor seconds nor a cancellation ended the search.
    work : float, counted seconds, which ``max_work`` limits.
    """

    room: IntArray
    score: float
    extras: float
    upper_bound: float
    status: Status
    n_moved: int
    student_scores: FloatArray
    honoured: BoolArray
    conflicts: tuple[RoomConflict, ...]
    seconds: float
    rules: RoomRules = field(default_factory=RoomRules)
    dropped: tuple[DroppedRule, ...] = ()
    most_placed: int = 0
    most_with_needs: int = 0
    n_extra_beds: int = 0
    least_extra_beds: int = 0
    is_repeatable: bool = True
    work: float = 0.0

    @property
    def weight(self) -> float:
        """Score and extras: the maximised value."""
        return self.score + self.extras

    @property
    def relative_gap(self) -> float:
        """Largest distance of the weight from the best, as a share of it; see ``core.gap``."""
        return relative_gap(self.upper_bound, self.weight)

    @property
    def unplaced(self) -> tuple[int, ...]:
        """Students without a room."""
        return tuple(np.flatnonzero(self.room < 0).tolist())

    @property
    def n_rooms(self) -> int:
        """Number of rooms with residents."""
        return len(np.unique(self.room[self.room >= 0]))

    def roommates(self, student: int) -> IntArray:
        """Return the roommates of a student."""
        room = self.room[student]
        others = (self.room == room) & (room >= 0)
        others[student] = False
        return np.flatnonzero(others).astype(np.int64)


def place_in_rooms(
    scores: FloatArray | tuple[RoommateModel, Survey],
    rooms: Rooms,
    rules: RoomRules | None = None,
    *,
    attributes: Attributes | None = None,
    ids: tuple[str, ...] | None = None,
    previous: IntArray | None = None,
    move_cost: float = 0.0,
    allow_unplaced: bool = False,
    may_drop: Collection[str] = DROPPABLE,
    gap: float = RELATIVE_GAP,
    max_seconds: float | None = MAX_SECONDS,
    max_work: float | None = None,
    rng: np.random.Generator | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
    checkpoint: Checkpoint | None = None,
) -> Placement:
    """Place students in rooms so that the total score is as large as possible.

    The value of a room of c people is the sum of its pair scores divided by (c - 1), or 0 alone.
    Rules add the weights of wishes and preferences. Rooms need not be full. Before the value count,
    in this order: beds for everybody, fewest people in extra beds, and the order of the rooms.

    Parameters
    ----------
    scores : ndarray, shape (n, n), symmetric, nats; or (model, survey), which also gives the
        attributes and ids. The diagonal is ignored.
    rooms : Rooms
    rules : RoomRules, default none.
    attributes, ids : survey columns by name that rules refer to, and names for messages.
    previous : ndarray, shape (n,), optional, previous room of each student, -1 for none.
    move_cost : float, nats, cost of each student who leaves a room.
    allow_unplaced : bool
        If not everybody can have a room, leave out as few as possible and explain why, instead of
        raising. People with needs get a room first, then as many as possible. Rules that tie people
        together, or in a room, against another rule are dropped: see ``dropped``.
    may_drop : fields of the rules whose entries may be dropped: requests, locks, assigned.
    gap : float, stop at this relative gap between the bound and the placement.
    max_seconds : float or None, limit in processor seconds of the calling thread.
    max_work : float or None
        Limit in counted seconds, about as long on a machine of 2024 as processor seconds; a run
        that ends by it is repeatable.
    rng : Generator, default seed 0.
    on_progress, should_stop : callbacks; reports carry both bounds.
    checkpoint : Checkpoint, optional
        A run that was killed and is started again with the same input and seed resumes from it, and
        ends at the same placement. Limits hold for all its runs together.

    Returns
    -------
    Placement
        When stopped early, the best so far with its gap.

    Raises
    ------
    InvalidProblemError
        If parts of the input do not fit together; the message names them.
    InfeasibleError
        If not everybody can have a room; ``conflicts`` holds the smallest clash.

    Notes
    -----
    Beds come first: a placement of as many people as can have a room is found before anything is
    improved, and no placement that leaves out more replaces it. Then column generation with exact
    pricing. The bound is that of its linear relaxation, proved whenever the search stops. Memory is
    about 8 n (3 n + 4 rooms) bytes.

    References
    ----------
    Wentges (1997), smoothing of the prices; Barnhart et al. (1998), branch and price.

    Examples
    --------
    >>> import numpy as np
    >>> from engine import Rooms, place_in_rooms
    >>> scores = np.array([[0, 3, 1, 0], [3, 0, 2, 0], [1, 2, 0, 0], [0, 0, 0, 0.0]])
    >>> placement = place_in_rooms(scores, Rooms(("A", "B"), np.array([3, 1])))
    >>> placement.room.tolist(), placement.weight, placement.relative_gap <= 0.005
    ([0, 0, 0, 1], 3.0, True)
    """
    check_number("move_cost", move_cost, at_least=0.0)
    check_flag("allow_unplaced", allow_unplaced)
    for rule in may_drop:
        check_choice("may_drop", rule, DROPPABLE)
    check_number("gap", gap, at_least=0.0)
    check_seconds("max_seconds", max_seconds)
    check_number("max_work", max_work, above=0.0, optional=True)
    check_generator("rng", rng)
    check_callables(on_progress=on_progress, should_stop=should_stop)
    given = rules = rules or RoomRules()
    if isinstance(scores, tuple):
        model, survey = scores
        attributes, ids = survey.attributes, survey.ids
        matrix = model.scores(survey)
    else:
        matrix = np.asarray(scores, dtype=np.float64)
    matrix = _check_scores(matrix)
    clock = SearchClock(max_seconds, should_stop, max_work)
    n, attributes = len(matrix), attributes or {}
    ids = ids or tuple(f"student {k}" for k in range(n))
    previous = _check_previous(previous, n, rooms)
    dropped: tuple[DroppedRule, ...] = ()
    check_references(n, rooms, rules, attributes)
    if allow_unplaced:
        rules, dropped = drop_contradictions(rules, rooms, attributes, ids, may_drop)
    conflicts = check_room_rules(n, rooms, rules, attributes, ids=ids)
    if conflicts and not (allow_unplaced and all(c.is_lack_of_beds for c in conflicts)):
        raise InfeasibleError(conflicts[0].sentence, conflicts=conflicts)
    formulation = formulate(
        matrix, attributes, rooms, rules, previous, move_cost, joins_assigned=not conflicts
    )
    rng = np.random.default_rng((rng or np.random.default_rng(0)).integers(2**63))
    atoms = np.flatnonzero(formulation.problem.has_room)
    everything = formulation.problem
    problem = restrict(everything, atoms, everything.count, np.arange(len(everything.row_kind)))
    keeper = _Keeper(_own(checkpoint, problem, rng), clock)
    search = Search(
        problem,
        gap=max(gap, ROUNDING),
        rng=rng,
        clock=clock,
        report=_reporter(on_progress, clock),
        on_stage=keeper.keep,
        offset=formulation.offset,
    )
    start = None if previous is None else seat_atoms(search.exchange, formulation, previous, atoms)
    if len(atoms):
        with one_blas_thread():
            search.run(start, keeper.saved)
        keeper.finish(search)
    room = _rooms_of_students(search, formulation, atoms, previous)
    left = np.flatnonzero(room < 0)
    more = len(left) - sum(conflict.n_left for conflict in conflicts)
    if more > 0 and conflicts:
        conflicts = (*conflicts, more_left_out(more, search.beds.holds(search.best.n_outside)))
    elif more > 0:
        conflicts = (_name_crowding(left, rooms, rules, attributes, ids, should_stop),)
        if not allow_unplaced and conflicts[0].kind == "clash":
            raise InfeasibleError(conflicts[0].sentence, conflicts=conflicts)
    return _finish(search, room, matrix, (given, rules), previous, conflicts, dropped, gap)


def _name_crowding(
    left: IntArray,
    rooms: Rooms,
    rules: RoomRules,
    attributes: Attributes,
    ids: tuple[str, ...],
    should_stop: StopCallback,
) -> RoomConflict:
    """Explain why the search left people out, within CROWDING_SECONDS."""
    n = len(ids)
    clock = SearchClock(None, should_stop, CROWDING_SECONDS)

    def is_short(fewer: RoomRules) -> bool:
        return not clock.is_over() and leaves_somebody_out(n, attributes, rooms, fewer, clock)

    return name_crowding(
        n, rooms, rules, attributes, ids=ids, unplaced=left.tolist(), is_short=is_short
    )


class _Keeper:
    """Saver of the search's state between stages now and then, and at its end."""

    def __init__(self, place: OwnCheckpoint | None, clock: SearchClock) -> None:
        self._place, self._clock = place, clock
        self.saved = None if place is None else place.load()
        self._last: State = {}
        self._next = 0.0

    def keep(self, search: Search) -> None:
        """Record the state between two stages; save it unless one was saved a moment ago."""
        if self._place is None:
            return
        self._last = search.state()
        if self._clock.seconds >= self._next:
            self._place.save(self._last)
            self._next = self._clock.seconds + SAVE_EVERY

    def finish(self, search: Search) -> None:
        """Save the last state, and the placement found since."""
        if self._place is not None:
            self._place.save({**self._last, "kept": search.best.room_of.astype(np.int32)})


def _check_scores(matrix: FloatArray) -> FloatArray:
    plain = np.array(matrix, dtype=np.float64, copy=True)
    if plain.ndim == 2 and plain.shape[0] == plain.shape[1]:
        np.fill_diagonal(plain, 0.0)
    plain = as_finite_array("scores", plain, shape=(None, None))
    if plain.shape[0] != plain.shape[1]:
        raise InvalidProblemError(f"scores: expected a square matrix, received {plain.shape}.")
    size = np.abs(plain).max(initial=0.0)
    if np.abs(plain - plain.T).max(initial=0.0) > 1e-9 * size:
        raise InvalidProblemError("scores: expected a symmetric matrix.")
    return plain


def _check_previous(previous: IntArray | None, n: int, rooms: Rooms) -> IntArray | None:
    if previous is None:
        return None
    array = np.asarray(previous, dtype=np.int64)
    if array.shape != (n,):
        raise InvalidProblemError(f"previous: expected {n} rooms, received {array.shape}.")
    if ((array < -1) | (array >= rooms.n_rooms)).any():
        raise InvalidProblemError("previous: names a room that is not in the list.")
    return array


def _reporter(on_progress: ProgressCallback, clock: SearchClock) -> Report:
    def report(sentence: str, low: float, high: float) -> None:
        on_progress(
            Progress(
                sentence,
                seconds=clock.seconds,
                objective=None if np.isinf(high) else high,
                lower_bound=low,
                gap=None if np.isinf(high) else max(high - low, 0.0),
                relative_gap=None if np.isinf(high) else relative_gap(high, low),
            )
        )

    return report


def _own(
    checkpoint: Checkpoint | None, problem: RoomProblem, rng: np.random.Generator
) -> OwnCheckpoint | None:
    if checkpoint is None:
        return None
    digest = hashlib.sha256()
    for name in fields(problem):
        digest.update(np.asarray(getattr(problem, name.name)).tobytes())
    seed = hashlib.sha256(json.dumps(rng.bit_generator.state).encode())
    return OwnCheckpoint(
        checkpoint,
        {
            "search version": STATE_VERSION,
            "input digest": digest.hexdigest()[:12],
            "seed digest": seed.hexdigest()[:12],
        },
    )


def _rooms_of_students(
    search: Search, formulation: Formulation, atoms: IntArray, previous: IntArray | None
) -> IntArray:
    """Return the room of every student in the best placement, -1 for none."""
    search.exchange.start(search.best.room_of)
    members, kind, row = search.exchange.groups()
    members = np.append(atoms, -1)[members]
    return rooms_of_groups(formulation, members, kind, row, previous)


def _finish(
    search: Search,
    room: IntArray,
    scores: FloatArray,
    rules: tuple[RoomRules, RoomRules],
    previous: IntArray | None,
    conflicts: tuple[RoomConflict, ...],
    dropped: tuple[DroppedRule, ...],
    gap: float,
) -> Placement:
    given, kept = rules
    student_scores = mean_scores(scores, room)
    score = float(np.nansum(student_scores) / 2.0)
    n_moved = 0
    if previous is not None:
        n_moved = int(((previous >= 0) & (room != previous)).sum())
    value, bound = (search.best.as_told(x) for x in (search.best.value, search.best.bound))
    extras = value - score
    if not search.problem.n_atoms:
        bound = value  # no choice to make
    honoured = [
        bool(room[r.student] >= 0 and room[r.student] == room[r.wants]) for r in given.requests
    ]
    return Placement(
        room=read_only(room),
        score=score,
        extras=extras,
        upper_bound=max(bound, score + extras),
        status=_status(search, relative_gap(bound, value) <= max(gap, ROUNDING)),
        n_moved=n_moved,
        student_scores=read_only(student_scores),
        honoured=read_only(np.array(honoured, dtype=bool)),
        conflicts=conflicts,
        rules=kept,
        dropped=dropped,
        most_placed=search.beds.most_people,
        most_with_needs=search.beds.most_with_needs,
        n_extra_beds=search.best.levels[0],
        least_extra_beds=min(search.beds.least_levels[0], search.best.levels[0]),
        is_repeatable=not (search.clock.is_cut or search.clock.is_cancelled),
        seconds=search.clock.seconds,
        work=search.clock.work,
    )


def _status(search: Search, is_close: bool) -> Status:
    if is_close:
        return Status.CONVERGED
    if search.clock.is_cancelled:
        return Status.CANCELLED
    return Status.STALLED if search.is_at_end else Status.TIME_LIMIT


def mean_scores(scores: FloatArray, room: IntArray) -> FloatArray:
    """Return each student's mean pair score with the roommates, 0 alone, NaN without a room."""
    out = np.full(len(room), np.nan)
    order = np.argsort(room, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(room[order])) + 1):
        if len(group) and room[group[0]] >= 0:
            own = scores[np.ix_(group, group)]
            total = own.sum(axis=1) - np.diag(own)
            out[group] = total / max(len(group) - 1, 1)
    return out
