"""Rosters of past roommates: pairs, or the room of every student, in one form.

Each resident's roommate is taken as uniform among the others in the room, so a pair in a room of c
people counts 1 / (c - 1) in the observed statistics: a roster of doubles is exactly a set of pairs.
"""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.survey import Survey, check_pairs

Cohort = tuple[Survey, IntArray]
"""One past year: its survey, and its roommates in a form that `as_rooms` takes."""


def cohort_digest(cohorts: Sequence[Cohort]) -> str:
    """Return a hash of the questions, answers and roommates of years, in hex."""
    digest = sha256()
    for survey, observed in cohorts:
        digest.update(repr((survey.questionnaire, survey.answers.shape)).encode())
        digest.update(survey.answers.tobytes())
        digest.update(np.asarray(observed).tobytes())
    return digest.hexdigest()


def as_rooms(observed: IntArray, n_students: int, ids: tuple[str, ...] | None = None) -> IntArray:
    """Return the room of every student, shape (n,), -1 for students who shared none.

    Parameters
    ----------
    observed : ndarray, shape (p, 2) pairs, or (n,) the room of every student, -1 for none.

    Raises
    ------
    InvalidProblemError
        If neither shape fits, or a student is in two pairs.

    Notes
    -----
    Learning compares with sets of pairs of all students, so their number must be even: if it is
    odd, one resident of the largest room of odd size is left out.
    """
    given = np.asarray(observed)
    if given.ndim == 2:
        pairs = check_pairs(given, n_students, ids)
        room = np.full(n_students, -1, dtype=np.int64)
        room[pairs[:, 0]] = room[pairs[:, 1]] = np.arange(len(pairs))
        return room
    if given.shape != (n_students,):
        raise InvalidProblemError(
            f"rooms: expected one for each of {n_students} students, received {given.shape}."
        )
    room = given.astype(np.int64)
    people = np.bincount(room[room >= 0], minlength=1)
    room = np.where((room >= 0) & (people[room] >= 2), room, -1)
    people = np.bincount(room[room >= 0], minlength=1)
    if people.sum() % 2:
        largest = int(np.argmax(np.where(people % 2 == 1, people, 0)))
        room[np.flatnonzero(room == largest)[-1]] = -1
    return room


def roommate_shares(room: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the pairs i < j who share a room (p, 2), and their counts (p,): 1 / (c - 1)."""
    order = np.argsort(room, kind="stable")
    pairs, shares = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
    for group in np.split(order, np.flatnonzero(np.diff(room[order])) + 1):
        if len(group) >= 2 and room[group[0]] >= 0:
            i, j = np.triu_indices(len(group), 1)
            pairs.append(np.column_stack((group[i], group[j])))
            shares.append(np.full(len(i), 1.0 / (len(group) - 1)))
    return np.concatenate(pairs).astype(np.int64), np.concatenate(shares)


def split_rooms(room: IntArray, parts: int, rng: np.random.Generator) -> list[IntArray]:
    """Split a roster into rosters of the same students, each with a random part of the rooms."""
    rooms = np.unique(room[room >= 0])
    chosen = np.array_split(rng.permutation(len(rooms)), parts)
    return [np.where(np.isin(room, rooms[part]), room, -1) for part in chosen]
