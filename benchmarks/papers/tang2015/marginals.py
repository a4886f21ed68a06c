"""Marginals of bipartite matchings: Figure 10 and Table 2 of Tang et al. (2015).

    python -m benchmarks tang2015 marginals [--quick] [--seed 0]

Figure 10: l_inf error against exact marginals by calls of the MAP solver, Frank-Wolfe against
perturb-and-MAP, 10 rows and columns, scores uniform on [0, 1] times an inverse temperature.
Table 2: time to reach an l_inf error against the Bethe marginals, rand-n with scores uniform on
[0, 1]: belief propagation over Frank-Wolfe as published, and our Newton method in the same table.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.reporting import new_figure, print_machine, print_table, save_figure
from engine.inference.matching.bipartite_newton import compute_bipartite_pseudomarginals
from engine.inference.matching.bipartite_propagation import propagate_bipartite
from engine.inference.matching.exact import compute_bipartite_marginals
from engine.inference.matching.frank_wolfe import compute_frank_wolfe_marginals
from engine.inference.perturb_and_map import estimate_perturb_and_map
from engine.oracles.assignment import AssignmentOracle

Array = NDArray[np.float64]
ERRORS = (0.05, 0.01, 0.005, 0.001)
PUBLISHED = {
    20: (3.37, 1.56, 1.12, 0.25),
    50: (18.0, 11.76, 5.18, 0.91),
    75: (23.87, 23.87, 9.8, 1.5),
    100: (19.24, 19.24, 10.6, 1.75),
}
PUBLISHED_CURVES = (
    "as curves only, Frank-Wolfe below perturb-and-MAP by much and after fewer calls; "
    "temperature acts on the two in different ways"
)
MAX_STEPS = 2000
Solver = Callable[[Array, int], Array]  # scores and an effort 1, 2, ... -> marginals


def frank_wolfe(scores: Array, steps: int) -> Array:
    """Frank-Wolfe with line search."""
    return compute_frank_wolfe_marginals(
        scores, AssignmentOracle(), tolerance=0.0, max_iterations=steps + 1
    ).marginals


def open_loop(scores: Array, steps: int) -> Array:
    """Frank-Wolfe with the step 2 / (t + 2)."""
    return compute_frank_wolfe_marginals(
        scores, AssignmentOracle(), steps="open-loop", tolerance=0.0, max_iterations=steps + 1
    ).marginals


def undamped_propagation(scores: Array, steps: int) -> Array:
    """Belief propagation without damping."""
    result = propagate_bipartite(scores, damping=0.0, tolerance=0.0, max_sweeps=steps)
    return result.marginals


def damped_propagation(scores: Array, steps: int) -> Array:
    """Belief propagation with half damping of the log messages."""
    return propagate_bipartite(scores, tolerance=0.0, max_sweeps=steps).marginals


def newton(scores: Array, digits: int) -> Array:
    """Newton's method to so many digits of the objective."""
    return compute_bipartite_pseudomarginals(scores, tolerance=10.0**-digits).marginals


SOLVERS: dict[str, Solver] = {
    "FW line search": frank_wolfe,
    "FW open loop": open_loop,
    "BP undamped": undamped_propagation,
    "BP damped": damped_propagation,
    "Newton": newton,
}


def frank_wolfe_errors(
    scores: Array, exact: Array, calls: Sequence[int], steps: str
) -> list[float]:
    """l_inf error after each number of oracle calls."""
    found: dict[int, float] = {}

    def note(tau: Array, made: int) -> None:
        if made in wanted:
            found[made] = float(np.abs(tau - exact).max())

    wanted = set(calls)
    compute_frank_wolfe_marginals(
        scores,
        AssignmentOracle(),
        steps=steps,
        tolerance=0.0,
        max_iterations=max(calls) + 1,  # the last point is only looked at
        note=note,
    )
    return [found[c] for c in calls]


def perturbed_errors(
    scores: Array, exact: Array, calls: Sequence[int], rng: np.random.Generator
) -> list[float]:
    """The same for perturb-and-MAP, one sample a call."""
    total, made, errors = np.zeros_like(scores), 0, []
    for wanted in calls:
        part = estimate_perturb_and_map(scores, AssignmentOracle(), wanted - made, rng=rng)
        total, made = total + (wanted - made) * part, wanted
        errors.append(float(np.abs(total / made - exact).max()))
    return errors


def figure_10(
    rng: np.random.Generator, *, n: int, calls: Sequence[int], graphs: int
) -> dict[str, Array]:
    """Errors by calls at two temperatures, and after all calls over a range of temperatures."""
    print(f"Figure 10, published: {PUBLISHED_CURVES}")
    figure, axes = new_figure(1, 3, figsize=(14, 4))
    summary: dict[str, Array] = {}
    names = ("FW line search", "FW open loop", "perturb-and-MAP")

    def errors(beta: float, counts: Sequence[int]) -> Array:
        scores = beta * rng.random((n, n))
        exact = compute_bipartite_marginals(scores).marginals
        return np.array(
            [
                frank_wolfe_errors(scores, exact, counts, "line-search"),
                frank_wolfe_errors(scores, exact, counts, "open-loop"),
                perturbed_errors(scores, exact, counts, rng),
            ]
        )

    for axis, beta in zip(axes, (10.0, 0.25), strict=False):
        mean = np.mean([errors(beta, calls) for _ in range(graphs)], axis=0)
        summary[f"beta {beta}"] = mean
        rows = [(count, *mean[:, k].tolist()) for k, count in enumerate(calls)]
        title = f"Figure 10, inverse temperature {beta}: l_inf error, mean of {graphs} graphs"
        print_table(title, ["calls", *names], rows)
        for name, line in zip(names, mean, strict=True):
            axis.loglog(calls, line, label=name)
        axis.set(title=f"inverse temperature {beta}", xlabel="calls of the MAP solver")
    betas = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0)
    final = [np.mean([errors(b, calls[-1:]) for _ in range(graphs)], axis=0)[:, 0] for b in betas]
    summary["final"] = np.array(final)
    rows = [(beta, *row.tolist()) for beta, row in zip(betas, final, strict=True)]
    title = f"Figure 10c: l_inf error after {calls[-1]} calls"
    print_table(title, ["beta", *names], rows)
    for name, line in zip(names, np.array(final).T, strict=True):
        axes[2].loglog(betas, line, "o-", label=name)
    axes[2].set(title=f"after {calls[-1]} calls", xlabel="inverse temperature")
    axes[0].set_ylabel("l_inf error of the marginals")
    axes[0].legend()
    save_figure(figure, "marginals_figure_10")
    return summary


def efforts_of(name: str, scores: Array, truth: Array) -> list[int | None]:
    """Least effort at which each of ``ERRORS`` is reached, None beyond the limit."""
    if name.startswith("FW"):
        return iterations_to(scores, truth, "open-loop" if "open" in name else "line-search")
    found: list[int | None] = []
    effort = 1
    for error in ERRORS:
        while effort <= MAX_STEPS and np.abs(SOLVERS[name](scores, effort) - truth).max() > error:
            effort += max(1, effort // 4)
        found.append(effort if effort <= MAX_STEPS else None)
    return found


def iterations_to(scores: Array, truth: Array, steps: str) -> list[int | None]:
    """The same from one run of Frank-Wolfe: iterates may get worse again, the first hit counts."""
    first: list[int | None] = [None] * len(ERRORS)

    def note(tau: Array, made: int) -> None:
        error = float(np.abs(tau - truth).max())
        for k, wanted in enumerate(ERRORS):
            if first[k] is None and error <= wanted:
                first[k] = made

    compute_frank_wolfe_marginals(
        scores,
        AssignmentOracle(),
        steps=steps,
        tolerance=0.0,
        max_iterations=MAX_STEPS + 1,
        note=note,
        should_stop=lambda: None not in first,
    )
    return first


def seconds_of(solver: Solver, scores: Array, steps: int) -> float:
    """Median time of three runs of so many steps."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        solver(scores, steps)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def table_2(
    rng: np.random.Generator, *, sizes: Sequence[int], graphs: int
) -> dict[tuple[int, str], list[float | None]]:
    """Seconds to each accuracy by size and solver; prints BP over FW beside what was published."""
    for solver in SOLVERS.values():
        solver(rng.random((4, 4)), 2)  # compile
    seconds: dict[tuple[int, str], list[float | None]] = {}
    for n in sizes:
        problems = [rng.random((n, n)) for _ in range(graphs)]
        truths = [compute_bipartite_pseudomarginals(w, tolerance=1e-11).marginals for w in problems]
        for name in SOLVERS:
            seconds[n, name] = mean_seconds(name, problems, truths)
    header = ["graph", "solver", *(f"{error} (ms)" for error in ERRORS)]
    rows = [
        (f"rand-{n}", name, *(None if t is None else 1e3 * t for t in times))
        for (n, name), times in seconds.items()
    ]
    print_table(f"Table 2: time to an l_inf error, mean of {graphs} graphs", header, rows)
    rows = [row for n in sizes for row in ratios(seconds, n)]
    print_table("Table 2: BP time over that of others", ["graph", "ratio", *map(str, ERRORS)], rows)
    return seconds


def mean_seconds(
    name: str, problems: Sequence[Array], truths: Sequence[Array]
) -> list[float | None]:
    """Mean time to each error, None if some graph does not get there."""
    times = np.full((len(problems), len(ERRORS)), np.nan)
    for row, scores, truth in zip(times, problems, truths, strict=True):
        for k, effort in enumerate(efforts_of(name, scores, truth)):
            if effort is not None:
                row[k] = seconds_of(SOLVERS[name], scores, effort)
    return [None if np.isnan(t) else float(t) for t in times.mean(axis=0)]


def ratios(
    seconds: dict[tuple[int, str], list[float | None]], n: int
) -> list[tuple[str | float | None, ...]]:
    """Rows of the second table: our ratios of damped BP to FW and Newton, then the published."""
    propagation = seconds[n, "BP damped"]
    rows: list[tuple[str | float | None, ...]] = []
    for name in ("FW line search", "Newton"):
        other = seconds[n, name]
        cells = [
            None if a is None or b is None else a / b
            for a, b in zip(propagation, other, strict=True)
        ]
        rows.append((f"rand-{n}", f"BP / {name}", *cells))
    rows.append((f"rand-{n}", "BP / FW, published", *PUBLISHED.get(n, (None,) * len(ERRORS))))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small graphs, one of each")
    parser.add_argument("--graphs", type=int, default=10, help="random graphs of each size")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    print_machine()
    if arguments.quick:
        figure_10(rng, n=6, calls=(1, 10, 100), graphs=1)
        table_2(rng, sizes=(20,), graphs=1)
    else:
        figure_10(
            rng, n=10, calls=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000), graphs=arguments.graphs
        )
        table_2(rng, sizes=tuple(PUBLISHED), graphs=arguments.graphs)


if __name__ == "__main__":
    main()
