"""Binary denoising: marginal losses and MLE-Struct at three noise levels (Domke 2013, table I).

    python -m benchmarks domke2013 denoising [--quick] [--data DIR] [--out DIR] [--seconds S]
                                   [--train N] [--test N]

Photographs of 200 x 300 pixels are split at their mean; y = x (1 - t^n) + (1 - x) t^n with t
uniform: the smaller n, the more noise. Node features are 1 and y, edge features tell right from
down. Inference runs to a threshold of 1e-4 and is differentiated in full. Prints train and test
errors beside the published ones and how each fit ended, and draws the marginals of one test
picture (figure 4). Eleven fits a noise level take at most --seconds each, over growing sets of
pictures; their times are not compared. Every fit is kept in --out (./results/denoising): started
again, the command goes on where it stopped; table1.csv grows with every fit.
--quick takes 6 + 6 pictures of 40 x 60 pixels and the middle noise level.
"""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.common.kept_results import Arrays, KeptResults, write_csv
from benchmarks.common.reporting import REAL_DATA, RESULTS, new_figure, print_machine, print_table
from benchmarks.papers.domke2013.picture_losses import PaperOptions, loss_and_gradient
from benchmarks.papers.domke2013.segmentation_runs import mean_error, run_theta
from engine.core.arguments import FloatArray
from engine.crf.grid_features import DenseNodeFeatures, EdgeFeatures, GridExample, GridFeatures
from engine.datasets.picture_view import read_image
from engine.learning.segmentation.grid_readout import predict_marginals
from engine.learning.segmentation.marginal_fitting import fit_marginals_on_growing_sets
from engine.learning.segmentation.mask_solvers import SegmentationTask

NOISE_LEVELS = (1.25, 1.5, 5.0)
THRESHOLD = 1e-4
RIDGE = 1e-5  # of the mean loss a pixel; twelve parameters need hardly any

TOLERANCE = 1e-6
"""Relative decrease in a step at which a fit has converged."""

PUBLISHED = {  # train and test error at n = 1.25, 1.5, 5; "independent" starts the others
    "independent": (0.421, 0.424, 0.367, 0.368, 0.129, 0.129),
    "surrogate-likelihood": (0.149, 0.143, 0.103, 0.097, 0.031, 0.030),
    "univariate-logistic": (0.133, 0.126, 0.102, 0.096, 0.031, 0.030),
    "clique-logistic": (0.132, 0.126, 0.102, 0.096, 0.031, 0.030),
    "univariate-quadratic": (0.132, 0.126, 0.102, 0.096, 0.031, 0.030),
    "smoothed-classification 5": (0.136, 0.129, 0.105, 0.099, 0.032, 0.030),
    "smoothed-classification 15": (0.132, 0.126, 0.102, 0.096, 0.031, 0.030),
    "smoothed-classification 50": (0.132, 0.125, 0.102, 0.096, 0.030, 0.030),
    "pseudolikelihood": (0.207, 0.204, 0.117, 0.112, 0.032, 0.030),
    "piecewise": (0.466, 0.481, 0.466, 0.481, 0.063, 0.058),
}


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", type=Path, default=REAL_DATA / "bsds_images")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0, help="limit of each fit")
    parser.add_argument("--train", type=int, help="pictures to learn from; 32 by default")
    parser.add_argument("--test", type=int, help="pictures to test on; 100 by default")
    args = parser.parse_args(words)
    args.train = args.train or (6 if args.quick else 32)
    args.test = args.test or (6 if args.quick else 100)
    args.out = args.out or RESULTS / ("denoising-quick" if args.quick else "denoising")
    return args


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Fit every loss at every noise level; return the rows of the table."""
    kept = KeptResults(args.out, {k: v for k, v in vars(args).items() if k != "out"})
    print_machine()
    with TemporaryDirectory() as folder:  # compiles, so that limits of time leave it out
        tiny = noisy_examples(args.data / "train", 2, (20, 30), 1.5, np.random.default_rng(0))
        list(fit_all(tiny, tiny, 1.5, 0.1, KeptResults(Path(folder), {})))
    shape = (40, 60) if args.quick else (200, 300)
    rows: list[dict[str, Any]] = []
    figure, axes = new_figure(len(PUBLISHED) + 2, 3, figsize=(9, 22))
    for column, noise in enumerate(NOISE_LEVELS[1:2] if args.quick else NOISE_LEVELS):
        rng = np.random.default_rng(column)
        train = noisy_examples(args.data / "train", args.train, shape, noise, rng)
        test = noisy_examples(args.data / "test", args.test, shape, noise, rng)
        values = test[0].features.nodes.values  # type: ignore[attr-defined]
        axes[0, column].imshow(values[:, :, 1], cmap="gray")
        axes[0, column].set_title(f"n = {noise:g}", fontsize=8)
        for axis, (name, found) in zip(
            axes[1:, column], fit_all(train, test, noise, args.seconds, kept), strict=True
        ):
            rows.append(table_row(name, noise, found))
            write_csv(args.out / "table1.csv", rows)
            print(f"n = {noise:g}, {name}: {rows[-1]['test']}, {rows[-1]['ended']}", flush=True)
            nodes, _ = predict_marginals(test[0].features, found["theta"], 0.5)
            axis.imshow(nodes, cmap="gray", vmin=0, vmax=1)
            axis.set_title(f"{name}, error {rows[-1]['test']:.3f}", fontsize=8)
    for axis in axes.ravel():
        axis.axis("off")
    figure.tight_layout()
    figure.savefig(args.out / "figure4.png", dpi=80)
    print_table("Table I", list(rows[0]), [list(row.values()) for row in rows])
    return rows


def table_row(name: str, noise: float, found: Arrays) -> dict[str, Any]:
    """One line: our errors beside the published ones, and how the fit ended."""
    place = 2 * NOISE_LEVELS.index(noise)
    known = PUBLISHED.get(name)
    return {
        "n": noise,
        "loss": name,
        "train": round(float(found["train"]), 4),
        "published train": None if known is None else known[place],
        "test": round(float(found["test"]), 4),
        "published test": None if known is None else known[place + 1],
        "ended": str(found["status"]),
        "seconds": round(float(found["seconds"]), 1),
    }


def fit_all(
    train: list[GridExample],
    test: list[GridExample],
    noise: float,
    seconds: float,
    kept: KeptResults,
) -> Iterator[tuple[str, Arrays]]:
    """Fit by every loss; "independent" starts the others, the likelihood the smoothed losses."""
    sizes = [example.labels.size for example in train]
    task = SegmentationTask(train, sizes, RIDGE * sum(sizes), 0.5)

    def ended(theta: FloatArray, status: str, duration: float) -> Arrays:
        errors = {"train": mean_error(theta, train, 0.5), "test": mean_error(theta, test, 0.5)}
        return {"theta": theta, "status": status, "seconds": duration, **errors}

    def fit(options: PaperOptions, start: FloatArray | None) -> Arrays:
        outcome = fit_marginals_on_growing_sets(
            train,
            options,
            ridge=task.ridge,
            rng=np.random.default_rng(0),
            start=start,
            tolerance=TOLERANCE,
            max_seconds=seconds,
            loss=loss_and_gradient,
        )
        return ended(outcome.theta, outcome.status.value, outcome.seconds)

    def ours() -> Arrays:
        outcome = run_theta(task, seconds, 1e-4)
        return ended(outcome.theta, outcome.status, outcome.seconds)

    thetas: dict[str, FloatArray] = {}
    for name in PUBLISHED:
        loss, _, sharpness = name.partition(" ")
        options = PaperOptions(loss, threshold=THRESHOLD, sharpness=float(sharpness or 1))
        start = thetas.get("surrogate-likelihood" if sharpness else "independent")
        found = kept.remember(f"{name} {noise:g}", partial(fit, options, start))
        thetas[name] = found["theta"]
        yield name, found
    yield "MLE-Struct in theta", kept.remember(f"MLE-Struct {noise:g}", ours)


def noisy_examples(
    folder: Path, count: int, shape: tuple[int, int], noise: float, rng: np.random.Generator
) -> list[GridExample]:
    """Split photographs at their mean and flip the result softly."""
    examples = []
    for path in sorted(folder.glob("*.jpg"))[:count]:
        image = Image.fromarray(read_image(path)).convert("L")
        if image.height > image.width:
            image = image.rotate(90, expand=True)
        light = np.asarray(image.resize((shape[1], shape[0])), dtype=np.float64)
        labels = light > light.mean()
        blur = rng.random(shape) ** noise
        values = np.where(labels, 1 - blur, blur)
        nodes = DenseNodeFeatures(np.stack([np.ones(shape), values], axis=2))
        edges = EdgeFeatures(
            np.zeros((shape[0], shape[1] - 1), np.uint8),
            np.zeros((shape[0] - 1, shape[1]), np.uint8),
            np.array([[1.0, 0.0]]),
            np.array([[0.0, 1.0]]),
        )
        examples.append(GridExample(GridFeatures(nodes, edges), labels))
    return examples


if __name__ == "__main__":
    run(parse())
