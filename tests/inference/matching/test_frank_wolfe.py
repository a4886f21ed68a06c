"""Frank-Wolfe marginals on every kind of matching, against other methods."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.inference.matching.bipartite_newton import compute_bipartite_pseudomarginals
from engine.inference.matching.exact import (
    compute_bipartite_marginals,
    compute_matching_marginals,
)
from engine.inference.matching.frank_wolfe import compute_frank_wolfe_marginals
from engine.oracles.assignment import AssignmentOracle
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.protocol import ExtremePoint, make_indicator
from engine.oracles.sparse_matching import max_weight_matching


class AnyMatchingOracle:
    """Imperfect matchings of a complete graph."""

    def compute_extreme_point(self, scores: np.ndarray) -> ExtremePoint:
        rows, columns = np.triu_indices(len(scores), 1)
        edges = np.column_stack([rows, columns])
        matching = max_weight_matching(len(scores), edges, scores[rows, columns], kind="any")
        matched = np.flatnonzero(matching.partner >= 0)
        places = matched * len(scores) + matching.partner[matched]
        vertex = make_indicator(places, share=0.5)
        return ExtremePoint(vertex, matching.weight, matching.upper_bound)


def symmetric(n: int, seed: int, scale: float) -> np.ndarray:
    scores = scale * np.random.default_rng(seed).standard_normal((n, n))
    return np.tril(scores, -1) + np.tril(scores, -1).T


@pytest.mark.parametrize("rho", [0.5, 1.0])
@pytest.mark.parametrize("steps", ["line-search", "open-loop"])
def test_bipartite_iterates_close_in_on_newton(rho: float, steps: str) -> None:
    scores = np.random.default_rng(0).standard_normal((6, 6))
    newton = compute_bipartite_pseudomarginals(scores, rho)
    result = compute_frank_wolfe_marginals(
        scores, AssignmentOracle(), rho=rho, steps=steps, max_iterations=2000
    )
    assert result.value <= newton.upper_bound + 1e-9
    assert result.upper_bound >= newton.value - 1e-9
    np.testing.assert_allclose(result.marginals, newton.marginals, atol=0.02)


def test_the_gap_closes_and_is_reported() -> None:
    scores = 0.3 * np.random.default_rng(1).standard_normal((5, 5))
    result = compute_frank_wolfe_marginals(scores, AssignmentOracle(), tolerance=0.02)
    assert result.status is Status.CONVERGED
    assert 0 <= result.upper_bound - result.value <= 0.02 + 1e-12
    short = compute_frank_wolfe_marginals(scores, AssignmentOracle(), max_iterations=2)
    assert (short.status, short.oracle_calls) == (Status.ITERATION_LIMIT, 2)


@pytest.mark.parametrize("kind", ["perfect", "any"])
def test_general_graphs_come_near_the_exact_marginals_and_below_the_reweighted_bound(
    kind: str,
) -> None:
    scores = symmetric(6, 3, 1.0)
    is_perfect = kind == "perfect"
    oracle = CompleteGraphMatcher() if is_perfect else AnyMatchingOracle()
    exact = compute_matching_marginals(scores, kind=kind)
    reweighted, bethe = (
        compute_frank_wolfe_marginals(
            scores, oracle, rho=rho, is_bipartite=False, is_perfect=is_perfect, max_iterations=150
        )
        for rho in (0.5, 1.0)
    )
    assert reweighted.upper_bound >= exact.log_partition - 1e-9
    np.testing.assert_allclose(bethe.marginals, exact.marginals, atol=0.12)
    np.testing.assert_allclose(bethe.marginals, bethe.marginals.T, atol=1e-12)


def test_bethe_is_no_lower_bound_beyond_bipartite_graphs() -> None:
    """A triangle has the empty matching and three edges, Z = 4; Bethe says golden ratio cubed."""
    result = compute_frank_wolfe_marginals(
        np.zeros((3, 3)), AnyMatchingOracle(), is_bipartite=False, is_perfect=False
    )
    assert result.value == pytest.approx(3 * np.log((1 + np.sqrt(5)) / 2), abs=1e-4)
    assert result.value > np.log(4) + 0.05


def test_a_long_first_step_does_not_trap_the_search_beside_a_vertex() -> None:
    """Without the cap the first step ended 1e-9 from a vertex, and 1,000 more moved nothing."""
    scores = 10 * np.random.default_rng(4).random((10, 10))
    newton = compute_bipartite_pseudomarginals(scores)
    result = compute_frank_wolfe_marginals(scores, AssignmentOracle(), max_iterations=1000)
    np.testing.assert_allclose(result.marginals, newton.marginals, atol=0.03)


def test_the_bethe_permanent_of_equal_scores_is_known() -> None:
    """tau = 1/n gives n! up to Vontobel's factor: (1 - 1/n)^(n (n - 1)) n^n."""
    n = 7
    result = compute_frank_wolfe_marginals(np.zeros((n, n)), AssignmentOracle())
    assert result.value == pytest.approx(n * (n - 1) * np.log(1 - 1 / n) + n * np.log(n))


def test_excluded_edges_need_a_start() -> None:
    scores = np.zeros((3, 3))
    scores[0, 2] = -np.inf
    with pytest.raises(InvalidProblemError, match="interior start"):
        compute_frank_wolfe_marginals(scores, AssignmentOracle())
    start = (np.eye(3) + np.eye(3)[[1, 2, 0]] + np.eye(3)[[1, 0, 2]] + np.eye(3)[[0, 2, 1]]) / 4
    result = compute_frank_wolfe_marginals(
        scores, AssignmentOracle(), start=start, max_iterations=300
    )
    assert result.marginals[0, 2] == 0.0
    exact = compute_bipartite_marginals(scores).marginals
    np.testing.assert_allclose(result.marginals, exact, atol=0.1)
