"""Where the solve in theta stands, as arrays: a resumed run takes the very steps of a whole one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.checkpoint import SavedState, State, StatePart
from engine.objectives.learning_dual import Bounds, LearningDual
from engine.objectives.protocol import InnerSolution

Factor = tuple[FloatArray, bool]  # of the Hessian estimate, as scipy.linalg.cho_factor returns it


@dataclass(slots=True)
class Evaluation:
    """Both bounds and the gradient of l_rho at one theta, with the inner solutions behind them."""

    theta: FloatArray
    inner: list[InnerSolution]
    bounds: Bounds
    gradient: FloatArray

    @property
    def slack(self) -> float:
        """By how much inexact inner solutions may have lowered the lower bound (nats)."""
        parts = [s.log_partition - float(self.theta @ s.statistics) - s.entropy for s in self.inner]
        return max(sum(parts), 0.0)


@dataclass(slots=True)
class Ascent:
    """The present point, the best theta, and what L-BFGS remembers.

    Parameters
    ----------
    now : Evaluation
    best_theta, best_lower : the theta of the largest lower bound so far, and that bound (nats).
    metric : factor of the Hessian estimate.
    history : list of (step, fall of the gradient), the pairs of L-BFGS.
    iteration : int
    certified : bool, whether the best upper bound was proved.
    """

    now: Evaluation
    best_theta: FloatArray
    best_lower: float
    metric: Factor
    history: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)
    iteration: int = 0
    certified: bool = True

    def pack(self) -> State:
        """Return everything that ``unpack_ascent`` needs."""
        pairs = np.array(self.history).reshape(-1, 2, len(self.now.theta))
        return {
            **_pack_evaluation(self.now),
            "best_theta": self.best_theta,
            "best_lower": np.array(self.best_lower),
            "metric": self.metric[0],
            "metric_is_lower": np.array(self.metric[1]),
            "history": pairs,
            "iteration": np.array(self.iteration),
            "certified": np.array(self.certified),
        }


def unpack_ascent(saved: SavedState, dual: LearningDual, n_problems: int) -> Ascent:
    """Restore an ascent of the same problem."""
    return Ascent(
        now=_unpack_evaluation(saved, dual, n_problems),
        best_theta=saved["best_theta"],
        best_lower=float(saved["best_lower"]),
        metric=(saved["metric"], bool(saved["metric_is_lower"])),
        history=[(pair[0], pair[1]) for pair in saved["history"]],
        iteration=int(saved["iteration"]),
        certified=bool(saved["certified"]),
    )


def _pack_evaluation(evaluation: Evaluation) -> State:
    bounds = evaluation.bounds
    state: State = {
        "theta": evaluation.theta,
        "bounds": np.array([bounds.upper, bounds.lower, float(bounds.is_certified)]),
    }
    for index, solution in enumerate(evaluation.inner):
        prefix = f"inner{index}_"
        state[f"{prefix}statistics"] = solution.statistics
        state[f"{prefix}numbers"] = np.array(
            [solution.log_partition, solution.entropy, solution.sweeps, solution.is_feasible]
        )
        state |= {f"{prefix}state_{key}": value for key, value in solution.state.items()}
    return state


def _unpack_evaluation(saved: SavedState, dual: LearningDual, n_problems: int) -> Evaluation:
    theta = saved["theta"]
    upper, lower, is_certified = (float(x) for x in saved["bounds"])
    inner = [_unpack_solution(StatePart(saved, f"inner{index}_")) for index in range(n_problems)]
    gradient = dual.primal_gradient(theta, sum_statistics(inner))
    return Evaluation(theta, inner, Bounds(upper, lower, bool(is_certified)), gradient)


def _unpack_solution(saved: SavedState) -> InnerSolution:
    log_partition, entropy, sweeps, is_feasible = (float(x) for x in saved["numbers"])
    return InnerSolution(
        log_partition=log_partition,
        statistics=saved["statistics"],
        entropy=entropy,
        sweeps=int(sweeps),
        is_feasible=bool(is_feasible),
        state=dict(StatePart(saved, "state_")),
    )


def sum_statistics(inner: Sequence[InnerSolution]) -> FloatArray:
    """Return sum_m phi(tau^m), shape (K,)."""
    return np.asarray(np.sum([solution.statistics for solution in inner], axis=0))
