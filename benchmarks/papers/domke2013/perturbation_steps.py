"""Domke 2013, Figure 3: error of the perturbed gradient by the multiplier of its step.

Random binary grids as published: scores of nodes from a standard normal, of pairs from a normal of
standard deviation s, labels at random. The loss is the univariate logistic one of tree-reweighted
(rho = 1/2) or mean-field marginals, whose scores move by no more than rounding at the end. "Error"
is the largest difference from the implicit gradient over its largest entry, the median over grids.
"""

from collections.abc import Callable
from itertools import product

import numpy as np

from benchmarks.common.reporting import new_figure, print_table, save_figure
from benchmarks.papers.domke2013.perturbation import PERTURBATIONS, perturbed_gradient
from engine.core.arguments import FloatArray
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.factors.mean_field import mean_field
from engine.inference.pairwise.marginal_gradients import (
    ImplicitGradient,
    implicit_mean_field_gradient,
    mean_field_tables,
)
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from engine.objectives.marginal_losses import marginal_loss

LOSS = "univariate-logistic"
STRENGTHS = (0.5, 1.0, 2.0)  # s; the published values stand in the pictures only
MULTIPLIERS = np.logspace(-4.0, 4.0, 17)
AT_REST = 1e-14  # nats; messages of a few nats are rounded to a few 1e-15
MOST_SWEEPS = 2000

Solver = Callable[[FloatArray], FloatArray]
Errors = dict[tuple[str, float], FloatArray]
"""By inference and s, (sides, multipliers)."""


def mean_field_solver(graph: PairwiseGraph) -> Solver:
    """Coordinate ascent from the uniform point to flat tables."""

    def solve(scores: FloatArray) -> FloatArray:
        factors = [Factor((v,), graph.node_table(scores, v)) for v in range(graph.n_nodes)]
        factors += [
            Factor((int(i), int(j)), graph.edge_table(scores, e))
            for e, (i, j) in enumerate(graph.edges)
        ]
        model = FactorGraph(graph.cardinalities, tuple(factors))
        found = mean_field(model, max_iterations=MOST_SWEEPS, tolerance=1e-15)
        return mean_field_tables(graph, np.concatenate(found.marginals))

    return solve


def reweighted_solver(graph: PairwiseGraph) -> Solver:
    """Messages until they rest, each solve from the last one's."""
    solver = TreeReweighted(graph, 0.5, bounded=False)

    def solve(scores: FloatArray) -> FloatArray:
        model = PairwiseModel(graph, scores)
        limits = {"max_iterations": MOST_SWEEPS, "tolerance": AT_REST}
        return solver.solve(model, **limits, warm=True).tables  # type: ignore[arg-type]

    return solve


def measure(
    inference: str, side: int, strength: float, multipliers: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return the errors on one grid, (sides, multipliers)."""
    graph = Grid(side, side).to_pairwise()
    scores = rng.normal(size=graph.size)
    scores[graph.node_start[-1] :] *= strength
    labels = rng.integers(0, 2, graph.n_nodes)
    solve = (reweighted_solver if inference == "TRW" else mean_field_solver)(graph)
    tables = solve(scores)
    slope = marginal_loss(graph, tables, labels, LOSS)[1]
    if inference == "TRW":
        exact = ImplicitGradient(graph, 0.5)(tables, slope)
    else:
        exact = implicit_mean_field_gradient(graph, scores, tables, slope)
    errors = np.zeros((len(PERTURBATIONS), len(multipliers)))
    for (a, sides), (b, m) in product(enumerate(PERTURBATIONS), enumerate(multipliers)):
        found = perturbed_gradient(solve, scores, slope, sides, multiplier=float(m))
        errors[a, b] = np.abs(found - exact).max() / np.abs(exact).max()
    return errors


def run(
    side: int,
    count: int,
    rng: np.random.Generator,
    strengths: tuple[float, ...] = STRENGTHS,
    multipliers: FloatArray = MULTIPLIERS,
) -> Errors:
    """Measure every panel, print the table and draw Figure 3."""
    errors: Errors = {}
    for inference, strength in product(("TRW", "mean field"), strengths):
        grids = [measure(inference, side, strength, multipliers, rng) for _ in range(count)]
        errors[inference, strength] = np.asarray(np.median(grids, axis=0))
    rows = [
        [inference, strength, sides, *map("{:.1e}".format, found[a])]
        for (inference, strength), found in errors.items()
        for a, sides in enumerate(PERTURBATIONS)
    ]
    header = ["inference", "s", "sides", *(f"m = {m:.3g}" for m in multipliers)]
    print_table("Figure 3, error by multiplier (published: as curves only)", header, rows)
    _draw(errors, strengths, multipliers)
    return errors


def _draw(errors: Errors, strengths: tuple[float, ...], multipliers: FloatArray) -> None:
    figure, axes = new_figure(
        2, len(strengths), figsize=(4 * len(strengths), 6), squeeze=False, sharex=True
    )
    for place, ((inference, strength), found) in zip(axes.ravel(), errors.items(), strict=True):
        for sides, line in zip(PERTURBATIONS, found, strict=True):
            place.loglog(multipliers, line, label=f"{sides}-sided")
        place.set_title(f"{inference}, s = {strength:g}", fontsize=9)
    axes[0, 0].legend(fontsize=7)
    for place in axes[-1]:
        place.set_xlabel("multiplier m")
    for row in axes:
        row[0].set_ylabel("relative error")
    figure.tight_layout()
    save_figure(figure, "domke_figure_3")
