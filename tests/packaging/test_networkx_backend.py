"""NetworkX asks us for its matchings: its own tests pass, and large dense graphs are quick."""

import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from time import process_time
from types import SimpleNamespace

import networkx as nx
import networkx.algorithms.tests.test_matching as theirs
import numpy as np
import pytest

from engine import networkx_backend
from engine.networkx_backend import BetheHallBackend, get_info

ROOT = Path(__file__).resolve().parents[2]


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
    started = process_time()
    nx.max_weight_matching(small)
    theirs_at_100 = process_time() - started
    started = process_time()
    BetheHallBackend.max_weight_matching(large)
    ours = process_time() - started
    # Reading 124,750 edges out of dictionaries is most of it.
    assert 100 * ours < 100 * theirs_at_100


INF = float("inf")
ODD_WEIGHTS = [
    [(0, 1, INF), (1, 2, 3)],
    [(0, 1, -INF)],
    [(0, 1, -INF), (1, 2, 3)],
    [(0, 1, INF), (1, 2, INF), (2, 3, INF)],
    [(0, 1, float("nan")), (1, 2, 1)],
    [(0, 1, -INF), (1, 2, 3), (2, 3, -INF)],
    [(0, 1, INF), (2, 3, -INF), (1, 2, 5)],
    [(0, 1, 1j)],
    [(0, 1, "heavy")],
    [(0, 1, None)],
]


def answer_of(matching, *arguments, **options):
    """The pairs, or what was raised."""
    try:
        return {frozenset(pair) for pair in matching(*arguments, **options)}
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("edges", ODD_WEIGHTS, ids=str)
def test_weights_that_are_not_finite_mean_what_they_mean_to_networkx(edges):
    """The backend once refused them, so that a program ended when it was given priority."""
    graph = nx.Graph()
    graph.add_weighted_edges_from(edges)
    ours = BetheHallBackend.convert_from_nx(graph)
    for most in (True, False):
        expected = answer_of(nx.max_weight_matching, graph, most)
        assert answer_of(BetheHallBackend.max_weight_matching, ours, most) == expected
    expected = answer_of(nx.min_weight_matching, graph)
    assert answer_of(BetheHallBackend.min_weight_matching, ours) == expected


def test_it_answers_through_networkx_by_name_and_by_priority(tmp_path):
    """Installed, as NetworkX finds it: with an entry point on the path."""
    described = tmp_path / "bethe_hall-0.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: bethe-hall\nVersion: 0.0\n")
    (described / "entry_points.txt").write_text(
        "[networkx.backends]\nbethe_hall = engine.networkx_backend:BetheHallBackend\n"
        "[networkx.backend_info]\nbethe_hall = engine.networkx_backend:get_info\n"
    )
    program = f"""
import networkx as nx
inf, nan = float("inf"), float("nan")
nx.config.warnings_to_ignore.add("cache")
for edges in {ODD_WEIGHTS!r} + [[(0, 1, 2**60 + 1), (1, 2, 2**60)]]:
    graph = nx.Graph()
    graph.add_weighted_edges_from(edges)
    for find in (nx.max_weight_matching, nx.min_weight_matching):
        answers = []
        for names, options in (([], {{"backend": "networkx"}}), ([], {{"backend": "bethe_hall"}}),
                               (["bethe_hall"], {{}})):
            with nx.config(backend_priority=names):
                try:
                    answers.append({{frozenset(pair) for pair in find(graph, **options)}})
                except TypeError as error:
                    answers.append(str(error))
        assert answers[0] == answers[1] == answers[2], (edges, answers)
print("agree")
"""
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    assert done.stdout.strip() == "agree", done.stderr


def square_cases(rng, count, lift):
    """Disjoint squares of nearly equal weights, and the least weight of a perfect matching."""
    graph, best = nx.Graph(), 0
    for q in range(count):
        a, b, c, d = range(4 * q, 4 * q + 4)
        x = [lift - int(v) for v in rng.integers(0, 8, 4)]
        graph.add_weighted_edges_from([(a, b, x[0]), (c, d, x[1]), (b, c, x[2]), (d, a, x[3])])
        best += min(x[0] + x[1], x[2] + x[3])
    return graph, best


@pytest.mark.parametrize("bits", [26, 38, 44, 60, 200])
@pytest.mark.parametrize("count", [3, 64, 250])
def test_large_weights_that_differ_in_their_last_digit_are_told_apart(count, bits):
    """One edge more was once made to outweigh all others in float64, which lost the last digits."""
    graph, best = square_cases(np.random.default_rng(0), count, 2**bits)
    found = BetheHallBackend.min_weight_matching(BetheHallBackend.convert_from_nx(graph))
    assert sum(graph.edges[pair]["weight"] for pair in found) == best
    for u, v in graph.edges:
        graph.edges[u, v]["weight"] *= -1
    found = BetheHallBackend.max_weight_matching(BetheHallBackend.convert_from_nx(graph), True)
    assert sum(graph.edges[pair]["weight"] for pair in found) == -best


NUMBERS = {
    "fractions": lambda rng: Fraction(int(rng.integers(-50, 50)), int(rng.integers(1, 50))),
    "decimals": lambda rng: Decimal(int(rng.integers(-99, 99))) / 100,
    "long integers": lambda rng: int(rng.integers(0, 2**40)) * 10**30,
    "floats of all sizes": lambda rng: float(rng.normal() * 10.0 ** int(rng.integers(-9, 9))),
}


@pytest.mark.parametrize("dense_up_to", [0, 256], ids=["sparse", "dense"])
@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_every_kind_count_without_rounding(kind, dense_up_to, monkeypatch):
    monkeypatch.setattr(networkx_backend, "DENSE_UP_TO", dense_up_to)
    monkeypatch.setattr(networkx_backend, "DENSE_SHARE", 0 if dense_up_to == 0 else 16)
    rng = np.random.default_rng(3)
    for seed in range(8):
        graph = nx.gnp_random_graph(12, 0.5, seed=seed)
        exact = nx.Graph(graph)
        for u, v in graph.edges:
            graph.edges[u, v]["weight"] = NUMBERS[kind](rng)
            exact.edges[u, v]["weight"] = Fraction(graph.edges[u, v]["weight"])
        ours = BetheHallBackend.convert_from_nx(graph)
        for most in (True, False):
            found = BetheHallBackend.max_weight_matching(ours, most)
            expected = nx.max_weight_matching(exact, most)
            assert weight_of(exact, found) == weight_of(exact, expected)
            assert len(found) == len(expected) or not most


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


KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)


@pytest.mark.parametrize("name", ["max_weight_matching", "min_weight_matching"])
@pytest.mark.parametrize("attribute", ["weight", "cost"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_graphs_of_every_kind_are_answered_or_refused_as_by_networkx(kind, attribute, name):
    graph = kind()
    ends = [("a", "b", 3), ("b", "c", 5), ("c", "d", 3), ("a", "a", 9), ("d", "e", -1)]
    graph.add_weighted_edges_from(ends, weight=attribute)
    if graph.is_directed() or graph.is_multigraph():
        for backend in ("networkx", "bethe_hall"):
            with pytest.raises(nx.NetworkXNotImplemented):
                getattr(nx, name)(graph, weight=attribute, backend=backend)
        return
    theirs = getattr(nx, name)(graph, weight=attribute)
    ours = getattr(BetheHallBackend, name)(
        BetheHallBackend.convert_from_nx(graph, edge_attrs={attribute: 1}), weight=attribute
    )
    assert {frozenset(pair) for pair in ours} == {frozenset(pair) for pair in theirs}
