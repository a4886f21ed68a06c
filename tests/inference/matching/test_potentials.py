"""Pseudomarginals by potentials and messages: feasible, optimal, certified, between bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import StoppedError
from engine.entropies.matching import complete_layout, make_matching_entropy
from engine.inference.matching.messages import solve_messages
from engine.inference.matching.potentials import DenseScores, solve_potentials
from engine.kernels.matching_potentials import invert_edge
from tests.reference import perfect_matchings as reference
from tests.reference.message_bound import bound_value


def random_scores(n, spread, seed):
    scores = np.random.default_rng(seed).normal(size=(n, n)) * spread
    return (scores + scores.T) / np.sqrt(2)


def best_value(scores, rho):
    """Maximum of <W, tau> + H over the hull of all matchings, by brute force."""
    weights = np.full(len(scores), rho)

    def negative(tau):
        return -((scores * tau).sum() / 2 + reference.entropy(tau, weights))

    return -reference.minimise_over_hull(negative, len(scores), rng=np.random.default_rng(0))


@pytest.mark.parametrize("c", [1.0, 0.6, 0.0, -0.4, -1.0])
def test_edge_equation_is_inverted(c):
    for t in [1e-12, 1e-6, 5e-4, 9.9e-4, 1.1e-3, 0.01, 0.2, 0.4, 0.49]:
        assert invert_edge(t * (1 - t) ** c, c) == pytest.approx(t, rel=1e-12)


@pytest.mark.parametrize("rho", [1.0, 0.8, 0.5, 0.0])
@pytest.mark.parametrize("seed", range(3))
def test_potentials_reach_the_optimum_that_enumeration_finds(rho, seed):
    scores = random_scores(6, 0.3, seed)
    solution = solve_potentials(DenseScores(scores), np.full(6, rho), None, 1e-12)
    assert solution.is_on_branch
    tau = solution.marginals()
    assert np.abs(tau.sum(axis=1) - 1.0).max() < 1e-11
    value = (scores * tau).sum() / 2 + make_matching_entropy(complete_layout(6), rho).value(tau)
    assert value == pytest.approx(best_value(scores, rho), abs=1e-7)


@pytest.mark.parametrize("rho", [1.0, 0.7, 0.5])
@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_messages_agree_with_potentials_where_both_apply(rho, spread):
    scores = random_scores(30, spread, 5)
    weights = np.full(30, rho)
    potentials = solve_potentials(DenseScores(scores), weights, None, 1e-12)
    messages = solve_messages(scores, weights, None, 1e-13)
    assert potentials.is_on_branch
    assert np.abs(potentials.marginals() - messages.tau).max() < 1e-9


@pytest.mark.parametrize("rho", [1.0, 0.5])
@pytest.mark.parametrize("n", [4, 6, 14, 40])
def test_messages_certify_marginals_above_one_half(rho, n):
    scores = random_scores(n, 3.0, 7)
    solution = solve_messages(scores, np.full(n, rho), None, 1e-12)
    assert solution.tau.max() > 0.5
    assert solution.residual < 1e-9
    value, upper_bound = bound_value(scores, np.full(n, rho), solution)
    assert 0.0 <= upper_bound - value < 1e-6


def test_messages_can_be_stopped_at_every_sweep_and_scaling():
    scores, weights = random_scores(20, 3.0, 7), np.ones(20)
    asked = []
    solution = solve_messages(
        scores, weights, np.zeros((20, 20)), 1e-9, should_stop=lambda: bool(asked.append(0))
    )
    scalings = len(asked) - (solution.sweeps + 1)
    assert scalings > 0
    for patience in (0, solution.sweeps, len(asked) - 1):
        answers = iter([False] * patience)
        with pytest.raises(StoppedError):
            solve_messages(
                scores,
                weights,
                np.zeros((20, 20)),
                1e-9,
                should_stop=lambda answers=answers: next(answers, True),
            )


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([1.0, 0.5]), st.floats(0.1, 4.0))
def test_bounds_never_fall_below_the_optimum(seed, rho, spread):
    """Whatever the sweeps allowed, the bound of a solve holds for every mixture of matchings."""
    scores = random_scores(6, spread, seed)
    function, weights = make_matching_entropy(complete_layout(6), rho), np.full(6, rho)
    bound = bound_value(scores, weights, solve_messages(scores, weights, None, 1e-2))[1]
    rng = np.random.default_rng(seed)
    matchings = reference.all_matchings(6)
    for concentration in (0.05, 0.3, 3.0):
        mixture = rng.dirichlet(np.full(15, concentration), size=20)
        for tau in np.einsum("mk,kij->mij", mixture, matchings):
            assert (scores * tau).sum() / 2 + function.value(tau) <= bound + 1e-9


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.1, 1.5))
def test_exact_log_partition_lies_between_bethe_and_reweighted(seed, spread):
    scores = random_scores(8, spread, seed)
    exact = reference.log_partition(scores)
    (bethe, _), (_, reweighted) = (
        bound_value(scores, rho, solve_messages(scores, rho, None, 1e-10))
        for rho in (np.ones(8), np.full(8, 0.5))
    )
    assert bethe <= exact + 1e-8
    assert reweighted >= exact - 1e-8
