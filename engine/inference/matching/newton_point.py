"""Solution of the dense matching problem in its potentials, with or without its scores."""

from dataclasses import dataclass, field, replace

import numpy as np

from engine.core.arguments import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ActiveSetState:
    """Solution in potentials and multipliers without its scores, which take n^2 numbers.

    Parameters
    ----------
    potentials : ndarray, shape (n,), u.
    likely : ndarray, shape (k, 2), pairs with their own log-odds; ``logits`` (k,).
    sets : tuple of ndarray, odd sets that hold with equality; ``multipliers`` (m,).
    """

    potentials: FloatArray
    likely: IntArray
    logits: FloatArray
    sets: tuple[IntArray, ...]
    multipliers: FloatArray

    def at(self, scores: FloatArray) -> "NewtonPoint":
        """Return the solution with its scores (n, n)."""
        return NewtonPoint(
            scores,
            self.potentials,
            self.likely,
            self.logits,
            self.sets,
            self.multipliers,
            np.ones(len(self.sets)),
        )


@dataclass(frozen=True, slots=True)
class NewtonPoint:
    """Solution in potentials and multipliers, or the last point of an unfinished search.

    Parameters
    ----------
    scores : ndarray, shape (n, n), of the solved problem; -inf excludes a pair.
    potentials : ndarray, shape (n,), u.
    likely : ndarray, shape (k, 2), pairs with their own log-odds; ``logits`` (k,).
    sets : tuple of ndarray, odd sets that hold with equality; ``multipliers`` (m,).
    targets : ndarray, shape (m,), excess of each set, 1 at the end: then one unit leaves it.
    residual : float, largest error of any condition above, nats.
    steps : int, linear systems solved.
    """

    scores: FloatArray
    potentials: FloatArray
    likely: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    logits: FloatArray = field(default_factory=lambda: np.empty(0))
    sets: tuple[IntArray, ...] = ()
    multipliers: FloatArray = field(default_factory=lambda: np.empty(0))
    targets: FloatArray = field(default_factory=lambda: np.empty(0))
    residual: float = np.inf
    steps: int = 0

    def reduced_scores(self) -> FloatArray:
        """Return the scores less the multipliers of the sets that contain a pair, (n, n)."""
        return reduce_scores(self.scores, self.sets, self.multipliers)

    def state(self) -> ActiveSetState:
        """Return the solution without its scores."""
        return ActiveSetState(
            self.potentials, self.likely, self.logits, self.sets, self.multipliers
        )


def uniform_point(n_nodes: int, rho: FloatArray) -> NewtonPoint:
    """Return the solution at equal scores of all pairs and one rho: tau = 1 / (n - 1)."""
    t = 1.0 / (n_nodes - 1)
    potential = -0.5 * (np.log(t) + (2.0 * rho - 1.0) * np.log1p(-t))
    return NewtonPoint(np.zeros((n_nodes, n_nodes)), np.asarray(potential), residual=0.0)


def drop_slack_sets(
    point: NewtonPoint, tolerance: float, before: FloatArray | None = None
) -> NewtonPoint:
    """Return the solution without sets of negative multipliers, at equivalent scores.

    ``follow_path`` then continues it to the requested scores. With ``before`` (m,), the multipliers
    at the start of the continuation, only the set whose multiplier passed 0 first is dropped:
    without it, the others may be needed (Goldfarb and Idnani 1983).
    """
    slack = point.multipliers < -tolerance
    if not slack.any():
        return point
    if before is not None:
        fallen = np.maximum(before, 0.0) / np.where(slack, before - point.multipliers, 1.0)
        slack = np.arange(len(slack)) == np.argmin(np.where(slack, fallen, np.inf))
    kept = [k for k in range(len(point.sets)) if not slack[k]]
    dropped = [k for k in range(len(point.sets)) if slack[k]]
    return replace(
        point,
        scores=reduce_scores(
            point.scores, tuple(point.sets[k] for k in dropped), point.multipliers[dropped]
        ),
        sets=tuple(point.sets[k] for k in kept),
        multipliers=point.multipliers[kept],
        targets=point.targets[kept],
    )


def reduce_scores(
    scores: FloatArray, sets: tuple[IntArray, ...], multipliers: FloatArray
) -> FloatArray:
    """Return scores (n, n) less the multipliers of the sets that contain a pair."""
    if not sets:
        return scores
    reduced = scores.copy()
    for nodes, multiplier in zip(sets, multipliers, strict=True):
        reduced[np.ix_(nodes, nodes)] -= multiplier
    return reduced
