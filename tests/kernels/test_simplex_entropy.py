"""The node problem near vertices, where sums that hide small numbers once broke the bound."""

import numpy as np
import pytest

from engine.kernels.simplex_entropy import bounded_value, maximum_over_simplex


def value_beside_the_vertex(b: float, q: np.ndarray) -> np.ndarray:
    """Objective of scores (0, b, b) at x = (1 - q, q/2, q/2)."""
    half = q / 2
    entropy = q * np.log(q) + 2 * (1 - half) * np.log1p(-half)
    entropy -= (1 - q) * np.log1p(-q) + q * np.log(half)
    return b * q + 0.5 * entropy


@pytest.mark.parametrize("delta", [1e-1, 1e-3, 1e-6])
def test_an_optimum_next_to_a_vertex_is_found(delta: float) -> None:
    """exp(2 b) summed over the others is 1 + delta: the vertex is left by about 2 delta."""
    b = 0.5 * np.log((1 + delta) / 2)
    best = value_beside_the_vertex(b, np.geomspace(1e-12, 0.9, 200_001)).max()
    maximum = maximum_over_simplex(np.array([0.0, b, b]))
    assert best > 0.0
    assert maximum >= best - 1e-15
    assert maximum == pytest.approx(best, rel=1e-3, abs=1e-16)


def test_a_dominant_score_keeps_the_vertex() -> None:
    assert maximum_over_simplex(np.array([0.3, -5.0, -7.0, -np.inf])) == 0.3


@pytest.mark.parametrize("is_upper", [False, True])
def test_every_multiplier_gives_a_bound(is_upper: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores = 2 * rng.standard_normal(5)
        top = int(np.argmax(scores))
        maximum = maximum_over_simplex(scores)
        multiplier = scores[top] + np.log(2) + rng.exponential(2.0)
        assert bounded_value(scores, top, is_upper, multiplier) >= maximum - 1e-12
