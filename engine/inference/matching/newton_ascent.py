"""Newton's method for matching pseudomarginals, the fast path to optima in the interior.

    max <W, x> + H(x)   over 0 <= x <= 1 with sums of one at the nodes

An interior optimum takes about ten steps, from a solution for nearby scores half as many. The Bethe
entropy has no barrier at a vertex, so that steps towards an optimum there may be slow: callers set
a limit, after which the barrier method (``engine.solvers.barrier``) solves the problem. The kind of
graph supplies the value, the linear solve and the certificate; this module has step lengths and
damping.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.core.tolerances import TOLERANCES


@dataclass(frozen=True, slots=True)
class NewtonStep:
    """Newton step at a point, with its gradient and multipliers.

    ``direction``, shaped like the point, also repairs the sums at nodes; ``slope``, nats, is the
    rise that it promises, -inf if rounding spoiled the system; ``gradient``, shaped like the point;
    ``multipliers`` of the sums, one a node.
    """

    direction: FloatArray
    slope: float
    gradient: FloatArray
    multipliers: FloatArray


class InteriorProblem(Protocol):
    """Concave objective to be maximised over the strict interior of its constraints."""

    def value(self, x: FloatArray) -> float:
        """Return the objective, nats."""

    def newton(self, x: FloatArray) -> NewtonStep:
        """Return the Newton step."""

    def gap(self, x: FloatArray, newton: NewtonStep, wanted: float) -> float:
        """Return a certified bound on the maximum less ``value``, nats.

        May be inf, to save work, if the step shows that ``wanted`` is not met yet.
        """

    def fallback(self, x: FloatArray, newton: NewtonStep) -> tuple[FloatArray, float] | None:
        """Return a direction and its slope to use if the Newton step fails, None without one."""

    def room(self, x: FloatArray, direction: FloatArray) -> float:
        """Return the largest step that keeps every entry between 0 and 1."""

    def move(self, x: FloatArray, step: FloatArray) -> FloatArray:
        """Return the point after a step, computed without harmful rounding."""


@dataclass(frozen=True, slots=True)
class Ascent:
    """Result of an ascent.

    ``point`` and its ``value``, nats; ``upper_bound``, certified, of the maximum; ``steps`` taken;
    ``status`` converged if the bounds are as close as requested.
    """

    point: FloatArray
    value: float
    upper_bound: float
    steps: int
    status: Status


def ascend(
    problem: InteriorProblem,
    x: FloatArray,
    tolerance: float,
    max_steps: int,
    should_stop: StopCallback = never_stop,
) -> Ascent:
    """Take Newton steps until the gap is closed or rounding stops the rise."""
    value, bound, steps = problem.value(x), np.inf, 0
    while True:
        if should_stop():
            raise StoppedError("Cancelled.")
        newton = problem.newton(x)
        bound = min(bound, value + problem.gap(x, newton, tolerance))
        if bound - value <= tolerance:
            return Ascent(x, value, bound, steps, Status.CONVERGED)
        if steps >= max_steps:
            status = Status.ITERATION_LIMIT
            break
        following = _advance(problem, x, value, newton.direction, newton.slope)
        if following is None and (other := problem.fallback(x, newton)) is not None:
            following = _advance(problem, x, value, *other)
        if following is None:
            status = Status.STALLED
            break
        (x, value), steps = following, steps + 1
    bound = min(bound, value + problem.gap(x, newton, np.inf))
    return Ascent(x, value, bound, steps, status)


def _advance(
    problem: InteriorProblem, x: FloatArray, before: float, direction: FloatArray, slope: float
) -> tuple[FloatArray, float] | None:
    """Return the next interior point and its value, None if rounding allows no rise."""
    if not slope > 0.0:
        return None
    step = min(1.0, TOLERANCES.to_the_boundary * problem.room(x, direction))
    noise = TOLERANCES.noise * max(abs(before), 1.0)
    for _ in range(TOLERANCES.max_halvings):
        following = problem.move(x, step * direction)
        value = problem.value(following)
        if value >= before + TOLERANCES.armijo * step * slope - noise:
            return following, value
        step *= 0.5
    return None


def inverse_curvature(tau: FloatArray, rest: FloatArray, counts: FloatArray) -> FloatArray:
    """Return tau (1 - tau) / (1 - (1 + c) tau), kept finite; shaped like ``tau``.

    This is minus the inverse of the second derivative of c (1 - tau) log(1 - tau) - tau log tau;
    ``rest`` is 1 - tau, computed more accurately than by subtraction.
    """
    slack = rest - counts * tau
    sign = np.where(slack < 0.0, -1.0, 1.0)
    return np.asarray(tau * rest * sign / np.maximum(np.abs(slack), TOLERANCES.smallest_curvature))
