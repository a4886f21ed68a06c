"""What learning again from corrections changes: the same strokes, corrected in several ways.

    python -m benchmarks product lab_corrections [--sets 4] [--ways 3] [--side 256] [--others 10]

Each set is a laboratory's: four pictures of ``microscope_pictures`` are painted with twenty strokes
as in ``lab_walk``, and the others are predicted. The picture with the most doubt is then corrected
by six strokes, which are drawn anew for each way, and the model is learned again. Printed are the
shares of right pixels in pictures that nobody painted on, before and after: one correction of one
set says little, since strokes differ.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.microscope_pictures import CLASSES, draw_cells
from benchmarks.common.reporting import print_machine, print_table
from benchmarks.product.lab_walk import PER_PICTURE, stroke_within
from engine import predict_segmentation, train_class_segmentation
from engine.datasets.annotations.raster import paint_strokes
from engine.learning.segmentation.model import Detail

STROKES, CORRECTIONS = 20, 6
PAINTED = STROKES // PER_PICTURE
BRUSH_SHARE = 70  # the page's brush is so many times smaller than the picture
UNKNOWN = 255

Strokes = dict[int, list[dict[str, object]]]
"""Of each picture, by its number."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Shares of right pixels and mean doubts of pictures that were not painted, by number."""

    right: dict[int, float]
    doubt: dict[int, float]

    def without(self, number: int) -> float:
        """The mean share of right pixels in all pictures but one."""
        return float(np.mean([share for k, share in self.right.items() if k != number]))


class Laboratory:
    """Pictures of one set, whose truth is known."""

    def __init__(self, seed: int, side: int, n_others: int) -> None:
        """Draw the pictures, shown from their .1st to their 99.9th percentile."""
        drawn = [
            draw_cells(np.random.default_rng([seed, k]), side) for k in range(PAINTED + n_others)
        ]
        low, high = np.percentile([counts for counts, _ in drawn], [0.1, 99.9])
        self.side, self.labels = side, [labels for _, labels in drawn]
        self.images = [_shown(counts, low, high) for counts, _ in drawn]

    def stroke(self, number: int, label: int, rng: np.random.Generator) -> dict[str, object]:
        """One stroke of a class on a picture, as `paint_strokes` takes it."""
        path = stroke_within(self.labels[number] == label, rng) or []
        points = [place for row, column in path for place in (column, row)]
        radius = max(3, round(self.side / BRUSH_SHARE)) / 2
        return {"tool": "brush", "value": label + 1, "radius": radius, "points": points}

    def learn(self, strokes: Strokes) -> Judged:
        """Learn from strokes as the pages do, and judge on the other pictures."""
        maps = [self._painted(painted) for painted in strokes.values()]
        model = train_class_segmentation(
            [self.images[number] for number in strokes],
            maps,
            CLASSES,
            detail=Detail(max_side=self.side, scale=1.0),
            position=False,
        ).model
        right, doubt = {}, {}
        for number in range(PAINTED, len(self.images)):
            found = predict_segmentation(model, self.images[number])
            right[number] = float((found.labels == self.labels[number]).mean())
            doubt[number] = float(found.doubt.mean())
        return Judged(right, doubt)

    def _painted(self, strokes: list[dict[str, object]]) -> NDArray[np.uint8]:
        painted = paint_strokes(strokes, (self.side, self.side), 1)
        return np.where(painted == 0, UNKNOWN, painted - 1).astype(np.uint8)


def _shown(counts: NDArray[np.uint16], low: float, high: float) -> NDArray[np.uint8]:
    grey = np.clip(np.rint((counts - low) / (high - low) * 255), 0, 255).astype(np.uint8)
    return np.repeat(grey[:, :, np.newaxis], 3, axis=2)


def compare(
    seed: int, ways: int, side: int, n_others: int
) -> list[tuple[float, float, float, float]]:
    """Right pixels in other pictures before and after, and in the corrected one, of each way."""
    laboratory = Laboratory(seed, side, n_others)
    rng = np.random.default_rng(seed)
    strokes: Strokes = {}
    for number in range(STROKES):
        place = number // PER_PICTURE
        stroke = laboratory.stroke(place, number % len(CLASSES), rng)
        strokes.setdefault(place, []).append(stroke)
    before = laboratory.learn(strokes)
    worst = max(before.doubt, key=before.doubt.__getitem__)
    rows = []
    for way in range(ways):
        rng = np.random.default_rng([seed, way])
        labels = [number % len(CLASSES) for number in range(CORRECTIONS)]
        corrected = [laboratory.stroke(worst, label, rng) for label in labels]
        after = laboratory.learn({**strokes, worst: corrected})
        own = before.right[worst], after.right[worst]
        rows.append((before.without(worst), after.without(worst), *own))
    return rows


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=4)
    parser.add_argument("--ways", type=int, default=3, help="of correcting each set")
    parser.add_argument("--side", type=int, default=256, help="of the pictures, pixels")
    parser.add_argument("--others", type=int, default=10, help="pictures that are not painted")
    parser.add_argument("--quick", action="store_true", help="1 set, 1 way, 2 small pictures")
    options = parser.parse_args()
    sizes = options.sets, options.ways, options.side, options.others
    n_sets, ways, side, n_others = (1, 1, 96, 2) if options.quick else sizes
    print_machine()
    rows, all_rows = [], []
    for seed in range(1, n_sets + 1):
        found = compare(seed, ways, side, n_others)
        all_rows += found
        rows += [[str(seed), *(f"{share:.2%}" for share in row)] for row in found]
    header = ["set", "others before", "after", "corrected picture before", "after"]
    print_table("Right pixels before and after six corrections", header, rows)
    numbers = np.array(all_rows)
    for name, change in (
        ("others", numbers[:, 1] - numbers[:, 0]),
        ("corrected picture", numbers[:, 3] - numbers[:, 2]),
    ):
        print(
            f"{name}: {change.mean():+.2%} on average, from {change.min():+.2%} to "
            f"{change.max():+.2%}; fewer right in {np.sum(change < 0)} of {len(change)}"
        )


if __name__ == "__main__":
    main()
