"""How many tree-reweighted problems are solved to a certified gap, by sweeps alone and at all.

    python -m benchmarks hunts reweighted_gaps --seeds 3
    python -m benchmarks hunts reweighted_gaps --large

Random factors of three binary variables by strength, Markov logic, frustrated grids, factors of
four labels and variables, exclusive-or ties: converged of so many, iterations and processor
seconds of the slowest, and the largest certified gap in nats a variable.
"""

import argparse
from collections.abc import Callable, Iterator
from itertools import product
from time import process_time

import numpy as np

from benchmarks.common.reporting import print_machine, print_table
from engine.core.arguments import FloatArray
from engine.graphs.factor_graph import Factor, FactorGraph, to_pairwise
from engine.graphs.pairwise import PairwiseModel
from engine.graphs.spanning_trees import tree_probabilities
from engine.inference.marginals import Marginals
from engine.inference.pairwise import tree_reweighted
from engine.inference.pairwise.reweighted_programme import interior_programme
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from tests.reference.factor_models import smokers, sparse_factors

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0)
ITERATIONS = 2000


def frustrated_grid(side: int, strength: float, seed: int) -> FactorGraph:
    """Couplings of either sign and weak fields."""
    rng = np.random.default_rng(seed)
    cells = np.arange(side * side).reshape(side, side)
    pairs = [*zip(cells[:, :-1].flat, cells[:, 1:].flat, strict=True)]
    pairs += [*zip(cells[:-1].flat, cells[1:].flat, strict=True)]
    factors = [Factor((int(v),), rng.normal(size=2)) for v in cells.flat]
    factors += [Factor((int(i), int(j)), strength * rng.normal(size=(2, 2))) for i, j in pairs]
    return FactorGraph(np.full(side * side, 2), tuple(factors))


def large_factors(n: int, strength: float, seed: int) -> FactorGraph:
    """Factors of four variables of four labels each, one and a half a variable."""
    rng = np.random.default_rng(seed)
    scopes = [tuple(map(int, rng.choice(n, 4, replace=False))) for _ in range(3 * n // 2)]
    tables = [strength * rng.normal(size=4 * (4,)) for _ in scopes]
    return FactorGraph(np.full(n, 4), tuple(map(Factor, scopes, tables)))


def parity_checks(n: int, strength: float, seed: int) -> FactorGraph:
    """Sums of three variables that must be even, three for each four variables, and fields."""
    rng = np.random.default_rng(seed)
    odd = np.indices((2, 2, 2)).sum(axis=0) % 2 == 1
    scopes = [tuple(map(int, rng.choice(n, 3, replace=False))) for _ in range(3 * n // 4)]
    factors = [Factor(scope, np.where(odd, -np.inf, 0.0)) for scope in scopes]
    factors += [Factor((v,), strength * rng.normal(size=2)) for v in range(n)]
    return FactorGraph(np.full(n, 2), tuple(factors))


def cases(seeds: int) -> Iterator[tuple[str, list[FactorGraph]]]:
    """Yield names and models."""
    for strength in STRENGTHS:
        sizes = product((12, 40, 120), (1.1, 1.5, 2.0), range(seeds))
        yield f"triples, {strength:g}", [sparse_factors(n, m, strength, s) for n, m, s in sizes]
    persons = product((6, 10, 14, 18), (0.5, 1.1, 3.0, 10.0, 100.0))
    yield "friends of smokers", [smokers(n, weight) for n, weight in persons]
    kinds: list[tuple[str, Callable[[int, float, int], FactorGraph], tuple[int, ...]]] = [
        ("frustrated grids", frustrated_grid, (10, 30)),
        ("four labels, four variables", large_factors, (6, 12)),
        ("parity checks", parity_checks, (12, 40, 120)),
    ]
    for name, make, sizes in kinds:
        choices = product(sizes, (0.1, *STRENGTHS), range(seeds))
        yield name, [make(n, strength, seed) for n, strength, seed in choices]


def large_cases() -> Iterator[tuple[str, list[FactorGraph]]]:
    """Yield names and models whose sweeps take minutes; 200 of them come before interior points."""
    for strength in STRENGTHS:
        yield f"9,000 triples, {strength:g}", [sparse_factors(6000, 1.5, strength, 0)]
    yield "18,000 triples, 10", [sparse_factors(12_000, 1.5, 10.0, 0)]
    yield "4,500 parity checks, 10", [parity_checks(6000, 10.0, 0)]
    yield "friends of smokers, 30, 3", [smokers(30, 3.0)]
    yield "four labels, 600, 3", [large_factors(600, 3.0, 0)]


def solve(graph: FactorGraph, is_swept: bool) -> Marginals:
    """Solve, by sweeps alone or with interior points."""
    model = to_pairwise(graph).model
    solver = TreeReweighted(model.graph, tree_probabilities(model.graph), from_trees=True)
    tree_reweighted.interior_programme = _no_programme if is_swept else interior_programme
    return solver.solve(model, max_iterations=ITERATIONS, tolerance=1e-8)


def _no_programme(model: PairwiseModel, shares: FloatArray) -> None:
    """Leave a model to sweeps."""


def measure(graphs: list[FactorGraph], is_swept: bool) -> list[str]:
    """Return the cells of one way."""
    converged, iterations, seconds, gap = 0, 0, [], 0.0
    for graph in graphs:
        started = process_time()
        answer = solve(graph, is_swept)
        seconds.append(process_time() - started)
        settled = 1e-5 * graph.n_variables
        converged += answer.dual_gap <= settled
        iterations = max(iterations, answer.iterations)
        gap = max(gap, answer.dual_gap / graph.n_variables)
    return [
        f"{converged} of {len(graphs)}",
        str(iterations),
        f"{np.median(seconds):.2f}, {max(seconds):.2f}",
        f"{gap:.1g}",
    ]


def main() -> None:
    """Print one row a kind of model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="large models, without the sweeps")
    args = parser.parse_args()
    print_machine()
    solve(
        sparse_factors(20, 1.5, 50.0, 0), is_swept=False
    )  # compiles, and loads what interior points need
    ways = {"at all:": False} if args.large else {"sweeps:": True, "at all:": False}
    chosen = large_cases() if args.large else cases(args.seeds)
    rows = [
        [name, *(cell for is_swept in ways.values() for cell in measure(graphs, is_swept=is_swept))]
        for name, graphs in chosen
    ]
    columns = ["converged", "iterations", "seconds, median and most", "gap"]
    heads = [f"{way} {column}" for way in ways for column in columns]
    print_table(f"Tree-reweighted, at most {ITERATIONS} iterations", ["model", *heads], rows)


if __name__ == "__main__":
    main()
