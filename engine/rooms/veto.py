"""Veto: pairs whose score is lower than that of nearly all who chose each other in past years."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.crf.roster import as_rooms, roommate_shares

POINTS = 200  # points of the curve


@dataclass(frozen=True, slots=True, eq=False)
class VetoCurve:
    """Effect that a threshold on the score would have had in held-out past years.

    Parameters
    ----------
    thresholds : ndarray, shape (k,), nats, ascending.
    false_alarms : ndarray, shape (k,)
        Share of the pairs who lived together that the threshold would have forbidden.
    vetoed : ndarray, shape (k,), share of all pairs that it would have forbidden.
    n_pairs : int, pairs who lived together.
    """

    thresholds: FloatArray
    false_alarms: FloatArray
    vetoed: FloatArray
    n_pairs: int

    def threshold(self, false_alarm: float) -> float:
        """Return the highest threshold whose false-alarm rate is at most the given one, nats.

        Raises
        ------
        InvalidProblemError
            If the rate is not from 0 to 1.
        """
        if not 0.0 <= false_alarm <= 1.0:
            raise InvalidProblemError(f"false_alarm: expected 0 to 1, received {false_alarm}.")
        return float(self.thresholds[np.flatnonzero(self.false_alarms <= false_alarm)[-1]])

    def interval(self, false_alarm: float) -> tuple[float, float]:
        """Return the 95 % interval (Wilson 1927) of the rate at that threshold."""
        at = int(np.flatnonzero(self.false_alarms <= false_alarm)[-1])
        return wilson_interval(float(self.false_alarms[at]), self.n_pairs)


def veto_curve(years: Sequence[tuple[FloatArray, IntArray]]) -> VetoCurve:
    """Return the veto curve over held-out years.

    Parameters
    ----------
    years : sequence of (scores (n, n), pairs (p, 2) or rooms (n,))
        Scores by a model that was not trained on the year.

    Raises
    ------
    InvalidProblemError
        If nobody shared a room.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[0, 3, 1, 0], [3, 0, 0, 1], [1, 0, 0, 2], [0, 1, 2, 0.0]])
    >>> curve = veto_curve([(scores, np.array([[0, 1], [2, 3]]))])
    >>> curve.threshold(0.0), float(curve.vetoed[-1])
    (2.0, 0.8333333333333334)
    """
    together, everybody = [np.empty(0)], [np.empty(0)]
    for scores, observed in years:
        room = as_rooms(observed, len(scores))
        pairs = roommate_shares(room)[0]
        together.append(scores[pairs[:, 0], pairs[:, 1]])
        residents = np.flatnonzero(room >= 0)
        small = scores[np.ix_(residents, residents)]
        everybody.append(small[np.triu_indices(len(residents), 1)])
    real, every = np.sort(np.concatenate(together)), np.sort(np.concatenate(everybody))
    if not len(real):
        raise InvalidProblemError("A veto is learned from past roommates; received none.")
    places = np.unique(np.linspace(0, len(real) - 1, min(POINTS, len(real))).astype(np.int64))
    thresholds = np.unique(real[places])
    return VetoCurve(
        read_only(thresholds),
        read_only(np.searchsorted(real, thresholds, side="left") / len(real)),
        read_only(np.searchsorted(every, thresholds, side="left") / len(every)),
        len(real),
    )


def vetoed_pairs(
    scores: FloatArray, threshold: float, room: IntArray | None = None
) -> tuple[tuple[int, int], ...]:
    """Return the pairs below a threshold, the lowest first: entries for ``RoomRules.forbids``.

    With ``room``, only pairs who share a room are returned.
    """
    i, j = np.triu_indices(len(scores), 1)
    low = scores[i, j] < threshold
    if room is not None:
        place = np.asarray(room)
        low &= (place[i] == place[j]) & (place[i] >= 0)
    i, j = i[low], j[low]
    order = np.argsort(scores[i, j], kind="stable")
    return tuple((int(a), int(b)) for a, b in zip(i[order], j[order], strict=True))


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share of ``count`` cases."""
    if count == 0:
        return 0.0, 1.0
    z = 1.959964
    centre = share + z * z / (2 * count)
    half = z * np.sqrt(share * (1.0 - share) / count + z * z / (4.0 * count * count))
    scale = 1.0 + z * z / count
    return max(0.0, float((centre - half) / scale)), min(1.0, float((centre + half) / scale))
