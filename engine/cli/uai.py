"""Inference on a factor graph in the UAI format.

map: a best configuration (natural logs). pr: log10 of the partition function. mar: marginals.
`bound` in the JSON is proven: never below the best score (map), never below log10 Z (trw,
frank-wolfe), never above it (mean-field); null where nothing is proven (bp, except on forests).
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from engine.cli.option_types import whole_number_from
from engine.cli.output_paths import check_writable
from engine.core.arguments import FloatArray
from engine.core.errors import InfeasibleError, InvalidProblemError, StoppedError
from engine.core.progress import StopCallback
from engine.datasets.uai import format_uai_marginals, read_uai
from engine.graphs.factor_graph import FactorGraph, PairwiseForm, to_pairwise
from engine.graphs.spanning_trees import constant_tree_probability, tree_probabilities
from engine.inference.dual_oracle import DualOracle
from engine.inference.elimination import Elimination
from engine.inference.exact_map import map_by_elimination
from engine.inference.expansion import map_by_expansion
from engine.inference.fusion import polish
from engine.inference.map_estimate import MapEstimate
from engine.inference.map_linear_programme import (
    FIRST_BETA,
    SmoothedDual,
    map_by_linear_programme,
)
from engine.inference.marginals import Marginals
from engine.inference.mean_field import mean_field
from engine.inference.pairwise_frank_wolfe import frank_wolfe_marginals, interior_start
from engine.inference.roof_dual_map import map_by_roof_duality
from engine.inference.tree_reweighted import TreeReweighted
from engine.inference.tree_weights import optimise_tree_weights
from engine.objectives.pairwise_free_energy import PairwiseFreeEnergy
from engine.oracles.local_polytope import LocalPolytopeProgramme
from engine.oracles.protocol import LinearMinimizationOracle
from engine.oracles.roof_duality import RoofDuality

MAP_METHODS = ("roof-duality", "lp", "expansion", "exact")
MARGINAL_METHODS = ("trw", "bp", "mean-field", "frank-wolfe", "exact")
LOG_10 = float(np.log(10.0))
# Table entries up to which `map` without --method eliminates variables: about half a minute.
QUICK_TOTAL = 1_000_000_000
POLISH_SECONDS = 2.0  # for fusing random labellings, where no method proved its own
FRANK_WOLFE_GAP = 1e-3  # nats
# Where couplings are strong, messages drift towards minus infinity for ever although the bound has
# settled: trw counts as converged, too, once bound and value differ by this many nats a variable.
GAP_PER_VARIABLE = 1e-5
TREE_ITERATIONS = 100  # messages between two steps of the edge probabilities, kept warm
# Table entries up to which Frank-Wolfe calls a generic solver; beyond, a bounded oracle.
LARGEST_PROGRAMME = 5_000


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
        usual = "chosen by the model" if task == "map" else "trw"
        sub.add_argument("--method", choices=methods, help=f"how; {usual} if not given")
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
            help="default 60; without a limit for --method exact",
        )
        if task != "map":
            sub.add_argument(
                "--rho",
                choices=("uniform", "constant", "optimised"),
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
    graph = read_uai(Path(args.file))
    if args.max_seconds is None:
        args.max_seconds = np.inf if args.method == "exact" else 60.0
    deadline = started + args.max_seconds

    def should_stop() -> bool:
        return bool(perf_counter() > deadline)

    if args.task == "map":
        result = _run_map(args, graph, deadline, should_stop)
        text = "MAP\n" + " ".join(str(v) for v in [len(result["labels"]), *result["labels"]])
    else:
        result = _run_marginals(args, graph, should_stop)
        if args.task == "pr":
            del result["marginals"]
            text = f"PR\n{result['value']:.10g}"
        else:
            text = format_uai_marginals([np.array(m) for m in result["marginals"]])
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


def _run_map(
    args: argparse.Namespace, graph: FactorGraph, deadline: float, should_stop: StopCallback
) -> dict[str, Any]:
    form = to_pairwise(graph)
    dual = SmoothedDual(form.model, FIRST_BETA)
    method, estimate = _best_estimate(args, form, dual, should_stop)
    if args.method == "exact" or (args.method is None and not estimate.is_exact):
        try:
            cost = np.inf if args.method else QUICK_TOTAL
            best = map_by_elimination(
                graph, form, estimate, dual, largest_cost=cost, should_stop=should_stop
            )
            return _map_result("exact", best)
        except (InvalidProblemError, StoppedError):  # too wide, or it would take too long
            if args.method:
                raise
    seconds = min(POLISH_SECONDS, deadline - perf_counter())
    rng = np.random.default_rng(args.seed or 0)
    if seconds > 0:
        estimate = polish(form.model, estimate, rng=rng, max_seconds=seconds)
    return _map_result(method, _on_graph(method, graph, form, estimate))


def _best_estimate(
    args: argparse.Namespace, form: PairwiseForm, dual: SmoothedDual, should_stop: StopCallback
) -> tuple[str, MapEstimate]:
    """Return the best labelling of the bounding methods with its method, and the smallest bound."""
    first, *others = _bounding_methods(args.method, form)
    best = (first, _estimate_map(first, args, form, dual, should_stop))
    for method in others:
        if best[1].is_exact:
            break
        estimate = _estimate_map(method, args, form, dual, should_stop)
        bound = min(best[1].upper_bound, estimate.upper_bound)
        if estimate.value >= best[1].value:
            best = (method, estimate)
        best = (best[0], replace(best[1], upper_bound=max(bound, best[1].value)))
    return best


def _bounding_methods(method: str | None, form: PairwiseForm) -> tuple[str, ...]:
    """Return the methods that come before elimination, from quick to costly."""
    if method is None and form.model.graph.cardinalities.max() <= 2:
        return ("roof-duality", "lp")
    return ("lp",) if method in (None, "exact") else (method,)


def _estimate_map(
    method: str,
    args: argparse.Namespace,
    form: PairwiseForm,
    dual: SmoothedDual,
    should_stop: StopCallback,
) -> MapEstimate:
    if method == "roof-duality":
        return map_by_roof_duality(form.model)
    if method == "expansion":
        return map_by_expansion(form.model, max_rounds=args.max_iterations, should_stop=should_stop)
    return map_by_linear_programme(
        form.model,
        dual=dual,
        max_iterations=args.max_iterations,
        max_seconds=args.max_seconds,
        on_progress=args.on_progress,
        should_stop=should_stop,
    )


def _on_graph(
    method: str, graph: FactorGraph, form: PairwiseForm, estimate: MapEstimate
) -> MapEstimate:
    """Translate labels and scores of the pairwise form back to the file's variables."""
    labels = estimate.labels[: form.n_variables]
    value = graph.score(labels)
    if value == -np.inf:
        raise _nothing_found(method)
    bound = max(value, estimate.upper_bound + form.constant)
    return replace(estimate, labels=labels, value=value, upper_bound=bound)


def _nothing_found(method: str) -> InfeasibleError:
    return InfeasibleError(f"The method {method} found no configuration of probability above zero.")


def _map_result(method: str, estimate: MapEstimate) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "bound": estimate.upper_bound,
        "method": method,
        "exact": estimate.is_exact,
        "converged": estimate.status.is_converged,
        "guarantee": estimate.guarantee,
        "labels": estimate.labels.tolist(),
    }


def _run_marginals(
    args: argparse.Namespace, graph: FactorGraph, should_stop: StopCallback
) -> dict[str, Any]:
    method = args.method or "trw"
    if method == "exact":
        solver = Elimination(graph)
        exact_marginals: list[FloatArray] = []
        if args.task == "pr":
            value = solver.log_partition(should_stop=should_stop)
            if value == -np.inf:
                raise InfeasibleError("Every configuration of this model has probability zero.")
        else:
            value, exact_marginals = solver.marginals(should_stop=should_stop)
        log10 = value / LOG_10
        return _marginal_result(method, log10, log10, "exact", True, True, 1, exact_marginals)
    form = to_pairwise(graph)
    answer = METHODS[method](args, form, should_stop)
    if answer.log_partition == -np.inf:
        raise _nothing_found(method)
    bound, kind = answer.upper_bound, "upper"
    if method == "mean-field":
        bound, kind = answer.lower_bound, "lower"
    # A proven bound is worth more than a free energy between it and the truth of the relaxation.
    value = bound if method == "trw" and bound is not None else answer.log_partition
    settled = GAP_PER_VARIABLE * graph.n_variables
    model_graph = form.model.graph
    marginals = [model_graph.node_table(answer.tables, i) for i in range(graph.n_variables)]
    return _marginal_result(
        method,
        (value + form.constant) / LOG_10,
        None if bound is None else (bound + form.constant) / LOG_10,
        kind if bound is not None else None,
        answer.lower_bound is not None and answer.upper_bound is not None,  # a forest
        answer.is_converged or (method == "trw" and answer.dual_gap <= settled),
        answer.iterations,
        marginals,
    )


def _marginal_result(
    method: str,
    value: float,
    bound: float | None,
    kind: str | None,
    exact: bool,
    converged: bool,
    iterations: int,
    marginals: list[FloatArray],
) -> dict[str, Any]:
    return {
        "value": value,
        "bound": bound,
        "bound_kind": kind,
        "method": method,
        "exact": exact,
        "converged": converged,
        "iterations": iterations,
        "marginals": [vector.tolist() for vector in marginals],
    }


def _weighted_solver(
    args: argparse.Namespace, form: PairwiseForm, should_stop: StopCallback
) -> tuple[TreeReweighted, float]:
    """Return a solver with the edge probabilities asked for, and a bound that they have proven.

    Further iterations may lose the bound of optimised ones, where they do not converge.
    """
    graph = form.model.graph
    if args.rho == "optimised":
        weights = optimise_tree_weights(
            form.model,
            max_iterations=min(args.max_iterations, TREE_ITERATIONS),
            should_stop=should_stop,
        )
        return weights.solver, weights.upper_bound
    constant = args.rho == "constant"
    rho = constant_tree_probability(graph) if constant else tree_probabilities(graph)
    return TreeReweighted(graph, rho, from_trees=True), np.inf


def _damping(args: argparse.Namespace, default: float) -> float:
    damping = default if args.damping is None else float(args.damping)
    if not 0.0 <= damping < 1.0:
        raise InvalidProblemError(f"--damping: expected 0 or more and below 1, received {damping}.")
    return damping


def _run_trw(args: argparse.Namespace, form: PairwiseForm, should_stop: StopCallback) -> Marginals:
    solver, proven = _weighted_solver(args, form, should_stop)
    answer = solver.solve(
        form.model,
        warm=True,
        max_iterations=args.max_iterations,
        damping=_damping(args, 0.0),
        tolerance=1e-8,
        on_progress=args.on_progress,
        should_stop=should_stop,
    )
    bound = proven if answer.upper_bound is None else min(proven, answer.upper_bound)
    return replace(answer, upper_bound=bound)


def _run_bp(args: argparse.Namespace, form: PairwiseForm, should_stop: StopCallback) -> Marginals:
    return TreeReweighted(form.model.graph, 1.0).solve(
        form.model,
        max_iterations=args.max_iterations,
        damping=_damping(args, 0.3),
        tolerance=1e-8,
        on_progress=args.on_progress,
        should_stop=should_stop,
    )


def _run_mean_field(
    args: argparse.Namespace, form: PairwiseForm, should_stop: StopCallback
) -> Marginals:
    start = map_by_linear_programme(form.model, max_iterations=100, should_stop=should_stop).labels
    return mean_field(
        form.model, start=start, max_iterations=args.max_iterations, should_stop=should_stop
    )


def _run_frank_wolfe(
    args: argparse.Namespace, form: PairwiseForm, should_stop: StopCallback
) -> Marginals:
    model = form.model
    oracle: LinearMinimizationOracle
    if model.graph.is_binary and not model.has_zeros:
        oracle = RoofDuality(model.graph, reuse_vertex=True)
    elif model.graph.size <= LARGEST_PROGRAMME:
        oracle = LocalPolytopeProgramme(model.graph)
    else:
        oracle = DualOracle(model.graph)
    entropy = _weighted_solver(args, form, should_stop)[0].entropy
    start = interior_start(model, should_stop=should_stop)
    return frank_wolfe_marginals(
        PairwiseFreeEnergy(model.scores, entropy, oracle),
        start.tables,
        inconsistency=start.inconsistency,
        max_iterations=args.max_iterations,
        tolerance=FRANK_WOLFE_GAP,
        should_stop=should_stop,
    )


METHODS: dict[str, Callable[[argparse.Namespace, PairwiseForm, StopCallback], Marginals]] = {
    "trw": _run_trw,
    "bp": _run_bp,
    "mean-field": _run_mean_field,
    "frank-wolfe": _run_frank_wolfe,
}
