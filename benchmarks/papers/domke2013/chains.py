"""Domke 2013, Figures 1 and 2: what mis-specification does to each loss, with exact inference.

    python -m benchmarks domke2013 chains [--distributions 32] [--length 12] [--out DIR] [--quick]

Pairs (x_i, y_i) along a chain, drawn exactly from random parameters; x is then shifted along the
chain, so that the model fitted to y given x is wrong. Test error of the likelihood, the univariate
and the clique logistic loss by the number of examples. Published as curves only; their length is
not given. Gradients of the logistic losses by two-sided perturbation of exact marginals. Every
distribution is kept in --out (./results/chains): started again, the command goes on.
"""

import argparse
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from benchmarks.common import reporting
from benchmarks.common.kept_results import Arrays, KeptResults
from benchmarks.common.reporting import new_figure, print_machine, print_table, save_figure
from engine.core.arguments import FloatArray, IntArray
from engine.kernels.threads import one_blas_thread

LOSSES = ("likelihood", "univariate logistic", "clique logistic")
SHIFTS = (0, 1, 3)
SIZES = (30, 100, 300, 1000)
RIDGE = 0.1
TEST = 1000

Tables = tuple[FloatArray, FloatArray]  # of nodes (N, n, 2) and of pairs (N, n - 1, 2, 2)


@dataclass(frozen=True, slots=True)
class Truth:
    """Scores of the states s = 2 x + y along the chain, (n, 4), and of steps, (n - 1, 4, 4)."""

    nodes: FloatArray
    steps: FloatArray


def draw_truth(length: int, rng: np.random.Generator) -> Truth:
    """Everything uniform in [-1, 1]; interactions +t for equal and -t for different values."""
    spin = np.array([-1.0, 1.0])
    x, y = np.repeat(spin, 2), np.tile(spin, 2)
    own = rng.uniform(-1, 1, (2, 2, length))  # of x and of y, each label
    nodes = own[0][(x > 0).astype(int)].T + own[1][(y > 0).astype(int)].T
    nodes = nodes + rng.uniform(-1, 1, (length, 1)) * (x * y)
    ties = rng.uniform(-1, 1, (2, length - 1, 1, 1))
    return Truth(nodes, ties[0] * np.outer(x, x) + ties[1] * np.outer(y, y))


def draw(truth: Truth, count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw x and y, (count, n) each, exactly: backward sums, forward draws."""
    n = len(truth.nodes)
    ahead = np.zeros((n, 4))
    for i in range(n - 2, -1, -1):
        below = truth.steps[i] + truth.nodes[i + 1] + ahead[i + 1]
        ahead[i] = np.logaddexp.reduce(below, axis=1)
    states = np.zeros((count, n), dtype=np.int64)
    for i in range(n):
        scores = np.broadcast_to(truth.nodes[i] + ahead[i], (count, 4))
        if i:
            scores = scores + truth.steps[i - 1][states[:, i - 1]]
        states[:, i] = (scores + rng.gumbel(size=(count, 4))).argmax(axis=1)
    return states // 2, states % 2


def infer(nodes: FloatArray, pairs: FloatArray) -> tuple[FloatArray, Tables]:
    """Return log Z, (N,), and exact marginals of binary chains."""
    n = nodes.shape[1]
    forth, back = np.zeros_like(nodes), np.zeros_like(nodes)
    for i in range(1, n):
        joint = (forth[:, i - 1] + nodes[:, i - 1])[:, :, None] + pairs[:, i - 1]
        forth[:, i] = np.logaddexp(joint[:, 0], joint[:, 1])
    for i in range(n - 2, -1, -1):
        joint = (back[:, i + 1] + nodes[:, i + 1])[:, None, :] + pairs[:, i]
        back[:, i] = np.logaddexp(joint[:, :, 0], joint[:, :, 1])
    total = np.logaddexp.reduce(nodes[:, -1] + forth[:, -1], axis=1)
    own = np.exp(nodes + forth + back - total[:, None, None])
    left, right = nodes[:, :-1] + forth[:, :-1], nodes[:, 1:] + back[:, 1:]
    both = left[..., None] + pairs + right[..., None, :] - total[:, None, None, None]
    return total, (own, np.exp(both))


class ChainModel:
    """y given x: a table of (x_i, y_i) a place and one of (y_i, y_i+1) a step, all free."""

    def __init__(self, x: IntArray, y: IntArray) -> None:
        self.x, self.y = x, y
        count, n = y.shape
        self.rows, self.places = np.arange(count)[:, None], np.arange(n)
        self.seen = (self.rows, self.places, y)
        self.seen_pairs = (self.rows, self.places[:-1], y[:, :-1], y[:, 1:])

    def scores(self, theta: FloatArray) -> Tables:
        """Node and pair scores of every example."""
        n = self.y.shape[1]
        nodes, pairs = theta[: 4 * n].reshape(n, 2, 2), theta[4 * n :].reshape(n - 1, 2, 2)
        return nodes[self.places, self.x], np.broadcast_to(pairs, (len(self.y), n - 1, 2, 2))

    def pull_back(self, nodes: FloatArray, pairs: FloatArray) -> FloatArray:
        """The transpose of ``scores``."""
        total = np.zeros((self.y.shape[1], 2, 2))
        for value in (0, 1):
            total[:, value] = (nodes * (self.x == value)[..., None]).sum(axis=0)
        return np.concatenate([total.ravel(), pairs.sum(axis=0).ravel()])

    def loss(self, theta: FloatArray, name: str) -> tuple[float, FloatArray]:
        """Return the penalised loss and its gradient."""
        nodes, pairs = self.scores(theta)
        partition, (own, both) = infer(nodes, pairs)
        penalty = 0.5 * RIDGE * float(theta @ theta)
        if name == "likelihood":
            value = partition.sum() - nodes[self.seen].sum() - pairs[self.seen_pairs].sum()
            own, both = own.copy(), both.copy()
            own[self.seen] -= 1.0
            both[self.seen_pairs] -= 1.0
            return penalty + float(value), self.pull_back(own, both) + RIDGE * theta
        slopes = (np.zeros_like(own), np.zeros_like(both))
        which, seen = (0, self.seen) if name.startswith("univariate") else (1, self.seen_pairs)
        chances = (own, both)[which][seen]
        slopes[which][seen] = -1.0 / chances
        size = 1.0 + max(float(np.abs(nodes).max()), float(np.abs(pairs).max()))
        steps = np.finfo(float).eps ** (1 / 3) * size * chances.reshape(len(own), -1).min(axis=1)
        moved = []
        for sign in (1.0, -1.0):
            step = sign * steps[:, None, None]
            moved.append(infer(nodes + step * slopes[0], pairs + step[..., None] * slopes[1])[1])
        change = [
            (a - b) / (2.0 * steps.reshape(-1, *[1] * (a.ndim - 1)))
            for a, b in zip(*moved, strict=True)
        ]
        return penalty - float(np.log(chances).sum()), self.pull_back(*change) + RIDGE * theta

    def fit(self, name: str) -> FloatArray:
        """Minimise one loss by L-BFGS."""
        n = self.y.shape[1]
        found = minimize(
            self.loss, np.zeros(4 * n + 4 * (n - 1)), (name,), "L-BFGS-B", jac=True,
            options={"maxiter": 200},
        )  # fmt: skip
        return np.asarray(found.x)

    def predict(self, theta: FloatArray) -> FloatArray:
        """p(y_i = 1 | x), (N, n)."""
        return infer(*self.scores(theta))[1][0][..., 1]

    def error(self, theta: FloatArray) -> float:
        """Share of wrong labels by the likelier one."""
        return float(((self.predict(theta) > 0.5) != self.y).mean())


def true_marginals(truth: Truth, x: IntArray) -> FloatArray:
    """p(y_i = 1 | x) under the distribution that the data came from, for one x (n,)."""
    n = len(x)
    nodes = truth.nodes.reshape(n, 2, 2)[np.arange(n), x]
    steps = truth.steps.reshape(n - 1, 2, 2, 2, 2)[np.arange(n - 1), x[:-1], :, x[1:]]
    return infer(nodes[None], steps[None])[1][0][0, :, 1]


def learn_distribution(
    k: int, length: int, sizes: tuple[int, ...], shifts: tuple[int, ...]
) -> Arrays:
    """Fit every loss to one distribution's examples.

    Returns
    -------
    dict of test errors (shifts, sizes, losses), the probabilities p(y = 1 | x) of one test example
    by every loss learned from most examples (shifts, losses, n), and its exact ones (n,).
    """
    rng = np.random.default_rng(k)
    truth = draw_truth(length, rng)
    x, y = draw(truth, max(sizes) + TEST, rng)
    errors = np.zeros((len(shifts), len(sizes), len(LOSSES)))
    predicted = np.zeros((len(shifts), len(LOSSES), length))
    for a, shift in enumerate(shifts):
        moved = np.roll(x, shift, axis=1)
        test = ChainModel(moved[-TEST:], y[-TEST:])
        for b, size in enumerate(sizes):
            known = ChainModel(moved[:size], y[:size])
            for c, name in enumerate(LOSSES):
                theta = known.fit(name)
                errors[a, b, c] = test.error(theta)
                predicted[a, c] = test.predict(theta)[0]
    return {"errors": errors, "predicted": predicted, "exact": true_marginals(truth, x[-TEST])}


def run(
    distributions: int,
    length: int,
    sizes: tuple[int, ...],
    shifts: tuple[int, ...],
    kept: KeptResults,
) -> FloatArray:
    """Return the mean test error by shift, size and loss; print it and draw both figures."""
    found = []
    with one_blas_thread():  # small products on several threads take a hundred times as long
        for k in range(distributions):
            learn = partial(learn_distribution, k, length, sizes, shifts)
            found.append(kept.remember(f"distribution {k}", learn))
            print(f"{k + 1} of {distributions} distributions", flush=True)
    errors = np.stack([one["errors"] for one in found])
    mean = np.asarray(errors.mean(axis=0))
    behind = errors - errors[..., :1]  # of the likelihood, the first loss
    spread = 1.96 * behind.std(axis=0) / np.sqrt(distributions)

    def differences(a: int, b: int) -> list[str]:
        losses = range(1, len(LOSSES))
        return [f"{behind[:, a, b, c].mean():+.4f} ± {spread[a, b, c]:.4f}" for c in losses]

    rows = [
        [shift, size, *mean[a, b].tolist(), *differences(a, b)]
        for a, shift in enumerate(shifts)
        for b, size in enumerate(sizes)
    ]
    header = ["shift", "examples", *LOSSES, *(f"{name} - likelihood" for name in LOSSES[1:])]
    print_table("Figure 1, mean test error (published: as curves only)", header, rows)
    _draw(mean, sizes, shifts, found[-1]["predicted"], found[-1]["exact"])
    return mean


def _draw(
    mean: FloatArray,
    sizes: tuple[int, ...],
    shifts: tuple[int, ...],
    predicted: FloatArray,
    exact: FloatArray,
) -> None:
    figure, axes = new_figure(2, len(shifts), figsize=(4 * len(shifts), 6), squeeze=False)
    for column, shift in enumerate(shifts):
        for c, name in enumerate(LOSSES):
            axes[0, column].semilogx(sizes, mean[column, :, c], label=name)
            axes[1, column].plot(predicted[column, c], label=name)
        axes[1, column].plot(exact, "k--", label="exact")
        axes[0, column].set_title(f"shift {shift}")
        axes[0, column].set_xlabel("examples")
        axes[1, column].set_xlabel("place")
    axes[0, 0].set_ylabel("test error")
    axes[1, 0].set_ylabel("p(y = 1 | x)")
    axes[1, 0].legend(fontsize=7)
    figure.tight_layout()
    save_figure(figure, "domke_figures_1_and_2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--distributions", type=int, default=32)
    parser.add_argument("--length", type=int, default=12)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    print_machine()
    count, length, sizes, shifts = args.distributions, args.length, SIZES, SHIFTS
    if args.quick:
        count, length, sizes, shifts = 2, 6, (100,), (0, 2)
    out = args.out or reporting.RESULTS / ("chains-quick" if args.quick else "chains")
    kept = KeptResults(out, {"length": length, "sizes": sizes, "shifts": shifts})
    run(count, length, sizes, shifts, kept)


if __name__ == "__main__":
    main()
