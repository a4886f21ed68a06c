"""Weighted graphs in files: DIMACS ``.edge`` and CSV, read with one clear sentence per mistake."""

import csv
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InvalidProblemError

LARGEST_NODE_COUNT = 10_000_000
LONGEST_LINE = 10_000
LONGEST_COUNT = 18  # digits
WEIGHT_NAMES = {"weight", "weights", "w", "cost", "score", "value", "distance", "length"}


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A graph as its file describes it.

    Parameters
    ----------
    names : tuple of str
        How the file calls each node: "1".."N" in DIMACS, the words of the columns in CSV.
    edges : ndarray, shape (m, 2), int64
        Indices into ``names``, in the order of the file.
    weights : ndarray, shape (m,), float64
    """

    names: tuple[str, ...]
    edges: IntArray
    weights: FloatArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes, isolated ones included where the format can say so."""
        return len(self.names)


def read_graph_file(path: Path | TextIO) -> GraphFile:
    """Read a DIMACS graph (``p edge N M``, ``e u v w``, nodes from 1) or a CSV ``u,v,weight``.

    The format is told from the first line that is neither empty nor a comment. A CSV may have a
    header; its nodes are whatever words stand in the first two columns.

    Parameters
    ----------
    path : Path or text stream

    Returns
    -------
    GraphFile

    Raises
    ------
    InvalidProblemError
        Naming the line, if the file is not such a graph.
    OSError
        If the file cannot be read.
    """
    text = _text_of(path)
    for line in text.splitlines():
        words = line.split()
        if words and words[0] not in {"c", "#"}:
            if words[0] in {"p", "e"} and len(words) > 1:
                return _read_dimacs(text)
            return _read_csv(text)
    raise InvalidProblemError("the graph file is empty: expected `p edge N M` or `u,v,weight`.")


def read_degrees(path: Path | TextIO, graph: GraphFile) -> IntArray:
    """Read lines ``node,degree``, one for every node of the graph; shape (n_nodes,), int64.

    Raises
    ------
    InvalidProblemError
        Naming the line, if a node is unknown, repeated or missing, or a degree is not a whole
        number from 0.
    """
    index = {name: k for k, name in enumerate(graph.names)}
    degrees = np.full(graph.n_nodes, -1, dtype=np.int64)
    for row, (number, words) in enumerate(_csv_rows(_text_of(path))):
        if len(words) != 2:
            raise InvalidProblemError(f"line {number}: expected `node,degree`, received {words}.")
        name, degree = words
        if name not in index:
            if row == 0 and not degree.isdecimal():
                continue  # a header
            raise InvalidProblemError(f"line {number}: the graph has no node {name!r}.")
        if not _is_count(degree):
            raise InvalidProblemError(
                f"line {number}: expected a whole number from 0 as degree, received {degree!r}."
            )
        if degrees[index[name]] >= 0:
            raise InvalidProblemError(f"line {number}: node {name!r} has a degree already.")
        degrees[index[name]] = int(degree)
    missing = np.flatnonzero(degrees < 0)
    if len(missing):
        raise InvalidProblemError(f"node {graph.names[missing[0]]!r} has no degree in the file.")
    return read_only(degrees)


def _text_of(source: Path | TextIO) -> str:
    if not isinstance(source, Path):
        return source.read()
    data = source.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidProblemError(f"{source.name}: the file is UTF-16; save it as UTF-8.")
    if b"\0" in data:
        raise InvalidProblemError(f"{source.name}: the file is not text.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidProblemError(f"{source.name}: line {line} is not UTF-8 text.") from error


def _read_dimacs(text: str) -> GraphFile:
    n_nodes, n_edges = -1, -1
    edges: list[tuple[int, int]] = []
    weights: list[float] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0] == "c":
            continue
        if len(line) > LONGEST_LINE:
            raise InvalidProblemError(f"line {number}: {len(line)} characters are too many.")
        if words[0] == "p":
            if n_nodes >= 0:
                raise InvalidProblemError(f"line {number}: a second `p` line.")
            n_nodes, n_edges = _problem_line(words, number)
        elif words[0] == "e":
            if n_nodes < 0:
                raise InvalidProblemError(f"line {number}: an edge before the `p edge N M` line.")
            if len(words) not in {3, 4}:
                raise InvalidProblemError(f"line {number}: expected `e u v w`, received {line!r}.")
            edges.append((_node(words[1], n_nodes, number), _node(words[2], n_nodes, number)))
            weights.append(_weight(words[3], number) if len(words) == 4 else 1.0)
        else:
            raise InvalidProblemError(
                f"line {number}: expected a line that starts with c, p or e, "
                f"received {line[:40]!r}."
            )
    if len(edges) != n_edges:
        raise InvalidProblemError(
            f"the `p` line announces {n_edges} edges but the file has {len(edges)}."
        )
    return _graph(tuple(str(k) for k in range(1, n_nodes + 1)), edges, weights)


def _problem_line(words: list[str], number: int) -> tuple[int, int]:
    shaped = len(words) == 4 and words[1] in {"edge", "col"}
    if not (shaped and _is_count(words[2]) and _is_count(words[3])):
        raise InvalidProblemError(
            f"line {number}: expected `p edge N M`, received {' '.join(words)[:60]!r}."
        )
    if int(words[2]) > LARGEST_NODE_COUNT:
        raise InvalidProblemError(
            f"line {number}: {words[2]} nodes; at most {LARGEST_NODE_COUNT} are read."
        )
    return int(words[2]), int(words[3])


def _node(word: str, n_nodes: int, number: int) -> int:
    if not (_is_count(word) and 1 <= int(word) <= n_nodes):
        raise InvalidProblemError(
            f"line {number}: expected a node from 1 to {n_nodes}, received {word[:40]!r}."
        )
    return int(word) - 1


def _is_count(word: str) -> bool:
    """Whether a word is a whole number from 0 that fits into 64 bits."""
    return word.isdecimal() and len(word) <= LONGEST_COUNT


def _weight(word: str, number: int) -> float:
    try:
        weight = float(word)
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight):
        raise InvalidProblemError(
            f"line {number}: expected a finite weight, received {word[:40]!r}."
        )
    return weight


def _read_csv(text: str) -> GraphFile:
    index: dict[str, int] = {}
    edges: list[tuple[int, int]] = []
    weights: list[float] = []
    for number, words in _csv_rows(text):
        if len(words) != 3:
            raise InvalidProblemError(
                f"line {number}: expected three values `u,v,weight`, received {len(words)}."
            )
        if not edges and _is_header(words):
            continue
        if not (words[0] and words[1]):
            raise InvalidProblemError(f"line {number}: a node without a name.")
        ends = tuple(index.setdefault(word, len(index)) for word in words[:2])
        weights.append(_weight(words[2], number))
        edges.append((ends[0], ends[1]))
    return _graph(tuple(index), edges, weights)


def _is_header(words: list[str]) -> bool:
    """A first line whose last word is a usual name for weights names the columns."""
    return words[2].lower() in WEIGHT_NAMES


def _csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with their line numbers, stripped; empty lines and comments are passed over."""
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > LONGEST_LINE:
            raise InvalidProblemError(f"line {number}: {len(line)} characters are too many.")
        if line.strip() and not line.lstrip().startswith("#"):
            words = next(csv.reader(io.StringIO(line)))
            yield number, [word.strip() for word in words]


def _graph(
    names: tuple[str, ...], edges: Iterable[tuple[int, int]], weights: list[float]
) -> GraphFile:
    return GraphFile(
        names,
        read_only(np.array(list(edges), dtype=np.int64).reshape(-1, 2)),
        read_only(np.array(weights, dtype=np.float64)),
    )
