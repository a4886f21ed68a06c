"""Methods for factor graphs are listed once, and refuse models that lack what they need."""

from typing import get_args

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.inference.factors import methods
from engine.inference.factors.log_partition import DEFAULT_METHOD, MarginalMethod, log_partition
from engine.inference.factors.map_portfolio import MapMethod, map_estimate


def model(*cardinalities: int, scopes: tuple[tuple[int, ...], ...]) -> FactorGraph:
    rng = np.random.default_rng(0)
    cards = np.array(cardinalities)
    factors = [Factor(scope, rng.normal(size=tuple(cards[list(scope)]))) for scope in scopes]
    return FactorGraph(cards, tuple(factors))


BINARY = model(2, 2, 2, scopes=((0, 1), (1, 2), (0, 2)))


def test_the_types_of_the_options_list_the_same_names() -> None:
    assert get_args(MapMethod) == tuple(methods.MAP)
    assert get_args(MarginalMethod) == tuple(methods.MARGINALS)
    assert next(iter(methods.MARGINALS)) == DEFAULT_METHOD


@pytest.mark.parametrize("name", methods.MAP)
def test_every_method_of_the_best_configuration_runs(name: str) -> None:
    best = map_estimate(BINARY).value
    found = map_estimate(BINARY, method=name)
    assert found.value <= best + 1e-9
    assert best <= found.upper_bound + 1e-9


@pytest.mark.parametrize("name", methods.MARGINALS)
def test_every_method_of_log_z_runs(name: str) -> None:
    assert log_partition(BINARY, method=name).method == name


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (
            model(2, 3, scopes=((0, 1),)),
            "method: roof-duality needs variables of one or two labels: variable 1 has 3.",
        ),
        (
            model(2, 2, 2, scopes=((0,), (0, 1, 2))),
            "method: roof-duality needs factors of one or two variables: factor 1 has 3.",
        ),
        (
            model(2, 2, 4, scopes=((0, 1, 2),)),
            "method: roof-duality needs variables of one or two labels: variable 2 has 4; and "
            "factors of one or two variables: factor 0 has 3.",
        ),
    ],
)
def test_everything_that_is_missing_is_named(graph: FactorGraph, words: str) -> None:
    with pytest.raises(InvalidProblemError) as refused:
        map_estimate(graph, method="roof-duality")
    assert str(refused.value) == words
    for name in methods.MAP:
        if name != "roof-duality":
            found = map_estimate(graph, method=name)
            assert found.value <= found.upper_bound
