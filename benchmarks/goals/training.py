"""Time to relative gaps 1e-1 .. 1e-6 for every solver of roommates' learning, with peak memory.

    python -m benchmarks goals training [--students 500 2500] [--seconds 25]

Two simulated years per size (two binary and twelve five-level questions, K = 200, lambda = 100).
Every solver runs in a process of its own after a small warm-up, so that compilation is not timed
and peak memory is its own. Agreement first: no certified bound of one solver may contradict
another's. The gap is the certified one: (L(tau) - lower bound) / |lower bound|.
"""

import argparse
import json
import resource
import subprocess
import sys

from benchmarks.common.reporting import print_machine

GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
SOLVERS = (
    "theta",
    "batch, line search",
    "batch, 2/(t+2)",
    "block, line search",
    "block, 2M/(2M+t)",
    "pairwise, line search",
    "fully corrective",
)
TARGETS = {1e-4: 10.0, 1e-6: 15.0}  # seconds at 2,500 students


def measure(solver: str, students: int, seconds: float) -> dict[str, object]:
    """Run one solver once in this process; return its times, bounds and peak memory."""
    import numpy as np

    from engine.datasets.university import simulate_university

    def learn(count: int, limit: float) -> object:
        university = simulate_university(count, 2, rng=np.random.default_rng(1))
        data = [(year.survey, year.pairs) for year in university.cohorts]
        return make_solver(solver, data, limit).solve()

    learn(40, 2.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = learn(students, seconds)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = {}
    for gap in GAPS:
        reached = [p for p in result.trajectory if (p.relative_gap or 9.0) <= gap]
        times[gap] = reached[0].seconds if reached else None
    return {
        "times": times,
        "upper": result.objective,
        "lower": result.lower_bound,
        "gap": result.relative_gap,
        "calls": result.oracle_calls,
        "megabytes": after / 1024,
        "added": (after - before) / 1024,
    }


def make_solver(name: str, data: list, limit: float):
    """Return the solver of that name on the cohorts, aiming at the smallest gap."""
    from engine.crf.survey_features import make_survey_features
    from engine.objectives.learning_dual import make_learning_dual
    from engine.solvers.block_orders import AllTogether, ShuffledOrder
    from engine.solvers.control import Limits
    from engine.solvers.frank_wolfe import FrankWolfe
    from engine.solvers.fully_corrective_frank_wolfe import FullyCorrectiveFrankWolfe
    from engine.solvers.step_rules import LineSearch, OpenLoop
    from engine.solvers.theta_ascent import ThetaAscent
    from engine.structures.survey import SurveyStructure

    features = make_survey_features([survey for survey, _ in data])
    limits = Limits(GAPS[-1], max_seconds=limit)
    structures = [SurveyStructure(survey, pairs, features, 1.0) for survey, pairs in data]
    if name == "theta":
        return ThetaAscent(structures, 100.0, limits)
    if name == "fully corrective":
        return FullyCorrectiveFrankWolfe(structures, 100.0, limits)
    rule = LineSearch() if name.endswith("search") else OpenLoop()
    dual = make_learning_dual([structure.observed for structure in structures], 100.0)
    order = AllTogether() if name.startswith("batch") else ShuffledOrder()
    return FrankWolfe(structures, dual, order, rule, limits=limits)


def run_apart(solver: str, students: int, seconds: float) -> dict:
    """Measure in a fresh process."""
    words = [
        sys.executable,
        "-m",
        "benchmarks.goals.training",
        "--one",
        solver,
        "--students",
        str(students),
    ]
    done = subprocess.run(
        [*words, "--seconds", str(seconds)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def check_agreement(results: dict[str, dict]) -> None:
    """Stop if one solver's lower bound lies above another's upper bound."""
    lower = max(results, key=lambda name: results[name]["lower"])
    upper = min(results, key=lambda name: results[name]["upper"])
    slack = 1e-7 * abs(results[lower]["lower"])
    if results[lower]["lower"] > results[upper]["upper"] + slack:
        raise SystemExit(f"{lower} and {upper} contradict each other: {results}")


def print_table(students: int, results: dict[str, dict]) -> None:
    """Print seconds to every gap, the final gap, oracle calls or sweeps, and memory."""
    print(f"\ntwo years of {students:,} students, 200 features, lambda 100; seconds to a gap of")
    columns = "".join(f"{gap:>9.0e}" for gap in GAPS)
    print(f"{'solver':24}{columns}{'final gap':>11}{'calls':>8}{'peak MB':>9}{'of it':>8}")
    for name, row in results.items():
        cells = "".join(
            f"{row['times'][str(gap)]:9.2f}" if row["times"][str(gap)] is not None else f"{'-':>9}"
            for gap in GAPS
        )
        memory = f"{row['megabytes']:9.0f}{row['added']:8.0f}"
        print(f"{name:24}{cells}{row['gap']:11.1e}{row['calls']:8d}{memory}")
    if students >= 2500:
        for gap, seconds in TARGETS.items():
            took = results["theta"]["times"][str(gap)]
            ratio = "not reached" if took is None else f"{took / seconds:.2f} of the target"
            print(f"target {gap:.0e} in {seconds:g} s: {ratio}")


def main() -> None:
    """Measure every solver at every size and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--students", type=int, nargs="+", default=[500, 2500])
    parser.add_argument("--seconds", type=float, default=25.0, help="limit per solver")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.students[0], args.seconds)))
        return
    print_machine()
    for students in args.students:
        results = {name: run_apart(name, students, args.seconds) for name in SOLVERS}
        check_agreement(results)
        print_table(students, results)


if __name__ == "__main__":
    main()
