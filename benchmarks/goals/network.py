"""A network beside the trees: error, overlap and log loss of it alone, and with trees and edges.

    python -m benchmarks goals network [--data DIR] [--learn 200,20] [--test 64] [--max-side 256]
                                       [--width N] [--steps N] [--batch N] [--max-seconds S]

DIR holds ``train`` and ``test`` with pictures and masks; by default the horses. The network alone
is the mean of those of all folds, cut at one half. All are compared at the size of the files. For
two cores without a card: ``JAX_PLATFORMS=cpu taskset -c 0,1``, with ``--max-side 128``.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmarks.common.reporting import REAL_DATA, print_machine, print_table
from benchmarks.peers.segmentation import Pair, read_pairs
from engine import NetworkOptions, predict_segmentation, train_boosted_segmentation
from engine.crf.image_grid import enlarge, shrink_image
from engine.learning.segmentation.model import SegmentationModel
from engine.learning.segmentation.network.training import device_name
from engine.metrics.segmentation import intersection_over_union, log_loss, pixel_error


def network_alone(model: SegmentationModel, image: np.ndarray) -> np.ndarray:
    """Probability that the network alone gives each pixel, at the size of the picture."""
    assert model.network is not None
    size = int(image.shape[0]), int(image.shape[1])
    odds = model.network.log_odds(shrink_image(image, model.grid_shape(*size)))[:, :, 0]
    return enlarge(1 / (1 + np.exp(-odds)), size)


def figures(told: Sequence[np.ndarray], pairs: Sequence[Pair]) -> list[float]:
    """Mean error, overlap and log loss (nats a pixel) of probabilities."""
    masks = [mask for _, mask in pairs]
    both = list(zip(told, masks, strict=True))
    return [
        float(np.mean([pixel_error(one > 0.5, mask) for one, mask in both])),
        float(np.mean([intersection_over_union(one > 0.5, mask) for one, mask in both])),
        float(np.mean([log_loss(one, mask) for one, mask in both])),
    ]


def rows(count: int, test: Sequence[Pair], args: argparse.Namespace) -> list[list[object]]:
    """Learn from so many pictures; a row of the network alone, and one of all together."""
    train = read_pairs(args.data / "train", count, seed=5)
    clock, processor = perf_counter(), process_time()
    trained = train_boosted_segmentation(
        [image for image, _ in train],
        [mask for _, mask in train],
        max_side=args.max_side,
        max_seconds=args.max_seconds,
        network=NetworkOptions(args.width, args.steps, args.batch),
    )
    clock, processor = perf_counter() - clock, process_time() - processor
    alone = figures([network_alone(trained.model, image) for image, _ in test], test)
    told = [predict_segmentation(trained.model, image).marginals for image, _ in test]
    for work in trained.left_out:
        print("left out:", work)
    print("held-out errors:", {name: round(error, 4) for name, error in trained.errors.items()})
    ours = figures(told, test)
    return [
        [count, "network alone", *alone, "", ""],
        [count, f"with trees, {trained.loss}", *ours, round(clock), round(processor)],
    ]


def main() -> None:
    """Print a table of all numbers of pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=REAL_DATA / "weizmann_horses")
    parser.add_argument("--learn", default="200,20", help="numbers of pictures to learn from")
    parser.add_argument("--test", type=int, default=64)
    parser.add_argument("--max-side", type=int, default=256)
    parser.add_argument("--max-seconds", type=float)
    for name in ("width", "steps", "batch"):
        parser.add_argument(f"--{name}", type=int)
    args = parser.parse_args()
    print_machine()
    print("networks are learned on:", device_name())
    test = read_pairs(args.data / "test", args.test, seed=0)
    header = ["pictures", "method", "error", "IoU", "log loss", "learning, s", "processor s"]
    for count in (int(word) for word in args.learn.split(",")):
        print_table(f"{count} to learn from", header, rows(count, test, args))


if __name__ == "__main__":
    main()
