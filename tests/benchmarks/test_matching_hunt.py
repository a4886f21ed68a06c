"""Graphs of the hunt for matchings in every form agree with exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.hunts import matching
from tests.reference.best_matchings import best_weight


@pytest.mark.parametrize("seed", range(25))
def test_every_form_has_the_best_matching(seed: int) -> None:
    assert matching.faults_of_seed(seed) == []


def test_the_hunt_sees_a_matching_that_is_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = next(p for p in map(matching.make_problem, range(50)) if p.best[1] > 0)
    worse = matching.Problem(
        problem.kind,
        problem.n,
        problem.edges,
        problem.weights,
        (problem.best[0], problem.best[1] + Fraction(1, 10**9)),
        problem.most,
    )
    assert matching.faults(worse)


def test_the_reference_agrees_with_another() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(1, 8))
        pairs = [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.6]
        weights = {pair: Fraction(int(rng.integers(-9, 20))) for pair in pairs}
        found = matching._best_by_subsets(n, weights, False)[1]
        values = [float(weight) for weight in weights.values()]
        assert found == best_weight(n, pairs, values, perfect=False)
        parents = {
            (int(rng.integers(k)), k): Fraction(int(rng.integers(-9, 20))) for k in range(1, n)
        }
        kept = {edge: weight for edge, weight in parents.items() if rng.random() < 0.8}
        for most in (False, True):
            tree, subsets = (
                solve(n, kept, most)
                for solve in (matching._best_of_tree, matching._best_by_subsets)
            )
            assert tree[1] == subsets[1]
            assert not most or tree[0] == subsets[0]
