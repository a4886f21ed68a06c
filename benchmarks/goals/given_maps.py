"""What maps of another program add to masks: error with pictures, with maps, and with both.

    python -m benchmarks goals given_maps PICTURES [--learn 20] [--test 40] [--seed 0]

PICTURES has images with masks (``a.jpg`` and ``a.png``, in folders train and test). The other
program is made up: of each mask it tells a shifted and blurred copy under smooth noise, so that it
is right about where the thing is and wrong about borders. Useless maps are mere noise.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from engine import (
    evaluate_mask,
    predict_segmentation,
    train_boosted_segmentation,
    train_segmentation,
)
from engine.datasets.image_folder import ImageFile, list_images

Map = NDArray[np.float32]

SHIFT, CERTAINTY, NOISE = 0.015, 2.5, 1.6
"""Shift of the told thing as a share of the longer side; log-odds inside it; their deviation."""


def told(mask: NDArray[np.bool_], rng: np.random.Generator) -> Map:
    """What the other program says of a mask, (rows, columns)."""
    side = max(mask.shape)
    scale, step = side / 60, round(SHIFT * side)
    moved = np.roll(mask.astype(np.float64), (step, -step), (0, 1))
    noise = gaussian_filter(rng.normal(size=mask.shape), scale)
    odds = CERTAINTY * (2 * gaussian_filter(moved, scale) - 1) + NOISE * noise / noise.std()
    return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float32)


def useless(mask: NDArray[np.bool_], rng: np.random.Generator) -> Map:
    """Smooth noise that knows nothing of the mask."""
    noise = gaussian_filter(rng.normal(size=mask.shape), max(mask.shape) / 60)
    return np.asarray(1 / (1 + np.exp(-NOISE * noise / noise.std())), dtype=np.float32)


def pictures(files: Sequence[ImageFile], kind: Any, seed: int) -> Iterator[tuple[Any, Any, Any]]:
    """Images, masks and maps of a kind (None: without), one at a time; the same at every call."""
    rng = np.random.default_rng(seed)
    for file in files:
        image = file.read_image()
        mask = file.read_mask((image.shape[0], image.shape[1]))
        yield image, mask, None if kind is None else kind(mask, rng)


def row(name: str, learn: Any, kind: Any, files: Sequence[Sequence[ImageFile]], seed: int) -> str:
    """Learn from the first files, judge on the second, and return a line of the table."""
    started = perf_counter()
    images, masks, maps = zip(*pictures(files[0], kind, seed), strict=True)
    trained = learn(images, masks, maps=None if kind is None else maps)
    seconds = perf_counter() - started
    found = [
        evaluate_mask(predict_segmentation(trained.model, image, beside), mask)
        for image, mask, beside in pictures(files[1], kind, seed + 1)
    ]
    numbers = [np.mean([getattr(one, key) for one in found]) for key in ("error_mpm", "iou")]
    loss = np.mean([one.log_loss for one in found])
    return (
        f"{name:32} {numbers[0]:.4f} {numbers[1]:.3f} {loss:.3f}  {trained.loss}, {seconds:.0f} s"
    )


def maps_alone(files: Sequence[ImageFile], seed: int) -> str:
    """The line of the maps themselves, cut at one half."""
    pairs = [(mask, beside) for _, mask, beside in pictures(files, told, seed + 1)]
    error = np.mean([np.mean((beside > 0.5) != mask) for mask, beside in pairs])
    overlap = [((b > 0.5) & m).sum() / max(((b > 0.5) | m).sum(), 1) for m, b in pairs]
    sides = [np.where(m, b, 1 - b) for m, b in pairs]
    loss = np.mean([-np.log(np.maximum(side, 1e-7)).mean() for side in sides])
    return f"{'maps alone':32} {error:.4f} {np.mean(overlap):.3f} {loss:.3f}"


def main() -> None:
    """Print a line a way: error, overlap (IoU), log loss in nats a pixel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--learn", type=int, default=20)
    parser.add_argument("--test", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    files = [
        list_images(args.pictures / part, args.pictures / part)[:count]
        for part, count in (("train", args.learn), ("test", args.test))
    ]
    print(f"{'way':32} error  IoU   log loss", flush=True)
    print(maps_alone(files[1], args.seed), flush=True)
    for way, learn in (("trees", train_boosted_segmentation), ("linear", train_segmentation)):
        for name, kind in (("pictures", None), ("and maps", told), ("and noise", useless)):
            print(row(f"{way}: {name}", learn, kind, files, args.seed), flush=True)


if __name__ == "__main__":
    main()
