"""Inference on a factor graph in the UAI format.

map: a best configuration (natural logs). pr: log10 of the partition function. mar: marginals.
`bound` in the JSON is proven: never below the best score (map), never below log10 Z (trw,
frank-wolfe), never above it (mean-field); null if nothing is proven (bp, except on forests).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.cli.json_line import to_json_line
from engine.cli.option_types import number, seconds, whole_number_from
from engine.cli.output_paths import check_writable
from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.core.text_file import TextSource
from engine.datasets.uai import format_uai_marginals, read_uai, read_uai_evidence
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.inference.factors import methods
from engine.inference.factors.log_partition import (
    BP_DAMPING,
    DEFAULT_METHOD,
    EDGE_PROBABILITIES,
    log_partition,
)
from engine.inference.factors.map_portfolio import MAX_WORK, map_estimate
from engine.inference.map_estimate import MAX_ITERATIONS
from engine.kernels.work_time import wall_seconds

MAX_SECONDS = 60.0  # default limit of pr and mar
LOG_10 = float(np.log(10.0))
LONG_ANSWER = 1_000_000  # numbers from which writing takes a noticeable part of a second
SAMPLE = 20_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``uai``."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="map|pr|mar")
    for task, text in (
        ("map", "a best configuration and a bound on its score, in natural logs"),
        ("pr", "log10 of the partition function and a bound on it"),
        ("mar", "the marginals of all variables"),
    ):
        sub = tasks.add_parser(task, help=text, description=text, allow_abbrev=False)
        sub.add_argument(
            "file", metavar="FILE", help="UAI file, plain or gzip; - is standard input"
        )
        known = methods.MAP if task == "map" else methods.MARGINALS
        usual = "all share the work" if task == "map" else DEFAULT_METHOD
        listed = ", ".join(method.in_words() for method in known.values())
        sub.add_argument("--method", choices=known, help=f"{listed}; {usual} if not given")
        sub.add_argument(
            "--evidence", metavar="FILE", help="observed variables, in the UAI format (.evid)"
        )
        sub.add_argument("--out", metavar="FILE", help="write the answer there in the UAI format")
        sub.add_argument(
            "--max-iterations",
            type=whole_number_from(1),
            default=MAX_ITERATIONS,
            metavar="N",
            help="of a single method (default %(default)d)",
        )
        default = f"{MAX_SECONDS:g}"
        if task == "map":
            default = f"no limit of seconds but one of work, {MAX_WORK:g} table entries, about a "
            default += "minute: the answer is then the same on every machine"
        sub.add_argument(
            "--max-seconds",
            type=seconds,
            metavar="S",
            help=f"default: {default}; no limit for --method exact. Reading the "
            "file and writing the answer count; compiling, once after an installation, does not",
        )
        if task != "map":
            sub.add_argument(
                "--rho",
                choices=EDGE_PROBABILITIES,
                default=EDGE_PROBABILITIES[0],
                help="edge probabilities for trw and frank-wolfe: uniform over spanning trees "
                "(default; balanced trees beyond 2,000 nodes), one constant, or optimised for the "
                "smallest bound",
            )
            sub.add_argument(
                "--damping",
                type=number(at_least=0.0, below=1.0),
                help="share of old messages kept by trw (at first) and bp, from 0 to below 1 "
                f"(default 0, of bp {BP_DAMPING:g})",
            )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Solve one task on one file; return value, bound, method, exact, converged and the answer."""
    started = wall_seconds()
    if args.out:
        check_writable(Path(args.out))
    if args.file == args.evidence == "-":
        raise InvalidProblemError("only one of FILE and --evidence can be standard input.")
    if args.max_seconds is None:
        is_unlimited = args.task == "map" or args.method == "exact"
        args.max_seconds = np.inf if is_unlimited else MAX_SECONDS
    whole = _read_in_time(args, started)
    observed = read_uai_evidence(_source(args.evidence), whole) if args.evidence else {}
    labels = np.array([observed.get(v, -1) for v in range(whole.n_variables)], dtype=np.int64)
    graph = _given(whole, labels)
    args.max_seconds = max(0.0, args.max_seconds - (wall_seconds() - started))
    if args.task == "map":
        result = _run_map(args, graph, never_stop)
        result["labels"] = _with_observed_labels(labels, result["labels"])
        text = "MAP\n" + " ".join(str(v) for v in [len(result["labels"]), *result["labels"]])
    else:
        args.max_seconds -= _writing_seconds(args, whole)
        _compile(args)
        deadline = wall_seconds() + args.max_seconds
        result = _run_marginals(args, graph, lambda: wall_seconds() > deadline)
        found = _with_observed_marginals(whole, labels, result["marginals"])
        if args.task == "pr":
            del result["marginals"]
            text = f"PR\n{result['value']:.10g}"
        else:
            result["marginals"] = found
            text = format_uai_marginals(found) if args.out or not args.json else ""
    if args.out:
        Path(args.out).write_text(text + "\n", encoding="ascii")
    result["seconds"] = wall_seconds() - started
    result["text"] = text
    if args.json:
        del result["text"]
    return result


def _read_in_time(args: argparse.Namespace, started: float) -> FactorGraph:
    """Read the model; refuse one whose reading takes all the time that the options allow."""
    try:
        return read_uai(
            _source(args.file), should_stop=lambda: wall_seconds() - started > args.max_seconds
        )
    except StoppedError as error:
        raise InvalidProblemError(
            f"{args.file}: reading it takes more than the {args.max_seconds:g} seconds of "
            "--max-seconds; allow more time."
        ) from error


def _writing_seconds(args: argparse.Namespace, graph: FactorGraph) -> float:
    """Return the time to write the marginals, as measured now on a sample; 0 for short answers.

    Raises
    ------
    InvalidProblemError
        If writing takes more than the time that is left.
    """
    count = int(graph.cardinalities.sum())
    if args.task != "mar" or count < LONG_ANSWER:
        return 0.0
    sample = [np.linspace(0.0, 1.0, SAMPLE)]
    started = wall_seconds()
    if args.out or not args.json:
        format_uai_marginals(sample)
    if args.json:
        to_json_line({"marginals": sample})
    needed = (wall_seconds() - started) * count / SAMPLE
    if needed > args.max_seconds:
        raise InvalidProblemError(
            f"{args.file}: its {count:,} marginals take about {needed:.0f} seconds to write, more "
            "than is left of --max-seconds; allow more time, or ask for map or pr."
        )
    return needed


def _source(name: str) -> TextSource:
    return sys.stdin if name == "-" else Path(name)


def render(result: dict[str, Any]) -> str:
    """Return the answer in the UAI format, and a line on its quality."""
    bound = "none" if result["bound"] is None else f"{result['bound']:.10g}"
    line = f"value {result['value']:.10g}, bound {bound}, method {result['method']}"
    line += ", exact" if result["exact"] else ""
    line += "" if result["converged"] else ", not converged"
    return f"{result['text']}\n{line}"


def _given(graph: FactorGraph, observed: IntArray) -> FactorGraph:
    """Return the model of the unobserved variables; if all are observed, each keeps one label."""
    if (observed >= 0).all():
        return graph.restrict([observed[v : v + 1] for v in range(graph.n_variables)])
    return graph.condition(observed, np.flatnonzero(observed < 0)) if observed.max() >= 0 else graph


def _with_observed_labels(observed: IntArray, found: list[int]) -> list[int]:
    """Merge the inferred labels with the observed ones (-1 for unobserved)."""
    labels = observed.copy()
    labels[observed < 0] = found[: int((observed < 0).sum())]
    return [int(x) for x in labels]


def _with_observed_marginals(
    graph: FactorGraph, observed: IntArray, found: Sequence[FloatArray]
) -> list[FloatArray]:
    """Merge the inferred marginals with the observed ones, which are 1 at the observed state."""
    left = iter(found)
    return [
        _certain(int(card), int(state)) if state >= 0 else next(left, np.zeros(0))
        for card, state in zip(graph.cardinalities, observed, strict=True)
    ]


def _certain(n_states: int, state: int) -> FloatArray:
    """Return the distribution of a variable whose state is known."""
    chances = np.zeros(n_states)
    chances[state] = 1.0
    return chances


def _compile(args: argparse.Namespace) -> None:
    """Compile the method on two variables, so that the time limit excludes compiling."""
    pair = Factor((0, 1), np.array([[0.0, 1.0], [1.0, 0.5]]))
    log_partition(
        FactorGraph(np.array([2, 2]), (pair,)),
        method=args.method or DEFAULT_METHOD,
        rho=args.rho,
        max_iterations=2,
        with_marginals=args.task == "mar",
    )


def _run_map(
    args: argparse.Namespace, graph: FactorGraph, should_stop: StopCallback
) -> dict[str, Any]:
    """Find a best configuration, in natural logs."""
    answer = map_estimate(
        graph,
        method=args.method,
        max_work=np.inf if args.method == "exact" else None,
        max_seconds=args.max_seconds if args.max_seconds < np.inf else None,
        max_iterations=args.max_iterations,
        rng=np.random.default_rng(args.seed or 0),
        on_progress=args.on_progress,
        should_stop=should_stop,
    )
    return {
        "value": answer.value,
        "bound": answer.upper_bound,
        "method": answer.method,
        "exact": answer.is_exact,
        # Another method may give the proof when the requested one did not finish.
        "converged": answer.is_exact or answer.status.is_converged,
        "guarantee": answer.guarantee,
        "labels": answer.labels.tolist(),
    }


def _run_marginals(
    args: argparse.Namespace, graph: FactorGraph, should_stop: StopCallback
) -> dict[str, Any]:
    """Estimate log Z, and print it in log10 with the bound that the method proves."""
    answer = log_partition(
        graph,
        method=args.method or DEFAULT_METHOD,
        rho=args.rho,
        damping=args.damping,
        max_iterations=args.max_iterations,
        with_marginals=args.task == "mar",
        on_progress=args.on_progress,
        should_stop=should_stop,
    )
    bound, kind = answer.upper_bound, "upper"
    if bound is None:
        bound, kind = answer.lower_bound, "lower"
    return {
        "value": answer.value / LOG_10,
        "bound": None if bound is None else bound / LOG_10,
        "bound_kind": None if bound is None else "exact" if answer.method == "exact" else kind,
        "method": answer.method,
        "exact": answer.is_exact,
        "converged": answer.is_converged,
        "iterations": answer.iterations,
        "marginals": answer.marginals,
    }
