"""Losses against each other on one data set: the way of Domke 2013, tables I and II."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from benchmarks.reporting import print_table
from benchmarks.segmentation_runs import mean_error
from engine.crf.grid_features import GridExample
from engine.learning.marginal_fitting import fit_marginals
from engine.learning.segmentation_solvers import SegmentationTask
from engine.objectives.grid_losses import LossOptions

LOCAL_RIDGE = 0.1
"""Losses without inference take a tenth of the ridge, as published."""

Published = Mapping[tuple[str, int, str], tuple[float, ...]]


def fit_table_2(
    task: SegmentationTask,
    test: list[GridExample],
    seconds: float,
    published: Published,
    local: Mapping[str, float],
) -> dict[str, list[float]]:
    """Fit every row with 10, 20 and 40 iterations, each within ``seconds``; print and return."""
    lines: list[list[str]] = []
    ours: dict[str, list[float]] = {}
    starts: dict[str, np.ndarray] = {}
    for loss, known in sorted(local.items()):  # "independent" comes first: it starts the others
        theta = _fit(task, LossOptions(loss), LOCAL_RIDGE * task.ridge, seconds, None)
        starts[loss] = theta
        error = mean_error(theta, test, task.rho)
        ours[loss] = [error]
        lines.append([loss, "", "", f"{error:.3f}", f"{known:.3f}"])
    for (loss, sharpness, mode), known_errors in published.items():
        name = f"{loss} {sharpness or ''} {mode}".replace("  ", " ")
        for iterations, known in zip((10, 20, 40), known_errors, strict=True):
            key = f"likelihood {mode} {iterations}"
            start = starts.get(key) if sharpness else starts["independent"]
            options = LossOptions(loss, mode, iterations, sharpness=max(sharpness, 1.0))
            theta = _fit(task, options, task.ridge, seconds, start)
            if loss == "surrogate-likelihood":
                starts[key] = theta
            error = mean_error(theta, test, task.rho)
            ours.setdefault(name, []).append(error)
            lines.append(
                [loss, str(sharpness or ""), f"{mode} {iterations}", f"{error:.3f}", f"{known:.3f}"]
            )
    print_table(
        "losses, inference and iterations",
        ["loss", "alpha", "inference", "test error", "published"],
        lines,
    )
    return ours


def _fit(
    task: SegmentationTask,
    options: LossOptions,
    ridge: float,
    seconds: float,
    start: np.ndarray | None,
) -> np.ndarray:
    fit = fit_marginals(
        task.examples,
        replace(options, rho=task.rho),
        ridge=ridge,
        start=start,
        max_seconds=seconds,
    )
    return fit.theta
