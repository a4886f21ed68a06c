"""Binary denoising: marginal losses and MLE-Struct at three noise levels (Domke 2013, table I).

    python -m benchmarks.denoising [--quick] [--data DIR] [--out DIR] [--seconds S]

Photographs of 200 x 300 pixels are split at their mean; y = x (1 - t^n) + (1 - x) t^n with t
uniform: the smaller n, the more noise. Node features are 1 and y, edge features tell right from
down. Inference runs to a threshold of 1e-4 and is differentiated in full. Prints train and test
errors beside the published ones and draws the marginals of one test picture (figure 4).
Eleven fits a noise level take at most --seconds each; the times of fits are not compared.
--quick takes 6 + 6 pictures of 40 x 60 pixels and the middle noise level.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.reporting import REAL_DATA, RESULTS, new_figure, print_machine, print_table
from benchmarks.segmentation_runs import mean_error, run_theta
from engine.crf.grid_features import DenseNodeFeatures, EdgeFeatures, GridExample, GridFeatures
from engine.datasets.images import read_image
from engine.learning.marginal_fitting import fit_marginals
from engine.learning.segmentation_prediction import predict_marginals
from engine.learning.segmentation_solvers import SegmentationTask
from engine.objectives.grid_losses import LossOptions

NOISE_LEVELS = (1.25, 1.5, 5.0)
THRESHOLD = 1e-4
RIDGE = 1e-5  # of the mean loss a pixel; twelve parameters need hardly any

PUBLISHED = {  # train and test error at n = 1.25, 1.5, 5
    "surrogate-likelihood": (0.149, 0.143, 0.103, 0.097, 0.031, 0.030),
    "univariate-logistic": (0.133, 0.126, 0.102, 0.096, 0.031, 0.030),
    "clique-logistic": (0.132, 0.126, 0.102, 0.096, 0.031, 0.030),
    "univariate-quadratic": (0.132, 0.126, 0.102, 0.096, 0.031, 0.030),
    "smoothed-classification 5": (0.136, 0.129, 0.105, 0.099, 0.032, 0.030),
    "smoothed-classification 15": (0.132, 0.126, 0.102, 0.096, 0.031, 0.030),
    "smoothed-classification 50": (0.132, 0.125, 0.102, 0.096, 0.030, 0.030),
    "pseudolikelihood": (0.207, 0.204, 0.117, 0.112, 0.032, 0.030),
    "piecewise": (0.466, 0.481, 0.466, 0.481, 0.063, 0.058),
    "independent": (0.421, 0.424, 0.367, 0.368, 0.129, 0.129),
}


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", type=Path, default=REAL_DATA / "bsds_images")
    parser.add_argument("--out", type=Path, default=RESULTS / "denoising")
    parser.add_argument("--seconds", type=float, default=300.0, help="limit of each fit")
    return parser.parse_args(words)


def run(args: argparse.Namespace) -> dict[str, list[float]]:
    """Fit every loss at every noise level; return test errors by method, in order of noise."""
    args.out.mkdir(parents=True, exist_ok=True)
    print_machine()
    tiny = noisy_examples(args.data / "train", 2, (20, 30), 1.5, np.random.default_rng(0))
    fit_all(tiny, 0.1)  # compiles, so that limits of time leave it out
    counts, shape = ((6, 6), (40, 60)) if args.quick else ((32, 100), (200, 300))
    errors: dict[str, list[float]] = {}
    lines: dict[str, list[str]] = {}
    figure, axes = new_figure(len(PUBLISHED) + 2, 3, figsize=(6, 18))
    levels = NOISE_LEVELS[1:2] if args.quick else NOISE_LEVELS
    for column, noise in enumerate(levels):
        rng = np.random.default_rng(column)
        train = noisy_examples(args.data / "train", counts[0], shape, noise, rng)
        test = noisy_examples(args.data / "test", counts[1], shape, noise, rng)
        for row, (name, theta) in enumerate(fit_all(train, args.seconds).items()):
            pair = mean_error(theta, train, 0.5), mean_error(theta, test, 0.5)
            errors.setdefault(name, []).append(pair[1])
            known = PUBLISHED.get(name)
            place = 2 * NOISE_LEVELS.index(noise)
            beside = "-" if known is None else f"{known[place]:.3f} {known[place + 1]:.3f}"
            lines.setdefault(name, [name]).extend([f"{pair[0]:.3f} {pair[1]:.3f}", beside])
            nodes, _ = predict_marginals(test[0].features, theta, 0.5)
            axes[row + 1, column].imshow(nodes, cmap="gray", vmin=0, vmax=1)
            axes[row + 1, column].set_title(name, fontsize=6)
        values = test[0].features.nodes.values  # type: ignore[attr-defined]
        axes[0, column].imshow(values[:, :, 1], cmap="gray")
    for axis in axes.ravel():
        axis.axis("off")
    figure.savefig(args.out / "figure4.png", dpi=110)
    head = ["loss", *(text for n in levels for text in (f"n={n:g} train test", "published"))]
    print_table("binary denoising, error rates", head, list(lines.values()))
    (args.out / "errors.json").write_text(json.dumps(errors, indent=1))
    return errors


def fit_all(train: list[GridExample], seconds: float) -> dict[str, np.ndarray]:
    """Fit by every loss; "independent" starts the others, the likelihood the smoothed losses."""
    sizes = [example.labels.size for example in train]
    n_pixels = sum(sizes)
    task = SegmentationTask(train, sizes, RIDGE * n_pixels, 0.5)
    found: dict[str, np.ndarray] = {}

    def fit(name: str, options: LossOptions, start: np.ndarray | None) -> None:
        outcome = fit_marginals(
            train, options, ridge=task.ridge, start=start, max_seconds=seconds, max_iterations=200
        )
        found[name] = outcome.theta

    fit("independent", LossOptions("independent"), None)
    for name in PUBLISHED:
        loss, _, sharpness = name.partition(" ")
        start = found["surrogate-likelihood" if sharpness else "independent"]
        options = LossOptions(loss, threshold=THRESHOLD, sharpness=float(sharpness or 1))
        if name != "independent":
            fit(name, options, start)
    found["MLE-Struct in theta"] = run_theta(task, seconds, 1e-4).theta
    return found


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
