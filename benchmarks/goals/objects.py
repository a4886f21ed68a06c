"""Touching nuclei counted: object F1 from painted pictures, beside a plain watershed.

    python -m benchmarks goals objects PICTURES [--draws 3] [--paint 4] [--whole | --numbered]
    python -m benchmarks goals objects PICTURES ... --network [--width N] [--steps N]
        [--max-seconds S]

PICTURES has folders train and test with ``NAME.png`` and numbered nuclei ``NAME_instances.tif``.
Each draw paints short strokes on some dark pictures of train and learns from them as the product
does; it predicts the dark pictures of test. With ``--whole`` every pixel of these pictures is
painted, with ``--numbered`` every nucleus has a number, too, in all pictures unless ``--paint``
says how many. Both also learn with edges as a label: of the numbered nuclei, or of the painted
parts, in which pixels that touch are one nucleus. With ``--network`` trees and a network learn. The
plain watershed has its seeds at least seven pixels apart, the best distance for these pictures.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, distance_transform_edt
from skimage.draw import line
from skimage.feature import peak_local_max
from skimage.measure import label
from skimage.segmentation import watershed

from engine import (
    NetworkOptions,
    edge_network_options,
    predict_segmentation,
    train_class_segmentation,
)
from engine.datasets import EDGE_CLASSES, edges_of, read_image
from engine.learning.segmentation.class_learning import TrainedClasses
from engine.learning.segmentation.model import Detail
from engine.metrics import match_objects, object_planes, separate_objects
from engine.metrics.object_scores import ObjectMatches

Numbers = NDArray[np.integer[Any]]

MAX_DARK = 100  # mean grey of a fluorescence picture
MIN_PIXELS, PLAIN_DISTANCE, STROKES = 10, 7, 6


def stroke(inside: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """The longest of 20 random strokes of three pixels' width that stay inside."""
    places = np.argwhere(inside)
    best: tuple[NDArray[Any], ...] = ()
    for _ in range(20):
        start, turn = places[rng.integers(len(places))], rng.uniform(0, np.pi)
        step = rng.uniform(8, 40) * np.array([np.sin(turn), np.cos(turn)])
        end = np.clip(np.rint(start + step), 0, np.array(inside.shape) - 1).astype(int)
        path = np.stack(line(*start, *end))
        length = int(np.argmin(np.append(inside[tuple(path)], False)))
        if not best or length > len(best[0]):
            best = tuple(path[:, :length])
    drawn = np.zeros(inside.shape, dtype=bool)
    drawn[best] = True
    return np.asarray(binary_dilation(drawn) & inside)


def painted(known: Numbers, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Labels of strokes on six nuclei and six places of the background, half of them beside."""
    labels = np.full(known.shape, 255, dtype=np.uint8)
    for number in rng.permutation(np.unique(known[known > 0]))[:STROKES]:
        labels[stroke(known == number, rng)] = 1
    near = binary_dilation(known > 0, iterations=8) & (known == 0)
    for k in range(STROKES):
        labels[stroke(near if k % 2 else known == 0, rng)] = 0
    return labels


def plain_watershed(mask: NDArray[np.bool_]) -> Numbers:
    """Objects of a watershed of the distance to the border, with seeds some pixels apart."""
    distance = distance_transform_edt(mask)
    parts = label(mask, connectivity=2)
    seeds = np.zeros(mask.shape, dtype=np.int32)
    places = peak_local_max(distance, min_distance=PLAIN_DISTANCE, labels=parts)
    seeds[tuple(places.T)] = np.arange(1, len(places) + 1)
    return np.asarray(watershed(-distance, seeds, mask=mask))


def without_specks(numbers: Numbers) -> Numbers:
    """Numbers without objects of fewer pixels than count."""
    pixels = np.bincount(numbers.ravel())
    return np.where(pixels[numbers] >= MIN_PIXELS, numbers, 0)


def read_dark(folder: Path) -> list[tuple[NDArray[np.uint8], Numbers]]:
    """Dark pictures of a folder and their numbered nuclei."""
    found = []
    for path in sorted(folder.glob("*_instances.tif")):
        image = read_image(path.with_name(path.name.replace("_instances.tif", ".png")))
        if image.mean() < MAX_DARK:
            found.append((image, tifffile.imread(path)))
    return found


Dark = list[tuple[NDArray[np.uint8], Numbers]]


def learned(
    some: Dark, label_maps: Sequence[NDArray[np.uint8]], names: Sequence[str], **options: Any
) -> tuple[TrainedClasses, float]:
    """Return what was learned from the labels of some pictures, and its processor seconds."""
    started = process_time()
    trained = train_class_segmentation(
        [image for image, _ in some],
        label_maps,
        names,
        detail=Detail(scale=1.0),
        position=False,
        rng=np.random.default_rng(0),
        **options,
    )
    for work in trained.left_out:
        print("left out:", work)
    return trained, process_time() - started


def counted(trained: TrainedClasses, test: Dark) -> list[ObjectMatches]:
    """Return the matched objects of touching pixels, of the plain watershed, and of ours."""
    totals = [ObjectMatches(0, 0, 0)] * 3
    for image, known in test:
        planes = predict_segmentation(trained.model, image).probabilities
        edge = None
        if planes.shape[2] > 2:
            mask, probability, edge = object_planes(planes, 1, 2, [0])
        else:
            mask, probability = planes[:, :, 1] > 0.5, planes[:, :, 1]
        answers = (
            label(mask, connectivity=2),
            plain_watershed(mask),
            separate_objects(mask, probability, edge=edge),
        )
        for k, numbers in enumerate(answers):
            totals[k] += match_objects(without_specks(numbers), known)
    return totals


def network_of(args: argparse.Namespace, *, has_edges: bool) -> NetworkOptions:
    """Return the options of the network: those asked for, else those that the product takes."""
    own = edge_network_options(args.max_seconds) if has_edges else NetworkOptions()
    return NetworkOptions(args.width or own.width, args.steps or own.steps)


def main() -> None:
    """Print a line for every draw and model: object F1 at IoU 0.5 and the number of objects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pictures", type=Path)
    known_pixels = parser.add_mutually_exclusive_group()
    known_pixels.add_argument("--whole", action="store_true", help="every pixel is painted")
    known_pixels.add_argument("--numbered", action="store_true", help="every nucleus has a number")
    parser.add_argument("--network", action="store_true")
    parser.add_argument("--width", type=int, help="channels of the first level of the network")
    parser.add_argument("--steps", type=int, help="of each fold of the network")
    parser.add_argument("--max-seconds", type=float)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--paint", type=int, help="number of pictures (4; all that are numbered)")
    args = parser.parse_args()
    learn, test = (read_dark(args.pictures / part) for part in ("train", "test"))
    n_known = sum(len(np.unique(known)) - 1 for _, known in test)
    print(f"{n_known} nuclei in {len(test)} pictures; F1 and objects")
    n_some = args.paint or (len(learn) if args.numbered else 4)
    print("draw  labels   touching pixels   plain watershed   ours         learning, processor s")
    for draw in range(args.draws if n_some < len(learn) else 1):
        rng = np.random.default_rng(draw)
        some = [learn[k] for k in rng.permutation(len(learn))[:n_some]]
        if args.whole or args.numbered:
            marked = [(known > 0).astype(np.uint8) for _, known in some]
        else:
            marked = [painted(known, rng) for _, known in some]
        models = [(marked, EDGE_CLASSES[:2], True)]
        if args.whole or args.numbered:
            parts = [
                known if args.numbered else label(known > 0, connectivity=2) for _, known in some
            ]
            models.append(([edges_of(numbers) for numbers in parts], EDGE_CLASSES, False))
        for label_maps, names, is_smooth in models:
            trained, seconds = learned(
                *(some, label_maps, names),
                is_smooth=is_smooth,
                network=network_of(args, has_edges=len(names) > 2) if args.network else None,
                max_seconds=args.max_seconds,
            )
            cells = "".join(
                f"{one.f1:.3f} {one.n_predicted:5}       " for one in counted(trained, test)
            )
            about = "edges" if len(names) > 2 else "shape"
            print(f"{draw:4}  {about:7}  {cells}{seconds:.0f}, {trained.loss}", flush=True)


if __name__ == "__main__":
    main()
