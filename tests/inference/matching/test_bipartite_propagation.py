"""Belief propagation against exact sums, closed forms and its own failures."""

import doctest

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import engine.inference.matching.bipartite_propagation as module
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.status import Status
from engine.inference.matching.bipartite_propagation import propagate_bipartite
from engine.inference.matching.exact import compute_bipartite_marginals


def random_scores(n: int, seed: int, scale: float) -> np.ndarray:
    return scale * np.random.default_rng(seed).standard_normal((n, n))


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("n", [2, 20])
def test_it_converges_to_doubly_stochastic_marginals(n: int, scale: float) -> None:
    result = propagate_bipartite(random_scores(n, n, scale))
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.marginals.sum(axis=0), 1.0, atol=1e-6)
    np.testing.assert_allclose(result.marginals.sum(axis=1), 1.0, atol=1e-6)


def test_the_fixed_point_is_stationary_for_the_bethe_free_energy() -> None:
    """tau (1 - tau) = exp(W) times a factor per row and per column, where tau is optimal."""
    scores = random_scores(8, 4, 2.0)
    marginals = propagate_bipartite(scores, tolerance=1e-12).marginals
    factors = np.log(marginals * (1 - marginals)) - scores
    residual = factors - factors.mean(0) - factors.mean(1)[:, None] + factors.mean()
    np.testing.assert_allclose(residual, 0.0, atol=1e-8)


def test_it_is_near_the_exact_marginals_when_scores_vary_little() -> None:
    scores = random_scores(10, 1, 0.3)
    exact = compute_bipartite_marginals(scores).marginals
    np.testing.assert_allclose(propagate_bipartite(scores).marginals, exact, atol=0.01)


def test_a_marginal_near_one_keeps_its_digits() -> None:
    """Subtracting the dominant term from a sum would lose the small ones to rounding.

    With W = w on the diagonal and 0 off it, tau (1 - tau) = exp(W) f for one factor f, and
    diagonal + (n - 1) off-diagonal = 1: the two solve to off = off-diagonal below.
    """
    n, w = 5, 9.0
    scores = w * np.eye(n)
    off = propagate_bipartite(scores, tolerance=1e-15, max_sweeps=5000).marginals[0, 1]
    diagonal = 1 - (n - 1) * off
    assert 0.0 < off < 1e-4
    assert diagonal * (1 - diagonal) == pytest.approx(np.exp(w) * off * (1 - off), rel=1e-9)


def test_forbidden_and_forced_edges() -> None:
    scores = np.zeros((3, 3))
    scores[0, 1:] = -np.inf  # row 0 can only take column 0
    result = propagate_bipartite(scores)
    expected = [[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]]
    np.testing.assert_allclose(result.marginals, expected, atol=1e-9)


@pytest.mark.parametrize("size", [1000.0, -1000.0, 1e5])
def test_messages_are_as_large_as_the_scores_ask_for(size: float) -> None:
    """Held to 500 whatever the scores, they left every marginal at 0 or 1."""
    result = propagate_bipartite(np.full((3, 3), size))
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.marginals, 1 / 3, atol=1e-8)


def test_a_constant_of_a_row_changes_nothing_however_large() -> None:
    scores = random_scores(4, 0, 1.0)
    shift = np.array([-3000.0, -3000.0, 3000.0, 3000.0])[:, None]
    result = propagate_bipartite(scores + shift)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.marginals, propagate_bipartite(scores).marginals, atol=1e-7)


@pytest.mark.parametrize(("n", "seed"), [(3, 157), (4, 9), (5, 161), (7, 6), (7, 15)])
def test_sharp_scores_do_not_converge_on_the_way_to_the_best_assignment(n: int, seed: int) -> None:
    """Another assignment may fill all sums for some sweeps before the messages have been round."""
    scores = random_scores(n, seed, 1e4)
    result = propagate_bipartite(scores)
    rows, columns = linear_sum_assignment(scores, maximize=True)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.marginals[rows, columns], 1.0)


def test_marginals_that_miss_their_sums_are_not_called_converged() -> None:
    """Two rows share one column: they stand still, but there is nothing to converge to."""
    scores = np.array([[0.0, -np.inf, -np.inf], [0.0, -np.inf, -np.inf], [-np.inf, 0.0, 0.0]])
    result = propagate_bipartite(scores)
    assert result.residual <= 1e-9
    assert result.status is Status.ITERATION_LIMIT


def test_an_interrupted_run_goes_on_to_the_same_answer() -> None:
    scores = random_scores(12, 2, 3.0)
    whole = propagate_bipartite(scores)
    part = propagate_bipartite(scores, max_sweeps=5)
    assert part.status is Status.ITERATION_LIMIT
    resumed = propagate_bipartite(scores, start=part.messages)
    np.testing.assert_array_equal(resumed.marginals, whole.marginals)
    assert resumed.sweeps + 5 == whole.sweeps


def test_without_damping_it_alternates_forever_on_equal_scores() -> None:
    """The plain update flips between messages of 1 and 1/2; the truth is a third each."""
    scores = np.zeros((3, 3))
    even, odd = (propagate_bipartite(scores, damping=0.0, max_sweeps=k) for k in (1000, 1001))
    assert even.status is odd.status is Status.ITERATION_LIMIT
    assert {round(r.marginals[0, 0], 6) for r in (even, odd)} == {0.5, 0.2}
    damped = propagate_bipartite(scores)
    assert damped.status is Status.CONVERGED
    np.testing.assert_allclose(damped.marginals, 1 / 3, atol=1e-8)


@pytest.mark.parametrize(
    ("scores", "error", "words"),
    [
        (np.zeros((2, 3)), InvalidProblemError, "square"),
        (np.full((2, 2), np.nan), InvalidProblemError, "finite"),
        (np.array([[0, -np.inf], [0, -np.inf]]), InfeasibleError, "column 1"),
    ],
)
def test_bad_scores_are_refused(scores: np.ndarray, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        propagate_bipartite(scores)


def test_damping_of_one_is_refused() -> None:
    with pytest.raises(InvalidProblemError, match="damping"):
        propagate_bipartite(np.zeros((2, 2)), damping=1.0)


def test_docstring_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0
