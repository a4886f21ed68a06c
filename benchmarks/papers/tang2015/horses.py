"""Horses: MLE-Struct beside truncated fitting, over time (Tang 2015, figures 6 and 7).

    python -m benchmarks tang2015 horses [--quick] [--data DIR] [--out DIR] [--seconds S]
        [--steps N]
                                      [--train N] [--test N] [--side P] [--table2]

Writes figure6.csv, figure6.png and figure7.png into --out (./results/horses), and prints the
errors and times beside the published ones. All methods start from zero, share kernels, ridge and
threads; "domke40-metric" is given our estimate of the Hessian as well. No clock counts the
features, which are computed once for all, nor compilation, nor the judgement of the parameters
found. Six runs take at most --seconds each; judging takes some minutes for all pictures of 200
pixels a side. Every run is kept in --out: started again, the command goes on where it stopped.
--table2 goes on to `benchmarks.papers.domke2013.table2`.
--quick takes 12 pictures of at most 56 pixels a side and ends within two minutes.
"""

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common.kept_results import KeptResults, write_csv
from benchmarks.common.reporting import new_figure, print_machine, print_table
from benchmarks.papers.domke2013.segmentation_runs import (
    LearningRun,
    complete,
    horses_parser,
    load_horses,
    log_likelihood,
    mean_error,
    run_blocks,
    run_theta,
    run_truncated,
    thinned,
)
from benchmarks.papers.domke2013.table2 import TOLERANCE, fit_table_2
from engine.core.gap import relative_gap
from engine.crf.grid_features import GridExample
from engine.learning.segmentation.grid_readout import predict_marginals
from engine.learning.segmentation.mask_solvers import SegmentationTask

PUBLISHED = (
    "published (Tang 2015): test error of image 207 .068 after 9.2 minutes, when truncated fitting "
    "with 40 iterations had made one step (.249); .074 against .109 after 3.7 hours; .0813 at the "
    "end of the latter, 8.2 hours. Domke 2013, table II, surrogate likelihood: test .416, .109, "
    ".109 with 10, 20, 40 iterations"
)
PUBLISHED_SHARE = "1/24"  # 9.2 minutes of 3.7 hours
PUBLISHED_POINTS = {  # seconds and test error of one picture, on the authors' machine
    "MLE-Struct": ((552.0, 0.068), (13320.0, 0.074)),
    "domke40": ((552.0, 0.249), (13320.0, 0.109), (29520.0, 0.0813)),
}
PUBLISHED_END = 0.109  # Domke 2013, table II: surrogate likelihood, 40 iterations, all pictures
POINTS = 16  # judged moments of one run

COLOURS = {
    "theta": "#0072b2",
    "MLE-Struct": "#d55e00",
    "MLE-Struct-wavg": "#d55e00",
    "domke10": "#c5c5c5",
    "domke20": "#8c8c8c",
    "domke40": "#333333",
    "domke40-metric": "#009e73",
}


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = horses_parser(__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, help="limit of each run's steps, but for theta")
    parser.add_argument("--table2", action="store_true", help="go on to Domke's table II")
    return complete(parser.parse_args(words), "horses", quick=8.0, whole=1800.0)


def run(args: argparse.Namespace) -> dict[str, object]:
    """Run everything that the options ask for; return what summary.json says."""
    settings = {k: v for k, v in vars(args).items() if k not in ("out", "table2")}
    kept = KeptResults(args.out, settings)
    print_machine()
    task, test = load_horses(args.data, args.train, args.test, args.side)
    warm_up(task.examples)
    runs = all_runs(task, args, kept)
    rows = judge(runs, task, test, 8 if args.quick else POINTS, kept)
    write_csv(args.out / "figure6.csv", rows)
    draw_figure_6(args.out / "figure6.png", rows)
    draw_figure_7(args.out / "figure7.png", runs, test[0])
    summary = compare(runs, rows)
    (args.out / "summary.json").write_text(json.dumps(summary, indent=1))
    print(PUBLISHED)
    if args.table2:
        folder = args.out / "table2"
        fits = KeptResults(folder, settings | {"tolerance": TOLERANCE})
        fit_table_2(task, test, args.seconds, TOLERANCE, folder, fits)
    return summary


def warm_up(train: Sequence[GridExample]) -> None:
    """Compile every kernel before anything is timed."""
    tiny = SegmentationTask(train[:2], [example.labels.size for example in train[:2]], 1e5, 0.5)
    run_theta(tiny, 1.0, 0.5)
    run_blocks(tiny, 0.5, "open-loop", max_steps=2)
    run_truncated(tiny, 2, 0.5, max_steps=2)


def all_runs(
    task: SegmentationTask, args: argparse.Namespace, kept: KeptResults
) -> dict[str, LearningRun]:
    """Every method of figure 6, one after the other, unless it is kept."""

    def theta() -> dict[str, object]:
        return run_theta(task, args.seconds, 1e-3).to_arrays()

    def blocks() -> dict[str, object]:
        pair = run_blocks(task, min(args.seconds, 600.0), "open-loop", max_steps=args.steps)
        return {f"{k} {key}": x for k in range(2) for key, x in pair[k].to_arrays().items()}

    def truncated(iterations: int, in_metric: bool) -> dict[str, object]:
        steps = args.steps or 1000
        run = run_truncated(task, iterations, args.seconds, max_steps=steps, in_metric=in_metric)
        return run.to_arrays()

    both = kept.remember("blocks", blocks)
    parts = [
        kept.remember("theta", theta),
        *({key[2:]: x for key, x in both.items() if key[0] == k} for k in "01"),
        *(kept.remember(f"domke{n}", partial(truncated, n, False)) for n in (10, 20, 40)),
        kept.remember("domke40-metric", partial(truncated, 40, True)),
    ]
    runs = [LearningRun.from_arrays(part) for part in parts]
    return {run.name: run for run in runs}


def judge(
    runs: dict[str, LearningRun],
    task: SegmentationTask,
    test: list[GridExample],
    points: int,
    kept: KeptResults,
) -> list[dict[str, float | str]]:
    """Distance to the optimum and test error at moments of every run.

    The optimum is the middle of theta's certificate, or the best value seen if there is none.
    """

    def judged(run: LearningRun) -> dict[str, object]:
        thetas = [moment.theta for moment in thinned(run.moments, points)]
        values = [log_likelihood(task, theta) for theta in thetas]
        return {"values": values, "errors": [mean_error(theta, test, task.rho) for theta in thetas]}

    found = {
        name: kept.remember(f"{name} judged", partial(judged, run)) for name, run in runs.items()
    }
    theta = runs["theta"]
    optimum = max(float(part["values"].max()) for part in found.values())
    if np.isfinite(certified_gap(theta)):
        optimum = 0.5 * ((theta.lower or 0.0) + (theta.upper or 0.0))
    return [
        {
            "method": name,
            "seconds": moment.seconds,
            "distance": optimum - float(value),
            "test_error": float(error),
        }
        for name, run in runs.items()
        for moment, value, error in zip(
            thinned(run.moments, points), found[name]["values"], found[name]["errors"], strict=True
        )
    ]


def certified_gap(run: LearningRun) -> float:
    """The relative gap, infinite without a certificate."""
    if run.lower is None or run.upper is None:
        return float("inf")
    return relative_gap(run.upper, run.lower)


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
        gap = certified_gap(run)
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
        "theta_relative_gap": certified_gap(runs["theta"]),
        "theta_status": runs["theta"].status,
    }


def draw_figure_6(path: Path, rows: list[dict[str, float | str]]) -> None:
    """Distance to the optimum, and test error, against time."""
    figure, (left, right) = new_figure(1, 2, figsize=(13, 4.6))
    for method in dict.fromkeys(str(row["method"]) for row in rows):
        own = [row for row in rows if row["method"] == method]
        seconds = [max(float(row["seconds"]), 1e-3) for row in own]
        distances = [max(float(row["distance"]), 1.0) for row in own]
        style = {"color": COLOURS[method], "label": method, "marker": ".", "linewidth": 1.4}
        style["linestyle"] = "--" if method.endswith("wavg") else "-"
        left.loglog(seconds, distances, **style)
        right.semilogx(seconds, [float(row["test_error"]) for row in own], **style)
    for method, points in PUBLISHED_POINTS.items():
        label = f"{method}, one picture, published"
        right.plot(*zip(*points, strict=True), "*", color=COLOURS[method], ms=9, label=label)
    end = {"color": COLOURS["domke40"], "linestyle": ":", "label": "domke40 at its end, published"}
    right.axhline(PUBLISHED_END, **end)
    left.set(
        title="Distance to the optimum", xlabel="seconds", ylabel="nats (1 and less drawn at 1)"
    )
    right.set(title="Test error", xlabel="seconds", ylabel="mean Hamming loss", ylim=(0.0, 0.5))
    for axis in (left, right):
        axis.grid(alpha=0.3)
    right.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1.0))
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def draw_figure_7(path: Path, runs: dict[str, LearningRun], example: GridExample) -> None:
    """Marginals of one test picture as training goes on, ours above truncated fitting's."""
    columns = 5
    shown = ["theta", "MLE-Struct-wavg", "domke40"]
    rows, width = example.labels.shape
    height = 2.0 * rows / width + 0.35
    figure, axes = new_figure(len(shown), columns + 1, figsize=(2.0 * (columns + 1), 3 * height))
    for axis in axes.ravel():
        axis.axis("off")
    axes[0, 0].imshow(example.features.nodes.colours)  # type: ignore[attr-defined]
    axes[0, 0].set_title("test picture", fontsize=8)
    axes[1, 0].imshow(example.labels, cmap="gray")
    axes[1, 0].set_title("its mask", fontsize=8)
    for row, name in enumerate(shown):
        for column, moment in enumerate(thinned(runs[name].moments, columns)[-columns:], start=1):
            nodes, _ = predict_marginals(example.features, moment.theta, 0.5)
            error = np.mean((nodes > 0.5) != example.labels)
            axes[row, column].imshow(nodes, cmap="gray", vmin=0, vmax=1)
            title = f"{name}\n{moment.seconds:.3g} s, error {error:.3f}"
            axes[row, column].set_title(title, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    run(parse())
