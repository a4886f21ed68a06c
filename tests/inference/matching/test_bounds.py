"""No bound lies on the wrong side of the optimum in 60 digits, not by a rounding error."""

from decimal import Decimal
from itertools import permutations

import numpy as np
import pytest

from engine.inference.matching.bipartite_bethe import compute_bethe_marginals
from engine.inference.matching.bipartite_newton import compute_bipartite_pseudomarginals
from engine.inference.matching.interior import solve_from_inside
from engine.inference.matching.newton import uniform_point
from engine.inference.matching.odd_sets import EXACT_UP_TO, TOLERANCE
from engine.inference.matching.polytope import solve_over_polytope
from tests.inference.matching.test_polytope import perfect_matchings
from tests.reference.matching_optimum import find_optimum

KINDS = ("random", "tied", "tiny", "nearly one matching", "copies", "nearly forbidden")


def make_scores(kind: str, n: int, strength: float, rng: np.random.Generator) -> np.ndarray:
    """Scores (n, n) of a kind, up to ``strength`` or so."""
    if kind == "random":
        return rng.normal(size=(n, n)) * strength
    if kind == "tied":
        return rng.integers(-1, 2, size=(n, n)) * strength
    if kind == "tiny":
        return rng.normal(size=(n, n)) * 1e-3 / strength**2
    if kind == "nearly one matching":
        scores = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-9.0, 0.0)
        scores[np.arange(n), rng.permutation(n)] += strength
        return scores
    if kind == "copies":
        answers = rng.integers(0, 3, size=(max(n // 2, 1), 2))[rng.integers(max(n // 2, 1), size=n)]
        return -strength * np.abs(answers[:, None] - answers[None]).sum(axis=2).astype(float)
    return rng.normal(size=(n, n)) - strength * (rng.random((n, n)) < 0.5)


@pytest.mark.parametrize("seed", range(6))
def test_bipartite_bounds_hold_to_the_last_digit(seed: int) -> None:
    """Values once lay above the optimum by up to 4e-9, and bounds below it by 4e-13."""
    rng = np.random.default_rng(seed)
    n, strength = int(rng.integers(2, 4)), float(10.0 ** rng.uniform(0.0, 3.0))
    scores = make_scores(KINDS[seed % 6], n, strength, rng)
    rho = float(rng.choice([1.0, 0.8, 0.5, 0.0])) if seed % 3 == 2 else 1.0
    corners = np.array([np.eye(n, dtype=int)[list(p)].ravel() for p in permutations(range(n))])
    best = find_optimum(scores.ravel(), np.full(n * n, 2.0 * rho - 1.0), corners)
    assert best.upper - best.lower < Decimal("1e-18")
    found = [compute_bipartite_pseudomarginals(scores, rho)]
    if rho == 1.0:
        found.append(compute_bethe_marginals(scores)[0])
    for solution in found:
        assert Decimal(float(solution.upper_bound)) >= best.lower
        assert Decimal(float(solution.value)) <= best.upper


@pytest.mark.parametrize("seed", range(6))
def test_bounds_over_the_matching_polytope_hold_to_the_last_digit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, strength = 4 + 2 * (seed == 0), float(10.0 ** rng.uniform(0.0, 3.0))
    scores = np.triu(make_scores(KINDS[seed % 6], n, strength, rng), 1)
    scores, rho = scores + scores.T, 1.0 if seed % 3 else 0.5
    upper = np.triu_indices(n, 1)
    corners = np.zeros((0, len(upper[0])), dtype=int)
    for pairs in perfect_matchings(tuple(range(n))):
        matched = np.zeros((n, n), dtype=int)
        matched[tuple(np.transpose(pairs))] = 1
        corners = np.vstack([corners, matched[upper]])
    best = find_optimum(scores[upper], np.full(len(upper[0]), 2.0 * rho - 1.0), corners)
    weights = np.full(n, rho)
    found = [
        solve_over_polytope(uniform_point(n, weights), scores, weights),
        solve_from_inside(scores, weights, 1e-9, exact_up_to=EXACT_UP_TO),
    ]
    for solution in found:
        assert solution.proof.holds
        assert Decimal(float(solution.upper_bound)) >= best.lower
        assert Decimal(float(solution.value)) <= best.upper + Decimal(TOLERANCE)
