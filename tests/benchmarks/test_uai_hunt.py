"""Models of the hunt for wrong inference agree with the sum over all configurations."""

import numpy as np
import pytest

from benchmarks.hunts import uai
from engine.inference.factors.elimination import Elimination


@pytest.mark.parametrize("seed", range(8))
def test_no_answer_claims_what_is_false(seed: int) -> None:
    assert uai.faults_of_seed(seed) == []


def test_the_reference_agrees_with_elimination() -> None:
    compared = 0
    for seed in range(20):
        problem = uai.make_problem(seed)
        if problem.log_z == -np.inf:
            continue
        compared += 1
        value, marginals = Elimination(problem.graph).marginals()
        assert problem.log_z == pytest.approx(value, abs=1e-9 * problem.size)
        for one, other in zip(problem.marginals(), marginals, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)
    assert compared > 10


def test_the_hunt_sees_a_false_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = next(p for p in map(uai.make_problem, range(50)) if p.log_z > -np.inf)
    shifted = uai.Problem(problem.graph, problem.scores + 1.0)
    assert uai.marginal_faults(shifted, np.random.default_rng(0))
    assert uai.map_faults(shifted, np.random.default_rng(0))
