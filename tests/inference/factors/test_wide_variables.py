"""Variables of very many states leave a model exactly, and come back into its answer."""

from time import process_time

import numpy as np
import pytest

from engine.core.errors import InfeasibleError
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.inference.factors import wide_variables
from engine.inference.factors.log_partition import marginals
from engine.inference.factors.map_portfolio import map_estimate
from engine.inference.factors.methods import MAP, MARGINALS


def small_model(rng: np.random.Generator) -> FactorGraph:
    """A pair or a triangle with leaves of five and six states, some tables impossible."""
    cards = np.array([2, 3, 5, 6, 1, 6])
    scopes = [(0, 1), (2, 0), (3, 4), (1, 5), (2,), (3,), (4,), ()]
    factors = []
    for scope in scopes:
        table = rng.normal(size=tuple(int(cards[v]) for v in scope))
        if len(scope) == 2 and rng.random() < 0.5:
            table = np.where(rng.random(table.shape) < 0.3, -np.inf, table)
        factors.append(Factor(scope, table))
    return FactorGraph(cards, tuple(factors))


@pytest.mark.parametrize("method", MARGINALS)
def test_marginals_and_log_z_are_those_of_the_whole_model(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(12):
        graph = small_model(rng)
        try:
            exact = marginals(graph, method="exact")
        except InfeasibleError:
            with pytest.raises(InfeasibleError):
                marginals(graph, method=method)
            continue
        with monkeypatch.context() as patch:
            patch.setattr(wide_variables, "WIDE", 4)
            found = marginals(graph, method=method)
        compared += 1
        assert len(found.marginals) == graph.n_variables
        if method == "mean-field":
            assert found.value <= exact.value + 1e-9
            continue
        tolerance = 2e-3 if method == "frank-wolfe" else 1e-8  # a forest: all are exact
        assert found.value == pytest.approx(exact.value, abs=tolerance)
        if method != "frank-wolfe" or compared == 1:  # without the cut, 2,000 steps a model
            whole = marginals(graph, method=method)
            assert whole.value == pytest.approx(exact.value, abs=tolerance)
        if method != "frank-wolfe":
            for one, other in zip(found.marginals, exact.marginals, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-9)
    assert compared > 6


@pytest.mark.parametrize("method", [None, "lp", "exact", "expansion"])
def test_the_best_labels_are_those_of_the_whole_model(
    method: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        graph = small_model(rng)
        best = max(graph.score(np.array(x)) for x in np.ndindex(*graph.cardinalities))
        if best == -np.inf:
            continue
        monkeypatch.setattr(wide_variables, "WIDE", 4)
        found = map_estimate(graph, method=method)
        assert found.value == pytest.approx(graph.score(found.labels), abs=1e-12)
        assert found.upper_bound >= best - 1e-9
        if found.is_exact:
            assert found.value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("cards", [[3_000_000], [3_000_000, 2]])
def test_a_variable_of_millions_of_states_takes_a_moment_and_little_memory(
    cards: list[int],
) -> None:
    """Local search once asked for a square table of it: "not enough memory"."""
    graph = FactorGraph(np.array(cards), ())
    started = process_time()
    for method in ("trw", "mean-field", "exact"):
        found = marginals(graph, method=method)
        assert found.value == pytest.approx(np.log(cards).sum(), abs=1e-7)
        assert found.marginals[0].sum() == pytest.approx(1.0, abs=1e-7)
    for way in (None, *list(MAP)[1:]):
        assert map_estimate(graph, method=way, max_seconds=5.0).is_exact
    assert process_time() - started < 60.0


def test_a_wide_variable_that_is_impossible_makes_the_model_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wide_variables, "WIDE", 4)
    graph = FactorGraph(np.array([5]), (Factor((0,), np.full(5, -np.inf)),))
    with pytest.raises(InfeasibleError):
        marginals(graph)
    with pytest.raises(InfeasibleError):
        map_estimate(graph)
