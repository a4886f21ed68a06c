"""Graph files: both formats, and one sentence with the line number for every mistake."""

import io
from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.datasets.graph_files import read_degrees, read_graph_file


def test_dimacs() -> None:
    graph = read_graph_file(
        io.StringIO("c a comment\np edge 4 3\ne 1 2 3.5\n\ne 2 4 -1e3\ne 1 3\n")
    )
    assert graph.names == ("1", "2", "3", "4")
    assert graph.edges.tolist() == [[0, 1], [1, 3], [0, 2]]
    assert graph.weights.tolist() == [3.5, -1000.0, 1.0]


def test_csv_names_nodes_by_their_words() -> None:
    graph = read_graph_file(io.StringIO('u,v,weight\nann,"b, c",2\nann,dan,3\n# end\n'))
    assert graph.names == ("ann", "b, c", "dan")
    assert graph.edges.tolist() == [[0, 1], [0, 2]]
    assert graph.weights.tolist() == [2.0, 3.0]


def test_csv_without_a_header_and_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_bytes("\ufeff1,2,3\r\n2,3,4\r\n".encode())
    graph = read_graph_file(path)
    assert graph.names == ("1", "2", "3")
    assert graph.weights.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("p edge 2\n", "line 1: expected `p edge N M`"),
        ("p edge two 1\n", "line 1: expected `p edge N M`"),
        ("p edge 2 1\np edge 2 1\ne 1 2 1\n", "line 2: a second"),
        ("e 1 2 3\n", "line 1: an edge before"),
        ("p edge 2 1\ne 1\n", "line 2: expected `e u v w`"),
        ("p edge 2 1\ne 1 3 1\n", "line 2: expected a node from 1 to 2, received '3'"),
        ("p edge 2 1\ne 0 1 1\n", "line 2: expected a node"),
        ("p edge 2 1\ne 1 x 1\n", "line 2: expected a node"),
        ("p edge 2 1\ne 1 2 nan\n", "line 2: expected a finite weight"),
        ("p edge 2 1\ne 1 2 heavy\n", "line 2: expected a finite weight, received 'heavy'"),
        ("p edge 2 2\ne 1 2 1\n", "announces 2 edges but the file has 1"),
        ("p edge 2 1\nx 1 2 1\n", "line 2: expected a line that starts with"),
        ("p edge 99999999 1\ne 1 2 1\n", "line 1: 99999999 nodes"),
        ("1,2,3\n1,2\n", "line 2: expected three values"),
        ("1;2;3\n", "line 1: expected three values"),
        ("1,2,3\n1,2,inf\n", "line 2: expected a finite weight"),
        ("1,2,oops\n", "line 1: expected a finite weight"),
        ("1,,3\n", "line 1: a node without a name"),
        ("1,2," + "9" * 20000, "line 1: 20004 characters"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, sentence: str) -> None:
    with pytest.raises(InvalidProblemError) as caught:
        read_graph_file(io.StringIO(text))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff\xfe1\x00,\x00", "UTF-16"),
        (b"1,2,3\n1,\xe9,3\n", "line 2 is not UTF-8"),
        (b"1,2,\x00\n", "not text"),
    ],
)
def test_files_that_are_not_utf8(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "graph.csv"
    path.write_bytes(data)
    with pytest.raises(InvalidProblemError, match=sentence):
        read_graph_file(path)


def test_degrees() -> None:
    graph = read_graph_file(io.StringIO("a,b,1\nb,c,2\n"))
    found = read_degrees(io.StringIO("node,degree\nc,1\na,2\nb,0\n"), graph)
    assert np.array_equal(found, [2, 0, 1])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,1\nb,1\n", "node 'c' has no degree"),
        ("a,1\na,1\n", "line 2: node 'a' has a degree already"),
        ("a,1\nx,1\n", "line 2: the graph has no node 'x'"),
        ("anne,two\nbob,x\na,1\n", "line 2: the graph has no node 'bob'"),
        ("a,-1\n", "line 1: expected a whole number"),
        ("a,1.5\n", "line 1: expected a whole number"),
        ("a\n", "line 1: expected `node,degree`"),
    ],
)
def test_mistakes_in_degrees(text: str, sentence: str) -> None:
    graph = read_graph_file(io.StringIO("a,b,1\nb,c,2\n"))
    with pytest.raises(InvalidProblemError, match=sentence.replace("`", ".")):
        read_degrees(io.StringIO(text), graph)


def test_a_header_may_follow_comments_and_blank_lines() -> None:
    graph = read_graph_file(io.StringIO("# flats\n\nu,v,weight\na,b,1\n"))
    assert graph.names == ("a", "b")
    assert read_degrees(io.StringIO("# how many\nnode,degree\na,2\nb,0\n"), graph).tolist() == [
        2,
        0,
    ]


@pytest.mark.parametrize(
    "text", ["p edge 3 1\ne 1 {n}\n", "p edge {n} 1\ne 1 2\n", "p edge 3 {n}\ne 1 2\n"]
)
@pytest.mark.parametrize("digits", [25, 5000, 20_000])
def test_endless_numbers_are_refused(text: str, digits: int) -> None:
    with pytest.raises(InvalidProblemError, match=r"line [12]: "):
        read_graph_file(io.StringIO(text.format(n="1" * digits)))


@pytest.mark.parametrize(
    ("first", "second"),
    [("a", "a\u200b"), ("Caf\u00e9", "Cafe\u0301"), ('"=""001"""', "001"), ("b", "\u202ab\u202c")],
)
def test_nodes_that_look_the_same_are_refused(first: str, second: str) -> None:
    """Such a node was matched twice, once for each writing."""
    data = f"u,v,weight\n{first},x,3\n{second},y,5\n".encode()
    with pytest.raises(InvalidProblemError, match="look the same but are written differently"):
        read_graph_file(io.BytesIO(data))


def test_numbers_that_a_spreadsheet_cut_short_are_refused() -> None:
    data = b"u,v,weight\n1.23E+11,b,5\n1.23E+11,d,1\n"
    with pytest.raises(InvalidProblemError, match="cut short, so several nodes may have become"):
        read_graph_file(io.BytesIO(data))


def test_words_for_nothing_are_names_of_nodes() -> None:
    graph = read_graph_file(io.BytesIO(b"u,v,weight\nnan,inf,3\nNone,null,4\n"))
    assert graph.names == ("nan", "inf", "None", "null")
