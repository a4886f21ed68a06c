"""The translation of factor graphs into pairwise models keeps the distribution."""

import itertools

import numpy as np
import pytest

from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.graphs.factor_graph import Factor, FactorGraph, to_pairwise
from tests.reference.pairwise_models import enumerate_model


def third_order(seed: int, zeros: float) -> FactorGraph:
    rng = np.random.default_rng(seed)
    cards = np.array([2, 3, 2, 2])

    def table(*variables: int) -> Factor:
        values = rng.normal(size=tuple(cards[list(variables)]))
        values[rng.random(values.shape) < zeros] = -np.inf
        return Factor(variables, values)

    scopes = [(0,), (2, 1), (1, 2), (3, 0, 1), (1, 2, 3), (0, 2, 3, 1)]
    return FactorGraph(cards, (Factor((), np.array(0.7)), *(table(*s) for s in scopes)))


@pytest.mark.parametrize("zeros", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_scores_of_all_configurations_are_kept(seed, zeros):
    graph = third_order(seed, zeros)
    form = to_pairwise(graph)
    values, labellings = enumerate_model(form.model)
    best: dict[tuple[int, ...], float] = {}
    for value, labels in zip(values, labellings, strict=True):
        key = tuple(int(x) for x in labels[: form.n_variables])
        best[key] = max(best.get(key, -np.inf), value)
    for labels in itertools.product(*(range(int(c)) for c in graph.cardinalities)):
        expected = graph.score(np.array(labels))
        assert best[labels] + form.constant == pytest.approx(expected)
    finite = values[np.isfinite(values)]  # one auxiliary completion a configuration, no more
    possible = sum(
        np.isfinite(graph.score(np.array(x)))
        for x in itertools.product(*(range(int(c)) for c in graph.cardinalities))
    )
    assert len(finite) == possible


def test_a_factor_without_variables_that_is_zero_is_named():
    graph = FactorGraph(np.array([2]), (Factor((), np.array(-np.inf)),))
    with pytest.raises(InfeasibleError, match="probability zero"):
        to_pairwise(graph)


def test_factors_that_do_not_fit_are_refused():
    cards = np.array([2, 3])
    for factor, words in (
        (Factor((0, 0), np.zeros((2, 2))), "twice"),
        (Factor((2,), np.zeros(2)), "does not exist"),
        (Factor((0, 1), np.zeros((3, 2))), "expected a table"),
        (Factor((0,), np.array([0.0, np.nan])), "not a number"),
    ):
        with pytest.raises(InvalidProblemError, match=words):
            FactorGraph(cards, (factor,))
