"""On forests messages are exact, whatever damping was asked for; elsewhere they claim less."""

import numpy as np
import pytest

from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.inference.factors.log_partition import log_partition, marginals
from engine.inference.factors.map_portfolio import map_estimate


def random_forest(rng: np.random.Generator, zeros: float) -> FactorGraph:
    """A forest whose nodes stand in no order, some tables impossible."""
    n = int(rng.integers(2, 9))
    cards = rng.integers(1, 4, n)
    place = rng.permutation(n)
    factors = [Factor((v,), rng.normal(size=int(cards[v]))) for v in range(n)]
    for k in range(1, n):
        if rng.random() < 0.9:
            i, j = int(place[k]), int(place[rng.integers(k)])
            table = rng.normal(size=(int(cards[i]), int(cards[j]))) * 10.0 ** rng.integers(-1, 2)
            table[rng.random(table.shape) < zeros] = -np.inf
            factors.append(Factor((i, j), table))
    return FactorGraph(cards, tuple(factors))


@pytest.mark.parametrize("damping", [None, 0.0, 0.9])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("method", ["bp", "trw"])
def test_exact_means_exact(method: str, zeros: float, damping: float | None) -> None:
    rng = np.random.default_rng(0)
    claimed = 0
    for _ in range(60):
        graph = random_forest(rng, zeros)
        try:
            exact = marginals(graph, method="exact")
        except InfeasibleError:
            continue
        found = marginals(graph, method=method, damping=damping)
        claimed += found.is_exact
        if found.is_exact:
            assert found.is_converged
            assert found.value == pytest.approx(exact.value, abs=1e-9)
            for one, other in zip(found.marginals, exact.marginals, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-9)
    assert claimed > 30


def test_two_variables_that_exclude_each_other() -> None:
    """Damped messages ended 5.6e-5 away, by interior points, and were called exact."""
    unlike = np.log(np.array([[1e-300, 0.337112917014171], [0.6835934453258168, 1e-300]]))
    unlike[[0, 1], [0, 1]] = -np.inf
    ends = (
        np.log([0.7881627099239388, 0.9624465421455753]),
        np.log([0.2305555539955194, 0.59088736]),
    )
    factors = (Factor((0, 1), unlike), Factor((0,), ends[0]), Factor((1,), ends[1]))
    graph = FactorGraph(np.array([2, 2]), factors)
    exact = marginals(graph, method="exact")
    found = marginals(graph, method="bp", damping=0.3)
    assert found.is_exact
    np.testing.assert_allclose(found.marginals[0], exact.marginals[0], rtol=1e-13)


def test_loops_converge_only_where_messages_have_come_to_rest() -> None:
    """Near the critical coupling messages shrink slowly: a small step is not the last one."""
    n = 4
    pairs = [(i, j) for i in range(n) for j in range(i)]
    coupling = 0.5 * np.log(3.0) * (1.0 - 1e-7)  # each message shrinks by 1 - 4e-7 or so a sweep
    table = np.array([[coupling, -coupling], [-coupling, coupling]])
    field = Factor((0,), np.array([1e-9, 0.0]))
    graph = FactorGraph(np.full(n, 2), (field, *(Factor(pair, table) for pair in pairs)))
    early = log_partition(graph, method="bp", max_iterations=50)
    assert not early.is_exact
    settled = log_partition(graph, method="bp", max_iterations=20_000)
    for one, other in zip(early.marginals, settled.marginals, strict=True):
        assert not early.is_converged or np.abs(one - other).max() < 1e-5


def test_roof_duality_says_what_it_cannot_take() -> None:
    triple = FactorGraph(np.array([2, 2, 2]), (Factor((0, 1, 2), np.zeros((2, 2, 2))),))
    with pytest.raises(InvalidProblemError, match="factor 0 has 3"):
        map_estimate(triple, method="roof-duality")
    wide = FactorGraph(np.array([2, 3]), (Factor((0, 1), np.zeros((2, 3))),))
    with pytest.raises(InvalidProblemError, match="variable 1 has 3"):
        map_estimate(wide, method="roof-duality")
