"""Maximum-weight matching of a graph file, proved optimal.

FILE is DIMACS (`p edge N M`, `e u v w`, nodes from 1) or CSV (`u,v,weight`); - is standard input.
Prints `s WEIGHT` and one `m u v` line for each chosen edge.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.output_paths import check_writable
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.datasets.graph_files import GraphFile, read_degrees, read_graph_file
from engine.oracles.matching import Matching
from engine.oracles.sparse_matching import max_weight_matching

NODES_NAMED = 20  # of a deficient set in a message


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
            raise InvalidProblemError(f"{args.degrees}: {error}") from error
    sign = -1.0 if args.minimize else 1.0
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
    lines = _lines(graph, matching, sign)
    if args.out is None or args.out == "-":
        sys.stdout.write(lines)
    else:
        Path(args.out).write_text(lines, encoding="utf-8")
    weight = _number(sign * matching.weight)
    certificate = {"upper_bound": _number(matching.upper_bound)}
    if args.minimize:
        certificate = {"upper_bound": weight, "lower_bound": _number(-matching.upper_bound)}
    return {
        "weight": weight,
        **certificate,
        "n_matched": matching.n_matched,
        "seconds": matching.seconds,
    }


def render(result: dict[str, Any]) -> str:
    """Without --json the s and m lines are all there is to say."""
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
        raise InvalidProblemError(f"{name}: {error}") from error


def _lines(graph: GraphFile, matching: Matching, sign: float) -> str:
    chosen = graph.edges[matching.edge_indices]
    ends = "".join(f"m {graph.names[i]} {graph.names[j]}\n" for i, j in chosen.tolist())
    return f"s {_number(sign * matching.weight)}\n{ends}"


def _number(value: float) -> float | int:
    """Whole numbers are printed without a decimal point, as in the files; -0 as 0."""
    return int(value) if np.isfinite(value) and value == int(value) and abs(value) < 1e15 else value


def _numbers(error: InfeasibleError, graph: GraphFile) -> tuple[int, ...]:
    """The deficient set in the numbers of the file; by position where its names are words."""
    if all(name.isdecimal() for name in graph.names):
        return tuple(int(graph.names[k]) for k in error.deficient_set)
    return error.deficient_set


def _named(error: InfeasibleError, graph: GraphFile) -> str:
    """The sentence with the names of the file for the nodes of the deficient set."""
    names = [graph.names[k] for k in error.deficient_set]
    if not names:
        return str(error)
    shown = ", ".join(names[:NODES_NAMED]) + (", ..." if len(names) > NODES_NAMED else "")
    return f"{error} Removed: {shown}."
