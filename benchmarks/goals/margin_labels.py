"""Max margin, averaged perceptron and likelihood on grids of several labels, with certificates.

    python -m benchmarks goals margin_labels [--side 12] [--labels 4] [--train 10] [--quick]

As in Tang's comparison and the lecture's (Potts models, a cut as oracle): noisy pictures of random
regions, features of the noisy label and of agreeing neighbours. Decoded by expansion moves; what
these may lack is bounded by the linear programme and part of every certificate.
"""

import argparse
from dataclasses import dataclass
from time import process_time

import numpy as np

from benchmarks.common.reporting import print_machine, print_table
from engine.baselines.decoding import decode
from engine.baselines.structured_perceptron import train_structured_perceptron
from engine.baselines.structured_svm import train_structured_svm
from engine.core.arguments import FloatArray
from engine.estimators import StructuredModel
from engine.graphs.grid import Grid
from engine.graphs.pairwise import PairwiseGraph
from engine.structures.pairwise import PairwiseStructure

NOISE = 0.55  # share of pixels that show another label than their own


@dataclass(frozen=True, slots=True)
class Fit:
    """Errors (share of wrong pixels), seconds, and the relative gap of the method's own problem."""

    train: float
    test: float
    seconds: float
    gap: float | None


def picture(graph: PairwiseGraph, side: int, n: int, rng: np.random.Generator) -> PairwiseStructure:
    """Pixels take the label of the nearest of a few centres; a share shows another label."""
    places = np.argwhere(np.ones((side, side)))
    centres = rng.random((5, 2)) * side
    owner = ((places[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    labels = rng.integers(0, n, len(centres))[owner]
    shown = np.where(rng.random(len(labels)) < NOISE, rng.integers(0, n, len(labels)), labels)
    features = np.zeros((graph.size, n + 1))
    nodes = features[: n * len(labels)].reshape(len(labels), n, n + 1)
    nodes[np.arange(len(labels)), shown, n - 1] = 1.0  # the label shown is the label
    nodes[:, range(1, n), range(n - 1)] = 1.0  # how common each label is
    features[n * len(labels) :, n] = np.tile(np.eye(n).ravel(), graph.n_edges)
    return PairwiseStructure(graph, features, labels)


def judge(structures: list[PairwiseStructure], theta: FloatArray) -> float:
    """Mean share of wrong pixels."""
    return float(np.mean([decode(s, theta).loss for s in structures]))


def run(side: int, n: int, train: int, test: int, rng: np.random.Generator) -> dict[str, Fit]:
    """Fit all methods and print the table."""
    grid = Grid(side, side, n)
    graph = grid.to_pairwise()
    pictures = [picture(graph, side, n, rng) for _ in range(train + test)]
    known, held_out = pictures[:train], pictures[train:]
    fits: dict[str, Fit] = {}

    def add(name: str, started: float, theta: FloatArray, gap: float | None) -> None:
        seconds = process_time() - started
        fits[name] = Fit(judge(known, theta), judge(held_out, theta), seconds, gap)

    started = process_time()
    no_edges = np.zeros(n + 1)
    no_edges[n - 1] = 1.0
    add("the label shown", started, no_edges, None)
    started = process_time()
    perceptron = train_structured_perceptron(known, rng=rng, max_passes=20)
    add("averaged perceptron", started, perceptron.theta, None)
    for ridge in (1.0, 0.01):
        started = process_time()
        machine = train_structured_svm(
            known, ridge=ridge, rng=rng, relative_gap=1e-3, max_seconds=30.0
        )
        gap = machine.gap_over_objective
        add(f"support vectors, ridge {ridge:g}", started, machine.theta, gap)
    started = process_time()
    model = StructuredModel(ridge=1.0, relative_gap=1e-2, max_iterations=60).fit(known)
    add("likelihood, rho 1/2", started, model.theta_, model.result_.relative_gap)
    header = ["method", "training error", "test error", "processor seconds", "certified gap"]
    rows = [[name, f.train, f.test, f.seconds, f.gap] for name, f in fits.items()]
    print_table(f"{n} labels, {side} x {side} pixels, {train} pictures", header, rows)
    return fits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=12)
    parser.add_argument("--labels", type=int, default=4)
    parser.add_argument("--train", type=int, default=10)
    parser.add_argument("--test", type=int, default=20)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    print_machine()
    rng = np.random.default_rng(0)
    if args.quick:
        run(5, 3, 2, 2, rng)
    else:
        run(args.side, args.labels, args.train, args.test, rng)


if __name__ == "__main__":
    main()
