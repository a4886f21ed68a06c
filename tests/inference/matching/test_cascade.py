"""The order of methods for pseudomarginals of matchings, and which of them answers."""

from dataclasses import replace

import numpy as np
import pytest

from engine.core.errors import CertificateError
from engine.entropies.matching import complete_layout, make_matching_entropy
from engine.inference.matching import cascade, polytope
from engine.inference.matching.cascade import (
    ActiveSetState,
    Aim,
    BarrierPoint,
    MatchingProblem,
    Method,
    Potentials,
    Start,
    in_order,
    solve,
    solve_in_parts,
)
from engine.inference.matching.odd_sets import OddSetProof
from engine.inference.matching.potentials import DenseScores
from tests.reference import perfect_matchings as reference


def random_scores(n, spread, seed):
    scores = np.random.default_rng(seed).normal(size=(n, n)) * spread
    return (scores + scores.T) / np.sqrt(2)


def triangles(liking):
    """Four kinds of three students who like their own kind: odd sets bind."""
    kind = np.repeat(np.arange(4), 3)
    return liking * (kind[:, None] == kind) + random_scores(12, 0.3, 5)


def learned(scores, rho=1.0, **options):
    return MatchingProblem(DenseScores(scores), rho, Aim.FREE_ENERGY, **options)


def value_of(scores, rho, tau):
    entropy = make_matching_entropy(complete_layout(len(tau)), rho)
    return float((scores * tau).sum()) / 2 + entropy.value(tau)


@pytest.mark.parametrize(
    ("scores", "method", "state"),
    [
        (random_scores(40, 0.5, 1), Method.POTENTIALS, Potentials),
        (random_scores(40, 6.0, 1), Method.ACTIVE_SET, ActiveSetState),
        (triangles(8.0), Method.ACTIVE_SET, ActiveSetState),
    ],
)
@pytest.mark.parametrize("rho", [1.0, 0.5])
def test_learning_gets_bounds_and_a_state_from_the_first_method_that_applies(
    scores, method, state, rho
):
    found = solve(learned(scores, rho))
    assert found.methods == (method,)
    assert isinstance(found.continuation(), state)
    assert found.proof.holds
    assert found.value - 1e-9 <= value_of(scores, rho, found.tau) <= found.upper_bound + 1e-9
    assert found.upper_bound - found.value <= 1e-6


@pytest.mark.parametrize(
    ("scores", "methods"),
    [
        (random_scores(20, 6.0, 1), (Method.EXACT_SUMS,)),
        (random_scores(40, 0.5, 1), (Method.POTENTIALS,)),
        (random_scores(100, 5.0, 100), (Method.MESSAGES,)),
    ],
)
def test_probabilities_come_from_the_cheapest_method_that_is_proved(scores, methods):
    found = solve_in_parts(MatchingProblem(DenseScores(scores), 1.0))
    assert found.methods == methods
    assert found.gap == 0.0


def test_parts_name_all_their_methods_in_the_order_of_the_cascade():
    part = np.repeat([0, 1], [40, 6])
    scores = np.where(part[:, None] == part, random_scores(46, 0.5, 0), -np.inf)
    found = solve_in_parts(MatchingProblem(DenseScores(scores), 1.0))
    assert found.methods == (Method.EXACT_SUMS, Method.POTENTIALS)
    assert found.is_exact.tolist() == (part == 1).tolist()
    assert in_order(["barrier", "unknown", "potentials"]) == (Method.POTENTIALS, Method.BARRIER)


def test_learning_and_probabilities_agree_where_both_take_the_optimum():
    """They were two cascades: one began at equal scores, the other at the potentials."""
    n = 33
    side = np.arange(2 * n) < n
    scores = np.where(side[:, None] == side, random_scores(2 * n, 0.2, 3), -8.0)
    one = solve(learned(scores))
    other = solve(MatchingProblem(DenseScores(scores), 1.0))
    assert one.methods == other.methods == (Method.ACTIVE_SET,)
    assert one.proof.holds
    assert other.gap == 0.0
    np.testing.assert_allclose(one.tau, other.tau, atol=1e-7)


def test_columns_replace_tau_by_every_method():
    columns = np.random.default_rng(0).normal(size=(12, 4))
    for scores in (random_scores(12, 0.2, 1), triangles(8.0)):
        whole, panels = solve(learned(scores)), solve(learned(scores, columns=columns))
        assert whole.methods == panels.methods
        np.testing.assert_allclose(panels.tau, whole.tau @ columns, atol=1e-9)


def test_a_state_of_any_method_is_a_start_for_nearby_scores(monkeypatch):
    scores, nearby = triangles(6.0), triangles(6.0) + random_scores(12, 0.01, 9)
    cold = solve(learned(nearby))
    active = solve(learned(scores))
    legs = polytope._follow_legs
    monkeypatch.setattr(
        polytope, "_follow_legs", lambda *args: replace(legs(*args), is_solved=False)
    )
    barrier = solve(learned(scores))
    assert barrier.methods == (Method.BARRIER,)
    assert isinstance(barrier.state, BarrierPoint)
    again = solve(learned(nearby), Start(DenseScores(scores), barrier.continuation()))
    assert again.methods == (Method.BARRIER,)  # its point is no start for continuation
    monkeypatch.undo()
    warm = solve(learned(nearby), Start(DenseScores(scores), active.continuation()))
    assert warm.methods == (Method.ACTIVE_SET,)
    assert warm.steps < cold.steps
    for found in (warm, again):
        assert np.abs(found.tau - cold.tau).max() < 1e-5


def test_frank_wolfe_answers_when_nothing_else_is_proved(monkeypatch):
    monkeypatch.setattr(cascade, "sum_perfect_matchings", lambda *_, **__: None)
    monkeypatch.setattr(cascade, "_examine", lambda *_: OddSetProof(np.zeros(2)))
    monkeypatch.setattr(cascade, "_by_active_set", lambda *_: None)
    scores = triangles(3.0)[:8, :8]
    found = solve(MatchingProblem(DenseScores(scores), 1.0))
    assert found.methods == (Method.FRANK_WOLFE,)
    best = reference.all_matchings(8)
    assert found.gap < 0.1
    assert found.upper_bound >= max((scores * tau).sum() / 2 for tau in best)
    with pytest.raises(CertificateError):
        found.continuation()
    monkeypatch.setattr(cascade, "REPAIRED_UP_TO", 6)
    unproved = solve(MatchingProblem(DenseScores(scores), 1.0))
    assert unproved.methods in {(Method.POTENTIALS,), (Method.MESSAGES,)}
    assert unproved.gap == np.inf


def test_a_guide_of_usable_pairs_is_not_examined(monkeypatch):
    """Proofs of odd sets took 43 of 75 s of 2,500 students, whom a chain then sampled anyway."""
    monkeypatch.setattr(cascade, "examine_odd_sets", None)
    monkeypatch.setattr(cascade, "examine_cheaply", None)
    for spread in (0.5, 5.0):
        scores = DenseScores(random_scores(60, spread, 5))
        found = solve(MatchingProblem(scores, 1.0, Aim.GUIDE))
        assert found.gap == np.inf
        assert np.abs(found.tau.sum(axis=1) - 1.0).max() <= 1e-4
