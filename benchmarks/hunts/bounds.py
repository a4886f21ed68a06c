"""Hold every bound that inference prints against exact sums, on models drawn at random.

    python -m benchmarks hunts bounds --models 5000 --seed 1

Every method, damping and stopping point. Prints what failed with its seed, then a summary; exits
with 1 if anything failed. The tests run a short form.
"""

import argparse
import sys
from time import perf_counter

import numpy as np

from engine.core.errors import InfeasibleError
from engine.graphs.factor_graph import FactorGraph
from engine.inference.factors.log_partition import EDGE_PROBABILITIES, log_partition
from engine.inference.factors.map_portfolio import map_estimate
from tests.reference.factor_models import random_model_of_any_kind

ITERATIONS = (0, 1, 2, 5, 30, 300)
DAMPING = (None, 0.0, 0.3, 0.7, 0.95)
ROUNDING = 1e-13  # of the reference itself, relatively


def check_bounds(n_models: int, seed: int) -> list[str]:
    """Return one sentence a false bound."""
    failures = []
    for k in range(n_models):
        rng = np.random.default_rng((seed, k))
        graph, log_z = random_model_of_any_kind(rng)
        for method in ("trw", "bp", "mean-field", "frank-wolfe"):
            if method == "frank-wolfe" and rng.random() > 0.1:  # a linear programme a step
                continue
            where = f"seed {seed}, model {k}, {method}"
            failures += _failures(graph, log_z, method, rng, where)
        if rng.random() < 0.1:
            failures += _map_failures(graph, log_z, rng, f"seed {seed}, model {k}, map")
    return failures


def _failures(
    graph: FactorGraph, log_z: float, method: str, rng: np.random.Generator, where: str
) -> list[str]:
    options = {
        "max_iterations": int(rng.choice(ITERATIONS)),
        "damping": rng.choice(DAMPING),
        "rho": str(rng.choice(EDGE_PROBABILITIES)),
    }
    if method == "frank-wolfe":
        options["max_iterations"] = min(5, options["max_iterations"])
    try:
        answer = log_partition(graph, method=method, **options)
    except InfeasibleError:
        return [] if log_z == -np.inf or method != "trw" else [f"{where}: not infeasible"]
    slack = ROUNDING * max(1.0, abs(log_z)) if log_z > -np.inf else 0.0
    problems = []
    if answer.upper_bound is not None and not answer.upper_bound >= log_z - slack:
        problems.append(f"{where} {options}: upper bound {answer.upper_bound} of {log_z}")
    if answer.lower_bound is not None and not answer.lower_bound <= log_z + slack:
        problems.append(f"{where} {options}: lower bound {answer.lower_bound} of {log_z}")
    return problems


def _map_failures(
    graph: FactorGraph, log_z: float, rng: np.random.Generator, where: str
) -> list[str]:
    """The best score is at most log Z, and at least log Z less that of the number of states."""
    method = rng.choice(["lp", "expansion"])
    try:
        answer = map_estimate(graph, method=str(method), max_iterations=int(rng.integers(1, 50)))
    except InfeasibleError:
        return [] if log_z == -np.inf else [f"{where}: not infeasible"]
    slack = ROUNDING * max(1.0, abs(log_z))
    least = log_z - float(np.log(graph.cardinalities).sum())
    is_held = answer.value <= log_z + slack and answer.upper_bound >= least - slack
    return [] if is_held else [f"{where} {method}: {answer.value} to {answer.upper_bound}, {log_z}"]


def main() -> None:
    """Check as many models as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    started = perf_counter()
    failures = check_bounds(args.models, args.seed)
    print(*failures, sep="\n")
    seconds = perf_counter() - started
    print(f"{args.models} models, {len(failures)} false bounds, {seconds:.0f} s")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
