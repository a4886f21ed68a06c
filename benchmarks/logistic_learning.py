"""Domke 2013, structured learning via logistic regression: Table 1, Figure 2, all 25 cells.

    python -m benchmarks.logistic_learning [--data denoising|horses] [--iterations 60] [--side 40]

Unary and pair energies each from one of five function classes (zero, constant, linear, boosted
trees, perceptron), fitted as logistic regressions biased by the messages of the loss-augmented,
smoothed linear programme (entropy 0.1, 25 sweeps after each fit). Test errors of single pixels
beside the published, and learning curves. Denoising is the paper's synthetic set at --side pixels
(100 there) and --pictures pictures (16); horses have this library's features.

Every step lowers one bound of the structured hinge loss, which is jointly convex in messages and
energies where these are linear in parameters: there the alternation tends to its minimum. For trees
and perceptrons descent is all that is proved.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter

from benchmarks.logistic_oracles import CLASSES, Energy
from benchmarks.reporting import new_figure, print_machine, print_table, save_figure
from engine.core.arguments import FloatArray, IntArray
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.pairwise.map_linear_programme import SmoothedDual
from engine.kernels.threads import one_blas_thread

ENTROPY = 0.1
SWEEPS = 25
NAMES = tuple(CLASSES)

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
        dual.run(sweeps * self.graph.n_nodes, "cyclic")
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
    return Picture(graph, nodes, pairs, labels, np.zeros(graph.n_messages))


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
    from benchmarks.segmentation_runs import HORSES, load_examples

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


def predict_error(pictures: list[Picture], unary: Energy, pair: Energy) -> float:
    """Share of wrong pixels by the likelier label after 25 sweeps without the margin."""
    wrong, total = 0, 0
    for picture in pictures:
        clean = Picture(
            picture.graph, picture.nodes, picture.pairs, picture.labels, 0.0 * picture.messages
        )
        nodes = ENTROPY * unary.scores(picture.nodes)
        clean.sweep(nodes, ENTROPY * pair.scores(picture.pairs), SWEEPS)
        beliefs = nodes.copy()
        for end in range(2):
            incoming = clean.messages.reshape(-1, 2, 2)[:, end]
            np.add.at(beliefs, picture.graph.edges[:, end], incoming)
        wrong += int((beliefs.argmax(axis=1) != picture.labels).sum())
        total += len(picture.labels)
    return wrong / total


@dataclass(frozen=True, slots=True)
class Learned:
    """Objective after every pass of messages; training and test errors after every iteration."""

    objective: list[float]
    train: list[float]
    test: list[float]


def learn(
    train: list[Picture], test: list[Picture], names: tuple[str, str], iterations: int
) -> Learned:
    """Alternate fits and messages for one cell."""
    rng = np.random.default_rng(0)
    unary, pair = CLASSES[names[0]](2, rng), CLASSES[names[1]](4, rng)
    for picture in train:
        picture.messages = np.zeros(picture.graph.n_messages)
    labels = np.concatenate([p.labels for p in train])
    pair_labels = np.concatenate([p.pair_labels for p in train])
    nodes, pairs = (
        np.concatenate([p.nodes for p in train]),
        np.concatenate([p.pairs for p in train]),
    )
    outcome = Learned([], [], [])
    for _ in range(iterations):
        for which in (0, 1):
            bias = np.concatenate([p.biases()[which] for p in train])
            if which == 0:
                unary.fit(nodes, labels, bias)
            else:
                pair.fit(pairs, pair_labels, bias)
            value = 0.0
            for p in train:
                own, ties = ENTROPY * unary.scores(p.nodes), ENTROPY * pair.scores(p.pairs)
                dual = p.sweep(own + p.margins(), ties, SWEEPS)
                value += dual.smoothed_value() - own[np.arange(len(own)), p.labels].sum()
                value -= float(ties[np.arange(len(ties)), p.pair_labels].sum())
            outcome.objective.append(value)
        outcome.train.append(predict_error(train, unary, pair))
        outcome.test.append(predict_error(test, unary, pair))
    return outcome


def run(
    data: str, train: list[Picture], test: list[Picture], iterations: int, names: tuple[str, ...]
) -> dict[tuple[str, str], Learned]:
    """Learn every cell, print Table 1 and draw Figure 2."""
    with one_blas_thread():  # small products on several threads take a hundred times as long
        cells = {(u, p): learn(train, test, (u, p), iterations) for u in names for p in names}
    rows = []
    for u in names:
        published = PUBLISHED[data][NAMES.index(u)]
        shown = [f"{cells[u, p].test[-1]:.3f} ({published[NAMES.index(p)]:.3f})" for p in names]
        rows.append([u, *shown])
    print_table(f"Table 1, {data}: test error (published)", ["unary, pair", *names], rows)
    figure, axes = new_figure(len(names), len(names), figsize=(12, 10), squeeze=False)
    for (u, p), learned in cells.items():
        place = axes[names.index(u), names.index(p)]
        place.plot(learned.train, "--")
        place.plot(learned.test)
        place.set_title(f"{u}, {p}", fontsize=7)
    save_figure(figure, f"domke_logistic_figure_2_{data}")
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=tuple(PUBLISHED), default="denoising")
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--side", type=int, default=40)
    parser.add_argument("--pictures", type=int, default=6)
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
    run(args.data, train, test, args.iterations, NAMES)


if __name__ == "__main__":
    main()
