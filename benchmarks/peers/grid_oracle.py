"""Roof duality and plain cuts on grids, beside PyMaxflow, thinqpbo, OR-tools and igraph.

    python -m benchmarks peers grid_oracle --peers [--sizes 50,100]
    python -m benchmarks peers grid_oracle [--sizes 50,100,200,500] [--repeats 5]

Agreement of the optimum comes first; a peer that disagrees is reported and not timed. Our time
covers everything from the score tables to the vertex and its certificate. PyMaxflow's covers
building its graph from ready couplings (vectorised) and the flow, without node or edge tables;
thinqpbo's and OR-tools' the solve alone, since their graphs are built edge by edge in Python.
OR-tools takes whole numbers: capacities are scaled to 2^24 and it is compared to that accuracy.
"""

import argparse
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.common.reporting import PeerTable, print_machine, print_table
from benchmarks.peers.grid_problems import attractive, frank_wolfe_gradients, ising, mixed, smooth
from engine.graphs.grid import Grid
from engine.oracles.grid_roof_duality import GridRoofDuality

TARGETS = "targets at 200 x 200, idle: FW gradients 30 ms and 1.3 x PyMaxflow; attractive 7 ms"
SCALE = 2.0**24


def doubled(grid: Grid, scores: np.ndarray):
    """Terminal capacities, tails, heads, capacities of the graph with the copies it needs."""
    field, right, down = ising(grid, scores)
    index = np.arange(grid.n_nodes).reshape(grid.height, grid.width)
    first = np.concatenate([index[:, :-1].ravel(), index[:-1].ravel()])
    second = np.concatenate([index[:, 1:].ravel(), index[1:].ravel()])
    coupling = np.concatenate([right.ravel(), down.ravel()])
    field = field.ravel()
    constant = constant_of(grid, scores) + np.abs(field).sum() + np.abs(coupling).sum()
    if (coupling >= 0).all():
        return field, first, second, coupling, constant, 2.0
    n = grid.n_nodes
    crossed = np.where(coupling < 0, n, 0)
    tails = np.concatenate([first, first + n])
    heads = np.concatenate([second + crossed, second + n - crossed])
    capacity = np.tile(np.abs(coupling), 2)
    return np.concatenate([field, -field]), tails, heads, capacity, constant, 1.0


def constant_of(grid: Grid, scores: np.ndarray) -> float:
    nodes = 2 * grid.n_nodes
    return float(scores[:nodes].sum() / 2 + scores[nodes:].sum() / 4)


def run_pymaxflow(grid: Grid, scores: np.ndarray) -> tuple[float, float]:
    """Optimum and seconds (building and solving)."""
    import maxflow

    excess, tails, heads, capacity, constant, factor = doubled(grid, scores)
    started = perf_counter()
    graph = maxflow.Graph[float](len(excess), len(tails))
    nodes = graph.add_nodes(len(excess))
    graph.add_grid_tedges(nodes, np.maximum(excess, 0), np.maximum(-excess, 0))
    graph.add_edges(tails, heads, capacity, capacity)
    flow = graph.maxflow()
    return constant - factor * flow, perf_counter() - started


def run_thinqpbo(grid: Grid, scores: np.ndarray) -> tuple[float, float]:
    """Optimum and seconds of ``solve`` alone."""
    import thinqpbo

    graph = thinqpbo.QPBODouble()
    graph.add_node(grid.n_nodes)
    unary = -scores[: 2 * grid.n_nodes].reshape(-1, 2)
    tables = -scores[2 * grid.n_nodes :].reshape(-1, 4)
    for i, (low, high) in enumerate(unary.tolist()):
        graph.add_unary_term(i, low, high)
    for (i, j), table in zip(grid.edges().tolist(), tables.tolist(), strict=True):
        graph.add_pairwise_term(i, j, *table)
    started = perf_counter()
    graph.solve()
    seconds = perf_counter() - started
    return -0.5 * graph.compute_twice_lower_bound(), seconds


def run_ortools(grid: Grid, scores: np.ndarray) -> tuple[float, float]:
    """Optimum (capacities rounded to 2^-24) and seconds of ``solve`` alone."""
    from ortools.graph.python.max_flow import SimpleMaxFlow

    excess, tails, heads, capacity, constant, factor = doubled(grid, scores)
    source, sink = len(excess), len(excess) + 1
    graph = SimpleMaxFlow()
    whole = np.rint(capacity * SCALE).astype(np.int64)
    graph.add_arcs_with_capacity(tails, heads, whole)
    graph.add_arcs_with_capacity(heads, tails, whole)
    size = np.rint(np.abs(excess) * SCALE).astype(np.int64)
    nodes = np.arange(len(excess))
    graph.add_arcs_with_capacity(
        np.where(excess > 0, source, nodes), np.where(excess > 0, nodes, sink), size
    )
    started = perf_counter()
    graph.solve(source, sink)
    seconds = perf_counter() - started
    return constant - factor * graph.optimal_flow() / SCALE, seconds


def run_igraph(grid: Grid, scores: np.ndarray) -> tuple[float, float]:
    """Optimum and seconds of ``maxflow_value`` alone."""
    import igraph

    excess, tails, heads, capacity, constant, factor = doubled(grid, scores)
    source, sink, nodes = len(excess), len(excess) + 1, np.arange(len(excess))
    first = np.concatenate([tails, heads, np.where(excess > 0, source, nodes)])
    second = np.concatenate([heads, tails, np.where(excess > 0, nodes, sink)])
    whole = np.concatenate([capacity, capacity, np.abs(excess)])
    graph = igraph.Graph(len(excess) + 2, np.column_stack([first, second]).tolist(), directed=True)
    started = perf_counter()
    flow = graph.maxflow_value(source, sink, whole.tolist())
    return constant - factor * flow, perf_counter() - started


PEERS: dict[str, Callable[[Grid, np.ndarray], tuple[float, float]]] = {
    "PyMaxflow": run_pymaxflow,
    "thinqpbo": run_thinqpbo,
    "OR-tools": run_ortools,
    "igraph": run_igraph,
}


def measure(grid: Grid, name: str, scores: np.ndarray, repeats: int, slow_peers: bool) -> list:
    """One row: case, size, our median, then time and ratio of each peer."""
    oracle = GridRoofDuality(grid, reuse_vertex=True)
    point = oracle.compute_extreme_point(scores)
    ours, theirs = [], {peer: [] for peer in PEERS}
    for _ in range(repeats):
        started = perf_counter()
        point = oracle.compute_extreme_point(scores)
        ours.append(perf_counter() - started)
        seconds = run_peer("PyMaxflow", grid, scores, point.value)
        if seconds is not None:
            theirs["PyMaxflow"].append(seconds)
    if slow_peers:
        for peer in ("thinqpbo", "OR-tools", "igraph"):
            seconds = run_peer(peer, grid, scores, point.value)
            theirs[peer] = [] if seconds is None else [seconds]
    row = [name, f"{grid.height}^2", 100 * oracle.n_undecided / grid.n_nodes, 1e3 * median(ours)]
    for peer in PEERS:
        time = median(theirs[peer]) if theirs[peer] else None
        row += [None, None] if time is None else [1e3 * time, time / median(ours)]
    return [*row, point.gap / max(1.0, abs(point.value))]


def compare_peers(sizes: Sequence[int], repeats: int) -> PeerTable:
    """Solve every kind of grid by every peer that is installed; values are optima."""
    packages = ("PyMaxflow", "thinqpbo", "ortools", "igraph")
    table = PeerTable("grid oracle", packages)
    for side in sizes:
        grid, rng = Grid(side, side), np.random.default_rng(side)
        cases = [(make.__name__, make(grid, rng)) for make in (attractive, mixed, smooth)]
        for name, scores in [*cases, *frank_wolfe_gradients(grid, rng)]:
            oracle, seconds = GridRoofDuality(grid, reuse_vertex=True), []
            for _ in range(repeats + 1):
                started = perf_counter()
                value = oracle.compute_extreme_point(scores).value
                seconds.append(perf_counter() - started)
            table.put_ours(name, grid.n_nodes, median(seconds[1:]), value)
            for peer, run in PEERS.items():
                try:
                    optimum, spent = run(grid, scores)
                except ImportError:
                    continue
                rounded = 1e-5 if peer == "OR-tools" else None
                table.put(name, grid.n_nodes, peer, spent, optimum, agreement=rounded)
    return table


def run_peer(peer: str, grid: Grid, scores: np.ndarray, value: float) -> float | None:
    """Seconds of a peer, or None if it is absent or disagrees with our optimum."""
    try:
        optimum, seconds = PEERS[peer](grid, scores)
    except ImportError:
        return None
    tolerance = 1e-9 if peer != "OR-tools" else 1e-5
    if abs(optimum - value) > tolerance * max(1.0, abs(value)):
        print(f"{peer} disagrees: {optimum!r} beside {value!r}")
        return None
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="50,100,200,500")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-slow-peers", action="store_true")
    parser.add_argument("--peers", action="store_true", help="one table of all public peers")
    args = parser.parse_args()
    if args.peers:
        compare_peers([int(side) for side in args.sizes.split(",")], args.repeats).finish()
        return
    print_machine()
    rows = []
    for side in map(int, args.sizes.split(",")):
        grid = Grid(side, side)
        rng = np.random.default_rng(side)
        cases = [(make.__name__, make(grid, rng)) for make in (attractive, mixed, smooth)]
        for name, scores in [*cases, *frank_wolfe_gradients(grid, rng)]:
            slow = not args.without_slow_peers
            rows.append(measure(grid, name, scores, args.repeats, slow))
    header = ["case", "grid", "undecided %", "ours ms"]
    for peer in PEERS:
        header += [f"{peer} ms", "ratio"]
    print_table("Local polytope of binary grids", [*header, "relative gap"], rows)
    print(TARGETS)


if __name__ == "__main__":
    main()
