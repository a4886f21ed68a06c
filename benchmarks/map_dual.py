"""Run-time ratios of Meshi, Jaakkola and Globerson (2012), Figure 1(b), on protein side chains.

    python -m benchmarks.map_dual [--proteins 3] [--beta 20] [--gap 0.1] [--seconds 60]

Greedy, stochastic and cyclic star updates, FISTA and gradient descent minimise the smoothed dual
of the MAP linear programme until the smoothed dual minus the smoothed primal value at the
feasible point of their Algorithm 1 is at most ``gap`` (nats). Zeros of the files count as 1e-8.
An algorithm that does not finish in time shows the ratio as a lower bound.
"""

import argparse
from collections.abc import Callable
from statistics import mean
from time import perf_counter

import numpy as np

from benchmarks.reporting import REAL_DATA, print_machine, print_table
from engine.datasets.uai import read_uai
from engine.graphs.factor_graph import to_pairwise
from engine.graphs.pairwise import PairwiseModel
from engine.inference.pairwise.map_linear_programme import SmoothedDual

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
        rng = np.random.default_rng(0)
        while not finished():
            dual.run(dual.model.graph.n_nodes, schedule, rng)

    return run


def gradient_descent(dual: SmoothedDual, finished: Callable[[], bool]) -> None:
    step = 1.0 / lipschitz(dual)
    while not finished():
        for _ in range(20):
            dual.messages -= step * dual.gradient()


def fista(dual: SmoothedDual, finished: Callable[[], bool]) -> None:
    step = 1.0 / lipschitz(dual)
    momentum = 1.0
    previous = dual.messages.copy()
    ahead = dual.messages.copy()
    while not finished():
        for _ in range(20):
            dual.messages[:] = ahead
            new = ahead - step * dual.gradient()
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


def seconds_to_gap(
    model: PairwiseModel, name: str, beta: float, gap: float, limit: float
) -> tuple[float, bool]:
    """Seconds spent in the method (evaluations of the gap not counted), and whether it finished."""
    dual = SmoothedDual(model, beta)
    spent, resumed, done = 0.0, perf_counter(), False

    def finished() -> bool:
        nonlocal spent, resumed, done
        spent += perf_counter() - resumed
        done = smoothed_gap(dual) <= gap
        resumed = perf_counter()
        return done or spent > limit

    METHODS[name](dual, finished)
    return spent, done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proteins", type=int, default=3)
    parser.add_argument("--beta", type=float, default=20.0)
    parser.add_argument("--gap", type=float, default=0.1)
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    print_machine()
    files = sorted((REAL_DATA / "protein_sidechain").glob("*.gz"), key=lambda p: p.stat().st_size)
    ratios: dict[str, list[float]] = {name: [] for name in METHODS}
    open_ended = set()
    rows = []
    # From the middle outwards: the smallest end in microseconds, the largest take minutes.
    middle = files[len(files) // 3 :]
    for path in middle[: args.proteins]:
        form = to_pairwise(read_uai(path))
        scores = np.maximum(form.model.scores, LOG_ZERO)
        model = PairwiseModel(form.model.graph, scores)
        seconds_to_gap(model, "greedy", args.beta, np.inf, 1.0)  # compiles
        times = {}
        for name in METHODS:
            times[name], done = seconds_to_gap(model, name, args.beta, args.gap, args.seconds)
            if not done:
                open_ended.add(name)
            ratios[name].append(times[name] / times["greedy"])
        rows.append([path.name, model.graph.n_nodes, *times.values()])
    print_table("Seconds to the gap", ["protein", "nodes", *METHODS], rows)
    print_table(
        "Run time over that of greedy",
        ["method", "ours", "published"],
        [
            [name, f"{'> ' if name in open_ended else ''}{mean(r):.1f}", PUBLISHED.get(name)]
            for name, r in ratios.items()
        ],
    )


if __name__ == "__main__":
    main()
