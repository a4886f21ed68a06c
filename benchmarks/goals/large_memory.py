"""Peak memory of learning from pictures of 12 megapixels, and of predicting them.

    python -m benchmarks goals large_memory [--learned 20] [--predicted 200] [--masks]
        [--max-seconds S]

Classes are learned from painted pictures, or masks at full detail, then pictures are predicted one
after the other, in one process, as a worker does. The peak is printed for learning and for every
tenth prediction: it may not pass 2 GB, and must not grow.
"""

import argparse
import time
from collections.abc import Iterator
from functools import cache

import numpy as np

from benchmarks.common.microscope_pictures import CLASSES, draw_cells
from benchmarks.common.peak_memory import forget_peak, peak_gigabytes
from benchmarks.common.reporting import print_machine, print_table
from engine import (
    predict_segmentation,
    train_boosted_segmentation,
    train_class_segmentation,
)
from engine.learning.segmentation.model import Detail, SegmentationModel

SHAPE = (3000, 4000)
ALLOWED_GIGABYTES = 2.0
SIDE = 512
FIELDS = 20  # drawn; pictures beyond are of the same fields


@cache
def _field(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a small field of cells, grey uint8, and the labels of its pixels."""
    counts, labels = draw_cells(np.random.default_rng([seed]), SIDE)
    return np.clip(counts // 10, 0, 255).astype(np.uint8), labels


def _tiled(field: np.ndarray) -> np.ndarray:
    times = (-(-SHAPE[0] // SIDE), -(-SHAPE[1] // SIDE))
    return np.tile(field, times)[: SHAPE[0], : SHAPE[1]]


def large(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a picture of 12 megapixels and its strokes; a small field is repeated to fill it."""
    grey, labels = _field(seed % FIELDS)
    strokes = np.full(SHAPE, 255, dtype=np.uint8)
    strokes[200:400, 200:400] = labels[200:400, 200:400]
    return np.repeat(_tiled(grey)[:, :, np.newaxis], 3, axis=2), strokes


def _pictures(count: int) -> Iterator[np.ndarray]:
    return (large(k)[0] for k in range(count))


def _strokes(count: int) -> Iterator[np.ndarray]:
    return (large(k)[1] for k in range(count))


def _masks(count: int) -> Iterator[np.ndarray]:
    return (_tiled(_field(k % FIELDS)[1] == 1) for k in range(count))


def learn(count: int, max_seconds: float | None, *, is_masks: bool) -> SegmentationModel:
    """Learn at full detail, from masks or from strokes."""
    if is_masks:
        return train_boosted_segmentation(
            _pictures(count), _masks(count), max_side=max(SHAPE), max_seconds=max_seconds
        ).model
    return train_class_segmentation(
        _pictures(count),
        _strokes(count),
        CLASSES,
        detail=Detail(max_side=max(SHAPE), scale=1.0),
        position=False,
        max_seconds=max_seconds,
    ).model


def predict(model: SegmentationModel, picture: np.ndarray) -> None:
    """Predict one picture, as a worker does."""
    predict_segmentation(model, picture)


def main() -> None:
    """Learn, predict, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--learned", type=int, default=20)
    parser.add_argument("--predicted", type=int, default=200)
    parser.add_argument("--masks", action="store_true", help="learn from masks, not from strokes")
    parser.add_argument("--max-seconds", type=float, help="of learning")
    options = parser.parse_args()
    print_machine()
    rows, worst = [], 0.0
    forget_peak()
    begun = time.process_time()
    count = options.learned
    model = learn(count, options.max_seconds, is_masks=options.masks)
    worst = max(worst, peak_gigabytes())
    taken = time.process_time() - begun
    rows.append([f"learn from {count}", f"{peak_gigabytes():.2f}", f"{taken:.0f}"])
    for k in range(options.predicted):
        picture = large(1000 + k)[0]
        forget_peak()
        begun = time.process_time()
        predict(model, picture)
        worst = max(worst, peak_gigabytes())
        if k % 10 == 0:
            taken = time.process_time() - begun
            rows.append([f"predict number {k + 1}", f"{peak_gigabytes():.2f}", f"{taken:.0f}"])
    print_table("12 megapixels", ["what", "peak, GB", "core seconds"], rows)
    print(f"the peak is {worst:.2f} GB, {ALLOWED_GIGABYTES:.0f} are allowed")


if __name__ == "__main__":
    main()
