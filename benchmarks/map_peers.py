"""Best configurations of UAI models in a limited time, ours and toulbar2's, in the same run.

    python -m benchmarks.map_peers FILE.uai [FILE.uai.gz ...] --seconds 60
    python -m benchmarks.map_peers --planar 300

Values and bounds are in nats, larger values and smaller bounds are better; an equals sign between
value and bound says that the value is proven optimal. toulbar2 gives no value where its time ends
without one. ``--planar`` solves a square spin glass with normal couplings by perfect matching.
"""

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np

from engine.datasets.uai import read_uai
from engine.graphs.factor_graph import FactorGraph
from engine.graphs.grid import Grid
from engine.inference.factors.map_portfolio import map_estimate
from engine.inference.map_estimate import meets_bound
from engine.inference.pairwise.planar_ising import PlanarIsing

DIGITS = 6  # of toulbar2's costs after the point


def solve_by_toulbar2(graph: FactorGraph, seconds: float) -> tuple[float, float]:
    """Return value and bound (nats); -inf or inf where there is none."""
    import pytoulbar2

    constant = sum(float(f.table.max()) for f in graph.factors)
    spans = [f.table[np.isfinite(f.table)] for f in graph.factors]
    top = float(sum(np.ptp(values) for values in spans if values.size)) + 1.0
    problem = pytoulbar2.CFN(top, DIGITS, 0)
    for v, card in enumerate(graph.cardinalities):
        problem.AddVariable(f"x{v}", list(range(int(card))))
    for factor in graph.factors:
        if factor.variables:
            costs = np.where(np.isfinite(factor.table), factor.table.max() - factor.table, top)
            problem.AddFunction([f"x{v}" for v in factor.variables], costs.ravel().tolist())
    answer = problem.Solve(timeLimit=max(1, int(seconds)))
    bound = constant - float(problem.GetDDualBound())
    if not answer:
        return -np.inf, bound
    value = graph.score(np.array(answer[0], dtype=np.int64))
    return value, max(value, bound)


def _shown(value: float, bound: float) -> str:
    sign = "=" if meets_bound(value, bound, 1e-6) else "<"
    return f"{value:12.4f} {sign} {bound:12.4f}"


def compare(path: Path, seconds: float) -> str:
    """Return the row of one file."""
    graph = read_uai(path)
    started = perf_counter()
    ours = map_estimate(graph, max_seconds=seconds)
    ours_s = perf_counter() - started
    started = perf_counter()
    value, bound = solve_by_toulbar2(graph, seconds)
    other_s = perf_counter() - started
    return (
        f"{path.name:26} {_shown(ours.value, ours.upper_bound)} {ours_s:6.1f} s {ours.method:12} "
        f"{_shown(value, bound)} {other_s:6.1f} s  {ours.value - value:+.4f}"
    )


def solve_planar(side: int) -> str:
    """Return the row of one spin glass."""
    graph = Grid(side, side).to_pairwise()
    strength = np.random.default_rng(0).normal(size=graph.n_edges)
    tables = np.stack([strength, -strength, -strength, strength], axis=1)
    scores = np.concatenate([np.zeros(2 * graph.n_nodes), tables.ravel()])
    started = perf_counter()
    ising = PlanarIsing(graph)
    drawn = perf_counter() - started
    best = ising.best(scores)
    seconds = perf_counter() - started
    return (
        f"{side} x {side}: {_shown(best.value, best.upper_bound)}, "
        f"{best.value / graph.n_nodes:.4f} a node, {seconds:.1f} s, {drawn:.1f} of them for drawing"
    )


def main() -> None:
    """Print a row for each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--planar", type=int, metavar="SIDE")
    args = parser.parse_args()
    if args.planar:
        print(solve_planar(args.planar))
    if args.files:
        print(f"{'file':26} {'ours':>12}   {'bound':>12} {'':21} {'toulbar2':>12}   {'bound':>12}")
    for path in args.files:
        print(compare(path, args.seconds), flush=True)


if __name__ == "__main__":
    main()
