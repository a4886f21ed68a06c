"""Graphs of other libraries are read the same, or refused with the reason."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

import engine
from engine.core.errors import InvalidProblemError
from engine.graphs.edge_list import read_graph

EDGES = [(0, 1, 3.0), (1, 2, -4.0), (2, 3, 5.0), (0, 3, 0.0)]


class Table:
    """What is used of a pandas table, which this project does not otherwise need."""

    def __init__(self, **columns: list) -> None:
        self.columns = columns

    def __getitem__(self, name: str) -> np.ndarray:
        return np.array(self.columns[name], dtype=object)


def table(weight: str = "weight") -> Table:
    source, target, values = zip(*EDGES, strict=True)
    return Table(source=list(source), target=list(target), **{weight: list(values)})


def of_networkx() -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(4))
    graph.add_weighted_edges_from(EDGES)
    return graph


def of_matrix(both: bool) -> scipy.sparse.coo_array:
    u, v, w = (np.array(x) for x in zip(*EDGES, strict=True))
    if both:
        u, v, w = np.r_[u, v], np.r_[v, u], np.r_[w, w]
    return scipy.sparse.coo_array((w, (u, v)), shape=(4, 4))


@pytest.mark.parametrize(
    "graph", [of_networkx(), of_matrix(True), of_matrix(False), of_matrix(True).tocsr(), table()]
)
def test_each_kind_gives_the_same_edges(graph: object) -> None:
    found = read_graph(graph)
    rows = sorted((*sorted(e), w) for e, w in zip(found.edges.tolist(), found.weights, strict=True))
    assert rows == sorted(EDGES)
    assert found.nodes == [0, 1, 2, 3]
    assert engine.max_weight_matching(graph).weight == 8.0


def test_weights_have_another_name_or_none() -> None:
    assert_array_equal(read_graph(table("like"), weight="like").weights, [3, -4, 5, 0])
    assert_array_equal(read_graph(nx.path_graph(3), default=2.0).weights, [2, 2])
    named = read_graph(nx.Graph([("Ann", "Bo"), ("Bo", "Bo")]))
    assert named.nodes == ["Ann", "Bo"]
    assert named.edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (nx.DiGraph([(0, 1)]), "without directions"),
        (scipy.sparse.coo_array((2, 3)), "a square matrix, received 2 x 3"),
        (scipy.sparse.coo_array(([1.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2)), "different weights"),
        (Table(source=[1]), "no column target"),
        (scipy.sparse.coo_array(([np.inf], ([0], [1])), shape=(2, 2)), "weights"),
        ([[0, 1]], "received list"),
    ],
)
def test_what_is_no_such_graph_is_said(graph: object, words: str) -> None:
    with pytest.raises(InvalidProblemError, match=words):
        read_graph(graph)
