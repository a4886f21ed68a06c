"""Domke 2013, sections 5 to 8: seconds and error of each way to a gradient, beside one another.

    python -m benchmarks domke2013 gradients [--parts sections figure-3 figure-7]
        [--sides 10 20 40] [--quick]

Figure 3 (`perturbation_steps`) is the error of perturbed gradients by the step's multiplier, Figure
7 (`fitting_thresholds`) is learning by truncation, perturbation and back-propagation, --seconds for
each of 12 fits on --pictures scenes of at most --side pixels; --quick takes generated ones.

"sections": the univariate logistic loss of a random binary grid, rho = 1/2. "Error" is the largest
difference from the implicit gradient at marginals converged to 1e-12, over its largest entry.
Truncated fitting and back-propagation run on the compiled kernels of grids, the others on those of
general graphs. Grids of five labels have compiled kernels for all of them, for tree-reweighted
messages (in single precision where a number of sweeps is truncated) and for mean field.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.common.reporting import REAL_DATA, print_machine, print_table
from benchmarks.papers.domke2013 import fitting_thresholds, perturbation_steps
from benchmarks.papers.domke2013.backgrounds import generated, make_scene
from benchmarks.papers.domke2013.converged_gradients import GRADIENTS, gradient_by
from benchmarks.papers.domke2013.perturbation import perturbed_gradient
from benchmarks.papers.domke2013.picture_losses import INFERENCES, PaperOptions
from benchmarks.peers.classes import read_pairs
from engine.core.arguments import FloatArray
from engine.crf.class_features import ClassExample, ClassFeatures, centred
from engine.crf.grid_features import DenseNodeFeatures, EdgeFeatures, GridExample, GridFeatures
from engine.crf.image_features import code_edges
from engine.datasets.label_maps import read_label_code
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseModel
from engine.inference.pairwise.marginal_gradients import ImplicitGradient
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from engine.objectives.grid_losses import loss_and_gradient
from engine.objectives.marginal_losses import LossOptions, marginal_loss
from engine.structures.grid import GridStructure

LOSS = "univariate-logistic"
CLASS_LOSS = "clique-logistic"
PARTS = ("sections", "figure-3", "figure-7")


@dataclass(frozen=True, slots=True)
class Timing:
    """Processor seconds and relative error of one gradient."""

    seconds: float
    error: float


def random_picture(side: int, rng: np.random.Generator) -> GridExample:
    """Three node features and two edge features, four edge codes a direction."""
    shapes = ((side, side - 1), (side - 1, side))
    codes = [rng.integers(0, 4, shape).astype(np.uint8) for shape in shapes]
    edges = EdgeFeatures(codes[0], codes[1], rng.normal(size=(4, 2)), rng.normal(size=(4, 2)))
    nodes = DenseNodeFeatures(rng.normal(size=(side, side, 3)))
    return GridExample(GridFeatures(nodes, edges), rng.random((side, side)) > 0.5)


def compare(side: int, rng: np.random.Generator) -> dict[str, Timing]:
    """Time every gradient on one picture, the first call of each aside."""
    example = random_picture(side, rng)
    theta = 0.4 * rng.normal(size=example.features.n_parameters)
    structure, graph = GridStructure([example], 0.5), Grid(side, side).to_pairwise()
    columns = np.stack([structure.scores(way) for way in np.eye(len(theta))], axis=1)
    scores, labels = columns @ theta, example.labels.ravel().astype(np.int64)
    solver, implicit = TreeReweighted(graph, 0.5), ImplicitGradient(graph, 0.5)

    def solve(at: FloatArray, tolerance: float = 1e-9) -> FloatArray:
        model = PairwiseModel(graph, at)
        return solver.solve(model, max_iterations=5000, tolerance=tolerance, warm=True).tables

    def by_slope(how: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
        tables = solve(scores)
        return np.asarray(how(tables, marginal_loss(graph, tables, labels, LOSS)[1]) @ columns)

    ways: dict[str, Callable[[], FloatArray]] = {"implicit": lambda: by_slope(implicit)}
    for sides in (1, 2, 4):
        ways[f"perturbation, sides: {sides}"] = lambda sides=sides: by_slope(
            lambda _, slope: perturbed_gradient(solve, scores, slope, sides)
        )
    options = {f"truncated, {n} iterations": LossOptions(LOSS, iterations=n) for n in (5, 10, 40)}
    options["back-propagation to 1e-5"] = LossOptions(LOSS, threshold=1e-5)
    for name, option in options.items():
        ways[name] = lambda option=option: loss_and_gradient(example, theta, option)[1]
    tables = solve(scores, 1e-12)
    exact = implicit(tables, marginal_loss(graph, tables, labels, LOSS)[1]) @ columns
    timings = {}
    for name, way in ways.items():
        way()
        solver.solve(PairwiseModel(graph, np.zeros(graph.size)))  # cold messages again
        started = process_time()
        gradient = way()
        seconds = process_time() - started
        timings[name] = Timing(seconds, float(np.abs(gradient - exact).max() / np.abs(exact).max()))
    return timings


def compare_classes(
    side: int, n_classes: int, inference: str, rng: np.random.Generator
) -> dict[str, Timing]:
    """Time every gradient of the clique logistic loss on one picture of several labels."""
    trees = rng.normal(size=(side, side, n_classes)).astype(np.float32)
    maps = rng.normal(size=(side, side, 3)).astype(np.float32)
    features = ClassFeatures(centred(trees), maps, code_edges(rng.random((side, side, 3))))
    labels = rng.integers(0, n_classes, (side, side)).astype(np.uint8)
    example = ClassExample(features, labels)
    theta = features.layout.plain() + 0.2 * rng.normal(size=features.layout.size)
    plain = PaperOptions(CLASS_LOSS, inference=inference)
    exact = gradient_by("implicit", example, theta, plain)[1]
    ways = {name: (name, plain) for name in GRADIENTS[1:]}
    for count in (5, 10, 40):
        ways[f"truncated, {count} iterations"] = ("truncated", replace(plain, iterations=count))
    timings = {}
    for name, (kind, options) in ways.items():
        gradient_by(kind, example, theta, options)
        started = process_time()
        gradient = gradient_by(kind, example, theta, options)[1]
        seconds = process_time() - started
        timings[name] = Timing(seconds, float(np.abs(gradient - exact).max() / np.abs(exact).max()))
    return timings


def run(sides: list[int], rng: np.random.Generator) -> dict[int, dict[str, Timing]]:
    """Compare on every size and print a table of each."""
    answers = {}
    for side in sides:
        answers[side] = compare(side, rng)
        _print(f"{side} x {side} pixels", answers[side])
        for inference in INFERENCES:
            timings = compare_classes(side, 5, inference, rng)
            _print(f"{side} x {side} pixels, five labels, {inference}", timings)
    return answers


def _print(title: str, timings: dict[str, Timing]) -> None:
    rows = [[name, t.seconds, t.error] for name, t in timings.items()]
    print_table(title, ["gradient", "processor seconds", "error"], rows)


def read_scenes(folder: Path, count: int, side: int) -> list[ClassExample]:
    """Scenes to learn from, the model a fifth of ``side`` at most."""
    code = read_label_code(folder / "classes.csv", ())
    pairs = read_pairs(folder / "train", code, count, seed=0)
    return [make_scene(pair, len(code.names), side).example for pair in pairs]


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sides", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--models", type=int, default=10, help="grids a panel of figure 3")
    parser.add_argument("--pictures", type=int, default=8, help="scenes of figure 7")
    parser.add_argument("--side", type=int, default=100, help="longest side of scenes")
    parser.add_argument("--seconds", type=float, default=15.0, help="processor time of each fit")
    parser.add_argument("--data", type=Path, default=REAL_DATA / "scenes")
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    """Run the parts that are asked for."""
    args = parse(words)
    print_machine()
    rng = np.random.default_rng(0)
    if "sections" in args.parts:
        run([6] if args.quick else args.sides, rng)
    if "figure-3" in args.parts:
        side, models = (4, 2) if args.quick else (10, args.models)
        perturbation_steps.run(side, models, rng)
    if "figure-7" not in args.parts:
        return
    if args.quick:
        scenes = [make_scene(pair, 3, 50).example for pair in generated(2, rng)]
        fitting_thresholds.run(scenes, 0.3, (5, 20), (1e-1, 1e-3))
    else:
        scenes = read_scenes(args.data, args.pictures, args.side)
        fitting_thresholds.run(scenes, args.seconds)


if __name__ == "__main__":
    main()
