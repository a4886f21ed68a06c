"""Newton's ascent on a problem solved in closed form: the entropy of a simplex."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import logsumexp

from engine.core.status import Status
from engine.inference.matching.newton_ascent import NewtonStep, ascend, inverse_curvature

SCORES = np.array([1.0, 0.4, -0.3, 0.9])
CENTRE = np.full(4, 0.25)


@dataclass(frozen=True)
class Simplex:
    """<w, x> - heat sum x log x on the simplex; the maximum is heat logsumexp(w / heat).

    Without heat the optimum is a vertex and the Newton system singular.
    """

    heat: float
    is_sound: bool = True
    has_vertices: bool = True

    @property
    def maximum(self):
        return self.heat * logsumexp(SCORES / self.heat) if self.heat else SCORES.max()

    def value(self, x):
        return float(SCORES @ x - self.heat * x @ np.log(x))

    def newton(self, x):
        gradient = SCORES - self.heat * (1.0 + np.log(x))
        multiplier = (x @ gradient + self.heat * (x.sum() - 1.0)) / x.sum()  # restores the sum
        if not (self.is_sound and self.heat):
            return NewtonStep(np.zeros(4), -np.inf, gradient, np.array([multiplier]))
        direction = x * (gradient - multiplier) / self.heat
        return NewtonStep(direction, float(gradient @ direction), gradient, np.array([multiplier]))

    def gap(self, x, newton, wanted):
        return max(float(newton.gradient.max() - newton.gradient @ x), 0.0)

    def fallback(self, x, newton):
        if not self.has_vertices:
            return None
        direction = np.eye(4)[newton.gradient.argmax()] - x
        return direction, float(newton.gradient @ direction)

    def room(self, x, direction):
        falling = direction < 0.0
        return float(np.min(-x[falling] / direction[falling], initial=np.inf))

    def move(self, x, step):
        return np.maximum(x + step, 1e-300)


class FirstBoundOnly(Simplex):
    """Certifies its start, and never again."""

    def gap(self, x, newton, wanted):
        return super().gap(x, newton, wanted) if np.array_equal(x, CENTRE) else np.inf


@pytest.mark.parametrize("heat", [0.1, 1.0, 10.0])
def test_an_optimum_inside_is_reached(heat):
    problem = Simplex(heat)
    found = ascend(problem, CENTRE, 1e-12, 50)
    assert found.status is Status.CONVERGED
    assert found.steps <= 30
    assert found.value == pytest.approx(problem.maximum, abs=1e-11)
    expected = np.exp((SCORES - problem.maximum) / heat)
    np.testing.assert_allclose(found.point, expected, atol=1e-6)


def test_vertices_replace_steps_that_rounding_spoiled():
    spoiled = Simplex(1.0, is_sound=False)
    found = ascend(spoiled, CENTRE, 1e-3, 500)
    assert found.value > spoiled.value(CENTRE)
    assert found.value <= spoiled.maximum <= found.upper_bound + 1e-12
    assert found.steps > 0


def test_without_steps_the_start_is_returned_with_its_bound():
    spoiled = Simplex(1.0, is_sound=False, has_vertices=False)
    found = ascend(spoiled, CENTRE, 1e-9, 50)
    assert found.status is Status.STALLED
    assert found.steps == 0
    assert found.value <= spoiled.maximum <= found.upper_bound


@pytest.mark.parametrize("max_steps", [0, 1, 3])
def test_a_limit_never_reads_as_converged(max_steps):
    problem = Simplex(0.05)
    found = ascend(problem, CENTRE, 1e-12, max_steps)
    assert found.status is Status.ITERATION_LIMIT
    assert found.steps <= max_steps
    assert found.value <= problem.maximum <= found.upper_bound


def test_a_bound_holds_for_all_later_points():
    problem = FirstBoundOnly(1.0)
    found = ascend(problem, CENTRE, 1e-9, 50)
    first = problem.value(CENTRE) + problem.gap(CENTRE, problem.newton(CENTRE), np.inf)
    assert problem.maximum <= found.upper_bound <= first
    assert not found.status.is_converged


@pytest.mark.parametrize("tau", [0.1, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("count", [0.0, 0.6, 1.0])
def test_the_curvature_is_that_of_the_entropy(tau, count):
    def slope(t):
        return -count * (1.0 + np.log(1.0 - t)) - 1.0 - np.log(t)

    second = (slope(tau + 1e-6) - slope(tau - 1e-6)) / 2e-6
    assert inverse_curvature(
        np.array([tau]), np.array([1.0 - tau]), np.array([count])
    ) == pytest.approx(-1.0 / second, rel=1e-6)


def test_the_curvature_stays_finite_where_the_entropy_has_none():
    half = np.array([0.5])
    assert np.isfinite(inverse_curvature(half, half, np.ones(1))).all()
