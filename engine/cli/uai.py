"""Inference on a factor graph in the UAI format.

map: a best configuration (natural logs). pr: log10 of the partition function. mar: marginals.
`bound` in the JSON is proven: never below the best score (map), never below log10 Z (trw,
frank-wolfe), never above it (mean-field); null where nothing is proven (bp, except on forests).
"""

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from engine.cli.option_types import whole_number_from
from engine.cli.output_paths import check_writable
from engine.core.arguments import IntArray
from engine.core.progress import StopCallback, never_stop
from engine.datasets.uai import format_uai_marginals, read_uai, read_uai_evidence
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.inference.factors.log_partition import (
    EDGE_PROBABILITIES,
    MARGINAL_METHODS,
    log_partition,
)
from engine.inference.factors.map_portfolio import MAP_METHODS, map_estimate

LOG_10 = float(np.log(10.0))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``uai``."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="map|pr|mar")
    for task, text in (
        ("map", "a best configuration and a bound on its score, in natural logs"),
        ("pr", "log10 of the partition function and a bound on it"),
        ("mar", "the marginals of all variables"),
    ):
        sub = tasks.add_parser(task, help=text, description=text, allow_abbrev=False)
        sub.add_argument("file", metavar="FILE", help="UAI file, plain or gzip")
        methods = MAP_METHODS if task == "map" else MARGINAL_METHODS
        usual = "all share the time" if task == "map" else "trw"
        sub.add_argument("--method", choices=methods, help=f"how; {usual} if not given")
        sub.add_argument(
            "--evidence", metavar="FILE", help="observed variables, in the UAI format (.evid)"
        )
        sub.add_argument("--out", metavar="FILE", help="write the answer there in the UAI format")
        sub.add_argument(
            "--max-iterations",
            type=whole_number_from(1),
            default=2000,
            metavar="N",
            help="default 2000",
        )
        sub.add_argument(
            "--max-seconds",
            type=float,
            metavar="S",
            help="default 60; without a limit for --method exact. Compiling, once after an "
            "installation, does not count",
        )
        if task != "map":
            sub.add_argument(
                "--rho",
                choices=EDGE_PROBABILITIES,
                default="uniform",
                help="edge probabilities for trw and frank-wolfe: uniform over spanning trees "
                "(default; balanced trees beyond 2,000 nodes), one constant, or optimised for the "
                "smallest bound",
            )
            sub.add_argument(
                "--damping", type=float, default=None, help="share of old messages kept, 0 to 1"
            )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Solve one task on one file; return value, bound, method, exact, converged and the answer."""
    started = perf_counter()
    if args.out:
        check_writable(Path(args.out))
    whole = read_uai(Path(args.file))
    observed = read_uai_evidence(Path(args.evidence), whole) if args.evidence else {}
    labels = np.array([observed.get(v, -1) for v in range(whole.n_variables)], dtype=np.int64)
    graph = _given(whole, labels)
    if args.max_seconds is None:
        args.max_seconds = np.inf if args.method == "exact" else 60.0
    if args.task == "map":
        result = _run_map(args, graph, never_stop)
        result["labels"] = _with_observed_labels(labels, result["labels"])
        text = "MAP\n" + " ".join(str(v) for v in [len(result["labels"]), *result["labels"]])
    else:
        _compile(args)
        deadline = perf_counter() + args.max_seconds
        result = _run_marginals(args, graph, lambda: perf_counter() > deadline)
        found = _with_observed_marginals(whole, labels, result["marginals"])
        if args.task == "pr":
            del result["marginals"]
            text = f"PR\n{result['value']:.10g}"
        else:
            result["marginals"] = found
            text = format_uai_marginals([np.array(m) for m in found])
    if args.out:
        Path(args.out).write_text(text + "\n", encoding="ascii")
    result["seconds"] = perf_counter() - started
    result["text"] = text
    if args.json:
        del result["text"]
    return result


def render(result: dict[str, Any]) -> str:
    """Return the answer in the UAI format, and a line on what it is worth."""
    bound = "none" if result["bound"] is None else f"{result['bound']:.10g}"
    line = f"value {result['value']:.10g}, bound {bound}, method {result['method']}"
    line += ", exact" if result["exact"] else ""
    line += "" if result["converged"] else ", not converged"
    return f"{result['text']}\n{line}"


def _given(graph: FactorGraph, observed: IntArray) -> FactorGraph:
    """Return the model of what is not observed; where all is, each variable has one label left."""
    if (observed >= 0).all():
        return graph.restrict([observed[v : v + 1] for v in range(graph.n_variables)])
    return graph.condition(observed, np.flatnonzero(observed < 0)) if observed.max() >= 0 else graph


def _with_observed_labels(observed: IntArray, found: list[int]) -> list[int]:
    """Put the labels found between the observed ones (-1 where there is none)."""
    labels = observed.copy()
    labels[observed < 0] = found[: int((observed < 0).sum())]
    return [int(x) for x in labels]


def _with_observed_marginals(
    graph: FactorGraph, observed: IntArray, found: list[list[float]]
) -> list[list[float]]:
    """Put the marginals found between those of the observed variables: 1 at the state seen."""
    left = iter(found)
    return [
        np.eye(int(card))[state].tolist() if state >= 0 else next(left, [])
        for card, state in zip(graph.cardinalities, observed, strict=True)
    ]


def _compile(args: argparse.Namespace) -> None:
    """Run the method on two variables, so that compiling takes nothing of the time given."""
    pair = Factor((0, 1), np.array([[0.0, 1.0], [1.0, 0.5]]))
    log_partition(
        FactorGraph(np.array([2, 2]), (pair,)),
        method=args.method or "trw",
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
        max_seconds=args.max_seconds,
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
        # A proof may come from elsewhere than the method that was asked for and came to no end.
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
        method=args.method or "trw",
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
        "marginals": [vector.tolist() for vector in answer.marginals],
    }
