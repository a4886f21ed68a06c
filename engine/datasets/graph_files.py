"""Weighted graphs in files: DIMACS ``.edge`` and CSV, with one clear sentence per mistake."""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import MAX_WHOLE, IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.text_file import TextSource, read_text
from engine.tabular.text import clean_text

LARGEST_NODE_COUNT = 10_000_000
LONGEST_LINE = 10_000
LONGEST_COUNT = 18  # digits
WEIGHT_NAMES = {"weight", "weights", "w", "cost", "score", "value", "distance", "length"}
DIMACS_WORDS = {"p", "e", "n"}
_CUT_SHORT = re.compile(r"[0-9][.,][0-9]{1,5}E\+[0-9]{2,3}")
_COMMA_NUMBER = re.compile(r"[0-9],[0-9]+([eE][+-]?[0-9]+)?$")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A graph as its file describes it.

    Parameters
    ----------
    names : tuple of str
        Name of each node in the file: "1".."N" in DIMACS, the words of the columns in CSV.
    edges : ndarray, shape (m, 2), int64
        Indices into ``names``, in the order of the file.
    weights : ndarray, shape (m,), float64
        Or Python numbers (dtype object) if a whole number does not fit float64.
    line_numbers : ndarray, shape (m,), int64
        The line on which each edge begins.
    is_numbered : bool
        True if nodes are numbers (DIMACS), not words.
    """

    names: tuple[str, ...]
    edges: IntArray
    weights: NDArray[Any]
    line_numbers: IntArray
    is_numbered: bool

    @property
    def n_nodes(self) -> int:
        """Return the number of nodes, with isolated ones if the format can state them."""
        return len(self.names)


@dataclass(slots=True)
class _Edges:
    """Edges read so far, one entry each."""

    ends: list[tuple[int, int]]
    weights: list[float | int]
    lines: list[int]

    def add(self, line: int, ends: tuple[int, int], weight: float | int) -> None:
        """Append one edge."""
        self.lines.append(line)
        self.ends.append(ends)
        self.weights.append(weight)

    def as_graph(self, names: tuple[str, ...], *, is_numbered: bool) -> GraphFile:
        """Return the graph of these edges."""
        weights: NDArray[Any] = np.array(self.weights, dtype=np.float64)
        if np.abs(weights).max(initial=0.0) >= MAX_WHOLE:
            weights = np.array(self.weights, dtype=object)
        return GraphFile(
            names,
            read_only(np.array(self.ends, dtype=np.int64).reshape(-1, 2)),
            read_only(weights),
            read_only(np.array(self.lines, dtype=np.int64)),
            is_numbered,
        )


def read_graph_file(path: TextSource) -> GraphFile:
    """Read a DIMACS graph (``p edge N M``, ``e u v w``, nodes from 1) or a CSV ``u,v,weight``.

    The first line that is neither empty nor a comment decides the format. A CSV may have a
    header. Its nodes are the words in the first two columns; a name with commas, quotes,
    line ends or outer spaces is written in double quotes, and quotes in it are doubled. Lines that
    begin with ``# `` are comments. DIMACS's ``n`` lines, which give values to nodes, are checked
    and have no part in a matching.

    Parameters
    ----------
    path : Path, or a stream of bytes or text
        UTF-8 with or without a byte order mark, plain or gzip.

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
    text = read_text(path)
    for line in text.split("\n"):
        words = line.split()
        if words and words[0] not in {"c", "#"}:
            if words[0] in DIMACS_WORDS and "," not in line:
                return _read_dimacs(text)
            return _read_csv(text)
    raise InvalidProblemError("the graph file is empty: expected `p edge N M` or `u,v,weight`.")


def read_degrees(path: TextSource, graph: GraphFile) -> IntArray:
    """Read lines ``node,degree``, one for every node of the graph; shape (n_nodes,), int64.

    Raises
    ------
    InvalidProblemError
        Naming the line, if a node is unknown, repeated or missing, or a degree is not a whole
        number from 0.
    """
    index = {name: k for k, name in enumerate(graph.names)}
    degrees = np.full(graph.n_nodes, -1, dtype=np.int64)
    for row, record in enumerate(_records(read_text(path))):
        number, words = record.line, record.words
        if len(words) != 2:
            if record.may_be_comment:
                continue
            raise InvalidProblemError(f"line {number}: expected `node,degree`, received {words}.")
        name, degree = words
        if name not in index:
            if record.may_be_comment or (row == 0 and not degree.isdecimal()):
                continue  # a comment or a header
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


def _read_dimacs(text: str) -> GraphFile:
    n_nodes, n_edges = -1, -1
    edges = _Edges([], [], [])
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if not words or words[0] == "c":
            continue
        if len(line) > LONGEST_LINE:
            raise InvalidProblemError(f"line {number}: {len(line)} characters are too many.")
        if words[0] == "p":
            if n_nodes >= 0:
                raise InvalidProblemError(f"line {number}: a second `p` line.")
            n_nodes, n_edges = _problem_line(words, number)
            continue
        if words[0] not in DIMACS_WORDS:
            raise InvalidProblemError(
                f"line {number}: expected a line that starts with c, p, n or e, "
                f"received {line[:40]!r}."
            )
        if n_nodes < 0:
            what = "an edge" if words[0] == "e" else "a node"
            raise InvalidProblemError(f"line {number}: {what} before the `p edge N M` line.")
        if words[0] == "n":
            _check_node_line(words, n_nodes, number)
            continue
        if len(words) not in {3, 4}:
            raise InvalidProblemError(f"line {number}: expected `e u v w`, received {line!r}.")
        ends = _node(words[1], n_nodes, number), _node(words[2], n_nodes, number)
        edges.add(number, ends, _weight(words[3], number) if len(words) == 4 else 1.0)
    if len(edges.ends) != n_edges:
        raise InvalidProblemError(
            f"the `p` line announces {n_edges} edges but the file has {len(edges.ends)}."
        )
    return edges.as_graph(tuple(str(k) for k in range(1, n_nodes + 1)), is_numbered=True)


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


def _check_node_line(words: list[str], n_nodes: int, number: int) -> None:
    """Check a node line ``n ID VALUE ...``: a node of the graph, then numbers."""
    if len(words) < 2:
        raise InvalidProblemError(f"line {number}: expected `n ID VALUE`, received 'n'.")
    _node(words[1], n_nodes, number)
    for word in words[2:]:
        if not _NUMBER.fullmatch(word):
            raise InvalidProblemError(
                f"line {number}: expected the value of a node, received {word[:40]!r}."
            )


def _node(word: str, n_nodes: int, number: int) -> int:
    if not (_is_count(word) and 1 <= int(word) <= n_nodes):
        raise InvalidProblemError(
            f"line {number}: expected a node from 1 to {n_nodes}, received {word[:40]!r}."
        )
    return int(word) - 1


def _is_count(word: str) -> bool:
    """Return True if a word is a whole number from 0 that fits into 64 bits."""
    return word.isascii() and word.isdecimal() and len(word) <= LONGEST_COUNT


def _weight(word: str, number: int) -> float | int:
    """Return a weight: a whole number exactly, any other as the nearest float64."""
    weight = float(word) if _NUMBER.fullmatch(word) else math.nan
    if not math.isfinite(weight):
        hint = "; write decimals with a point" if _COMMA_NUMBER.search(word) else ""
        raise InvalidProblemError(
            f"line {number}: expected a finite weight, received {word[:40]!r}{hint}."
        )
    if weight == 0.0 and re.search("[1-9]", re.split("[eE]", word)[0]):
        raise InvalidProblemError(
            f"line {number}: {word[:40]!r} is not zero, but too small to differ from it."
        )
    return int(word) if _INTEGER.fullmatch(word) else weight


@dataclass(frozen=True, slots=True)
class _Record:
    """Words of one line of a CSV file, or of several lines if a name holds a line end."""

    line: int
    words: list[str]
    may_be_comment: bool
    """True if the record begins with ``#``, without a space after it and not in quotes."""


def _read_csv(text: str) -> GraphFile:
    index: dict[str, int] = {}
    edges = _Edges([], [], [])
    doubtful: list[_Record] = []
    for record in _records(text):
        number, words = record.line, record.words
        if record.may_be_comment:
            if len(words) != 3 or not _NUMBER.fullmatch(words[2]):
                continue
            doubtful.append(record)
        if len(words) != 3:
            raise InvalidProblemError(
                f"line {number}: expected three values `u,v,weight`, received {len(words)}"
                f"{_other_separators(record)}."
            )
        if not edges.ends and words[2].lower() in WEIGHT_NAMES:
            continue  # a header
        if not (words[0] and words[1]):
            raise InvalidProblemError(f"line {number}: a node without a name.")
        first, second = (index.setdefault(word, len(index)) for word in words[:2])
        edges.add(number, (first, second), _weight(words[2], number))
    _check_doubtful(doubtful, index)
    _check_alike(index)
    return edges.as_graph(tuple(index), is_numbered=False)


def _other_separators(record: _Record) -> str:
    """Return what a line uses instead of commas, and what to write; an empty text if nothing."""
    line = ",".join(record.words)
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if line.count(separator) == 2:
            decimals = " and a decimal comma" if _COMMA_NUMBER.search(line) else ""
            points = ", and a point in decimals" if decimals else ""
            return f": it has {name}{decimals}; put commas between values{points}"
    return ""


def _check_doubtful(records: list[_Record], index: dict[str, int]) -> None:
    """Refuse a line that may be an edge of "#a" or a commented-out edge of "a"."""
    for record in records:
        name = record.words[0]
        if name.lstrip("#").strip() in index:
            raise InvalidProblemError(
                f"line {record.line}: this is a comment, or an edge of the node {name!r}. Write a "
                f'space after the # of a comment, or the name in quotes: "{name}".'
            )


def _check_alike(names: Iterable[str]) -> None:
    """Refuse names that look the same but differ, and names that a spreadsheet has destroyed."""
    shown: dict[str, str] = {}
    for name in names:
        if _CUT_SHORT.fullmatch(name):
            raise InvalidProblemError(
                f"the node {name!r} is a long number that a spreadsheet cut short, so several "
                "nodes may have become one; save the column as text."
            )
        plain = name
        if not name.isascii() or name.startswith("="):
            plain = unicodedata.normalize("NFC", clean_text(name))
        if shown.setdefault(plain, name) != name:
            raise InvalidProblemError(
                f"the nodes {shown[plain]!a} and {name!a} look the same but are written "
                "differently; write both the same way."
            )


def _records(text: str) -> Iterator[_Record]:
    """Yield the records of a CSV file; empty lines and comments are skipped."""
    lines = iter(enumerate(text.split("\n"), start=1))
    for number, line in lines:
        start = line.lstrip()
        if len(line) > LONGEST_LINE:
            raise InvalidProblemError(f"line {number}: {len(line)} characters are too many.")
        if not start or start == "#" or start[:2] in {"# ", "#\t"}:
            continue
        if '"' not in line:
            words = [word.strip() for word in line.split(",")]
        else:
            words = _quoted_words(line, number, lines)
        yield _Record(number, words, start[0] == "#")


def _quoted_words(line: str, number: int, lines: Iterator[tuple[int, str]]) -> list[str]:
    """Return the words of a record with quotes, which may continue in the next of ``lines``."""
    words: list[str] = []
    place = 0
    while True:
        place += len(line[place:]) - len(line[place:].lstrip(" \t"))
        if not line.startswith('"', place):
            end = line.find(",", place)
            words.append(line[place : end if end >= 0 else None].strip())
        else:
            word, place, line = _quoted_word(line, place + 1, number, lines)
            words.append(word)
            rest = line[place:].lstrip(" \t")
            if rest and not rest.startswith(","):
                raise InvalidProblemError(
                    f"line {number}: expected a comma after the quotes, received {rest[:20]!r}."
                )
            end = line.find(",", place)
        if end < 0:
            return words
        place = end + 1


def _quoted_word(
    line: str, place: int, number: int, lines: Iterator[tuple[int, str]]
) -> tuple[str, int, str]:
    """Return the word up to the closing quote, the position after it, and its line."""
    word = ""
    while True:
        end = line.find('"', place)
        if end < 0:
            following = next(lines, None)
            if following is None or len(word) > LONGEST_LINE:
                raise InvalidProblemError(f"line {number}: a quote is not closed.")
            word, line, place = word + line[place:] + "\n", following[1], 0
        elif line.startswith('""', end):
            word, place = word + line[place : end + 1], end + 2
        else:
            return word + line[place:end], end + 1, line
