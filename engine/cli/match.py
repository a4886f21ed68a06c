"""Maximum-weight matching of a graph file, optimal for exactly the weights in the file.

FILE is DIMACS (`p edge N M`, `e u v w`, nodes from 1) or CSV (`u,v,weight`), UTF-8, plain or gzip;
- is standard input. Prints `s WEIGHT` and one `m u v` line for each chosen edge. A name with a
space or a quote is in double quotes, in the answer as in a CSV file; its quotes are doubled.
"""

import argparse
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.output_paths import check_writable
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.datasets.graph_files import GraphFile, read_degrees, read_graph_file
from engine.oracles.matching import Matching
from engine.oracles.sparse_matching import max_weight_matching

NODES_NAMED = 20  # nodes of a deficient set shown in a message
LARGEST_WHOLE = 10**15  # larger sums of floats are printed as floats


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``match``."""
    parser.add_argument("file", metavar="FILE", help="graph file, or - for standard input")
    parser.add_argument(
        "--kind",
        choices=("perfect", "any", "b"),
        default="perfect",
        help="perfect: every node is matched (default); any: nodes may stay alone; b: each node "
        "has at most its number of partners from --degrees",
    )
    parser.add_argument("--degrees", metavar="FILE", help="CSV `node,degree`, for --kind b")
    parser.add_argument(
        "--exact-degrees",
        action="store_true",
        help="with --kind b: each node has exactly its number of partners",
    )
    parser.add_argument("--minimize", action="store_true", help="seek the smallest weight instead")
    parser.add_argument(
        "--out", metavar="FILE", help="write the s and m lines there, not to stdout"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Solve the problem of one file, write the chosen edges, and return weight and certificate."""
    _check_options(args)
    graph = _read(args.file)
    degrees = None
    if args.degrees is not None:
        try:
            degrees = read_degrees(_source(args.degrees), graph)
        except InvalidProblemError as error:
            raise InvalidProblemError(f"{_label(args.degrees)}: {error}") from error
    if args.kind == "b":
        _refuse_loops(graph, args.file)
    sign = -1 if args.minimize else 1
    try:
        matching = max_weight_matching(
            graph.n_nodes,
            graph.edges,
            sign * graph.weights,
            args.kind,
            degrees,
            exact_degrees=args.exact_degrees,
        )
    except InfeasibleError as error:
        raise InfeasibleError(_named(error, graph), _numbers(error, graph)) from error
    weight = _total(graph, matching)
    lines = _lines(graph, matching, weight)
    if args.out is None or args.out == "-":
        sys.stdout.write(lines)
    else:
        Path(args.out).write_text(lines, encoding="utf-8")
    bounds = {"upper_bound": weight} | ({"lower_bound": weight} if args.minimize else {})
    return {
        "weight": weight,
        **bounds,
        "n_matched": matching.n_matched,
        "seconds": matching.seconds,
        "pairs": _pairs(graph, matching),
    }


def render(result: dict[str, Any]) -> str:
    """Return an empty text: without --json the s and m lines are the whole output."""
    return ""


def _check_options(args: argparse.Namespace) -> None:
    if args.kind == "b" and args.degrees is None:
        raise InvalidProblemError("--kind b needs --degrees FILE.")
    if args.kind != "b" and (args.degrees is not None or args.exact_degrees):
        raise InvalidProblemError("--degrees and --exact-degrees belong to --kind b.")
    if args.file == "-" and args.degrees == "-":
        raise InvalidProblemError("only one of FILE and --degrees can be standard input.")
    if args.out not in {None, "-"}:
        check_writable(Path(args.out))


def _source(name: str) -> Any:
    return sys.stdin if name == "-" else Path(name)


def _read(name: str) -> GraphFile:
    try:
        return read_graph_file(_source(name))
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{_label(name)}: {error}") from error


def _label(name: str) -> str:
    return "standard input" if name == "-" else name


def _refuse_loops(graph: GraphFile, file: str) -> None:
    """Refuse an edge from a node to itself, in the terms of the file: it could count twice."""
    loops = np.flatnonzero(graph.edges[:, 0] == graph.edges[:, 1])
    if len(loops):
        name, line = graph.names[graph.edges[loops[0], 0]], graph.line_numbers[loops[0]]
        raise InvalidProblemError(
            f"{_label(file)}: line {line}: the edge joins node {name} to itself; --kind b takes "
            "edges between two nodes."
        )


def _total(graph: GraphFile, matching: Matching) -> float | int:
    """Return the exact weight: a whole number without a decimal point, as in the files."""
    chosen = graph.weights[matching.edge_indices].tolist()
    total = sum(map(Fraction, chosen), Fraction(0))
    is_whole = total.denominator == 1 and (abs(total) < LARGEST_WHOLE or _all_whole(chosen))
    return int(total) if is_whole else float(total)


def _all_whole(numbers: list[float | int]) -> bool:
    return all(isinstance(number, int) for number in numbers)


def _pairs(graph: GraphFile, matching: Matching) -> list[list[str]] | list[list[int]]:
    """Return the ends of the chosen edges: numbers of a DIMACS file, names of a CSV file."""
    ends = graph.edges[matching.edge_indices]
    if graph.is_numbered:
        return [[i + 1, j + 1] for i, j in ends.tolist()]
    return [[graph.names[i], graph.names[j]] for i, j in ends.tolist()]


def _lines(graph: GraphFile, matching: Matching, weight: float | int) -> str:
    chosen = graph.edges[matching.edge_indices]
    words = [_quoted(name) for name in graph.names]
    return f"s {weight}\n" + "".join(f"m {words[i]} {words[j]}\n" for i, j in chosen.tolist())


def _quoted(name: str) -> str:
    """Return a name as one word of a line: in quotes if it holds a space or a quote."""
    if name and '"' not in name and not any(character.isspace() for character in name):
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _numbers(error: InfeasibleError, graph: GraphFile) -> tuple[int, ...]:
    """Return the deficient set in the node numbers of the file; as positions if names are words."""
    if graph.is_numbered or all(name.isdecimal() for name in graph.names):
        return tuple(int(graph.names[k]) for k in error.deficient_set)
    return error.deficient_set


def _named(error: InfeasibleError, graph: GraphFile) -> str:
    """Return the sentence with the file's names for the nodes of the deficient set."""
    names = [graph.names[k] for k in error.deficient_set]
    if not names:
        return str(error)
    shown = ", ".join(names[:NODES_NAMED]) + (", ..." if len(names) > NODES_NAMED else "")
    return f"{error} Removed: {shown}."
