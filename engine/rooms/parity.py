"""Parity: comparison of outcomes between groups of students, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import RoomRules
from engine.rooms.placement import Placement
from engine.rooms.veto import wilson_interval

TOO_FEW = 20  # smallest number of people in a group that gets an interval
Z = 1.959964


@dataclass(frozen=True, slots=True)
class ParityRow:
    """Measure of one group.

    Parameters
    ----------
    measure : str, score, doubt, requests or vetoes.
    group : str, value of the column, "" for a blank.
    count : int, number of people (requests: requests) in the mean.
    mean : float, score in nats, doubt in roommates, requests and vetoes as shares.
    interval : tuple of two floats, 95 %, nan for fewer than 20.
    difference : float, mean minus that of all others.
    is_outside : bool
        Whether the intervals of the group and of all others do not overlap: a reason to look, not
        a proof of unfairness.
    """

    measure: str
    group: str
    count: int
    mean: float
    interval: tuple[float, float]
    difference: float
    is_outside: bool


def placement_parity(
    placement: Placement,
    groups: Sequence[str],
    rules: RoomRules | None = None,
    *,
    doubt: FloatArray | None = None,
    vetoed: Sequence[tuple[int, int]] = (),
) -> tuple[ParityRow, ...]:
    """Compare groups by scores, doubt, honoured requests, and vetoed pairs that share a room.

    Parameters
    ----------
    groups : sequence of str, length n, the group of each student.
    rules : RoomRules, the rules of the placement, for its requests.
    doubt : ndarray, shape (n,), from `doubt_of_scores` or `partner_doubt`.
    vetoed : pairs of students, from `vetoed_pairs`; a student who lives in such a pair counts.

    Raises
    ------
    InvalidProblemError
        If the lengths disagree.
    """
    n = len(placement.room)
    if len(groups) != n:
        raise InvalidProblemError(f"groups: expected {n} values, received {len(groups)}.")
    names = np.array(groups, dtype=np.str_)
    rows = _compare("score", names, placement.student_scores, is_share=False)
    if doubt is not None:
        rows += _compare("doubt", names, np.asarray(doubt), is_share=False)
    requests = () if rules is None else rules.requests
    if len(requests):
        asked = names[[request.student for request in requests]]
        rows += _compare("requests", asked, placement.honoured.astype(np.float64), is_share=True)
    if len(vetoed):
        bad = np.zeros(n)
        for i, j in vetoed:
            if placement.room[i] >= 0 and placement.room[i] == placement.room[j]:
                bad[[i, j]] = 1.0
        rows += _compare("vetoes", names, bad, is_share=True)
    return tuple(rows)


def _compare(
    measure: str, names: NDArray[np.str_], values: FloatArray, *, is_share: bool
) -> list[ParityRow]:
    known = np.isfinite(values)
    rows = []
    for group in np.unique(names):
        mine, others = values[known & (names == group)], values[known & (names != group)]
        mean, interval = _mean_of(mine, is_share)
        rest, around = _mean_of(others, is_share)
        apart = interval[0] > around[1] or interval[1] < around[0]
        rows.append(
            ParityRow(measure, str(group), len(mine), mean, interval, mean - rest, bool(apart))
        )
    return rows


def _mean_of(values: FloatArray, is_share: bool) -> tuple[float, tuple[float, float]]:
    """Return the mean and its interval, nan for too few values."""
    if not len(values):
        return float("nan"), (float("nan"), float("nan"))
    mean = float(values.mean())
    if len(values) < TOO_FEW:
        return mean, (float("nan"), float("nan"))
    if is_share:
        return mean, wilson_interval(mean, len(values))
    half = Z * float(values.std(ddof=1)) / float(np.sqrt(len(values)))
    return mean, (mean - half, mean + half)
