"""NetworkX asks us for its matchings: its own tests pass, and large dense graphs are quick."""

from time import perf_counter
from types import SimpleNamespace

import networkx as nx
import networkx.algorithms.tests.test_matching as theirs
import numpy as np
import pytest

from engine import networkx_backend
from engine.core.errors import InvalidProblemError
from engine.networkx_backend import BetheHallBackend, get_info


class Through:
    """NetworkX, but its matchings are made by the backend, wherever the package is installed."""

    def __getattr__(self, name):
        return getattr(nx, name)

    def max_weight_matching(self, graph, maxcardinality=False, weight="weight"):
        if graph.is_directed() or graph.is_multigraph():
            return nx.max_weight_matching(graph, maxcardinality, weight)  # refused before us
        arrays = BetheHallBackend.convert_from_nx(graph, edge_attrs={weight: 1})
        return BetheHallBackend.max_weight_matching(arrays, maxcardinality, weight)

    def min_weight_matching(self, graph, weight="weight"):
        arrays = BetheHallBackend.convert_from_nx(graph, edge_attrs={weight: 1})
        return BetheHallBackend.min_weight_matching(arrays, weight)


THEIRS = [
    (kind, name)
    for kind in (theirs.TestMaxWeightMatching,)
    for name in dir(kind)
    if name.startswith("test")
]


@pytest.mark.parametrize("dense_up_to", [0, 256], ids=["sparse", "dense"])
@pytest.mark.parametrize(("kind", "name"), THEIRS, ids=[name for _, name in THEIRS])
def test_their_own_tests_pass_through_us(kind, name, dense_up_to, monkeypatch):
    monkeypatch.setattr(theirs, "nx", Through())
    monkeypatch.setattr(networkx_backend, "DENSE_UP_TO", dense_up_to)
    monkeypatch.setattr(networkx_backend, "DENSE_SHARE", 0 if dense_up_to == 0 else 16)
    case = kind()
    getattr(case, "setup_method", lambda: None)()
    getattr(case, name)()


def weight_of(graph, matching):
    return sum(graph.edges[pair]["weight"] for pair in matching)


@pytest.mark.parametrize("most", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_agree_with_networkx(seed, most):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(int(rng.integers(1, 14)), 0.5, seed=seed)
    for u, v in graph.edges:
        graph.edges[u, v]["weight"] = int(rng.integers(-5, 10))
    graph.add_edge(0, 0, weight=100)  # a loop is in no matching
    arrays = BetheHallBackend.convert_from_nx(graph)
    ours = BetheHallBackend.max_weight_matching(arrays, most)
    expected = nx.max_weight_matching(graph, maxcardinality=most)
    assert nx.is_matching(graph, ours)
    assert weight_of(graph, ours) == weight_of(graph, expected)
    assert len(ours) == len(expected) or not most
    least = BetheHallBackend.min_weight_matching(arrays)
    assert weight_of(graph, least) == weight_of(graph, nx.min_weight_matching(graph))


def test_a_dense_graph_of_500_nodes_takes_less_than_a_hundredth_of_their_time():
    """Theirs grows as n^3: it is timed at 100 nodes, and 25 times that is less than at 500."""
    rng = np.random.default_rng(0)

    def complete(n):
        graph = nx.complete_graph(n)
        for _, _, data in graph.edges(data=True):
            data["weight"] = rng.random()
        return graph

    small, large = complete(100), BetheHallBackend.convert_from_nx(complete(500))
    BetheHallBackend.max_weight_matching(BetheHallBackend.convert_from_nx(small))  # compiles
    started = perf_counter()
    nx.max_weight_matching(small)
    theirs_at_100 = perf_counter() - started
    started = perf_counter()
    BetheHallBackend.max_weight_matching(large)
    ours = perf_counter() - started
    # Reading 124,750 edges out of dictionaries is most of it.
    assert 100 * ours < 100 * theirs_at_100


def test_weights_that_are_no_numbers_are_refused():
    for bad in (float("nan"), float("inf"), "heavy"):
        graph = BetheHallBackend.convert_from_nx(nx.Graph([(0, 1, {"weight": bad})]))
        with pytest.raises(InvalidProblemError, match="finite"):
            BetheHallBackend.max_weight_matching(graph)


def test_weights_that_change_after_a_conversion_count():
    """NetworkX keeps converted graphs, and ours once kept the weights of that moment."""
    graph = nx.Graph([(0, 1, {"weight": 1.0}), (1, 2, {"weight": 2.0})])
    kept = BetheHallBackend.convert_from_nx(graph)
    assert BetheHallBackend.max_weight_matching(kept) == {(1, 2)}
    graph.edges[0, 1]["weight"] = 3.0
    assert BetheHallBackend.max_weight_matching(kept) == {(0, 1)}


def test_what_is_announced_is_what_there_is():
    assert all(hasattr(BetheHallBackend, name) for name in get_info()["functions"])
    arrays = BetheHallBackend.convert_from_nx(nx.Graph())
    assert BetheHallBackend.max_weight_matching(arrays) == set()
    assert SimpleNamespace(**get_info()).backend_name == arrays.__networkx_backend__
