"""Sampler of placements into rooms from P ~ exp(total score), with evidence of mixing."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_generator, check_whole
from engine.datasets.matching_sampler import (
    AGREEMENT,
    COLD,
    MAX_SWEEPS,
    WINDOW,
    standard_errors_apart,
)
from engine.kernels.room_chain import sweep_beds


@dataclass(frozen=True, slots=True)
class RosterSample:
    """One placement drawn by the chain.

    Parameters
    ----------
    room : ndarray, shape (n,), int64, the room of every student.
    sweeps : int, of each of two chains; a sweep proposes as many exchanges as there are beds.
    score_difference : float, total scores of the two chains apart, in standard errors.
    has_mixed : bool, True if that is below three.

    Examples
    --------
    >>> RosterSample(np.array([0, 0, 1]), 40, 0.2, True).room.tolist()
    [0, 0, 1]
    """

    room: IntArray
    sweeps: int
    score_difference: float
    has_mixed: bool


def sample_roster(
    scores: FloatArray, capacities: IntArray, *, rng: np.random.Generator
) -> RosterSample:
    """Draw a placement of everybody into rooms; a room of c scores its pairs over (c - 1).

    Parameters
    ----------
    scores : ndarray, shape (n, n), float64, symmetric, nats.
    capacities : ndarray, shape (r,), int64, beds of each room, n together or more.
    rng : numpy.random.Generator

    Returns
    -------
    RosterSample
        The room of every student, and the evidence that the chains mixed.

    Raises
    ------
    InvalidProblemError
        If there are fewer beds than students.

    Notes
    -----
    As ``sample_matching``: one chain from a random placement and one from a near-optimal one run
    until their mean total scores agree, after at least 10 log n sweeps.

    Examples
    --------
    >>> sample = sample_roster(np.zeros((4, 4)), np.array([2, 2]), rng=np.random.default_rng(0))
    >>> sorted(sample.room.tolist())
    [0, 0, 1, 1]
    """
    check_generator("rng", rng, optional=False)
    n, beds = len(scores), int(np.sum(capacities))
    if beds < n:
        raise InvalidProblemError(f"{n} students need a bed, and the rooms have {beds}.")
    plain = np.array(scores, dtype=np.float64)
    np.fill_diagonal(plain, 0.0)
    low, high = _Chain(plain, capacities, rng), _Chain(plain, capacities, rng)
    high.run(WINDOW, COLD)
    sweeps, length = 0, max(WINDOW, int(np.ceil(10 * np.log(max(n, 2)))))
    while True:
        low.run(length)
        high.run(length)
        difference = standard_errors_apart(low.run(WINDOW), high.run(WINDOW))
        sweeps += length + WINDOW
        if difference <= AGREEMENT or sweeps >= MAX_SWEEPS:
            return RosterSample(low.room(n), sweeps, difference, difference <= AGREEMENT)
        length *= 2


class _Chain:
    """Markov chain over the assignment of students to beds."""

    def __init__(self, scores: FloatArray, capacities: IntArray, rng: np.random.Generator) -> None:
        self._rng, self._scores = rng, scores
        self._start = np.concatenate(([0], np.cumsum(capacities))).astype(np.int64)
        self._room_of_bed = np.repeat(np.arange(len(capacities)), capacities)
        self._beds = np.arange(len(self._room_of_bed))
        self._likes = np.zeros((len(capacities), len(scores)))
        self._bed = np.full(len(self._beds), -1, dtype=np.int64)
        self._bed[: len(scores)] = rng.permutation(len(scores))
        self._bed = rng.permutation(self._bed)
        self._total = self._value()

    def run(self, sweeps: int, factor: float = 1.0) -> FloatArray:
        """Advance the chain; return the total score after every sweep, shape (sweeps,)."""
        count = len(self._beds)
        trace = np.empty(sweeps)
        for sweep in range(sweeps):
            choices = self._rng.integers(count, size=(count, 2))
            bars = np.log(np.maximum(self._rng.random(count), 1e-300)) / factor
            self._total += sweep_beds(
                self._scores,
                np.empty((0, 0)),
                self._likes,
                self._start,
                self._room_of_bed,
                self._bed,
                self._beds,
                choices,
                bars,
            )
            trace[sweep] = self._total
        return trace

    def _value(self) -> float:
        """Return the current total score."""
        total = 0.0
        for first, last in zip(self._start[:-1], self._start[1:], strict=True):
            group = self._bed[first:last]
            group = group[group >= 0]
            if len(group) > 1:
                total += float(self._scores[np.ix_(group, group)].sum()) / (2 * (len(group) - 1))
        return total

    def room(self, n: int) -> IntArray:
        """Return the room of every student."""
        out = np.empty(n, dtype=np.int64)
        there = self._bed >= 0
        out[self._bed[there]] = self._room_of_bed[there]
        return out


def capacities_for(n_students: int, sizes: tuple[int, ...]) -> IntArray:
    """Return rooms of the given sizes in turn until everybody has a bed; the last is cut to fit.

    Parameters
    ----------
    n_students : int
    sizes : tuple of int, beds of the rooms, taken in turn.

    Returns
    -------
    ndarray, shape (r,), int64, that sums to ``n_students``.

    Examples
    --------
    >>> capacities_for(8, (3, 2)).tolist()
    [3, 2, 3]
    """
    check_whole("n_students", n_students, at_least=1)
    capacities: list[int] = []
    left = n_students
    while left > 0:
        size = min(sizes[len(capacities) % len(sizes)], left)
        capacities.append(size)
        left -= size
    return np.array(capacities, dtype=np.int64)
