"""Horses: MLE-Struct beside truncated fitting, over time (Tang 2015, figures 6 and 7).

    python -m benchmarks.bench_horses [--quick] [--data DIR] [--out DIR] [--seconds S] [--steps N]
                                      [--train N] [--test N] [--side P] [--table2]

Writes figure6.csv, figure6.png and figure7.png into --out (./results/horses), and prints the
errors and times beside the published ones. All methods start from zero, share kernels, ridge and
threads. No clock counts the features, which are computed once for all, nor compilation, nor the
judgement of the parameters found. Five runs take at most --seconds each, and --table2 thirty
more; judging takes some minutes for all pictures of 200 pixels a side.
--quick takes 12 pictures of at most 56 pixels a side and ends within two minutes.
"""

import argparse
import csv
import json
from pathlib import Path

import numpy as np

from benchmarks.reporting import REAL_DATA, new_figure, print_machine, print_table
from benchmarks.segmentation_runs import (
    LearningRun,
    load_examples,
    log_likelihood,
    mean_error,
    run_blocks,
    run_theta,
    run_truncated,
    thinned,
)
from engine.crf.grid_features import GridExample
from engine.learning.segmentation_prediction import predict_marginals
from engine.learning.segmentation_solvers import SegmentationTask

HORSES = REAL_DATA / "weizmann_horses"
RIDGE = 1e-3  # of the mean loss a pixel: lambda = 3420 for the 3.42 million pixels of the paper
PUBLISHED = (
    "published (Tang 2015): test error of image 207 .068 after 9.2 minutes, when truncated fitting "
    "with 40 iterations had made one step (.249); .074 against .109 after 3.7 hours; .0813 at the "
    "end of the latter, 8.2 hours. Domke 2013, table II, surrogate likelihood: test .416, .109, "
    ".109 with 10, 20, 40 iterations"
)
PUBLISHED_SHARE = "1/24"  # 9.2 minutes of 3.7 hours
POINTS = 16  # judged moments of one run

TABLE_2 = {  # loss, sharpness, mode: published test errors with 10, 20, 40 iterations
    ("surrogate-likelihood", 0, "trw"): (0.416, 0.109, 0.109),
    ("univariate-logistic", 0, "trw"): (0.094, 0.093, 0.093),
    ("clique-logistic", 0, "trw"): (0.094, 0.093, 0.092),
    ("smoothed-classification", 5, "trw"): (0.097, 0.097, 0.096),
    ("smoothed-classification", 15, "trw"): (0.097, 0.096, 0.096),
    ("smoothed-classification", 50, "trw"): (0.096, 0.095, 0.095),
    ("surrogate-likelihood", 0, "mean-field"): (0.383, 0.226, 0.200),
    ("univariate-logistic", 0, "mean-field"): (0.108, 0.106, 0.106),
    ("clique-logistic", 0, "mean-field"): (0.101, 0.105, 0.107),
}
TABLE_2_LOCAL = {"pseudolikelihood": 0.249, "piecewise": 0.236, "independent": 0.125}


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", type=Path, default=HORSES)
    parser.add_argument("--out", type=Path, default=Path("results/horses"))
    parser.add_argument("--seconds", type=float, help="limit of each run")
    parser.add_argument("--steps", type=int, help="limit of each run's steps, but for theta")
    parser.add_argument("--train", type=int, help="pictures to learn from; all by default")
    parser.add_argument("--test", type=int, help="pictures to test on; all by default")
    parser.add_argument("--side", type=int, help="longest side of a model; 200 by default")
    parser.add_argument("--table2", action="store_true", help="also Domke's table II")
    args = parser.parse_args(words)
    small = (12, 6, 56, 8.0) if args.quick else (None, None, 200, 1800.0)
    for name, value in zip(("train", "test", "side", "seconds"), small, strict=True):
        if getattr(args, name) is None:
            setattr(args, name, value)
    return args


def run(args: argparse.Namespace) -> dict[str, object]:
    """Run everything that the options ask for; return what summary.json says."""
    args.out.mkdir(parents=True, exist_ok=True)
    train = load_examples(args.data / "train", args.train, args.side)
    test = load_examples(args.data / "test", args.test, args.side)
    sizes = [example.labels.size for example in train]
    n_pixels = sum(sizes)
    task = SegmentationTask(train, sizes, RIDGE * n_pixels, 0.5)
    print_machine()
    print(f"{len(train)} + {len(test)} pictures, {n_pixels} pixels, lambda {task.ridge:.6g}")
    warm_up(train)
    runs = all_runs(task, args)
    rows = judge(runs, task, test, 8 if args.quick else POINTS)
    write_csv(args.out / "figure6.csv", rows)
    draw_figure_6(args.out / "figure6.png", rows)
    draw_figure_7(args.out / "figure7.png", runs, test[0])
    summary = compare(runs, rows)
    if args.table2:
        summary["table2"] = table_2(task, test, args.seconds)
    (args.out / "summary.json").write_text(json.dumps(summary, indent=1))
    print(PUBLISHED)
    return summary


def warm_up(train: list[GridExample]) -> None:
    """Compile every kernel before anything is timed."""
    tiny = SegmentationTask(train[:2], [example.labels.size for example in train[:2]], 1e5, 0.5)
    run_theta(tiny, 1.0, 0.5)
    run_blocks(tiny, 0.5, "open-loop", max_steps=2)
    run_truncated(tiny, 2, 0.5, max_steps=2)


def all_runs(task: SegmentationTask, args: argparse.Namespace) -> dict[str, LearningRun]:
    """Every method of figure 6, one after the other."""
    theta = run_theta(task, args.seconds, 1e-3)
    blocks = run_blocks(task, min(args.seconds, 600.0), "open-loop", max_steps=args.steps)
    truncated = [
        run_truncated(task, n, args.seconds, max_steps=args.steps or 1000) for n in (10, 20, 40)
    ]
    return {run.name: run for run in (theta, *blocks, *truncated)}


def judge(
    runs: dict[str, LearningRun], task: SegmentationTask, test: list[GridExample], points: int
) -> list[dict[str, float | str]]:
    """Distance to the optimum and test error at moments of every run.

    The optimum is the middle of theta's certificate, or the best value seen if there is none.
    """
    rows: list[dict[str, float | str]] = []
    values: list[float] = []
    for run in runs.values():
        for moment in thinned(run.moments, points):
            error = mean_error(moment.theta, test, task.rho)
            rows.append({"method": run.name, "seconds": moment.seconds, "test_error": error})
            values.append(log_likelihood(task, moment.theta))
    theta = runs["theta"]
    optimum = max(values)
    if np.isfinite(relative_gap(theta)):
        optimum = 0.5 * ((theta.lower or 0.0) + (theta.upper or 0.0))
    for row, value in zip(rows, values, strict=True):
        row["distance"] = optimum - value
    return rows


def relative_gap(run: LearningRun) -> float:
    """The certified gap over the size of the lower bound; infinite without a certificate."""
    if run.lower is None or run.upper is None or not np.isfinite(run.upper - run.lower):
        return float("inf")
    return (run.upper - run.lower) / max(abs(run.lower), 1.0)


def times_to(goal: float, own: list[dict[str, float | str]]) -> tuple[float | None, float | None]:
    """Seconds until the test error is ``goal`` for the first time, and until it stays there."""
    first = lasting = None
    for row in own:
        if float(row["test_error"]) > goal:
            lasting = None
            continue
        first = float(row["seconds"]) if first is None else first
        lasting = float(row["seconds"]) if lasting is None else lasting
    return first, lasting


def compare(runs: dict[str, LearningRun], rows: list[dict[str, float | str]]) -> dict[str, object]:
    """Print one line a method, and the time to the error at which domke40 ends."""
    by_name = {name: [row for row in rows if row["method"] == name] for name in runs}
    goal = float(by_name["domke40"][-1]["test_error"])
    times = {name: times_to(goal, own) for name, own in by_name.items()}
    peer_seconds = times["domke40"][1] or runs["domke40"].seconds
    table = []
    for name, run in runs.items():
        errors = [float(row["test_error"]) for row in by_name[name]]
        first, lasting = times[name]
        gap = relative_gap(run)
        table.append(
            [
                name,
                f"{run.seconds:.1f}",
                run.status,
                f"{gap:.1e}" if np.isfinite(gap) else "-",
                f"{errors[-1]:.4f}",
                f"{min(errors):.4f}",
                "never" if first is None else f"{first:.3f}",
                "never" if lasting is None else f"{lasting:.3f}",
                "-" if lasting is None else f"1/{peer_seconds / max(lasting, 1e-4):.1f}",
            ]
        )
    head = "method,seconds,status,certified gap,test,best test,first,for good,of domke40's"
    title = f"seconds to the test error {goal:.4f}, at which domke40 ends"
    print_table(f"{title}; published {PUBLISHED_SHARE}", head.split(","), table)
    return {
        "domke40_error": goal,
        "domke40_seconds": peer_seconds,
        "seconds_to_domke40_error": {name: pair[1] for name, pair in times.items()},
        "theta_seconds": runs["theta"].seconds,
        "theta_relative_gap": relative_gap(runs["theta"]),
        "theta_status": runs["theta"].status,
    }


def write_csv(path: Path, rows: list[dict[str, float | str]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["method", "seconds", "distance", "test_error"])
        writer.writeheader()
        writer.writerows(rows)


def draw_figure_6(path: Path, rows: list[dict[str, float | str]]) -> None:
    """Distance to the optimum, and test error, against time."""
    figure, (left, right) = new_figure(1, 2, figsize=(11, 4.2))
    for method in dict.fromkeys(str(row["method"]) for row in rows):
        own = [row for row in rows if row["method"] == method]
        seconds = [float(row["seconds"]) for row in own]
        left.loglog(seconds, [max(float(row["distance"]), 1e-3) for row in own], label=method)
        right.semilogx(seconds, [float(row["test_error"]) for row in own], label=method)
    left.set(xlabel="seconds", ylabel="distance to the optimum (nats)")
    right.set(xlabel="seconds", ylabel="test error (mean Hamming loss)")
    right.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def draw_figure_7(path: Path, runs: dict[str, LearningRun], example: GridExample) -> None:
    """Marginals of one test picture as training goes on, ours above truncated fitting's."""
    columns = 5
    shown = ["theta", "MLE-Struct-wavg", "domke40"]
    figure, axes = new_figure(len(shown) + 1, columns, figsize=(2.3 * columns, 7))
    for axis in axes.ravel():
        axis.axis("off")
    axes[0, 0].imshow(example.features.nodes.colours)  # type: ignore[attr-defined]
    axes[0, 1].imshow(example.labels, cmap="gray")
    for row, name in enumerate(shown, start=1):
        for column, moment in enumerate(thinned(runs[name].moments, columns)[:columns]):
            nodes, _ = predict_marginals(example.features, moment.theta, 0.5)
            error = np.mean((nodes > 0.5) != example.labels)
            axes[row, column].imshow(nodes, cmap="gray", vmin=0, vmax=1)
            title = f"{name}\n{moment.seconds:.1f} s, error {error:.3f}"
            axes[row, column].set_title(title, fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def table_2(
    task: SegmentationTask, test: list[GridExample], seconds: float
) -> dict[str, list[float]]:
    """Domke's table II: errors by loss, inference and iterations, published beside ours."""
    from benchmarks.table2 import fit_table_2

    return fit_table_2(task, test, seconds, TABLE_2, TABLE_2_LOCAL)


if __name__ == "__main__":
    run(parse())
