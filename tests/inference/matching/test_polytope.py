"""The optimum over the matching polytope against all odd sets and all matchings of small graphs."""

from itertools import combinations

import numpy as np
import pytest

from engine.entropies.matching import complete_layout, make_matching_entropy
from engine.inference.matching.crossing_sets import uncross
from engine.inference.matching.messages import scale_to_rows
from engine.inference.matching.newton import NewtonPoint, follow_path, uniform_point
from engine.inference.matching.polytope import solve_over_polytope
from engine.inference.matching.polytope_bound import bound_value


def perfect_matchings(nodes):
    """Yield all perfect matchings of a tuple of nodes, as lists of pairs."""
    if not nodes:
        yield []
        return
    first, rest = nodes[0], nodes[1:]
    for k, other in enumerate(rest):
        for others in perfect_matchings(rest[:k] + rest[k + 1 :]):
            yield [(first, other), *others]


def alike_scores(n, strength, rng):
    """Scores by distance of students of whom many are copies: odd sets bind."""
    answers = rng.integers(0, 3, size=(max(n // 3, 2), 2))[rng.integers(max(n // 3, 2), size=n)]
    apart = np.abs(answers[:, None] - answers[None]).sum(axis=2)
    return np.asarray(-strength * apart, dtype=np.float64)


def odd_cuts(tau):
    """Return all odd sets of three to half of the nodes, with what leaves them."""
    n = len(tau)
    for size in range(3, n // 2 + 1, 2):
        for nodes in combinations(range(n), size):
            rest = np.setdiff1d(np.arange(n), nodes)
            yield nodes, float(tau[np.ix_(nodes, rest)].sum())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("strength", [1.0, 12.0, 300.0])
def test_the_optimum_lies_in_the_polytope_and_no_point_of_it_is_better(strength, seed):
    rng = np.random.default_rng(seed)
    n = 2 * int(rng.integers(3, 6))
    scores, rho = alike_scores(n, strength, rng), np.full(n, 1.0 if seed % 3 else 0.5)
    found = solve_over_polytope(uniform_point(n, rho), scores, rho)
    assert found.proof.holds
    assert found.value <= found.upper_bound <= found.value + 1e-7
    assert np.abs(found.tau.sum(axis=1) - 1.0).max() < 1e-12
    assert min(cut for _, cut in odd_cuts(found.tau)) >= 1.0 - 1e-8
    entropy = make_matching_entropy(complete_layout(n), rho)
    every = np.zeros((len(pairings := list(perfect_matchings(tuple(range(n))))), n, n))
    for matching, pairs in zip(every, pairings, strict=True):
        matching[tuple(np.transpose(pairs))] = 1.0
    every += every.transpose(0, 2, 1)
    likely = np.einsum("mij,ij->m", every, scores) / 2.0
    for _ in range(30):  # mixtures of all matchings, near the optimum's too
        shares = np.exp(rng.uniform(0.0, 2.0) * (likely - likely.max())) * rng.random(len(every))
        tau = np.tensordot(shares / shares.sum(), every, axes=1)
        value = float((tau * scores).sum()) / 2.0 + entropy.value(tau)
        assert value <= found.upper_bound + 1e-9


def half_identical(n, strength, rng):
    """Scores by distance of students of whom the second half are copies of the first."""
    answers = rng.normal(size=(n, 3))
    answers[n // 2 :] = answers[rng.integers(n // 2, size=n - n // 2)]
    return -strength * np.abs(answers[:, None] - answers[None]).sum(axis=2)


def triangles_and_a_bridge(n, strength, rng):
    """Scores of triangles of identical students, one pair between them worth more."""
    answers, centres = np.zeros((n, 2)), 2.0 * rng.normal(size=(n, 2))
    answers[: n - n % 3] = np.repeat(centres[: n // 3], 3, axis=0)
    answers[n - n % 3 :] = centres[:2].mean(axis=0)
    scores = -strength * np.abs(answers[:, None] - answers[None]).sum(axis=2)
    i, j = rng.integers(n, size=2)
    scores[i, j] = scores[j, i] = scores[i, j] / 2.0
    return scores


def three_and_three(n, strength, rng):
    """Scores of two triangles far from each other and from many."""
    answers = np.zeros((n, 2))
    answers[:3], answers[3:6] = [5, 0], [0, 5]
    answers[6:] = rng.integers(0, 2, size=(n - 6, 2))
    return -strength * np.abs(answers[:, None] - answers[None]).sum(axis=2)


def some_excluded(n, strength, rng):
    """Scores of students of whom many are copies, a fifth of the pairs off one cycle excluded."""
    scores = alike_scores(n, strength, rng)
    excluded = np.triu(rng.random((n, n)) < 0.2, 2)
    excluded[0, n - 1] = False
    scores[excluded | excluded.T] = -np.inf
    return scores


@pytest.mark.parametrize(
    ("make", "seeds", "least"),
    [
        (alike_scores, (91, 215), 6),
        (half_identical, (205, 208, 209, 216, 228, 229), 6),
        (triangles_and_a_bridge, (200, 203, 204, 208), 6),
        (three_and_three, (207, 223), 8),
        (some_excluded, (204, 214, 219), 6),
    ],
)
@pytest.mark.parametrize("strength", [12.0, 60.0, 1000.0])
def test_every_tiny_year_is_proved(make, seeds, least, strength):
    """Where odd sets are left by next to nothing but each other's pairs, the path stood still."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = max(2 * int(rng.integers(3, 9)), least)
        scores, rho = make(n, strength, rng), np.full(n, 1.0 if seed % 3 else 0.5)
        found = solve_over_polytope(uniform_point(n, rho), scores, rho)
        gap = found.upper_bound - found.value
        assert found.proof.holds, seed
        assert 0.0 <= gap < 1e-6 * max(1.0, abs(found.value)), seed
        assert np.abs(found.tau.sum(axis=1) - 1.0).max() < 1e-8


def test_two_pairs_of_one_student_may_both_pass_one_half_by_rounding():
    """What neither of the two left the other was taken for nothing: the value lost log 2."""
    tau = np.zeros((4, 4))
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 0)):
        tau[i, j] = tau[j, i] = 0.5 + 1e-15
    scores = np.where(tau > 0.0, 0.0, -np.inf)
    rho = np.ones(4)
    point = NewtonPoint(scores, np.zeros(4))
    value, bound = bound_value(scores, rho, tau, 2e-15, point)
    assert value == pytest.approx(0.0, abs=1e-9)  # four halves: 4 (log(2) / 2 - log(2) / 2)
    assert bound >= value


@pytest.mark.parametrize("seed", range(10))
def test_violated_sets_are_exchanged_for_such_that_do_not_cross(seed):
    """Held with others that they cross, they ask for marginals of 0: the way ended there."""
    rng = np.random.default_rng(seed)
    n = 10
    tau = np.exp(alike_scores(n, 6.0, rng) + 0.1 * rng.random((n, n)))
    tau[np.diag_indices(n)] = 0.0
    tau, _ = scale_to_rows(tau)
    cuts = dict(odd_cuts(tau))
    violated = tuple(np.array(nodes) for nodes, cut in cuts.items() if cut < 1.0 - 1e-6)
    chosen = uncross(tau, (), violated)
    assert bool(chosen) == bool(violated)
    for nodes in chosen:
        rest = np.setdiff1d(np.arange(n), nodes)
        assert tau[np.ix_(nodes, rest)].sum() < 1.0
        assert len(nodes) % 2 == 1
    for one, other in combinations([set(nodes.tolist()) for nodes in chosen], 2):
        assert not (one & other and one - other and other - one and len(one | other) < n)


def test_a_path_asks_before_every_step_whether_to_stop():
    """It once asked at points of the path only: eight steps of 2,500 students lay between two."""
    asked = []
    rng, rho = np.random.default_rng(0), np.ones(12)
    scores = alike_scores(12, 1.0, rng)
    point = follow_path(
        uniform_point(12, rho), scores, rho, 1e-10, should_stop=lambda: bool(asked.append(1))
    )
    assert point.residual <= 1e-10
    assert len(asked) > point.steps >= 3
