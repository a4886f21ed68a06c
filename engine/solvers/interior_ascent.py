"""Learning of points and parameters at once by an interior-point method.

The solve in theta needs an inner solution for every theta. If lambda is small and features have
heavy tails, it passes through scores of thousands of nats, and at rho near 1 the likelihood has
kinks along which quasi-Newton steps are slow. ``engine.solvers.barrier`` moves theta and all points
together and needs 15 to 60 systems, however sharp the optimum is. Both bounds are evaluated at the
points and parameters that it visits:

    upper: L at points of the polytope;    lower: l_rho at a theta, log Z_rho bounded from above
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import StoppedError
from engine.core.options import check_number
from engine.core.status import Status
from engine.kernels.threads import one_blas_thread
from engine.objectives.learning_dual import make_learning_dual
from engine.objectives.protocol import check_parts
from engine.solvers.barrier import BarrierSolution, first_state, solve_by_barrier
from engine.solvers.barrier_product import LearnedPart, ProductPolytope
from engine.solvers.control import Callbacks, Limits, Run
from engine.solvers.result import LearningResult, TrajectoryPoint
from engine.solvers.theta_ascent import ThetaAscent

FEW_STEPS = 8
"""Steps in theta before the interior-point method is tried; mild problems need no more."""


@runtime_checkable
class HasInterior(Protocol):
    """Observation that the interior-point method can learn from."""

    def interior(self) -> LearnedPart | None:
        """Return the part at its polytope's centre, None if the polytope is a single point."""


@dataclass(slots=True)
class InteriorAscent:
    """Interior-point solver of the learning problem.

    Parameters
    ----------
    structures : sequence of HasInterior, with ``observed``
    ridge : float, lambda > 0
    limits : Limits
    callbacks : Callbacks
        Checkpoints are not kept.

    Notes
    -----
    A step costs O(n^2 K^2 + n^3) an observation of n by n items; O(n^2 K) memory.

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> features = np.arange(9.0).reshape(3, 3, 1) ** 2
    >>> pairs = BipartiteStructure(BipartiteItems(features), np.array([0, 1, 2]), 0.7)
    >>> result = InteriorAscent([pairs], 1.0).solve()
    >>> result.status.is_converged, result.relative_gap <= 1e-4
    (True, True)
    """

    structures: Sequence[HasInterior]
    ridge: float
    limits: Limits = field(default_factory=Limits)
    callbacks: Callbacks = field(default_factory=Callbacks)

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_number("ridge", self.ridge, above=0.0)

    def solve(self) -> LearningResult:
        """Return parameters whose gap is at most the target, or the best found within the limits.

        Raises
        ------
        InvalidProblemError
            If there is no observation, an observation has no interior, or ridge is not above 0.
        """
        check_parts(self.structures, "interior", "observed")
        given: Sequence[Any] = self.structures
        dual = make_learning_dual([one.observed for one in given], self.ridge)
        n_features = len(dual.observed)
        run = Run(self.limits, self.callbacks)
        with one_blas_thread():
            parts = [part for one in given if (part := one.interior()) is not None]
            if not parts:
                run.record(0, 0, 0.0, 0.0)
                return _result(run, np.zeros(n_features), 0, Status.CONVERGED)
            return self._follow(run, ProductPolytope(parts, self.ridge))

    def _follow(self, run: Run, polytope: ProductPolytope) -> LearningResult:
        theta, best, steps = np.zeros(len(polytope.observed)), -np.inf, -1
        status: Status | None = None

        def note(found: BarrierSolution) -> None:
            nonlocal theta, best
            if -found.upper_bound > best:
                theta, best = found.state.theta, -found.upper_bound
            n_systems = found.steps * len(polytope.parts)
            run.record(found.steps, n_systems, -found.value, -found.upper_bound)

        def is_over() -> bool:
            nonlocal steps, status
            steps += 1
            status = run.verdict(steps)
            return status is not None

        note(polytope.judge(first_state(polytope)[0], is_last=False))
        with suppress(StoppedError):
            solve_by_barrier(polytope, should_stop=is_over, on_solution=note)
        if status is None:
            status = run.verdict(steps) or Status.STALLED
        return _result(run, theta, steps, status)


def solve_in_theta_or_inside(
    structures: Sequence[Any], ridge: float, limits: Limits
) -> LearningResult:
    """Solve in theta; after many steps, switch to the interior-point method where it applies.

    Mild problems, large ones above all, are solved in theta in a few steps. The bounds of both
    methods hold, so that the better ones are returned.

    Parameters
    ----------
    structures : sequence of InnerProblem
    ridge : float, lambda > 0
    limits : Limits
    """
    if not all(isinstance(one, HasInterior) for one in structures):
        return ThetaAscent(structures, ridge, limits).solve()
    most = limits.max_iterations
    few = FEW_STEPS if most is None else min(most, FEW_STEPS)
    first = ThetaAscent(structures, ridge, replace(limits, max_iterations=few)).solve()
    if first.status not in (Status.STALLED, Status.ITERATION_LIMIT) or few == most:
        return first
    left = replace(limits, max_iterations=None if most is None else most - first.iterations)
    callbacks = Callbacks(seconds_before=first.seconds)
    second = InteriorAscent(structures, ridge, left, callbacks).solve()
    best = max(first, second, key=lambda result: result.lower_bound)
    joined = replace(
        second,
        theta=best.theta,
        objective=min(first.objective, second.objective),
        lower_bound=best.lower_bound,
        iterations=first.iterations + second.iterations,
        oracle_calls=first.oracle_calls + second.oracle_calls,
        trajectory=first.trajectory + tuple(_after(first, point) for point in second.trajectory),
    )
    is_closed = joined.relative_gap <= limits.relative_gap
    return replace(joined, status=Status.CONVERGED if is_closed else second.status)


def _after(first: LearningResult, point: TrajectoryPoint) -> TrajectoryPoint:
    """Return a point of a later run, combined with the bounds and effort of the first run."""
    lower = -np.inf if point.lower_bound is None else point.lower_bound
    return TrajectoryPoint(
        first.iterations + point.iteration,
        point.seconds,
        first.oracle_calls + point.oracle_calls,
        min(first.objective, point.objective),
        max(first.lower_bound, lower),
    )


def _result(run: Run, theta: FloatArray, steps: int, status: Status) -> LearningResult:
    return LearningResult(
        theta=read_only(theta.copy()),
        objective=run.upper,
        lower_bound=run.lower,
        is_certified=True,
        iterations=steps,
        oracle_calls=run.trajectory[-1].oracle_calls,
        seconds=run.seconds,
        status=status,
        trajectory=tuple(run.trajectory),
    )
