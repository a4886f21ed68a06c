"""The entropy of matchings: formula, gradient and lines, in every layout."""

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.entropies.matching import (
    MatchingEntropy,
    bipartite_layout,
    complete_layout,
    edge_layout,
    make_matching_entropy,
)
from engine.oracles.protocol import make_indicator
from tests.reference import perfect_matchings as reference

EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])


def random_rho(kind, n, rng):
    return rng.random(n) if kind == "per node" else kind


def cases(rho, is_perfect, rng):
    """One entropy, interior point and two vertices for every layout."""
    n = 6
    tau = rng.uniform(0.02, 0.12, (n, n))
    tau = (tau + tau.T) / 2
    np.fill_diagonal(tau, 0.0)
    rows = np.arange(n) * n
    yield (
        make_matching_entropy(complete_layout(n), random_rho(rho, n, rng), is_perfect=is_perfect),
        tau,
        rows + [1, 0, 3, 2, 5, 4],
        rows + [2, 3, 0, 1, 5, 4],
    )
    yield (
        make_matching_entropy(
            bipartite_layout(3, 4), random_rho(rho, 7, rng), is_perfect=is_perfect
        ),
        rng.uniform(0.02, 0.2, (3, 4)),
        np.array([0, 5, 10]),
        np.array([1, 4, 10]),
    )
    yield (
        make_matching_entropy(
            edge_layout(4, EDGES), random_rho(rho, 4, rng), is_perfect=is_perfect
        ),
        rng.uniform(0.05, 0.3, 5),
        np.array([0, 2]),
        np.array([1, 3]),
    )


@pytest.mark.parametrize("rho", [1.0, 0.75, 0.5, 0.25, 0.0, "per node"])
@pytest.mark.parametrize("is_perfect", [True, False])
def test_gradient_agrees_with_finite_differences(rho, is_perfect):
    rng = np.random.default_rng(1)
    for function, tau, _, _ in cases(rho, is_perfect, rng):
        gradient = function.gradient(tau)
        for place in zip(*np.nonzero(tau), strict=True):
            step = np.zeros_like(tau)
            step[place] = 1e-6
            if function.layout.is_symmetric:
                step[place[::-1]] = 1e-6
            difference = function.value(tau + step) - function.value(tau - step)
            assert difference / 2e-6 == pytest.approx(gradient[place], abs=1e-6)


@pytest.mark.parametrize("rho", [1.0, 0.5, "per node"])
@pytest.mark.parametrize("is_perfect", [True, False])
def test_lines_agree_with_values_and_finite_differences(rho, is_perfect):
    rng = np.random.default_rng(2)
    for function, tau, vertex, other in cases(rho, is_perfect, rng):
        for places, step in ((vertex, 0.3), (other, 0.015)):
            end = make_indicator(places)
            line, moved = function.along(tau, end), tau.copy()
            end.move(moved, step)
            value, slope, curvature = line(step)
            assert value == pytest.approx(function.value(moved), abs=1e-12)
            h = 1e-5
            assert slope == pytest.approx(
                (line(step + h)[0] - line(step - h)[0]) / (2 * h), abs=1e-5
            )
            second = (line(step + h)[1] - line(step - h)[1]) / (2 * h)
            assert curvature == pytest.approx(second, rel=1e-4)


def test_value_is_the_formula_and_bethe_at_a_matching_is_zero():
    rng = np.random.default_rng(3)
    rho = rng.random(6)
    function = make_matching_entropy(complete_layout(6), rho)
    weights = rng.dirichlet(np.ones(15))
    tau = np.einsum("k,kij->ij", weights, reference.all_matchings(6))
    assert function.value(tau) == pytest.approx(reference.entropy(tau, rho), abs=1e-12)
    assert function.value(reference.all_matchings(6)[0]) == 0.0


@pytest.mark.parametrize("rho", [1.0, 0.75, 0.5])
def test_it_is_concave_over_the_matching_polytope(rho):
    rng = np.random.default_rng(4)
    function = make_matching_entropy(complete_layout(6), rho)
    matchings = reference.all_matchings(6)
    for _ in range(200):
        a, b = (np.einsum("k,kij->ij", rng.dirichlet(np.full(15, 0.2)), matchings) for _ in "ab")
        middle = function.value((a + b) / 2)
        assert middle >= (function.value(a) + function.value(b)) / 2 - 1e-12


def test_clamped_entries_have_no_gradient():
    function: MatchingEntropy = make_matching_entropy(edge_layout(4, EDGES), 1.0)
    gradient = function.gradient(np.array([1.0, 0.0, 1.0, 0.0, 0.0]))
    assert not gradient.any()


@pytest.mark.parametrize("rho", [1.5, np.nan, np.ones(3), np.ones(1), np.ones((4, 1))])
def test_it_refuses_rho_out_of_range_or_of_another_number_than_the_nodes(rho):
    with pytest.raises(InvalidProblemError, match="rho"):
        make_matching_entropy(complete_layout(4), rho)


def test_it_refuses_loops():
    with pytest.raises(InvalidProblemError, match="joins node 2 to itself"):
        edge_layout(4, np.array([(0, 1), (2, 2)]))
