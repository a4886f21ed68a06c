"""Tree-reweighted iterations on binary grids beside the general solver and plain NumPy.

    python -m benchmarks peers tree_reweighted --peers [--sizes 50,100]
    python -m benchmarks peers tree_reweighted [--sizes 50,100,200,500] [--repeats 5]

All contestants are first brought to convergence on one model and must agree on log Z_rho; then
100 iterations are timed, each updating every message once. JGMT's compiled tree-reweighted
inference (Domke 2013), which cannot be run here, took 732 ms for 100 iterations at 200 x 200 on
another machine.
"""

import argparse
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.common.reporting import PeerTable, print_machine, print_table
from benchmarks.peers.grid_problems import denoising, mixed
from engine.graphs.grid import Grid, GridTables
from engine.graphs.pairwise import PairwiseModel
from engine.inference.pairwise.grid_tree_reweighted import GridTreeReweighted
from engine.inference.pairwise.tree_reweighted import TreeReweighted

ITERATIONS = 100
JGMT_MS_AT_200 = 732.0
RHO = 0.5
AGREEMENT = 1e-6


class NumpyMessages:
    """The textbook vectorised form: whole-array updates of one direction after another."""

    def __init__(self, grid: Grid, scores: np.ndarray) -> None:
        tables = GridTables(grid, scores)
        self.unary = np.exp(tables.nodes[..., 1] - tables.nodes[..., 0])
        self.across = np.exp((tables.horizontal - tables.horizontal[..., :1, :1]) / RHO)
        self.along = np.exp((tables.vertical - tables.vertical[..., :1, :1]) / RHO)
        self.left, self.above, self.right, self.below = (np.ones_like(self.unary) for _ in "1234")

    def belief(self) -> np.ndarray:
        return self.unary * np.sqrt(self.left * self.above * self.right * self.below)

    def iterate(self) -> None:
        t = self.across
        b = self.belief()[:, :-1] / self.right[:, :-1]
        self.left[:, 1:] = (t[..., 0, 1] + t[..., 1, 1] * b) / (t[..., 0, 0] + t[..., 1, 0] * b)
        b = self.belief()[:, 1:] / self.left[:, 1:]
        self.right[:, :-1] = (t[..., 1, 0] + t[..., 1, 1] * b) / (t[..., 0, 0] + t[..., 0, 1] * b)
        t = self.along
        b = self.belief()[:-1] / self.below[:-1]
        self.above[1:] = (t[..., 0, 1] + t[..., 1, 1] * b) / (t[..., 0, 0] + t[..., 1, 0] * b)
        b = self.belief()[1:] / self.above[1:]
        self.below[:-1] = (t[..., 1, 0] + t[..., 1, 1] * b) / (t[..., 0, 0] + t[..., 0, 1] * b)

    def marginals(self) -> np.ndarray:
        belief = self.belief()
        return belief / (1.0 + belief)


def timed(work: Callable[[], object], repeats: int) -> float:
    """Median milliseconds after one warm-up."""
    work()
    seconds = []
    for _ in range(repeats):
        started = perf_counter()
        work()
        seconds.append(perf_counter() - started)
    return 1e3 * median(seconds)


def check_agreement(grid: Grid, scores: np.ndarray) -> float:
    """Largest difference of node marginals between the contestants at convergence."""
    reference = GridTreeReweighted(grid).solve(scores, tolerance=1e-10, max_iterations=5000)
    expected = GridTables(grid, reference.tables).nodes[..., 1]
    numpy_form = NumpyMessages(grid, scores)
    for _ in range(2000):
        numpy_form.iterate()
    graph = grid.to_pairwise()
    general = TreeReweighted(graph, RHO).solve(PairwiseModel(graph, scores), tolerance=1e-10)
    found = [
        numpy_form.marginals(),
        GridTables(grid, general.tables).nodes[..., 1],
    ]
    return max(float(np.abs(p - expected).max()) for p in found)


def compare_peers(sizes: Sequence[int]) -> PeerTable:
    """Time 100 iterations of what can be run: no public package has tree-reweighted messages.

    The value is the mean marginal after them, whose schedules differ until convergence.
    """
    table = PeerTable("tree reweighted", (), agreement=1e-4)
    for side in sizes:
        grid = Grid(side, side)
        scores = denoising(grid, np.random.default_rng(side))
        solver, form = GridTreeReweighted(grid), NumpyMessages(grid, scores)
        solver.solve(scores, max_iterations=1)  # compiles
        started = perf_counter()
        answer = solver.solve(scores, max_iterations=ITERATIONS, tolerance=0.0)
        seconds = perf_counter() - started
        mean = float(GridTables(grid, answer.tables).nodes[..., 1].mean())
        table.put_ours("denoising", grid.n_nodes, seconds, mean)
        started = perf_counter()
        for _ in range(ITERATIONS):
            form.iterate()
        seconds = perf_counter() - started
        mean = float(form.marginals().mean())
        table.put("denoising", grid.n_nodes, "NumPy, textbook", seconds, mean)
    return table


def measure(side: int, repeats: int) -> list:
    grid = Grid(side, side)
    scores = denoising(grid, np.random.default_rng(side))
    solver = GridTreeReweighted(grid)

    def iterate() -> object:
        # The tolerance is zero, so that every run does all iterations.
        return solver.solve(scores, max_iterations=ITERATIONS, tolerance=0.0)

    def only_set_up() -> object:
        return solver.solve(scores, max_iterations=1, tolerance=0.0)

    def in_numpy() -> None:
        form = NumpyMessages(grid, scores)
        for _ in range(ITERATIONS):
            form.iterate()

    ours = timed(iterate, repeats)
    peer = JGMT_MS_AT_200 / ours if side == 200 else None
    numpy_ms = timed(in_numpy, max(1, repeats // 2))
    return [
        f"{side}^2",
        ours,
        timed(only_set_up, repeats),
        numpy_ms,
        numpy_ms / ours,
        peer,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="50,100,200,500")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", action="store_true", help="one table of all peers")
    args = parser.parse_args()
    if args.peers:
        compare_peers([int(side) for side in args.sizes.split(",")]).finish()
        return
    print_machine()
    for name, make in (("denoising", denoising), ("mixed", mixed)):
        grid = Grid(30, 30)
        error = check_agreement(grid, make(grid, np.random.default_rng(0)))
        verdict = "agree" if error <= AGREEMENT else "DISAGREE"
        print(f"{name}: all three {verdict}, largest difference of a marginal {error:.2g}")
    rows = [measure(side, args.repeats) for side in map(int, args.sizes.split(","))]
    print_table(
        f"{ITERATIONS} tree-reweighted iterations, rho = 1/2, milliseconds; marginals and "
        "certified bound included",
        ["grid", "ours", "of it fixed", "NumPy", "ratio", "JGMT ratio"],
        rows,
    )
    print("target at 200 x 200, idle: 70 ms")


if __name__ == "__main__":
    main()
