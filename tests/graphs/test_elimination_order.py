"""Plans of exact inference: the steps form a forest, and every table fits into its step."""

import numpy as np
import pytest

from engine.graphs.elimination_order import choose_order


@pytest.mark.parametrize("seed", range(10))
def test_a_step_contains_the_tables_that_it_receives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    scopes = [
        tuple(int(v) for v in rng.permutation(n)[: rng.integers(0, 4)])
        for _ in range(int(rng.integers(0, 15)))
    ]
    plan = choose_order(rng.integers(1, 4, n), scopes, 1 << 30)
    steps = [{v, *scope} for v, scope in zip(plan.order, plan.scopes, strict=True)]
    assert sorted(plan.order) == list(range(n))
    for k, parent in enumerate(plan.parents):
        assert (parent == -1) == (not plan.scopes[k])
        if parent >= 0:
            assert parent > k
            assert set(plan.scopes[k]) <= steps[parent]
    for scope, home in zip(scopes, plan.first_steps(scopes), strict=True):
        assert (home == -1) == (not scope)
        if scope:
            assert set(scope) <= steps[home]
            assert plan.order[home] in scope
