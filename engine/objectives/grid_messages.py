"""Tree-reweighted messages of one picture: one interface with a backend for each kind of model.

Masks have the messages of two labels (`engine.objectives.grid_chains`), label maps those of any
number (`engine.objectives.class_messages`). Any messages prove an upper bound of log Z_rho.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.crf.class_features import ClassFeatures
from engine.crf.grid_features import GridFeatures
from engine.objectives.class_messages import ClassMessages
from engine.objectives.grid_chains import GridChains


class GridMessages(Protocol):
    """Messages of one picture at one theta."""

    def sweep(self, count: int) -> float:
        """Pass ``count`` times forward and backward; return the last largest relative change."""

    def marginals(self) -> NDArray[Any]:
        """Return the pseudomarginals of the nodes: (rows, columns) of the second of two labels, or
        (rows, columns, L)."""

    def summarise(self, marginals: NDArray[Any]) -> tuple[FloatArray, float]:
        """Return phi(tau) and H_rho(tau) of these node marginals with good edge tables."""

    def upper_bound(self) -> float:
        """Return an upper bound of log Z_rho, nats."""


class Effort(NamedTuple):
    """Effort of an inner solve: accuracy of the first solve, before any bound is known, nats a
    pixel, and maximum number of sweeps of each."""

    first_accuracy: float
    max_sweeps: int


TWO_LABELS = Effort(1e-4, 400)
"""Strong models need a few dozen sweeps from cold; 1e-4 is about 0.1 % of a fitted objective."""

MANY_LABELS = Effort(1e-3, 80)
"""Bounds of many labels take longer than sweeps, and serve a less accurate certificate."""


def effort_of(features: GridFeatures | ClassFeatures) -> Effort:
    """Return the effort of inner solves for a picture."""
    return TWO_LABELS if isinstance(features, GridFeatures) else MANY_LABELS


def start_messages(features: GridFeatures | ClassFeatures) -> NDArray[Any]:
    """Return the messages that solves start from: ones."""
    if isinstance(features, GridFeatures):
        return np.ones((4, *features.shape))
    return np.ones((4, *features.trees.shape), dtype=np.float32)


def make_messages(
    features: GridFeatures | ClassFeatures,
    theta: FloatArray,
    rho: float,
    messages: NDArray[Any] | None = None,
) -> GridMessages:
    """Return the messages of a picture; a warm start is changed in place.

    ``rho`` is 1/2 for label maps.
    """
    if isinstance(features, GridFeatures):
        return GridChains(features, rho, theta, messages)
    return ClassMessages(features, theta, messages)


def converge(messages: GridMessages, tolerance: float, *, batch: int, max_sweeps: int) -> bool:
    """Sweep until no message changes by more than ``tolerance``; return True if they converged.

    Changes are looked at every ``batch`` sweeps.
    """
    change, sweeps = float("inf"), 0
    while change > tolerance and sweeps < max_sweeps:
        change = messages.sweep(batch)
        sweeps += batch
    return change <= tolerance
