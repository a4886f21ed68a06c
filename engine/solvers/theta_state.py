"""State of the solve in theta."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray
from engine.objectives.learning_dual import Bounds
from engine.objectives.protocol import InnerSolution

Factor = tuple[FloatArray, bool]  # of the Hessian estimate, as scipy.linalg.cho_factor returns it


@dataclass(slots=True)
class DualEvaluation:
    """Both bounds and the gradient of l_rho at one theta, with their inner solutions."""

    theta: FloatArray
    inner: list[InnerSolution]
    bounds: Bounds
    gradient: FloatArray

    @property
    def slack(self) -> float:
        """Largest amount by which inexact inner solutions lowered the lower bound (nats)."""
        parts = [s.log_partition - float(self.theta @ s.statistics) - s.entropy for s in self.inner]
        return max(sum(parts), 0.0)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods that computed the inner solutions, each once."""
        return tuple(dict.fromkeys(name for s in self.inner for name in s.methods))


@dataclass(slots=True)
class Ascent:
    """Present point, best theta, and memory of L-BFGS.

    Parameters
    ----------
    now : DualEvaluation
    best_theta, best_lower : the theta of the largest lower bound so far, and that bound (nats).
    metric : factor of the Hessian estimate.
    history : list of (step, fall of the gradient), the pairs of L-BFGS.
    iteration : int
    certified : bool, whether the best upper bound was proved.
    best_methods : tuple of str, methods of the inner solutions at the best theta.
    """

    now: DualEvaluation
    best_theta: FloatArray
    best_lower: float
    metric: Factor
    history: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)
    iteration: int = 0
    certified: bool = True
    best_methods: tuple[str, ...] = ()

    def note_best(self, tried: DualEvaluation) -> None:
        """Keep theta if its lower bound is at least the best one."""
        if tried.bounds.lower >= self.best_lower:
            self.best_theta, self.best_lower = tried.theta, tried.bounds.lower
            self.best_methods = tried.methods


def sum_statistics(inner: Sequence[InnerSolution]) -> FloatArray:
    """Return sum_m phi(tau^m), shape (K,)."""
    return np.asarray(np.sum([solution.statistics for solution in inner], axis=0))
