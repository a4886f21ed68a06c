"""Place students in rooms: the best placement that could be found, and how good any can be."""

import hashlib
from dataclasses import dataclass, fields

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray, as_finite_array, read_only
from engine.core.checkpoint import Checkpoint, OwnCheckpoint
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.gap import relative_gap
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
from engine.rooms.conflicts import RoomConflict, check_room_rules, name_crowding
from engine.rooms.crowding import leaves_somebody_out
from engine.rooms.formulation import Attributes, Formulation, formulate, rooms_of_groups
from engine.rooms.search import Report, Search
from engine.rooms.seating import seat_atoms

CROWDING_SECONDS = 5.0  # to say why people were left out
SAVE_EVERY = 5.0  # seconds between two saved states
ROUNDING = 1e-9  # relative gap below which bound and placement agree


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Who lives in which room, and the certificate.

    Parameters
    ----------
    room : ndarray, shape (n,), int64, index into the rooms, -1 for those without one.
    score : float, nats
        Sum over rooms of the pair scores divided by (people in the room - 1), as learned; a student
        alone scores 0.
    extras : float, nats
        What wishes, preferences and ``alike`` add, minus the price of all moves.
    upper_bound : float, nats
        No placement of as many people is worth more than this: score and extras together.
    status : Status, CONVERGED when the wanted gap was reached.
    n_moved : int, students who had a room before and are not in it now.
    student_scores : ndarray, shape (n,), nats
        Mean of the pair scores with the roommates, 0 alone, NaN without a room.
    honoured : ndarray, shape (requests,), bool, requests of the rules that the placement honours.
    conflicts : tuple of RoomConflict, why people are without a room.
    seconds : float, wall-clock time.
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

    @property
    def weight(self) -> float:
        """Score and extras: what was maximised."""
        return self.score + self.extras

    @property
    def relative_gap(self) -> float:
        """How far the weight may be below the best, as a share of its size; see ``core.gap``."""
        return relative_gap(self.upper_bound, self.weight)

    @property
    def unplaced(self) -> tuple[int, ...]:
        """Students without a room."""
        return tuple(np.flatnonzero(self.room < 0).tolist())

    @property
    def n_rooms(self) -> int:
        """Number of rooms that somebody lives in."""
        return len(np.unique(self.room[self.room >= 0]))

    def roommates(self, student: int) -> IntArray:
        """Return the others in a student's room."""
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
    gap: float = 0.005,
    max_seconds: float | None = 120.0,
    rng: np.random.Generator | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
    checkpoint: Checkpoint | None = None,
) -> Placement:
    """Put students into rooms so that the total score is as large as can be.

    A room of c people is worth the sum of its pair scores divided by (c - 1), a student alone 0;
    what rules give for wishes and preferences comes on top. Rooms need not be full.

    Parameters
    ----------
    scores : ndarray, shape (n, n), symmetric, nats; or (model, survey), which also gives the
        attributes and ids. The diagonal is not read.
    rooms : Rooms
    rules : RoomRules, default none.
    attributes, ids : survey columns by name that rules refer to, and names for messages.
    previous : ndarray, shape (n,), optional, room of each student so far, -1 for none.
    move_cost : float, nats, what each student who leaves a room costs.
    allow_unplaced : bool
        Leave as few as possible without a room where not all can have one, and say why, instead of
        raising.
    gap : float, stop at this relative gap between the bound and the placement.
    max_seconds : float or None
    rng : Generator, default seed 0.
    on_progress, should_stop : callbacks; reports carry both bounds.
    checkpoint : Checkpoint, optional
        A run that was killed and is started again with the same input goes on from it.

    Returns
    -------
    Placement
        When stopped early, the best so far with the gap that it has.

    Raises
    ------
    InvalidProblemError
        If the input does not fit together, naming what.
    InfeasibleError
        If not everybody can have a room; ``conflicts`` holds the smallest clash.

    Notes
    -----
    Column generation with exact pricing; the bound is that of its linear relaxation, proved at any
    time of stopping. Memory is about 8 n (3 n + 4 rooms) bytes.

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
    rules = rules or RoomRules()
    if isinstance(scores, tuple):
        model, survey = scores
        attributes, ids = survey.attributes, survey.ids
        matrix = model.scores(survey)
    else:
        matrix = np.asarray(scores, dtype=np.float64)
    matrix = _check_scores(matrix)
    clock = SearchClock(max_seconds, should_stop)
    n = len(matrix)
    ids = ids or tuple(f"student {k}" for k in range(n))
    previous = _check_previous(previous, n, rooms)
    conflicts = check_room_rules(n, rooms, rules, attributes or {}, ids=ids)
    if conflicts and not (allow_unplaced and all(c.is_lack_of_beds for c in conflicts)):
        raise InfeasibleError(conflicts[0].sentence, conflicts=conflicts)
    formulation = formulate(matrix, attributes or {}, rooms, rules, previous, move_cost)
    keeper = _Keeper(_own(checkpoint, formulation), clock)
    search = Search(
        formulation.problem,
        penalty=_penalty(formulation),
        gap=gap,
        rng=rng or np.random.default_rng(0),
        clock=clock,
        report=_reporter(on_progress, clock),
        on_round=keeper.keep,
        offset=formulation.offset,
    )
    start = None
    if previous is not None and n:
        start = seat_atoms(search.exchange, formulation, previous)
    if n:
        with one_blas_thread():
            search.run(start, keeper.saved)
    left = np.flatnonzero(search.best.room_of[formulation.atom_of] == search.exchange.outside)
    if len(left) and not conflicts:
        conflicts = (_name_crowding(left, rooms, rules, attributes or {}, ids, should_stop),)
        if not allow_unplaced and conflicts[0].kind == "clash":
            raise InfeasibleError(conflicts[0].sentence, conflicts=conflicts)
    return _finish(search, formulation, matrix, rules, previous, clock, conflicts, gap)


def _name_crowding(
    left: IntArray,
    rooms: Rooms,
    rules: RoomRules,
    attributes: Attributes,
    ids: tuple[str, ...],
    should_stop: StopCallback,
) -> RoomConflict:
    """Say why the search left people out; some seconds at most."""
    n = len(ids)
    clock = SearchClock(CROWDING_SECONDS, should_stop)

    def is_short(fewer: RoomRules) -> bool:
        return not clock.is_over() and leaves_somebody_out(
            n, attributes, rooms, fewer, clock.is_over
        )

    return name_crowding(
        n, rooms, rules, attributes, ids=ids, unplaced=left.tolist(), is_short=is_short
    )


class _Keeper:
    """Saves the search now and then."""

    def __init__(self, place: OwnCheckpoint | None, clock: SearchClock) -> None:
        self._place, self._clock = place, clock
        self.saved = None if place is None else place.load()
        self._next = SAVE_EVERY

    def keep(self, search: Search) -> None:
        """Save unless it was saved a moment ago; also when somebody asks to stop."""
        is_due = self._clock.seconds >= self._next or self._clock.is_over()
        if self._place is not None and is_due:
            self._place.save(search.state())
            self._next = self._clock.seconds + SAVE_EVERY


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


def _penalty(formulation: Formulation) -> float:
    """What an unplaced person costs: more than anybody can be worth to a placement."""
    problem = formulation.problem
    finite = problem.scores[np.isfinite(problem.scores)]
    most = 4.0 * np.abs(finite).max(initial=0.0) + np.abs(problem.preference).max(initial=0.0)
    most += np.abs(problem.bonus).sum(axis=1).max(initial=0.0) if len(problem.bonus) else 0.0
    most += np.abs(problem.stay_refund).max(initial=0.0)
    most += np.abs(problem.own_score).max(initial=0.0) + np.abs(problem.own_bonus).max(initial=0.0)
    return float(2.0 * most + 1.0)


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


def _own(checkpoint: Checkpoint | None, formulation: Formulation) -> OwnCheckpoint | None:
    if checkpoint is None:
        return None
    problem = formulation.problem
    digest = hashlib.sha256()
    for name in fields(problem):
        digest.update(np.asarray(getattr(problem, name.name)).tobytes())
    return OwnCheckpoint(checkpoint, {"input digest": digest.hexdigest()[:12]})


def _finish(
    search: Search,
    formulation: Formulation,
    scores: FloatArray,
    rules: RoomRules,
    previous: IntArray | None,
    clock: SearchClock,
    conflicts: tuple[RoomConflict, ...],
    gap: float,
) -> Placement:
    search.exchange.start(search.best.room_of)
    groups = search.exchange.groups()
    room = rooms_of_groups(formulation, *groups, previous)
    student_scores = mean_scores(scores, room)
    score = float(np.nansum(student_scores) / 2.0)
    n_moved = 0
    if previous is not None:
        n_moved = int(((previous >= 0) & (room != previous)).sum())
    value, bound = (search.best.as_told(x) for x in (search.best.value, search.best.bound))
    extras = value - score
    if len(room) == 0:
        extras, bound = 0.0, 0.0
    status = Status.TIME_LIMIT
    if relative_gap(bound, value) <= max(gap, ROUNDING):
        status = Status.CONVERGED
    elif clock.is_cancelled:
        status = Status.CANCELLED
    elif clock.left > 0.0:
        status = Status.STALLED
    honoured = [
        bool(room[r.student] >= 0 and room[r.student] == room[r.wants]) for r in rules.requests
    ]
    return Placement(
        room=read_only(room),
        score=score,
        extras=extras,
        upper_bound=max(bound, score + extras),
        status=status,
        n_moved=n_moved,
        student_scores=read_only(student_scores),
        honoured=read_only(np.array(honoured, dtype=bool)),
        conflicts=conflicts,
        seconds=clock.seconds,
    )


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
