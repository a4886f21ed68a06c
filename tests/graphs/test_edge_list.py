"""Graphs of other libraries are read the same, or refused with the reason."""

import io

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from numpy.testing import assert_array_equal

import engine
from engine.core.errors import InfeasibleError, InvalidProblemError
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


def test_an_edge_of_weight_minus_infinity_is_forbidden_in_every_form() -> None:
    """As it is to `engine.assign` and the matcher of complete graphs."""
    rows = [(0, 1, 1.0), (1, 2, -np.inf), (2, 3, 1.0), (0, 3, -np.inf)]
    dense = np.full((4, 4), -np.inf)
    for i, j, w in rows:
        dense[i, j] = dense[j, i] = w
    graph = nx.Graph()
    graph.add_nodes_from(range(4))
    graph.add_weighted_edges_from(rows)
    ends, weights = [row[:2] for row in rows], [row[2] for row in rows]
    source, target, values = map(list, zip(*rows, strict=True))
    lines = Table(source=source, target=target, weight=values)
    for form in (graph, dense, scipy.sparse.coo_array(dense), lines):
        assert engine.max_weight_matching(form).weight == 2.0
        assert len(read_graph(form).edges) == 2
    found = engine.max_weight_matching(4, ends, weights)
    assert found.edge_indices.tolist() == [0, 2]


def test_repeated_entries_of_a_sparse_matrix_add_up() -> None:
    """One matrix was worth 1.0 in coordinates and 2.0 in compressed rows."""
    for values, total in (([1.0, 1.0], 2.0), ([2.0, -2.0], 0.0), ([0.1, 0.2], 0.1 + 0.2)):
        matrix = scipy.sparse.coo_array((values, ([0, 0], [1, 1])), shape=(2, 2))
        rows = scipy.sparse.csr_array(
            (np.array(values), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2)
        )
        for form in (matrix, matrix.tocsr(), matrix.tolil(), matrix.todok(), rows):
            found = engine.max_weight_matching(form)
            assert (found.weight, found.n_matched) == (total, 1)
    repeated = scipy.sparse.coo_array(([1.0, 1.0], ([0, 0], [1, 1])), shape=(2, 2))
    read_graph(repeated)
    assert repeated.nnz == 2  # the caller's matrix stays as it is


@pytest.mark.parametrize("seed", range(5))
def test_one_graph_in_every_form_has_one_answer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 9
    dense = np.triu(rng.integers(-(2**50), 2**50, (n, n)) * (rng.random((n, n)) < 0.6), 1)
    rows, columns = np.nonzero(dense)
    weights = dense[rows, columns]
    graph = nx.empty_graph(n)
    listed = zip(rows.tolist(), columns.tolist(), weights.tolist(), strict=True)
    graph.add_weighted_edges_from(listed)
    names = Table(source=rows, target=columns, weight=weights)
    sums = scipy.sparse.coo_array(
        (np.r_[weights - 7, np.full(len(rows), 7)], (np.r_[rows, rows], np.r_[columns, columns])),
        shape=(n, n),
    )
    forms = [
        *(dense, dense + dense.T, dense.astype(float), dense.T, graph, names),
        *(scipy.sparse.csr_array(dense), scipy.sparse.csc_matrix(dense + dense.T), sums),
    ]
    expected = engine.max_weight_matching(n, np.c_[rows, columns], weights, "any").weight
    for form in forms:
        assert engine.max_weight_matching(form, kind="any").weight == expected
    both = sum(graph.edges[pair]["weight"] for pair in nx.max_weight_matching(graph))
    assert expected == float(both)


def test_tables_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    lines = pandas.DataFrame(EDGES, columns=["source", "target", "weight"])
    square = pandas.DataFrame([[0, 3], [3, 0]], index=["Ann", "Bo"], columns=["Ann", "Bo"])
    assert engine.max_weight_matching(lines).weight == 8.0
    assert read_graph(square).nodes == ["Ann", "Bo"]
    for index in ([0, 0, 1, 1], ["x"] * 4, pandas.MultiIndex.from_tuples([(1, 1), (1, 1)] * 2)):
        assert engine.max_weight_matching(lines.set_axis(index)).weight == 8.0
    assert engine.max_weight_matching(lines.convert_dtypes()).weight == 8.0
    names = list("abcd")
    square = pandas.DataFrame(of_matrix(True).toarray(), index=names, columns=names)
    for form in (square, square[list("cadb")], square.loc[list("cadb")]):
        assert engine.max_weight_matching(form, kind="any").weight == 8.0
    doubled = square.set_axis(list("aabb")).set_axis(list("aabb"), axis=1)
    assert engine.max_weight_matching(doubled, kind="any").weight == 8.0  # by position
    whole = lines.convert_dtypes()
    for bad, words in (
        (whole.assign(weight=pandas.array([1, None, 3, 4], dtype="Int64")), "entry 1 is nan"),
        (whole.assign(source=pandas.array(["a", None, "b", "c"], dtype="string")), "line 1 of the"),
        (square.convert_dtypes().replace(3, pandas.NA), "entry 0 is nan"),
        (pandas.concat([lines, lines["weight"]], axis=1), "two columns .* are called weight"),
        (lines.assign(target=[1, None, 3, 3]), "line 1 of the table lacks a node"),
        (pandas.DataFrame([[1, 2]], columns=["a", "b"]), "no column source and no target"),
    ):
        with pytest.raises(InvalidProblemError, match=words):
            engine.max_weight_matching(bad)


MARKET = {
    "real symmetric": ("2 1 3\n3 2 5\n", 5.0),
    "real general": ("2 1 3\n3 2 5\n", 5.0),
    "integer symmetric": ("2 1 3\n3 2 5\n", 5.0),
    "pattern symmetric": ("2 1\n3 2\n", 1.0),
    "pattern general": ("2 1\n3 2\n", 1.0),
    "real skew-symmetric": ("2 1 3\n3 2 5\n", "nodes 0 and 1 have different weights, -3.0 and 3.0"),
    "complex hermitian": ("2 1 3 1\n3 2 5 0\n", "nodes 0 and 1 have different weights"),
    "complex symmetric": ("2 1 3 1\n3 2 5 0\n", "not a finite real number"),
}


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "bsr", "dia", "dok", "lil"])
@pytest.mark.parametrize("kind", MARKET)
def test_files_of_matrix_market_through_scipy(kind: str, form: str) -> None:
    entries, answer = MARKET[kind]
    text = f"%%MatrixMarket matrix coordinate {kind}\n3 3 2\n{entries}"
    matrix = scipy.io.mmread(io.StringIO(text)).asformat(form)
    if isinstance(answer, str):
        with pytest.raises(InvalidProblemError, match=answer):
            engine.max_weight_matching(matrix, kind="any")
        return
    assert engine.max_weight_matching(matrix, kind="any").weight == answer
    assert engine.max_weight_matching(matrix.toarray(), kind="any").weight == answer


def test_a_stored_zero_is_an_edge_in_every_sparse_form() -> None:
    matrix = scipy.sparse.csr_array(
        (np.array([0.0, 5.0]), np.array([1, 3]), np.array([0, 1, 1, 2, 2])), shape=(4, 4)
    )
    for form in (matrix, matrix.tocsc(), matrix.tocoo(), matrix.T.tocsr()):
        found = engine.max_weight_matching(form)
        assert (found.weight, found.n_matched) == (5.0, 2)
    matrix.eliminate_zeros()
    with pytest.raises(InfeasibleError):
        engine.max_weight_matching(matrix)


def test_masked_entries_are_no_numbers() -> None:
    """Their hidden numbers came back as weights."""
    masked = np.ma.masked_equal(np.array([[0.0, 3.0], [3.0, 0.0]]), 3.0)
    with pytest.raises(InvalidProblemError, match=r"graph: .* masked entries"):
        engine.max_weight_matching(masked)
    with pytest.raises(InvalidProblemError, match="masked entries"):
        engine.assign(masked)
    with pytest.raises(InvalidProblemError, match=r"weights: .* masked entries"):
        engine.max_weight_matching(2, [[0, 1]], np.ma.masked_equal([3.0], 3.0))
    assert engine.assign(np.ma.array([[1.0, 2.0], [3.0, 1.0]])).weight == 5.0


def test_whole_numbers_beyond_float64_are_matched_exactly_and_not_read_as_floats() -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 2**60 + 1), (1, 2, 2**60)])
    assert engine.max_weight_matching(graph, kind="any").partner.tolist() == [1, 0, -1]
    with pytest.raises(InvalidProblemError, match="is no float64 number"):
        read_graph(graph)


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
        (scipy.sparse.coo_array(([np.inf], ([0], [1])), shape=(2, 2)), "entry 0 is inf"),
        (scipy.sparse.coo_array(([np.nan] * 2, ([0, 1], [1, 0])), shape=(2, 2)), "entry 0 is nan"),
        (scipy.sparse.coo_array(np.ones(2)), "a square matrix, received 2"),
        (np.zeros((2, 3)), "a square matrix, received 2 x 3"),
        (scipy.sparse.csr_array(np.array([[0, 1j], [1j, 0]])), "not a finite real number"),
        ([[0, 1]], "received list"),
    ],
)
def test_what_is_no_such_graph_is_said(graph: object, words: str) -> None:
    with pytest.raises(InvalidProblemError, match=words):
        read_graph(graph)
