"""Answers of one cohort as arrays, and the pairs of its students."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.crf.questionnaire import Questionnaire

BLANK = -1  # the code of an unanswered question; a separate case, never an answer
AnswerArray = NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Survey:
    """Answers of one cohort.

    Parameters
    ----------
    ids : tuple of str, length n, all different
    questionnaire : Questionnaire
    answers : ndarray, shape (n, Q), int16
        Level of each answer, 0 .. L_q - 1; -1 for a blank. Kept as a read-only copy.
    attributes : mapping of str to tuple of str, each of length n
        Columns that rules may refer to (gender, hall, ...); never scored.

    Raises
    ------
    InvalidProblemError
        If the shapes disagree, an id repeats, or an answer is out of range.

    Examples
    --------
    >>> from engine.crf.questionnaire import Question
    >>> smokes = Questionnaire((Question("Smokes", "binary", ("no", "yes")),))
    >>> Survey(("ann", "ben"), smokes, np.array([[0], [-1]])).n_students
    2
    """

    ids: tuple[str, ...]
    questionnaire: Questionnaire
    answers: AnswerArray
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        answers = np.array(self.answers, dtype=np.int16, copy=True)
        shape = (len(self.ids), self.questionnaire.n_questions)
        if answers.shape != shape:
            raise InvalidProblemError(f"answers: expected shape {shape}, received {answers.shape}.")
        self._check_ids()
        self._check_answers(answers)
        for name, column in self.attributes.items():
            if len(column) != len(self.ids):
                raise InvalidProblemError(
                    f"{name}: expected {len(self.ids)} values, received {len(column)}."
                )
        object.__setattr__(self, "answers", read_only(answers))

    def _check_ids(self) -> None:
        first_row: dict[str, int] = {}
        for row, name in enumerate(self.ids, start=1):
            if name in first_row:
                raise InvalidProblemError(
                    f"Row {row}: {name} appears twice, first in row {first_row[name]}. "
                    "Leave one out."
                )
            first_row[name] = row

    def _check_answers(self, answers: AnswerArray) -> None:
        for column, question in enumerate(self.questionnaire.questions):
            bad = (answers[:, column] < BLANK) | (answers[:, column] >= question.n_levels)
            if bad.any():
                row = int(np.argmax(bad))
                raise InvalidProblemError(
                    f"{self.ids[row]}, {question.name}: answer code {answers[row, column]} is not "
                    f"between 0 and {question.n_levels - 1}, nor -1 for a blank."
                )

    @property
    def n_students(self) -> int:
        """Number of students n."""
        return len(self.ids)

    @property
    def blanks(self) -> IntArray:
        """Number of blanks per question, shape (Q,)."""
        return np.asarray((self.answers == BLANK).sum(axis=0), dtype=np.int64)

    def take(self, students: IntArray) -> "Survey":
        """Return the survey of some of the students, in the given order."""
        rows = [int(k) for k in students]
        return Survey(
            ids=tuple(self.ids[k] for k in rows),
            questionnaire=self.questionnaire,
            answers=self.answers[rows],
            attributes={k: tuple(v[r] for r in rows) for k, v in self.attributes.items()},
        )


def check_pairs(pairs: IntArray, n_students: int, ids: tuple[str, ...] | None = None) -> IntArray:
    """Return ``pairs`` as an int64 array (p, 2) in which everybody appears at most once.

    Raises
    ------
    InvalidProblemError
        Naming the student (by id if given) who is unknown, paired twice, or with themselves.
    """
    array = np.asarray(pairs, dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidProblemError(f"pairs: expected shape (any, 2), received {array.shape}.")
    seen: set[int] = set()
    for row, (i, j) in enumerate(array.tolist(), start=1):
        for student in (i, j):
            if not 0 <= student < n_students:
                raise InvalidProblemError(
                    f"Pair {row}: student {student} is not among the {n_students} students."
                )
        name = ids[i] if ids else f"student {i}"
        if i == j:
            raise InvalidProblemError(f"Pair {row}: {name} is paired with themselves.")
        for student in (i, j):
            if student in seen:
                twice = ids[student] if ids else f"student {student}"
                raise InvalidProblemError(f"Pair {row}: {twice} is already in another pair.")
            seen.add(student)
    return array


def partners_of(pairs: IntArray, n_students: int) -> IntArray:
    """Return the partner of every student, shape (n,), -1 for students in no pair."""
    partner = np.full(n_students, -1, dtype=np.int64)
    partner[pairs[:, 0]] = pairs[:, 1]
    partner[pairs[:, 1]] = pairs[:, 0]
    return partner
