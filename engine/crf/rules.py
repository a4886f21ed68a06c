"""Requirements of staff for a set of pairs, and the groups of students that follow from them.

lock       two students share a room
forbid     two students never share a room
same       partners agree in a column (gender, hall, ...); a blank is a separate group
single     a student lives alone
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

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
    forbids : tuple of pairs of student indices who never share a room.
    same : tuple of str, attribute columns in which both of a pair agree.
    single : tuple of int, students who live alone.

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
    """Students who are paired among themselves, without locked and single students.

    Parameters
    ----------
    name : str, values of the ``same`` columns, "" if there are none.
    students : ndarray, shape (m,), int64, ascending.
    forbidden : ndarray, shape (f, 2), int64, positions within ``students``.
    """

    name: str
    students: IntArray
    forbidden: IntArray


def split_groups(survey: Survey, rules: Rules) -> tuple[StudentGroup, ...]:
    """Split students who are neither locked nor single into the groups that the rules define.

    Raises
    ------
    InvalidProblemError
        If a rule names a column that is not in the survey.
    """
    columns = [_column(survey, name) for name in rules.same]
    keys: Sequence[Any] = list(zip(*columns, strict=True)) or [()] * survey.n_students
    if len(columns) == 1:
        keys = columns[0]  # without a tuple for each of 10,000 students
    places = {key: k for k, key in enumerate(sorted(set(keys)))}
    codes = np.fromiter(map(places.__getitem__, keys), np.int64)  # -1 for students in no group
    codes[[*chain.from_iterable(rules.locks), *rules.single]] = -1
    forbidden: dict[int, set[Pair]] = defaultdict(set)
    for pair in rules.forbids:
        first, second = sorted(pair)
        if codes[first] == codes[second] != -1:
            forbidden[int(codes[first])].add((first, second))
    return tuple(
        StudentGroup(
            name=", ".join(column[students[0]] or "(blank)" for column in columns),
            students=students,
            forbidden=_places(students, forbidden[code]),
        )
        for code in np.unique(codes[codes >= 0]).tolist()
        for students in [np.flatnonzero(codes == code)]
    )


def _places(group: IntArray, pairs: set[Pair]) -> IntArray:
    """Return pairs of a group's ascending students as positions in the group."""
    return np.searchsorted(group, np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2))


def _column(survey: Survey, name: str) -> tuple[str, ...]:
    if name not in survey.attributes:
        known = ", ".join(survey.attributes) or "none"
        raise InvalidProblemError(f"same:{name} names no constraint column; there are: {known}.")
    return survey.attributes[name]
