"""Explanation of a room: pairs, questions, doubt, and the costs of the next-best moves."""

from dataclasses import dataclass, replace

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import RoomRules
from engine.crf.rooms import Rooms
from engine.crf.survey import Survey
from engine.kernels.room_chain import weigh_exchanges
from engine.learning.roommates.explanation import Explanation, explain_pair
from engine.learning.roommates.model import RoommateModel
from engine.rooms.exchange import Exchange
from engine.rooms.formulation import Attributes, Formulation, formulate
from engine.rooms.seating import seat_atoms


@dataclass(frozen=True, slots=True)
class RoomMove:
    """Change of a placement, and its cost.

    Parameters
    ----------
    student : int, the student who leaves their room.
    partner : int, the student who takes their place, or -1 if a free bed is taken.
    room : int, the new room of the student.
    change : float, nats, change in the weight of the whole placement; negative if it falls.
    change_here, change_there : float, nats, of the room that is left and of the other.
    is_allowed : bool, whether the rules allow it.
    """

    student: int
    partner: int
    room: int
    change: float
    change_here: float
    change_there: float
    is_allowed: bool


@dataclass(frozen=True, slots=True, eq=False)
class RoomExplanation:
    """Room with its score divided into pairs and students.

    Parameters
    ----------
    students : tuple of students, ascending.
    pair_scores : ndarray, shape (c, c), nats, symmetric, diagonal 0.
    student_means : ndarray, shape (c,), mean of each student with the others, nats.
    score : float, score of the room: the sum over pairs divided by (c - 1).
    weakest : int, the student with the lowest mean, -1 for fewer than three.
    """

    students: tuple[int, ...]
    pair_scores: FloatArray
    student_means: FloatArray
    score: float
    weakest: int


def explain_room(
    model: RoommateModel, survey: Survey, room: IntArray, which: int
) -> RoomExplanation:
    """Divide a room's score into pairs and students; `explain_pair` divides a pair by question.

    Raises
    ------
    InvalidProblemError
        If nobody lives there, or the survey has other questions.
    """
    model.check_survey(survey)
    students = np.flatnonzero(np.asarray(room) == which)
    if not len(students) or which < 0:
        raise InvalidProblemError(f"Nobody lives in room {which}.")
    scores = model.features.scores(survey.take(students), model.theta)
    np.fill_diagonal(scores, 0.0)
    c = len(students)
    means = scores.sum(axis=1) / max(c - 1, 1)
    weakest = int(students[np.argmin(means)]) if c > 2 else -1
    return RoomExplanation(
        tuple(students.tolist()),
        read_only(scores),
        read_only(means),
        float(means.sum() / 2.0),
        weakest,
    )


def explain_roommates(
    model: RoommateModel, survey: Survey, room: IntArray, student: int
) -> tuple[tuple[int, Explanation], ...]:
    """Divide a student's score with each roommate into questions, lowest score first."""
    place = np.asarray(room)
    others = np.flatnonzero((place == place[student]) & (place >= 0))
    parts = [(int(k), explain_pair(model, survey, student, int(k))) for k in others if k != student]
    return tuple(sorted(parts, key=lambda part: part[1].score))


class PlacementMoves:
    """Exact costs of every move from one placement, for repeated requests.

    Parameters
    ----------
    scores : ndarray, shape (n, n), nats.
    room : ndarray, shape (n,), the placement, -1 for students without a room.
    previous, move_cost : as in ``place_in_rooms``; a move out of a previous room then has a cost.

    Notes
    -----
    Making one takes about 0.7 s for 2,500 students, so keep it between pages; then ``best`` and
    ``swap`` take less than a millisecond.

    Examples
    --------
    >>> import numpy as np
    >>> from engine import Rooms
    >>> from engine.rooms.explanation import PlacementMoves
    >>> scores = np.array([[0, 1, 3, 0], [1, 0, 0, 3], [3, 0, 0, 1], [0, 3, 1, 0.0]])
    >>> moves = PlacementMoves(scores, Rooms(("A", "B"), [2, 2]), np.array([0, 0, 1, 1]))
    >>> best = moves.best(0, count=1)[0]
    >>> best.partner, best.change
    (3, 4.0)
    """

    def __init__(
        self,
        scores: FloatArray,
        rooms: Rooms,
        room: IntArray,
        rules: RoomRules | None = None,
        *,
        attributes: Attributes | None = None,
        previous: IntArray | None = None,
        move_cost: float = 0.0,
    ) -> None:
        self._room = np.asarray(room, dtype=np.int64)
        before = None if previous is None else np.asarray(previous, dtype=np.int64)
        self._formulation: Formulation = formulate(
            *(scores, attributes or {}, rooms, rules or RoomRules(), before, move_cost),
            with_levels=False,
        )
        free = np.zeros(self._formulation.problem.n_atoms)  # leaving somebody out costs nothing
        self._exchange = Exchange(replace(self._formulation.problem, penalty=free))
        start = seat_atoms(self._exchange, self._formulation, self._room)
        self._exchange.start(start)
        self._number = self._room_numbers()

    def _room_numbers(self) -> IntArray:
        """Return the actual room of each room of the exchange, -1 for outside."""
        number = np.full(self._exchange.outside + 1, -1, dtype=np.int64)
        own = self._exchange.room_of[self._formulation.atom_of]
        number[own] = self._room
        number[-1] = -1
        for kind in range(self._formulation.problem.n_kinds):
            real = np.flatnonzero(self._formulation.kind_of == kind)
            mine = np.flatnonzero(self._exchange.kind_of_room == kind)
            free = mine[number[mine] < 0]
            number[free] = np.setdiff1d(real, number[mine])[: len(free)]
        return number

    def best(self, student: int, *, count: int = 5, room: int | None = None) -> list[RoomMove]:
        """Return a student's best moves, exchanges and free beds, the best first.

        ``room`` limits moves to one room. Moves that the rules forbid are left out. People who are
        locked together move together, and only to as many beds.
        """
        rows = self._weigh(student)
        allowed = np.flatnonzero(rows[:, 2] > self._exchange.floor)
        if room is not None:
            allowed = allowed[self._number[rows[allowed, 1].astype(np.int64)] == room]
        order = allowed[np.argsort(-rows[allowed, 2], kind="stable")][:count]
        return [self._move_of(student, rows[k]) for k in order]

    def swap(self, student: int, partner: int) -> RoomMove:
        """Return the cost of exchanging two students, allowed or not.

        Raises
        ------
        InvalidProblemError
            If they share a room, or are locked to different numbers of others.
        """
        rows = self._weigh(student)
        atom = self._formulation.atom_of[partner]
        found = np.flatnonzero(rows[:, 0] == atom)
        if not len(found):
            raise InvalidProblemError(
                "Two people can change places only from different rooms and alone, or with as many "
                "locked to each."
            )
        return self._move_of(student, rows[found[0]], partner)

    def _weigh(self, student: int) -> FloatArray:
        """Return (partner atom or -1, room, change, change here, change there) of every move."""
        exchange = self._exchange
        atom = int(self._formulation.atom_of[student])
        return weigh_exchanges(exchange.objective, exchange.occupancy, atom)

    def _move_of(self, student: int, row: FloatArray, partner: int | None = None) -> RoomMove:
        atom = int(row[0])
        if partner is None:
            partner = -1
            if atom >= 0:
                partner = int(np.flatnonzero(self._formulation.atom_of == atom)[0])
        change, here, there = (float(x) for x in row[2:])
        room = int(self._number[int(row[1])])
        return RoomMove(student, partner, room, change, here, there, change > self._exchange.floor)


def partner_doubt(probabilities: FloatArray) -> FloatArray:
    """Return the effective number of equally likely roommates, from P(share a room) (n, n).

    The exponential of the entropy of each row over its sum: 1 means no doubt.
    """
    total = probabilities.sum(axis=1, keepdims=True)
    shares = probabilities / np.where(total > 0.0, total, 1.0)
    logs = np.log(np.where(shares > 0.0, shares, 1.0))
    return np.asarray(np.exp(-(shares * logs).sum(axis=1)))


def doubt_of_scores(scores: FloatArray, room: IntArray) -> FloatArray:
    """Return each student's doubt by the best fit of potentials to the pair model, shape (n,).

    exp(entropy) of tau_ij ~ exp(scores_ij - u_i - u_j) with rows that sum to one, fitted by twenty
    balancing sweeps: doubt of the pair model about partners. Takes about 1 s for 2,500 students, so
    keep it with the placement. `share_probabilities` returns probabilities from its chain.
    """
    matrix = np.where(np.eye(len(scores), dtype=bool), -np.inf, scores)
    placed = np.asarray(room) >= 0
    if len(scores) < 2:
        return np.ones(len(scores))
    weights = np.exp(matrix - matrix.max(axis=1, keepdims=True))
    weights = np.sqrt(weights * weights.T)
    potential = np.ones(len(scores))
    for _ in range(20):
        potential = np.sqrt(potential / np.maximum(weights @ potential, 1e-300))
    tau = weights * potential * potential[:, np.newaxis]
    return np.where(placed, partner_doubt(tau), np.nan)
