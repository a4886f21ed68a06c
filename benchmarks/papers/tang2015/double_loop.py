"""Does gradient ascent with belief-propagation marginals fail on the house, and where?

    python -m benchmarks tang2015 double_loop [--quick] [--gap 50] [--steps 200]

Tang et al. (2015), section 4.1.2, found the double loop "very unstable", because propagation often
failed to converge after several gradient steps. Every combination of damping, warm start and step
size runs here from theta = 0; the surrogate likelihood along its path is bounded from below
and compared with the certified optimum.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.common.reporting import (
    REAL_DATA,
    new_figure,
    print_machine,
    print_table,
    save_figure,
)
from benchmarks.papers.tang2015.house import TRUTH, House, hamming_loss
from engine.baselines.double_loop import (
    DoubleLoopResult,
    PropagatedExample,
    Propagation,
    train_double_loop,
)
from engine.crf.bipartite import BipartiteItems
from engine.inference.matching.bipartite_bethe import certify_beliefs
from engine.inference.matching.bipartite_propagation import propagate_bipartite
from engine.solvers.control import Limits
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.bipartite import BipartiteStructure

INNER = {
    "undamped, cold": Propagation(),
    "damped, cold": Propagation(damping=0.5),
    "damped, warm": Propagation(damping=0.5, is_warm=True),
}
STEP_FACTORS = (0.5, 1.9, 10.0)  # times 1 / (lambda + largest curvature at 0)
LOOKS = 8  # points of a path at which the likelihood is evaluated


@dataclass(frozen=True)
class Trial:
    """One run: its name, path, and the surrogate likelihood at some of its steps."""

    name: str
    factor: float
    result: DoubleLoopResult
    looks: tuple[int, ...]
    likelihoods: tuple[float, ...]

    @property
    def first_failure(self) -> int | None:
        """The first outer step at which propagation did not converge on some example."""
        failed = [k for k, step in enumerate(self.result.steps) if step.n_unconverged]
        return failed[0] if failed else None


def likelihood(problems: Sequence[BipartiteStructure], theta: np.ndarray, ridge: float) -> float:
    """A certified lower bound of the Bethe surrogate l(theta), tight where messages settle."""
    total = -0.5 * ridge * float(theta @ theta)
    for problem in problems:
        scores = problem.items.scores(theta)
        beliefs = propagate_bipartite(scores, tolerance=0.0, max_sweeps=200)
        total += float(theta @ problem.observed) - certify_beliefs(scores, beliefs).upper_bound
    return total


def largest_curvature(problems: Sequence[BipartiteStructure], ridge: float) -> float:
    """lambda plus the largest eigenvalue of the Hessian of sum_m log Z^m at theta = 0."""
    zero = np.zeros(problems[0].items.n_features)
    hessian = sum(p.curvature(zero, p.maximise(zero, None, 1e-6).state) for p in problems)
    return ridge + float(np.linalg.eigvalsh(hessian)[-1])


def run_trials(items: list[BipartiteItems], ridge: float, steps: int) -> list[Trial]:
    """Run every combination and evaluate a few points of each path."""
    problems = [BipartiteStructure(x, TRUTH) for x in items]
    smoothness = largest_curvature(problems, ridge)
    trials = []
    for name, inner in INNER.items():
        for factor in STEP_FACTORS:
            result = train_double_loop(
                [PropagatedExample(x, TRUTH) for x in items],
                ridge=ridge,
                step_size=factor / smoothness,
                inner=inner,
                max_steps=steps,
            )
            count = len(result.parameters)
            looks = tuple(np.unique(np.geomspace(1, count, LOOKS).astype(int) - 1).tolist())
            values = tuple(likelihood(problems, result.parameters[k], ridge) for k in looks)
            trials.append(Trial(name, factor, result, looks, values))
    return trials


def run(folder: Path, *, gap: int, ridge: float, steps: int, max_pairs: int | None) -> list[Trial]:
    """Print the table and save the plot."""
    house = House(folder, max_pairs)
    items, test = house.items(gap, "train"), house.items(gap, "test")
    problems = [BipartiteStructure(x, TRUTH) for x in items]
    print_machine()
    start = time.perf_counter()
    optimum = ThetaAscent(problems, ridge, Limits(1e-3, max_seconds=60.0)).solve()
    print(
        f"certified: l in [{optimum.lower_bound:.2f}, {optimum.objective:.2f}], "
        f"{time.perf_counter() - start:.1f} s, {optimum.oracle_calls} sweeps, "
        f"test loss {hamming_loss(optimum.theta, test):.4f}"
    )
    trials = run_trials(items, ridge, steps)
    rows = []
    for trial in trials:
        last, failed = trial.result.steps[-1], trial.first_failure
        unconverged = np.mean([s.n_unconverged for s in trial.result.steps]) / len(items)
        rows.append(
            (
                *(trial.name, trial.factor, trial.result.status.value, failed, float(unconverged)),
                *(last.margin_error, trial.likelihoods[-1], max(trial.likelihoods)),
                *(hamming_loss(trial.result.theta, test), trial.result.sweeps),
                trial.result.seconds,
            )
        )
    header = ["inner loop", "step x L", "ended by", "first failure", "share unconverged"]
    header += ["margin error", "l at end", "best l", "test loss", "sweeps", "s"]
    print_table(f"Double loop, gap {gap}, lambda {ridge:g}, {steps} steps", header, rows)
    draw(trials, optimum.lower_bound)
    return trials


def draw(trials: list[Trial], best: float) -> None:
    """Plot how far each path is from the optimum, and where propagation fails."""
    figure, axes = new_figure(1, 2, figsize=(12, 4.5))
    for trial in trials:
        label = f"{trial.name}, step {trial.factor:g}/L"
        steps = np.array(trial.looks) + 1
        axes[0].loglog(steps, np.maximum(best - np.array(trial.likelihoods), 1e-6), label=label)
        failures = [step.n_unconverged for step in trial.result.steps]
        axes[1].semilogx(np.arange(1, len(failures) + 1), failures, label=label)
    axes[0].set(xlabel="outer step", ylabel="optimum - l(theta), nats")
    axes[1].set(xlabel="outer step", ylabel="examples on which propagation did not converge")
    axes[0].legend(fontsize=7)
    save_figure(figure, "double_loop")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three pairs, ten steps")
    parser.add_argument("--data", type=Path, default=REAL_DATA / "cmu_house")
    parser.add_argument("--gap", type=int, default=50)
    parser.add_argument("--ridge", type=float, default=100.0)
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    run(
        arguments.data,
        gap=arguments.gap,
        ridge=arguments.ridge,
        steps=10 if arguments.quick else arguments.steps,
        max_pairs=3 if arguments.quick else None,
    )


if __name__ == "__main__":
    main()
