"""Landmarks of the CMU house sequence: Figures 2, 3 and 4 of Tang et al. (2015).

    python -m benchmarks tang2015 house [--quick] [--solver theta|frank-wolfe] [--data FOLDER]
        [--seconds 20]

Hamming loss on the published test pairs, for approximate maximum likelihood and for max-margin
linear assignment with the same features; lambda of each chosen on the validation pairs. Likelihood
is fitted by the solve in theta or, as published, by block-coordinate Frank-Wolfe.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.reporting import (
    REAL_DATA,
    new_figure,
    print_machine,
    print_table,
    save_figure,
)
from benchmarks.papers.tang2015.house_frames import (
    GAPS,
    HouseFrame,
    read_house_frame,
    read_house_pairs,
    squared_difference_features,
)
from engine.baselines.decoding import decode
from engine.baselines.structured_svm import train_structured_svm
from engine.crf.bipartite import BipartiteItems
from engine.inference.matching.bipartite_bethe import compute_bethe_marginals
from engine.objectives.learning_dual import make_learning_dual
from engine.oracles.assignment import assign
from engine.solvers.block_orders import ShuffledOrder
from engine.solvers.control import Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.bipartite import BipartiteStructure

Array = NDArray[np.float64]
TRUTH = np.arange(30)  # landmark k is in row k of every frame
RHOS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
LIKELIHOOD_RIDGES = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
MARGIN_RIDGES = (10_000.0, 3_000.0, 1_000.0, 300.0, 100.0, 10.0, 1.0)

PUBLISHED_LIKELIHOOD = (0.0, 0.0040, 0.0022, 0.0049, 0.0, 0.017, 0.041, 0.051, 0.080, 0.12)
PUBLISHED_MARGIN = (None, 0.0, 0.0022, 0.0, 0.0, 0.022, 0.051, 0.067, 0.14, 0.11)
PUBLISHED_BY_RHO = (0.013, 0.013, 0.017, 0.017, 0.020, 0.017)


@dataclass(frozen=True)
class House:
    """Where the data lie, and how to learn from them."""

    folder: Path
    max_pairs: int | None = None
    solver: str = "theta"
    seconds: float = 20.0

    def frame(self, number: int) -> HouseFrame:
        return read_house_frame(self.folder, number)

    def items(self, gap: int, split: str) -> list[BipartiteItems]:
        pairs = read_house_pairs(self.folder, gap, split)[: self.max_pairs]
        return [
            BipartiteItems(
                squared_difference_features(self.frame(a).features, self.frame(b).features)
            )
            for a, b in pairs
        ]


@dataclass(frozen=True)
class Chosen:
    """The parameters that did best on the validation pairs."""

    theta: Array
    ridge: float
    test_loss: float
    seconds: float


def hamming_loss(theta: Array, items: Sequence[BipartiteItems]) -> float:
    """Mean share of landmarks that the best assignment gets wrong."""
    return float(np.mean([decode(BipartiteStructure(x, TRUTH), theta).loss for x in items]))


def likelihood_path(house: House, items: list[BipartiteItems], rho: float) -> list[Array]:
    """Approximate maximum likelihood for every ridge; in theta each starts from the one before."""
    path: list[Array] = []
    problems = [BipartiteStructure(x, TRUTH, rho) for x in items]
    limits = Limits(relative_gap=3e-2, max_seconds=house.seconds)
    for ridge in LIKELIHOOD_RIDGES:
        if house.solver == "theta":
            ascent = ThetaAscent(problems, ridge, limits)
            path.append(ascent.solve(path[-1] if path else None).theta)
        else:
            dual = make_learning_dual([p.observed for p in problems], ridge)
            solver = FrankWolfe(problems, dual, ShuffledOrder(), limits=limits)
            path.append(solver.solve().theta)
    return path


def margin_path(house: House, items: list[BipartiteItems]) -> list[Array]:
    """Max-margin linear assignment for every ridge."""
    examples = [BipartiteStructure(x, TRUTH) for x in items]
    trained = [
        train_structured_svm(
            examples, ridge=ridge, rng=np.random.default_rng(0), max_seconds=house.seconds
        )
        for ridge in MARGIN_RIDGES
    ]
    gaps = ", ".join(f"{t.gap_over_objective:.0e}" for t in trained)
    print(f"max margin, relative duality gap by lambda: {gaps}")
    return [t.theta for t in trained]


def choose(
    house: House, gap: int, ridges: Sequence[float], train: Callable[[], list[Array]]
) -> Chosen:
    """Train along the ridges, keep the least validation loss (ties: the larger ridge), test it."""
    start = time.perf_counter()
    path = train()
    validation = house.items(gap, "validate")
    best = int(np.argmin([hamming_loss(theta, validation) for theta in path]))
    loss = hamming_loss(path[best], house.items(gap, "test"))
    return Chosen(path[best], ridges[best], loss, time.perf_counter() - start)


def fit_likelihood(house: House, gap: int, rho: float) -> Chosen:
    items = house.items(gap, "train")
    return choose(house, gap, LIKELIHOOD_RIDGES, lambda: likelihood_path(house, items, rho))


def fit_margin(house: House, gap: int) -> Chosen:
    items = house.items(gap, "train")
    return choose(house, gap, MARGIN_RIDGES, lambda: margin_path(house, items))


def figure_4(house: House, gaps: Sequence[int]) -> dict[int, Chosen]:
    """Loss by gap, ours beside max-margin and beside what was published."""
    ours = {gap: fit_likelihood(house, gap, 1.0) for gap in gaps}
    margin = {gap: fit_margin(house, gap) for gap in gaps}
    index = [GAPS.index(gap) for gap in gaps]
    rows = [
        (
            *(gap, ours[gap].test_loss, PUBLISHED_LIKELIHOOD[k]),
            *(margin[gap].test_loss, PUBLISHED_MARGIN[k]),
            *(ours[gap].ridge, margin[gap].ridge, ours[gap].seconds, margin[gap].seconds),
        )
        for gap, k in zip(gaps, index, strict=True)
    ]
    header = ["gap", "likelihood", "published", "max margin", "published"]
    header += ["lambda", "lambda (margin)", "s", "s (margin)"]
    print_table("Figure 4: Hamming loss on the test pairs", header, rows)
    figure, axes = new_figure(figsize=(6, 4))
    axes.plot(gaps, [ours[g].test_loss for g in gaps], "o-", label="likelihood, ours")
    axes.plot(gaps, [margin[g].test_loss for g in gaps], "s-", label="max margin, ours")
    axes.plot(gaps, [PUBLISHED_LIKELIHOOD[k] for k in index], "o:", label="likelihood, published")
    axes.plot(gaps, [PUBLISHED_MARGIN[k] for k in index], "s:", label="max margin, published")
    axes.set(xlabel="frames between the two images", ylabel="Hamming loss")
    axes.legend()
    save_figure(figure, "house_figure_4")
    return ours


def figure_2(house: House, gap: int, rhos: Sequence[float]) -> list[float]:
    """Loss by reweighting at one gap."""
    losses = [fit_likelihood(house, gap, rho).test_loss for rho in rhos]
    published = [PUBLISHED_BY_RHO[RHOS.index(rho)] for rho in rhos]
    rows = list(zip(rhos, losses, published, strict=True))
    print_table(f"Figure 2: Hamming loss at gap {gap} by rho", ["rho", "ours", "published"], rows)
    figure, axes = new_figure(figsize=(5, 3.5))
    axes.plot(rhos, losses, "o-", label="ours")
    axes.plot(rhos, published, "o:", label="published")
    axes.set(xlabel="rho", ylabel="Hamming loss", ylim=(0, None))
    axes.legend()
    save_figure(figure, "house_figure_2")
    return losses


def figure_3(house: House, gap: int, theta: Array) -> None:
    """Matched landmarks of the test pair with most errors, and two rows of pseudomarginals."""
    pairs = read_house_pairs(house.folder, gap, "test")[: house.max_pairs]
    items = house.items(gap, "test")
    losses = [hamming_loss(theta, [x]) for x in items]
    worst = int(np.argmax(losses))
    frames = [house.frame(number) for number in pairs[worst]]
    solution, _ = compute_bethe_marginals(items[worst].scores(theta), tolerance=1e-6)
    tau = solution.marginals
    columns = assign(items[worst].scores(theta)).columns
    wrong = np.flatnonzero(columns != TRUTH)
    right = int(np.argmax(tau[TRUTH, TRUTH] * (columns == TRUTH)))
    figure, axes = new_figure(3, 1, figsize=(8, 9), layout="constrained")
    edges = [(i, int(columns[i]), "lime" if columns[i] == i else "red", 1.0) for i in TRUTH]
    draw_edges(axes[0], frames, edges)
    axes[0].set_title(f"frames {frames[0].number} and {frames[1].number}: decoded matching")
    for axis, row, name in ((axes[1], right, "right"), (axes[2], int((*wrong, right)[0]), "wrong")):
        shades = [(row, j, "lime" if j == row else "red", float(tau[row, j])) for j in TRUTH]
        draw_edges(axis, frames, shades)
        top = np.sort(tau[row])[::-1][:2]
        axis.set_title(f"a {name} edge: probabilities {top[0]:.2f}, {top[1]:.2f} of landmark {row}")
    save_figure(figure, "house_figure_3")


def draw_edges(
    axis: object, frames: list[HouseFrame], edges: list[tuple[int, int, str, float]]
) -> None:
    """Draw two frames side by side and lines between landmarks, as opaque as they are probable."""
    from matplotlib.image import imread

    images = [imread(frame.image) for frame in frames]
    height, width = images[0].shape[:2]
    axis.imshow(np.hstack(images), cmap="gray")
    for i, j, colour, opacity in edges:
        (x, y), (u, v) = frames[0].landmarks[i], frames[1].landmarks[j]
        axis.plot([x, u + width], [y, v], color=colour, alpha=opacity, linewidth=1.2)
    for k, frame in enumerate(frames):
        axis.scatter(frame.landmarks[:, 0] + k * width, frame.landmarks[:, 1], s=6, c="yellow")
    axis.set(xlim=(0, 2 * width), ylim=(height, 0))
    axis.axis("off")


def run(house: House, *, quick: bool) -> dict[int, Chosen]:
    """Print the tables and save the plots; return what was learned by gap."""
    print_machine()
    ours = figure_4(house, (0, 50) if quick else GAPS)
    figure_2(house, 50, (0.5, 1.0) if quick else RHOS)
    figure_3(house, 50, ours[50].theta)
    return ours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two gaps, four pairs each")
    parser.add_argument("--solver", choices=("theta", "frank-wolfe"), default="theta")
    parser.add_argument("--data", type=Path, default=REAL_DATA / "cmu_house")
    parser.add_argument("--seconds", type=float, default=20.0, help="limit of one training")
    arguments = parser.parse_args()
    max_pairs = 4 if arguments.quick else None
    house = House(arguments.data, max_pairs, arguments.solver, arguments.seconds)
    run(house, quick=arguments.quick)


if __name__ == "__main__":
    main()
