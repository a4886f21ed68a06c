"""Rates of Meshi, Jaakkola and Globerson (2012), Figure 1(a) and Theorem 5.3, by every schedule.

    python -m benchmarks meshi2012 rates [--protein NAME.uai.gz] [--beta 20] [--seconds 20]
        [--quick]

The smoothed dual, the smoothed value of the feasible point of their Algorithm 1 and the best
decoded labelling over time, for star updates in seven orders, FISTA and gradient descent. The rate
is the slope of log(dual - optimum) over log(sweeps); the paper proves -1 for greedy and stochastic
updates (and that the primal gap falls half as fast at worst). Published as curves only.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.common.reporting import (
    REAL_DATA,
    new_figure,
    print_machine,
    print_table,
    save_figure,
)
from benchmarks.papers.meshi2012.dual_coordinates import LOG_ZERO, METHODS
from benchmarks.papers.meshi2012.schedules import SCHEDULES, Sweep
from engine.core.arguments import FloatArray
from engine.datasets.uai import read_uai
from engine.graphs.factor_graph import to_pairwise
from engine.graphs.pairwise import PairwiseModel
from engine.inference.pairwise.map_linear_programme import SmoothedDual

BASELINES = ("FISTA", "gradient")


@dataclass(frozen=True, slots=True)
class Curve:
    """Values after each look: sweeps, seconds, dual, feasible primal and decoded value (nats)."""

    sweeps: FloatArray
    seconds: FloatArray
    dual: FloatArray
    primal: FloatArray
    decoded: FloatArray

    def first_below(self, gap: float) -> float | None:
        """Seconds until dual - primal is at most ``gap``."""
        near = np.flatnonzero(self.dual - self.primal <= gap)
        return float(self.seconds[near[0]]) if len(near) else None

    def slope(self, values: FloatArray) -> float:
        """Slope of log |values - the end| over log sweeps, on the last decade that is not noise."""
        used = (values > 1e-6) & (self.sweeps >= 2)
        if used.sum() < 3:
            return float("nan")
        return float(np.polyfit(np.log(self.sweeps[used]), np.log(values[used]), 1)[0])


def follow(model: PairwiseModel, beta: float, sweep: Sweep, seconds: float, looks: int) -> Curve:
    """Run one schedule; looks, whose time is not counted, come at 1.3 times the sweeps before."""
    dual = SmoothedDual(model, beta)
    rows: list[tuple[float, ...]] = []
    spent, done, due, best = 0.0, 0, 1, -np.inf
    while spent < seconds and len(rows) < looks:
        started = perf_counter()
        while done < due:
            sweep(dual)
            done += 1
        spent += perf_counter() - started
        due = max(done + 1, int(1.3 * done))
        point = dual.point()
        used = point.tables[point.tables > 0.0]
        primal = point.primal_value - float((used * np.log(used)).sum()) / beta
        best = max(best, dual.decode()[1])
        rows.append((float(done), spent, point.smoothed, primal, best))
    return Curve(*np.array(rows).T)


def baseline(name: str) -> Callable[[np.random.Generator], Sweep]:
    """Twenty steps of a gradient method, as one sweep."""

    def make(rng: np.random.Generator) -> Sweep:
        def sweep(dual: SmoothedDual) -> None:
            asked = [False, True]
            METHODS[name](dual, lambda: asked.pop(0))

        return sweep

    return make


def run(
    model: PairwiseModel, beta: float, seconds: float, *, looks: int = 60, gap: float = 0.1
) -> dict[str, Curve]:
    """Follow every method, print the table and draw Figure 1(a)."""
    makers = SCHEDULES | {name: baseline(name) for name in BASELINES}
    curves = {}
    for name, make in makers.items():
        make(np.random.default_rng(0))(SmoothedDual(model, beta))  # compiles
        curves[name] = follow(model, beta, make(np.random.default_rng(0)), seconds, looks)
    optimum = min(float(curve.dual.min()) for curve in curves.values())
    rows = []
    for name, curve in curves.items():
        to_gap = curve.first_below(gap)
        rows.append(
            [
                name,
                int(curve.sweeps[-1]),
                float(curve.dual[-1] - optimum),
                float(curve.dual[-1] - curve.primal[-1]),
                float(curve.decoded[-1]),
                to_gap,
                curve.slope(curve.dual - optimum),
                curve.slope(optimum - curve.primal),
            ]
        )
    header = ["method", "sweeps", "dual - best dual", "dual - primal", "decoded"]
    header += [f"seconds to a gap of {gap:g}", "slope, dual", "slope, primal"]
    print_table("Figure 1(a), published: as curves only; slope proved at most -1", header, rows)
    _draw(curves, optimum)
    return curves


def _draw(curves: dict[str, Curve], optimum: float) -> None:
    figure, axes = new_figure(figsize=(8, 5))
    for name, curve in curves.items():
        line = axes.plot(curve.seconds, curve.dual, label=name)[0]
        axes.plot(curve.seconds, curve.primal, color=line.get_color(), linewidth=0.8)
        axes.plot(curve.seconds, curve.decoded, "--", color=line.get_color(), linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("symlog")
    axes.set_xlabel("seconds")
    axes.set_ylabel("nats: dual above, feasible primal below, decoded dashed")
    axes.legend(fontsize=7)
    save_figure(figure, "meshi_figure_1a")


def random_model(rng: np.random.Generator, n: int = 12) -> PairwiseModel:
    """A small grid with three labels, for the quick form."""
    from engine.graphs.grid import Grid

    graph = Grid(3, n // 3, 3).to_pairwise()
    return PairwiseModel(graph, rng.normal(size=graph.size))


def read_protein(path: Path) -> PairwiseModel:
    """A model of one protein; zeros count as 1e-8."""
    form = to_pairwise(read_uai(path))
    return PairwiseModel(form.model.graph, np.maximum(form.model.scores, LOG_ZERO))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protein", type=Path)
    parser.add_argument("--beta", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    print_machine()
    if args.quick:
        run(random_model(np.random.default_rng(0)), 5.0, 0.5, looks=20)
        return
    files = sorted((REAL_DATA / "protein_sidechain").glob("*.gz"), key=lambda p: p.stat().st_size)
    path = args.protein or files[len(files) // 2]
    print(path.name)
    run(read_protein(path), args.beta, args.seconds)


if __name__ == "__main__":
    main()
