"""What staff demand of a set of pairs, and the groups of students that follow from it.

lock       these two share a room
forbid     these two never do
same       partners agree in a column (gender, hall, ...); a blank is a group of its own
single     this student stays alone
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.survey import Survey

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules over the students of one survey, by index.

    Parameters
    ----------
    locks : tuple of pairs of student indices who share a room.
    forbids : tuple of pairs of student indices who do not.
    same : tuple of str, attribute columns in which both of a pair agree.
    single : tuple of int, students who have a room of their own.

    Examples
    --------
    >>> Rules(locks=((0, 1),), same=("gender",)).same
    ('gender',)
    """

    locks: tuple[Pair, ...] = ()
    forbids: tuple[Pair, ...] = ()
    same: tuple[str, ...] = ()
    single: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StudentGroup:
    """Students who are paired among themselves: nobody locked, nobody single.

    Parameters
    ----------
    name : str, values of the ``same`` columns, "" when there are none.
    students : ndarray, shape (m,), int64, ascending.
    forbidden : ndarray, shape (f, 2), int64, positions within ``students``.
    """

    name: str
    students: IntArray
    forbidden: IntArray


def split_groups(survey: Survey, rules: Rules) -> tuple[StudentGroup, ...]:
    """Split the students who are neither locked nor single into the groups that rules demand.

    Raises
    ------
    InvalidProblemError
        If a rule names a column that the survey does not have.
    """
    taken = {student for pair in rules.locks for student in pair} | set(rules.single)
    columns = [_column(survey, name) for name in rules.same]
    members: dict[tuple[str, ...], list[int]] = {}
    for student in range(survey.n_students):
        if student not in taken:
            key = tuple(column[student] for column in columns)
            members.setdefault(key, []).append(student)
    where: dict[int, tuple[tuple[str, ...], int]] = {}
    for key, group in members.items():
        where |= {student: (key, place) for place, student in enumerate(group)}
    forbidden: dict[tuple[str, ...], set[Pair]] = {key: set() for key in members}
    for i, j in rules.forbids:
        if i in where and j in where and where[i][0] == where[j][0]:
            a, b = sorted((where[i][1], where[j][1]))
            forbidden[where[i][0]].add((a, b))
    return tuple(
        StudentGroup(
            name=", ".join(value or "(blank)" for value in key),
            students=np.array(group, dtype=np.int64),
            forbidden=np.array(sorted(forbidden[key]), dtype=np.int64).reshape(-1, 2),
        )
        for key, group in sorted(members.items())
    )


def _column(survey: Survey, name: str) -> tuple[str, ...]:
    if name not in survey.attributes:
        known = ", ".join(survey.attributes) or "none"
        raise InvalidProblemError(f"same:{name} names no constraint column; there are: {known}.")
    return survey.attributes[name]
