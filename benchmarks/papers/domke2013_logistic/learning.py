"""Domke 2013, structured learning via logistic regression: Table 1, Figures 1 to 3, all 25 cells.

    python -m benchmarks domke2013_logistic learning [--data denoising|horses] [--iterations 20]
        [--side 50]
                                           [--pictures 8] [--cells UNARY/PAIR ...] [--out DIR]
                                           [--quick]

Unary and pair energies each from one of five function classes (zero, constant, linear, boosted
trees, perceptron), fitted as logistic regressions biased by the messages of the loss-augmented,
smoothed linear programme (entropy 0.1, 25 sweeps after each fit). Test errors of single pixels
beside the published, learning curves, functions of the one feature (denoising) and predictions.
Denoising is the paper's synthetic set at --side pixels (100 there) and --pictures pictures (16);
horses have this library's features. Every cell is kept in --out (./results/logistic-DATA): started
again, the command goes on where it stopped; --cells makes some cells only, the others stay dashes.

Every step lowers one bound of the structured hinge loss, which is jointly convex in messages and
energies where these are linear in parameters: there the alternation tends to its minimum. For trees
and perceptrons descent is all that is proved.
"""

import argparse
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

from benchmarks.common import reporting
from benchmarks.common.kept_results import Arrays, KeptResults
from benchmarks.common.reporting import new_figure, print_machine, print_table, save_figure
from benchmarks.papers.domke2013_logistic.oracles import CLASSES, Energy
from engine.core.arguments import FloatArray, IntArray
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.pairwise.map_linear_programme import SmoothedDual
from engine.kernels.threads import one_blas_thread

ENTROPY = 0.1
SWEEPS = 25
NAMES = tuple(CLASSES)

Cell = tuple[str, str]
"""The function classes of unary and of pair energies."""

PUBLISHED = {  # rows unary, columns pair: zero, constant, linear, boosting, MLP
    "denoising": (
        (0.502, 0.502, 0.502, 0.511, 0.502),
        (0.502, 0.502, 0.502, 0.510, 0.502),
        (0.444, 0.077, 0.059, 0.049, 0.034),
        (0.444, 0.034, 0.015, 0.009, 0.007),
        (0.445, 0.032, 0.015, 0.009, 0.008),
    ),
    "horses": (
        (0.246, 0.246, 0.247, 0.244, 0.245),
        (0.246, 0.246, 0.247, 0.244, 0.245),
        (0.185, 0.185, 0.168, 0.154, 0.156),
        (0.103, 0.098, 0.092, 0.084, 0.086),
        (0.096, 0.094, 0.087, 0.080, 0.081),
    ),
}


@dataclass(slots=True)
class Picture:
    """A grid with features of nodes (n, d) and edges (m, e), labels (n,), and its messages."""

    shape: tuple[int, int]
    graph: PairwiseGraph
    nodes: FloatArray
    pairs: FloatArray
    labels: IntArray
    messages: FloatArray

    @property
    def pair_labels(self) -> IntArray:
        """2 y_i + y_j of every edge."""
        first, second = self.labels[self.graph.edges].T
        return np.asarray(2 * first + second)

    def sweep(self, nodes: FloatArray, pairs: FloatArray, sweeps: int) -> SmoothedDual:
        """Pass messages at these scores, from the last ones."""
        scores = np.concatenate([nodes.ravel(), pairs.ravel()])
        dual = SmoothedDual(PairwiseModel(self.graph, scores), 1.0 / ENTROPY)
        dual.messages[:] = self.messages
        dual.set_beta(1.0 / ENTROPY)
        dual.run(sweeps * self.graph.n_nodes)
        self.messages = dual.messages.copy()
        return dual

    def margins(self) -> FloatArray:
        """Hamming loss as scores of nodes, (n, 2)."""
        loss = np.ones((len(self.labels), 2))
        loss[np.arange(len(self.labels)), self.labels] = 0.0
        return loss

    def biases(self) -> tuple[FloatArray, FloatArray]:
        """b of nodes (n, 2) and of pairs (m, 4) at the present messages."""
        incoming = self.messages.reshape(-1, 2, 2)  # edge, end, label
        nodes = self.margins()
        for end in range(2):
            np.add.at(nodes, self.graph.edges[:, end], incoming[:, end])
        pairs = -incoming[:, 0, :, None] - incoming[:, 1, None, :]
        return nodes / ENTROPY, pairs.reshape(-1, 4) / ENTROPY


def make_picture(
    side: tuple[int, int], nodes: FloatArray, pairs: FloatArray, labels: IntArray
) -> Picture:
    """A picture without messages."""
    graph = Grid(*side).to_pairwise()
    return Picture(side, graph, nodes, pairs, labels, np.zeros(graph.n_messages))


def denoising(side: int, rng: np.random.Generator) -> Picture:
    """One picture of the paper's synthetic set, the blur in proportion to the side."""
    smooth = gaussian_filter(rng.random((side, side)), 0.1 * side)
    labels = (smooth > np.median(smooth)).astype(np.int64).ravel()
    graph = Grid(side, side).to_pairwise()
    own = rng.uniform(0.0, 0.9, len(labels)) + 0.1 * labels
    same = labels[graph.edges[:, 0]] == labels[graph.edges[:, 1]]
    tie = rng.uniform(0.0, 0.8, len(same)) + 0.2 * ~same
    return make_picture((side, side), own[:, None], tie[:, None], labels)


def horses(count: int, side: int) -> tuple[list[Picture], list[Picture]]:
    """Training and test pictures of at most ``side`` pixels a side."""
    from benchmarks.papers.domke2013.segmentation_runs import HORSES, load_examples

    made = []
    for part in ("train", "test"):
        pictures = []
        for example in load_examples(HORSES / part, count, side):
            features, edges = example.features, example.features.edges
            pairs = np.concatenate(
                [
                    edges.horizontal_basis[edges.horizontal.ravel()],
                    edges.vertical_basis[edges.vertical.ravel()],
                ]
            )
            nodes = features.nodes.rows(np.arange(example.labels.size))
            labels = example.labels.ravel().astype(np.int64)
            pictures.append(make_picture(features.shape, nodes, pairs, labels))
        made.append(pictures)
    return made[0], made[1]


def predict_odds(picture: Picture, unary: Energy, pair: Energy) -> FloatArray:
    """Log-odds of label 1 after 25 sweeps without the margin, (n,)."""
    clean = replace(picture, messages=np.zeros_like(picture.messages))
    beliefs = ENTROPY * unary.scores(picture.nodes)
    clean.sweep(beliefs, ENTROPY * pair.scores(picture.pairs), SWEEPS)
    for end in range(2):
        incoming = clean.messages.reshape(-1, 2, 2)[:, end]
        np.add.at(beliefs, picture.graph.edges[:, end], incoming)
    return np.asarray((beliefs[:, 1] - beliefs[:, 0]) / ENTROPY)


def predict_error(pictures: list[Picture], unary: Energy, pair: Energy) -> float:
    """Share of wrong pixels by the likelier label."""
    wrong = [(predict_odds(p, unary, pair) > 0.0) != p.labels for p in pictures]
    return float(np.concatenate(wrong).mean())


@dataclass(frozen=True, slots=True)
class Learned:
    """What one cell has learned.

    Parameters
    ----------
    objective : ndarray, (2 iterations,), after every pass of messages.
    train, test : ndarray, (iterations,), errors.
    odds : ndarray, (n,), log-odds of the first test picture.
    unary, pair : ndarray, (101, 2) and (101, 4), energies of the one feature between 0 and 1; empty
        where there are more.
    """

    objective: FloatArray
    train: FloatArray
    test: FloatArray
    odds: FloatArray
    unary: FloatArray
    pair: FloatArray


def learn(
    train: list[Picture], test: list[Picture], names: tuple[str, str], iterations: int
) -> Learned:
    """Alternate fits and messages for one cell."""
    rng = np.random.default_rng(0)
    energies = CLASSES[names[0]](2, rng), CLASSES[names[1]](4, rng)
    for picture in train:
        picture.messages = np.zeros(picture.graph.n_messages)
    labels = [np.concatenate([p.labels for p in train])]
    labels.append(np.concatenate([p.pair_labels for p in train]))
    features = [np.concatenate([p.nodes for p in train])]
    features.append(np.concatenate([p.pairs for p in train]))
    objective, errors = [], []
    for _ in range(iterations):
        for which in (0, 1):
            bias = np.concatenate([p.biases()[which] for p in train])
            energies[which].fit(features[which], labels[which], bias)
            objective.append(sum(pass_messages(p, *energies) for p in train))
        errors.append([predict_error(pictures, *energies) for pictures in (train, test)])
    line = np.linspace(0.0, 1.0, 101)[:, None]
    curves = [
        energy.scores(line) if rows.shape[1] == 1 else np.zeros((0, 0))
        for energy, rows in zip(energies, features, strict=True)
    ]
    odds = predict_odds(test[0], *energies)
    return Learned(np.array(objective), *np.array(errors).T, odds, *curves)


def pass_messages(picture: Picture, unary: Energy, pair: Energy) -> float:
    """Pass messages with the margin; return the bound of the picture's hinge loss."""
    own, ties = ENTROPY * unary.scores(picture.nodes), ENTROPY * pair.scores(picture.pairs)
    value = picture.sweep(own + picture.margins(), ties, SWEEPS).smoothed_value()
    value -= float(own[np.arange(len(own)), picture.labels].sum())
    return value - float(ties[np.arange(len(ties)), picture.pair_labels].sum())


def run(
    data: str,
    train: list[Picture],
    test: list[Picture],
    iterations: int,
    names: tuple[str, ...],
    kept: KeptResults,
    chosen: Collection[Cell] | None = None,
) -> dict[Cell, Learned]:
    """Learn every cell, or those chosen, print Table 1 and draw the figures that these make."""

    def make(cell: Cell) -> Arrays:
        return asdict(learn(train, test, cell, iterations))

    every = [(u, p) for u in names for p in names]
    cells: dict[Cell, Learned] = {}
    with one_blas_thread():  # small products on several threads take a hundred times as long
        for cell in every if chosen is None else [cell for cell in every if cell in chosen]:
            cells[cell] = Learned(**kept.remember(" ".join(cell), partial(make, cell)))
            print(f"{cell}: {cells[cell].test[-1]:.3f}", flush=True)
    rows = []
    for u in names:
        rows.append([u, *(_shown(cells.get((u, p)), data, u, p) for p in names)])
    print_table(f"Table 1, {data}: test error (published)", ["unary, pair", *names], rows)
    _draw_curves(cells, names, data)
    if len(cells) < len(every):
        return cells
    if train[0].nodes.shape[1] == 1:
        _draw_functions(cells, names)
    _draw_predictions(cells, test[0], names, data)
    return cells


def _shown(learned: Learned | None, data: str, unary: str, pair: str) -> str:
    """Our error, a dash where there is none, and the published one."""
    published = PUBLISHED[data][NAMES.index(unary)][NAMES.index(pair)]
    return f"{'-' if learned is None else f'{learned.test[-1]:.3f}'} ({published:.3f})"


def _draw_curves(cells: dict[Cell, Learned], names: tuple[str, ...], data: str) -> None:
    """Figure 2: training (dashed) and test error by iteration."""
    figure, axes = new_figure(len(names), len(names), figsize=(12, 10), squeeze=False)
    for (u, p), learned in cells.items():
        place = axes[names.index(u), names.index(p)]
        place.plot(learned.train, "--")
        place.plot(learned.test)
        place.set_title(f"{u}, {p}", fontsize=7)
    figure.tight_layout()
    save_figure(figure, f"domke_logistic_figure_2_{data}")


def _draw_functions(cells: dict[Cell, Learned], names: tuple[str, ...]) -> None:
    """Figure 1: both energies by their one feature, learned with one class each."""
    figure, axes = new_figure(2, len(names), figsize=(12, 6), squeeze=False)
    line = np.linspace(0.0, 1.0, 101)
    for column, name in enumerate(names):
        axes[0, column].plot(line, cells[name, name].unary, label=["y = 0", "y = 1"])
        pair_labels = ["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"]
        axes[1, column].plot(line, cells[name, name].pair, label=pair_labels)
        axes[0, column].set_title(name, fontsize=7)
    for row in axes:
        row[0].legend(fontsize=7)
    save_figure(figure, "domke_logistic_figure_1")


def _draw_predictions(
    cells: dict[Cell, Learned], picture: Picture, names: tuple[str, ...], data: str
) -> None:
    """Figure 3: the first test picture, and what every class says of it."""
    figure, axes = new_figure(1, len(names) + 1, figsize=(12, 3), squeeze=False)
    shown = {"true": picture.labels.astype(np.float64)}
    shown |= {name: 1.0 / (1.0 + np.exp(-cells[name, name].odds)) for name in names}
    for place, (name, values) in zip(axes[0], shown.items(), strict=True):
        place.imshow(values.reshape(picture.shape), cmap="gray", vmin=0.0, vmax=1.0)
        place.set_title(name, fontsize=7)
        place.axis("off")
    save_figure(figure, f"domke_logistic_figure_3_{data}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=tuple(PUBLISHED), default="denoising")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--side", type=int, default=50)
    parser.add_argument("--pictures", type=int, default=8)
    every = [f"{unary}/{pair}" for unary in NAMES for pair in NAMES]
    parser.add_argument("--cells", nargs="+", choices=every, metavar="UNARY/PAIR", default=every)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    print_machine()
    rng = np.random.default_rng(0)
    if args.quick:
        args.side, args.pictures, args.iterations = 10, 2, 2
    if args.data == "horses":
        train, test = horses(args.pictures, args.side)
    else:
        pictures = [denoising(args.side, rng) for _ in range(2 * args.pictures)]
        train, test = pictures[: args.pictures], pictures[args.pictures :]
    tail = "-quick" if args.quick else ""
    out = args.out or reporting.RESULTS / f"logistic-{args.data}{tail}"
    kept = KeptResults(out, {k: v for k, v in vars(args).items() if k not in ("out", "cells")})
    chosen = [(unary, pair) for unary, pair in (cell.split("/") for cell in args.cells)]
    run(args.data, train, test, args.iterations, NAMES, kept, chosen)


if __name__ == "__main__":
    main()
