"""Best configurations of UAI models in a limited time, ours and toulbar2's, in the same run.

    python -m benchmarks peers map_estimates FILE.uai [FILE.uai.gz ...] --seconds 60 [--out DIR]
    python -m benchmarks peers map_estimates --planar 300
    python -m benchmarks peers map_estimates --peers [FILE.uai ...]

Values and bounds are in nats, larger values and smaller bounds are better; an equals sign between
value and bound says that the value is proven optimal. Both run at once with the same processor
seconds, those of all threads counted, so that other work on the machine favours neither; each stops
where its search looks at the clock. Where a file ``FILE.uai.PR`` lies beside a model, its log Z
bounds every value from above, and the row says whether both respect it; ``FILE.uai.MPE``, labels in
the competition's format, is shown as a third value. toulbar2 gives no value where its time ends
without one; every file is kept in --out (./results/map-estimates): started again, the command goes
on. ``--planar`` solves a square spin glass with normal couplings by perfect matching, and sums it
by Pfaffians; its seconds are of processors.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from benchmarks.common.kept_results import Arrays, KeptResults
from benchmarks.common.reporting import RESULTS, PeerTable
from engine.datasets.uai import read_uai
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.graphs.grid import Grid
from engine.inference.factors.map_portfolio import map_estimate
from engine.inference.map_estimate import meets_bound
from engine.inference.pairwise.planar_ising import PlanarIsing

GLASSES = ((10, 2), (10, 3), (20, 2))  # sides and labels
DIGITS = 6  # of toulbar2's costs after the point
ENDED_EARLY = 0.9  # share of its time under which toulbar2 has ended by itself
PATIENCE = 20.0  # wall seconds a processor second may take


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
    limit = max(1, int(seconds))
    started, begun = process_time(), perf_counter()
    answer = problem.Solve(timeLimit=limit)
    bound = constant - float(problem.GetDDualBound())
    if not answer:
        return -np.inf, bound
    value = graph.score(np.array(answer[0], dtype=np.int64))
    # It ended by itself: optimal, though the dual bound may lag. Whichever clock its limit is of.
    if max(process_time() - started, perf_counter() - begun) < ENDED_EARLY * limit:
        return value, value
    return value, max(value, bound)


def _shown(value: float, bound: float) -> str:
    sign = "=" if meets_bound(value, bound, 1e-6) else "<"
    return f"{value:.4f} {sign} {bound:.4f}"


def published_value(path: Path, graph: FactorGraph) -> float:
    """Return the value of the labels that came with a model, nan if there are none."""
    labels = path.with_name(path.name + ".MPE")
    if not labels.exists():
        return np.nan
    words = labels.read_text(encoding="ascii").split()[-graph.n_variables :]
    return graph.score(np.array(words, dtype=np.int64))


def published_ceiling(path: Path) -> float:
    """Return the log Z (nats) that came with a model, above which no value can be; else inf."""
    partition = path.with_name(path.name + ".PR")
    if not partition.exists():
        return np.inf
    shown = partition.read_text(encoding="ascii").split()[-1]
    rounding = 10.0 ** -len(shown.partition(".")[2])
    return float(np.log(10.0)) * (float(shown) + rounding)


def _toulbar2_timed(graph: FactorGraph, seconds: float) -> tuple[float, float, float]:
    started = process_time()
    value, bound = solve_by_toulbar2(graph, seconds)
    return value, bound, process_time() - started


def compare(path: Path, seconds: float) -> Arrays:
    """Solve one file by both at once: values and bounds (nats), processor seconds, our method."""
    graph = read_uai(path)
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        theirs = pool.submit(_toulbar2_timed, graph, seconds)
        map_estimate(spin_glass(8, 12, 0), max_seconds=0.1)  # compiles
        map_estimate(spin_glass(4, 2, 0), method="roof-duality")
        started = process_time()
        ours = map_estimate(
            graph,
            max_seconds=PATIENCE * seconds,
            should_stop=lambda: process_time() - started > seconds,
        )
        ours_s = process_time() - started
        other = theirs.result()
    return {
        "ours": np.array([ours.value, ours.upper_bound, ours_s]),
        "toulbar2": np.array(other),
        "method": np.array(ours.method),
        "published": np.array([published_value(path, graph), published_ceiling(path)]),
    }


def compare_all(paths: list[Path], seconds: float, kept: KeptResults) -> None:
    """Print a row for each file and how often each of the two is better or proves."""
    print(
        "| model | ours, value and bound | s | found by | toulbar2, value and bound | s | "
        "difference | published |\n|---|---|---|---|---|---|---|---|"
    )
    found, seconds_taken = [], []
    for path in paths:
        both = kept.remember(path.name, partial(compare, path, seconds))
        (value, bound, spent), (other, other_bound, other_s) = both["ours"], both["toulbar2"]
        print(
            f"| {path.name} | {_shown(value, bound)} | {spent:.2f} | {both['method']!s} | "
            f"{_shown(other, other_bound)} | {other_s:.2f} | {value - other:+.4f} | "
            f"{_published(*both['published'], max(value, other))} |",
            flush=True,
        )
        ahead = 0 if meets_bound(value, other, 1e-6) and meets_bound(other, value, 1e-6) else 1
        found.append((
            ahead * np.sign(value - other),
            meets_bound(value, bound, 1e-6),
            meets_bound(other, other_bound, 1e-6),
        ))  # fmt: skip
        seconds_taken.append((spent, other_s))
    signs, proved, proved_there = np.array(found).T
    ours, theirs = np.median(seconds_taken, axis=0)
    print(
        f"\n{len(paths)} files: ours better in {int((signs > 0).sum())}, equal in "
        f"{int((signs == 0).sum())}, worse in {int((signs < 0).sum())}; "
        f"proved by us {int(proved.sum())}, by toulbar2 {int(proved_there.sum())}; "
        f"median {ours:.2f} and {theirs:.2f} s"
    )


def _published(value: float, ceiling: float, best: float) -> str:
    """Say what the data's own files say of a model."""
    words = [] if np.isnan(value) else [f"{value:.4f}"]
    if ceiling < np.inf:
        words.append("below log Z" if best <= ceiling else f"ABOVE log Z = {ceiling:.4f}")
    return ", ".join(words)


def solve_by_highs(graph: FactorGraph, seconds: float) -> tuple[float, float]:
    """Return value and bound (nats) of the whole-number programme over all tables."""
    tables = [factor.table for factor in graph.factors if factor.variables]
    scopes = [factor.variables for factor in graph.factors if factor.variables]
    constant = sum(float(f.table) for f in graph.factors if not f.variables)
    cards = [int(card) for card in graph.cardinalities]
    starts = np.concatenate([[0], np.cumsum(cards)])
    offsets = starts[-1] + np.concatenate([[0], np.cumsum([table.size for table in tables])])
    rows: list[tuple[np.ndarray, np.ndarray]] = []
    right = [1.0] * len(cards)
    for i, card in enumerate(cards):
        rows.append((starts[i] + np.arange(card), np.ones(card)))
    for table, scope, offset in zip(tables, scopes, offsets, strict=False):
        places = offset + np.arange(table.size).reshape(table.shape)
        for axis, variable in enumerate(scope):
            for label in range(cards[variable]):
                own = np.take(places, label, axis=axis).ravel()
                rows.append(
                    (np.append(own, starts[variable] + label), np.r_[np.ones(own.size), -1])
                )
                right.append(0.0)
    index = np.concatenate([own for own, _ in rows])
    lengths = np.concatenate([[0], np.cumsum([len(own) for own, _ in rows])])
    matrix = csr_array((np.concatenate([v for _, v in rows]), index, lengths))
    scores = np.concatenate([np.zeros(starts[-1]), *[table.ravel() for table in tables]])
    possible = np.isfinite(scores)
    answer = milp(
        -np.where(possible, scores, 0.0),
        integrality=(np.arange(len(scores)) < starts[-1]).astype(int),
        bounds=Bounds(0.0, possible.astype(float)),
        constraints=LinearConstraint(matrix, right, right),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    bound = constant - answer.mip_dual_bound if answer.mip_dual_bound is not None else np.inf
    if answer.x is None:
        return -np.inf, bound
    labels = np.array([int(answer.x[a:b].argmax()) for a, b in pairwise(starts)])
    return graph.score(labels), bound


PEERS = {"toulbar2": solve_by_toulbar2, "HiGHS, whole numbers": solve_by_highs}


def spin_glass(side: int, n_labels: int, seed: int) -> FactorGraph:
    """A grid with normal fields and normal couplings between every two labels."""
    rng, grid = np.random.default_rng(seed), Grid(side, side)
    fields = [Factor((i,), rng.normal(size=n_labels)) for i in range(grid.n_nodes)]
    pairs = [
        Factor((int(i), int(j)), rng.normal(size=(n_labels, n_labels))) for i, j in grid.edges()
    ]
    return FactorGraph(np.full(grid.n_nodes, n_labels), (*fields, *pairs))


def compare_peers(cases: dict[str, FactorGraph], seconds: float) -> PeerTable:
    """Solve each model by every peer; one that is not proved optimal says so."""
    table = PeerTable("map estimates", ("pytoulbar2", "highspy", "scipy"), agreement=1e-6)
    map_estimate(spin_glass(4, 3, 0), max_seconds=seconds)  # compiles
    for case, graph in cases.items():
        started = perf_counter()
        ours = map_estimate(graph, max_seconds=seconds)
        table.put_ours(case, graph.n_variables, perf_counter() - started, ours.value)
        for name, solve in PEERS.items():
            started = perf_counter()
            try:
                value, bound = solve(graph, seconds)
            except ImportError:
                continue
            spent = perf_counter() - started
            remark = "" if meets_bound(value, bound, 1e-6) else "not proved"
            table.put(case, graph.n_variables, name, spent, value, remark=remark)
    return table


def solve_planar(side: int) -> str:
    """Return the row of one spin glass."""
    graph = Grid(side, side).to_pairwise()
    strength = np.random.default_rng(0).normal(size=graph.n_edges)
    tables = np.stack([strength, -strength, -strength, strength], axis=1)
    scores = np.concatenate([np.zeros(2 * graph.n_nodes), tables.ravel()])
    started = process_time()
    ising = PlanarIsing(graph)
    drawn = process_time() - started
    best = ising.best(scores)
    seconds = process_time() - started
    started = process_time()
    sums = ising.marginals(scores)
    summed = process_time() - started
    return (
        f"{side} x {side}: {_shown(best.value, best.upper_bound)}, "
        f"{best.value / graph.n_nodes:.4f} a node, {seconds:.1f} s, {drawn:.1f} of them for "
        f"drawing; log Z {sums.log_partition:.4f} and marginals (error {sums.error:.0e}) in "
        f"{summed:.1f} s"
    )


def main() -> None:
    """Print a row for each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=RESULTS / "map-estimates")
    parser.add_argument("--planar", type=int, metavar="SIDE")
    parser.add_argument("--peers", action="store_true", help="one table of all public peers")
    args = parser.parse_args()
    if args.peers:
        cases = {path.name: read_uai(path) for path in args.files}
        for side, labels in () if cases else GLASSES:
            cases[f"{side} x {side} glass, {labels} labels"] = spin_glass(side, labels, 0)
        compare_peers(cases, args.seconds).finish()
        return
    if args.planar:
        solve_planar(8)  # compiles
        print(solve_planar(args.planar))
    if args.files:
        kept = KeptResults(args.out, {"seconds": args.seconds})
        compare_all(args.files, args.seconds, kept)


if __name__ == "__main__":
    main()
