"""Run-time ratios of Meshi, Jaakkola and Globerson (2012), Figure 1(b), on protein side chains.

    python -m benchmarks meshi2012 dual_coordinates [--proteins 3] [--beta 20] [--gap 0.1]
        [--seconds 60] [--quick]

Greedy, stochastic and cyclic star updates, FISTA and gradient descent minimise the smoothed dual
of the MAP linear programme until the smoothed dual minus the smoothed primal value at the
feasible point of their Algorithm 1 is at most ``gap`` (nats). Zeros of the files count as 1e-8.
An algorithm that does not finish in time shows the ratio as a lower bound. The gap of every
algorithm over its own run time is drawn, one picture for all models. --quick takes generated grids.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean
from time import perf_counter

import numpy as np
from numba import njit

from benchmarks.common.reporting import (
    REAL_DATA,
    new_figure,
    print_machine,
    print_table,
    save_figure,
)
from benchmarks.papers.meshi2012.schedules import SCHEDULES
from engine.core.arguments import FloatArray
from engine.datasets.uai import read_uai
from engine.graphs.factor_graph import to_pairwise
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseModel
from engine.inference.pairwise.map_linear_programme import SmoothedDual
from engine.kernels.messages_pairwise import Layout
from engine.kernels.star_updates import dual_marginals

PUBLISHED = {"greedy": 1.0, "stochastic": 8.6, "FISTA": 814.2, "gradient": 13849.8}
LOG_ZERO = np.log(1e-8)


def smoothed_gap(dual: SmoothedDual) -> float:
    """F(delta) - P(mu): nats."""
    point = dual.point()
    used = point.tables[point.tables > 0]
    primal = point.primal_value - float((used * np.log(used)).sum()) / dual.beta
    return point.smoothed - primal


def lipschitz(dual: SmoothedDual) -> float:
    """A bound on the Lipschitz constant of the gradient of F."""
    degrees = np.diff(dual.model.graph.incident_start)
    return dual.beta * (float(degrees.max()) + 2.0) / 2.0


def star(schedule: str) -> Callable[[SmoothedDual, Callable[[], bool]], None]:
    """Star updates in one schedule; the gap is looked at after each n of them."""

    def run(dual: SmoothedDual, finished: Callable[[], bool]) -> None:
        sweep = SCHEDULES[schedule](np.random.default_rng(0))
        while not finished():
            sweep(dual)

    return run


def gradient_of(dual: SmoothedDual) -> FloatArray:
    """dF/d delta, in the layout of ``messages``: node beliefs minus edge margins."""
    tables = np.zeros(dual.model.graph.size)
    dual_marginals(dual.beta, dual.layout, dual.scores, dual.messages, tables)
    gradient = np.zeros_like(dual.messages)
    write_gradient(dual.layout, tables, gradient)
    return gradient


@njit(cache=True, nogil=True)
def write_gradient(layout: Layout, tables: FloatArray, gradient: FloatArray) -> None:
    """Write dF/d delta_ei(x) = mu_i(x) - mu_e(x) from the softmax tables of ``dual_marginals``."""
    cards, edges, node_start, edge_start, _, _, message_start = layout
    for e in range(edges.shape[0]):
        for side in range(2):
            node = edges[e, side]
            start = message_start[2 * e + side]
            for x in range(cards[node]):
                gradient[start + x] = tables[node_start[node] + x]
        first, second = message_start[2 * e], message_start[2 * e + 1]
        columns = cards[edges[e, 1]]
        for x in range(cards[edges[e, 0]]):
            for y in range(columns):
                value = tables[edge_start[e] + x * columns + y]
                gradient[first + x] -= value
                gradient[second + y] -= value


def gradient_descent(dual: SmoothedDual, finished: Callable[[], bool]) -> None:
    step = 1.0 / lipschitz(dual)
    while not finished():
        for _ in range(20):
            dual.messages -= step * gradient_of(dual)


def fista(dual: SmoothedDual, finished: Callable[[], bool]) -> None:
    step = 1.0 / lipschitz(dual)
    momentum = 1.0
    previous = dual.messages.copy()
    ahead = dual.messages.copy()
    while not finished():
        for _ in range(20):
            dual.messages[:] = ahead
            new = ahead - step * gradient_of(dual)
            following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            ahead = new + (momentum - 1.0) / following * (new - previous)
            previous, momentum = new, following
        dual.messages[:] = previous


METHODS = {
    "greedy": star("greedy"),
    "cyclic": star("cyclic"),
    "stochastic": star("stochastic"),
    "FISTA": fista,
    "gradient": gradient_descent,
}


@dataclass(frozen=True, slots=True)
class Descent:
    """Seconds spent in the method at each look (the looks not counted), and the gap seen, nats."""

    seconds: list[float]
    gaps: list[float]


def descend(model: PairwiseModel, name: str, beta: float, gap: float, limit: float) -> Descent:
    """Run one method until its gap is at most ``gap``, or ``limit`` seconds are spent."""
    dual = SmoothedDual(model, beta)
    found = Descent([], [])
    spent, resumed = 0.0, perf_counter()

    def finished() -> bool:
        nonlocal spent, resumed
        spent += perf_counter() - resumed
        found.seconds.append(spent)
        found.gaps.append(smoothed_gap(dual))
        resumed = perf_counter()
        return found.gaps[-1] <= gap or spent > limit

    METHODS[name](dual, finished)
    return found


def compare_methods(
    models: dict[str, PairwiseModel], beta: float, gap: float, limit: float
) -> dict[str, dict[str, Descent]]:
    """Run every method on every model, print the ratios beside the published and draw the gaps."""
    ratios: dict[str, list[float]] = {name: [] for name in METHODS}
    open_ended, rows, descents = set(), [], {}
    for title, model in models.items():
        for method in METHODS.values():  # one round each, which compiles
            looks = iter((False, True))
            method(SmoothedDual(model, beta), lambda looks=looks: next(looks))
        found = {name: descend(model, name, beta, gap, limit) for name in METHODS}
        for name, one in found.items():
            if one.gaps[-1] > gap:
                open_ended.add(name)
            ratios[name].append(one.seconds[-1] / found["greedy"].seconds[-1])
        rows.append([title, model.graph.n_nodes, *(one.seconds[-1] for one in found.values())])
        descents[title] = found
    print_table("Seconds to the gap", ["model", "nodes", *METHODS], rows)
    print_table(
        "Run time over that of greedy",
        ["method", "ours", "published"],
        [
            [name, f"{'> ' if name in open_ended else ''}{mean(r):.1f}", PUBLISHED.get(name)]
            for name, r in ratios.items()
        ],
    )
    _draw(descents, gap)
    return descents


def _draw(descents: dict[str, dict[str, Descent]], gap: float) -> None:
    """The gap over run time, one panel a model."""
    figure, axes = new_figure(1, len(descents), figsize=(4 * len(descents), 4), squeeze=False)
    for place, (title, found) in zip(axes[0], descents.items(), strict=True):
        for name, one in found.items():
            place.plot(one.seconds, one.gaps, label=name)
        place.axhline(gap, color="black", linewidth=0.5)
        place.set_xscale("log")
        place.set_yscale("log")
        place.set_title(title, fontsize=7)
        place.set_xlabel("seconds in the method")
    axes[0, 0].set_ylabel("smoothed dual less smoothed primal, nats")
    axes[0, 0].legend(fontsize=7)
    save_figure(figure, "meshi_figure_1b")


def generated() -> dict[str, PairwiseModel]:
    """Two small grids of three labels, for the quick form."""
    models = {}
    for seed in range(2):
        graph = Grid(4, 4, 3).to_pairwise()
        scores = np.random.default_rng(seed).normal(size=graph.size)
        models[f"grid {seed}"] = PairwiseModel(graph, scores)
    return models


def proteins(count: int) -> dict[str, PairwiseModel]:
    """Side-chain models from the middle outwards: small ones end at once, large take minutes."""
    files = sorted((REAL_DATA / "protein_sidechain").glob("*.gz"), key=lambda p: p.stat().st_size)
    models = {}
    for path in files[len(files) // 3 :][:count]:
        form = to_pairwise(read_uai(path))
        models[path.name] = PairwiseModel(form.model.graph, np.maximum(form.model.scores, LOG_ZERO))
    return models


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proteins", type=int, default=3)
    parser.add_argument("--beta", type=float, default=20.0)
    parser.add_argument("--gap", type=float, default=0.1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    print_machine()
    models = generated() if args.quick else proteins(args.proteins)
    beta, seconds = (5.0, 0.5) if args.quick else (args.beta, args.seconds)
    compare_methods(models, beta, args.gap, seconds)


if __name__ == "__main__":
    main()
