"""Result of every solver of the learning problem."""

from dataclasses import astuple, dataclass

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.checkpoint import State
from engine.core.errors import StoppedError
from engine.core.gap import relative_gap
from engine.core.status import Status


@dataclass(frozen=True, slots=True)
class TrajectoryPoint:
    """One line of the history of a run.

    Parameters
    ----------
    iteration : int
    seconds : float
        Since the beginning, wall clock.
    oracle_calls : int
    objective : float
        Best upper bound so far, nats.
    lower_bound : float or None
        Best lower bound so far, nats; None while unknown.

    Examples
    --------
    >>> TrajectoryPoint(3, 0.5, 6, -100.0, -101.0).relative_gap.__round__(4)
    0.0099
    """

    iteration: int
    seconds: float
    oracle_calls: int
    objective: float
    lower_bound: float | None

    @property
    def relative_gap(self) -> float | None:
        """Return the certified gap over the size of the lower bound, None while unknown."""
        return None if self.lower_bound is None else relative_gap(self.objective, self.lower_bound)


@dataclass(frozen=True, slots=True)
class LearningResult:
    """Learned parameters with their certificate.

    Parameters
    ----------
    theta : ndarray, shape (K,)
    objective : float, the best dual value L(tau) found, nats.
    lower_bound : float, the best certified lower bound of the optimum, nats.
    is_certified : bool, whether ``objective - lower_bound`` bounds the error; else an estimate.
    iterations, oracle_calls : int
        Oracle calls are MAP calls for solvers in the polytope, inner sweeps for those in theta.
    seconds : float, wall clock, earlier parts of a resumed run included.
    status : Status
    trajectory : tuple of TrajectoryPoint
    solver : str, name of the solver that answered, empty if the caller had no choice.
    inner_methods : tuple of str, methods that computed the pseudomarginals at theta, if named.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.core.status import Status
    >>> result = LearningResult(np.zeros(2), -10.0, -10.5, True, 7, 14, 0.1, Status.CONVERGED, ())
    >>> result.duality_gap
    0.5
    """

    theta: FloatArray
    objective: float
    lower_bound: float
    is_certified: bool
    iterations: int
    oracle_calls: int
    seconds: float
    status: Status
    trajectory: tuple[TrajectoryPoint, ...]
    solver: str = ""
    inner_methods: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """Return the solver with the methods of its inner problems, as people read it."""
        return ": ".join(part for part in (self.solver, ", ".join(self.inner_methods)) if part)

    @property
    def duality_gap(self) -> float:
        """Return objective - lower_bound in nats, never below zero."""
        return max(self.objective - self.lower_bound, 0.0)

    @property
    def relative_gap(self) -> float:
        """Return the duality gap over the size of the lower bound; see ``engine.core.gap``."""
        return relative_gap(self.objective, self.lower_bound)

    def check_learned(self) -> None:
        """Raise StoppedError if a limit ended the run before its first step.

        Such weights are all zero: a model of them would predict, and nothing would be right.
        """
        if self.status is Status.TIME_LIMIT and not self.iterations and not self.theta.any():
            raise StoppedError(
                "The time limit ended before the first step, so nothing was learned and no model "
                "was written. Give --max-seconds more, or leave it out."
            )

    def figures(self) -> dict[str, float | int | str | bool]:
        """Return the certificate and the effort by name, for reports."""
        return {
            "objective": self.objective,
            "log_likelihood": self.lower_bound,
            "duality_gap": self.duality_gap,
            "relative_gap": self.relative_gap,
            "is_certified": self.is_certified,
            "iterations": self.iterations,
            "oracle_calls": self.oracle_calls,
            "seconds": self.seconds,
            "status": self.status.value,
        } | ({"method": self.method} if self.method else {})


def unsolved(theta: FloatArray) -> LearningResult:
    """Return a result for given parameters, without a certificate."""
    unknown = float("inf")
    return LearningResult(
        theta=read_only(theta),
        objective=unknown,
        lower_bound=-unknown,
        is_certified=False,
        iterations=0,
        oracle_calls=0,
        seconds=0.0,
        status=Status.CONVERGED,
        trajectory=(TrajectoryPoint(0, 0.0, 0, unknown, -unknown),),
    )


def result_state(result: LearningResult) -> State:
    """Return a result as arrays that a checkpoint can save."""
    numbers = (
        result.objective,
        result.lower_bound,
        result.is_certified,
        result.iterations,
        result.oracle_calls,
        result.seconds,
    )
    return {
        "theta": np.asarray(result.theta),
        "numbers": np.array(numbers, dtype=np.float64),
        "status": np.array(result.status.value),
        "methods": np.array([result.solver, *result.inner_methods]),
        # An unknown bound is stored as nan.
        "trajectory": np.array([astuple(p) for p in result.trajectory], dtype=np.float64),
    }


def result_from_state(state: State) -> LearningResult:
    """Return the result that `result_state` was given."""
    methods = state["methods"].tolist() if "methods" in state else [""]  # absent in older states
    objective, lower_bound, is_certified, iterations, oracle_calls, seconds = state[
        "numbers"
    ].tolist()
    return LearningResult(
        theta=read_only(np.array(state["theta"])),
        objective=objective,
        lower_bound=lower_bound,
        is_certified=bool(is_certified),
        iterations=int(iterations),
        oracle_calls=int(oracle_calls),
        seconds=seconds,
        status=Status(str(state["status"])),
        trajectory=tuple(
            TrajectoryPoint(
                int(row[0]), row[1], int(row[2]), row[3], None if np.isnan(row[4]) else row[4]
            )
            for row in state["trajectory"].reshape(-1, 5).tolist()
        ),
        solver=methods[0],
        inner_methods=tuple(methods[1:]),
    )
