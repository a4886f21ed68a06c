"""Losses, inference and iterations beside each other on the horses (Domke 2013, table II).

    python -m benchmarks domke2013 table2 [--quick] [--data DIR] [--out DIR] [--seconds S]
                                [--train N] [--test N] [--side P] [--tolerance T]

Thirty fits of at most --seconds each. "independent" starts the others, and the surrogate likelihood
the smoothed losses, as published; fits go over growing sets of pictures, as there, but for the
surrogate likelihood: on few pictures it ends where couplings are so strong that truncation decides.
Not as published, these others' fits with 40 iterations start from those with 20, whose marginals
hardly differ; the surrogate likelihood's do not, for more iterations lead out of no bad minimum.
A fit has converged when a step lowers the objective by less than --tolerance of its size. Every fit
is kept in --out (./results/table2): a run that is started again goes on where it stopped.
table2.csv and the printed table say how each fit ended: only "converged" compares with the
published figures, which were fitted to the end. The longest side is 149 pixels, with which there
are as many pixels as published.
--quick takes 12 + 6 pictures of at most 56 pixels a side and two seconds a fit.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.kept_results import Arrays, KeptResults, write_csv
from benchmarks.common.reporting import print_machine, print_table
from benchmarks.papers.domke2013.picture_losses import PaperOptions, loss_and_gradient
from benchmarks.papers.domke2013.segmentation_runs import (
    complete,
    horses_parser,
    load_horses,
    mean_error,
)
from engine.crf.grid_features import GridExample
from engine.learning.segmentation.marginal_fitting import fit_marginals_on_growing_sets
from engine.learning.segmentation.mask_solvers import SegmentationTask

LOCAL_RIDGE = 0.1
"""Losses without inference take a tenth of the ridge, as published."""

SIDE = 149
"""Longest side, pixels: the 200 pictures then have 3.41 million pixels, the published 3.42."""

TOLERANCE = 1e-5
"""Relative decrease in a step at which a fit has converged."""

ITERATIONS = (10, 20, 40)

PUBLISHED = {  # loss, sharpness, inference: test errors with 10, 20, 40 iterations
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
PUBLISHED_LOCAL = {"independent": 0.125, "piecewise": 0.236, "pseudolikelihood": 0.249}


@dataclass(frozen=True, slots=True)
class Fit:
    """One row: what is fitted, from where, and the published test error."""

    name: str
    options: PaperOptions
    start: str | None  # name of the fit whose parameters start this one
    published: float
    rehearses: bool = True

    @property
    def is_local(self) -> bool:
        """Whether the loss needs no inference."""
        return self.options.loss in PUBLISHED_LOCAL


def all_fits() -> Iterator[Fit]:
    """Every fit of the table, each after the one that it starts from."""
    for loss, error in PUBLISHED_LOCAL.items():
        start = None if loss == "independent" else "independent"
        yield Fit(loss, PaperOptions(loss), start, error)
    for (loss, sharpness, inference), errors in PUBLISHED.items():
        for iterations, error in zip(ITERATIONS, errors, strict=True):
            options = PaperOptions(
                loss, iterations, sharpness=max(sharpness, 1.0), inference=inference
            )
            tail = f"{inference} {iterations}"
            name = f"{loss} {sharpness}" if sharpness else loss
            start = f"surrogate-likelihood {tail}" if sharpness else "independent"
            rehearses = loss != "surrogate-likelihood"
            if rehearses and iterations == 40:
                start, rehearses = f"{name} {inference} 20", False
            yield Fit(f"{name} {tail}", options, start, error, rehearses)


def fit_table_2(
    task: SegmentationTask,
    test: list[GridExample],
    seconds: float,
    tolerance: float,
    folder: Path,
    kept: KeptResults,
) -> list[dict[str, Any]]:
    """Fit every row within ``seconds`` unless it is kept; write table2.csv as rows come."""
    thetas: dict[str, np.ndarray] = {}
    rows: list[dict[str, Any]] = []
    for fit in all_fits():
        start = None if fit.start is None else thetas[fit.start]
        found = kept.remember(fit.name, partial(_fit, task, test, fit, start, seconds, tolerance))
        thetas[fit.name] = found["theta"]
        options = fit.options
        rows.append(
            {
                "loss": options.loss,
                "alpha": f"{options.sharpness:g}" if "smoothed" in options.loss else "",
                "inference": "" if fit.is_local else options.inference,
                "iterations": "" if fit.is_local else options.iterations,
                "test_error": round(float(found["error"]), 4),
                "published": fit.published,
                "ended": str(found["status"]),
                "evaluations": int(found["evaluations"]),
                "seconds": round(float(found["seconds"]), 1),
            }
        )
        write_csv(folder / "table2.csv", rows)
        print(f"{fit.name}: {rows[-1]['test_error']}, {rows[-1]['ended']}", flush=True)
    print_table("Table II", list(rows[0]), [list(row.values()) for row in rows])
    return rows


def _fit(
    task: SegmentationTask,
    test: list[GridExample],
    fit: Fit,
    start: np.ndarray | None,
    seconds: float,
    tolerance: float,
) -> Arrays:
    outcome = fit_marginals_on_growing_sets(
        task.examples,
        replace(fit.options, rho=task.rho),
        ridge=LOCAL_RIDGE * task.ridge if fit.is_local else task.ridge,
        rng=np.random.default_rng(0),  # every fit rehearses on the same subsets
        start=start,
        rehearses=fit.rehearses,
        tolerance=tolerance,
        max_seconds=seconds,
        loss=loss_and_gradient,
    )
    return {
        "theta": outcome.theta,
        "error": mean_error(outcome.theta, test, task.rho),
        "status": outcome.status.value,
        "evaluations": outcome.evaluations,
        "seconds": outcome.seconds,
    }


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = horses_parser(__doc__.splitlines()[0])
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="of each fit")
    return complete(parser.parse_args(words), "table2", quick=2.0, whole=1800.0, side=SIDE)


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Load the pictures and fit the whole table."""
    kept = KeptResults(args.out, {k: v for k, v in vars(args).items() if k != "out"})
    print_machine()
    task, test = load_horses(args.data, args.train, args.test, args.side)
    return fit_table_2(task, test, args.seconds, args.tolerance, args.out, kept)


if __name__ == "__main__":
    run(parse())
