"""Reading of pictures with label maps, one at a time: checks, scaling down, and windows."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_positive
from engine.crf.class_features import UNKNOWN, ClassLabels
from engine.crf.filter_bank import Frame
from engine.crf.image_grid import shrink_image, shrink_labels, shrink_maps
from engine.learning.segmentation.given_maps import Maps, MapsInStep, check_image
from engine.learning.segmentation.labelled_pictures import Images
from engine.learning.segmentation.model import Detail

LabelMaps = Iterable[ClassLabels]

WINDOW = 512
"""Side in pixels of the window that is stored of a larger model: around its known labels."""


class ReadPicture(NamedTuple):
    """Labelled picture, or the window of it that is learned from, at the size of its model."""

    colours: NDArray[np.uint8]
    maps: NDArray[np.float32]
    labels: ClassLabels
    frame: Frame


def read_class_pictures(
    images: Images,
    labels: LabelMaps,
    n_classes: int,
    *,
    maps: Maps | None = None,
    detail: Detail,
) -> Iterator[ReadPicture]:
    """Yield pictures with labels at the size of their models, one at a time.

    Raises
    ------
    InvalidProblemError
        If the numbers differ, an image is not (H, W, 3) uint8, labels have another size or a value
        that is not a class, or maps have another number of planes, other proportions or values
        outside 0 to 1.
    """
    beside, number = MapsInStep(maps), 0
    for number, (image, label) in enumerate(zip_longest(images, labels), start=1):
        if image is None or label is None:
            lone, other = ("image", "label map") if label is None else ("label map", "image")
            raise InvalidProblemError(f"{lone} {number} has no {other}.")
        check_image(f"image {number}", image)
        check_label_map(f"image {number}", label, image.shape[:2], n_classes)
        planes = beside.next(f"image {number}", image.shape[:2])
        yield _windowed(image, label, planes, detail, n_classes)
    beside.end(number)


def _windowed(
    image: NDArray[np.uint8],
    label: ClassLabels,
    planes: NDArray[np.float32],
    detail: Detail,
    n_classes: int,
) -> ReadPicture:
    """Scale a picture down to its model, and return the window with the most known pixels."""
    shape = detail.shape(int(image.shape[0]), int(image.shape[1]))
    colours, small = shrink_image(image, shape), shrink_labels(label, shape, n_classes)
    maps = shrink_maps(planes, shape)
    top, left = best_window(small < n_classes, WINDOW)
    place = slice(top, top + WINDOW), slice(left, left + WINDOW)
    return ReadPicture(
        np.ascontiguousarray(colours[place]),
        np.ascontiguousarray(maps[place]),
        np.ascontiguousarray(small[place]),
        Frame(top, left, *shape),
    )


def best_window(known: NDArray[np.bool_], side: int) -> tuple[int, int]:
    """Return the corner of the window of ``side`` pixels that holds the most known pixels."""
    rows, columns = known.shape
    if max(rows, columns) <= side:
        return 0, 0
    sums = np.zeros((rows + 1, columns + 1), dtype=np.int64)
    sums[1:, 1:] = known.cumsum(axis=0, dtype=np.int64).cumsum(axis=1)
    tops = np.unique(np.linspace(0, max(rows - side, 0), 9).astype(int))
    lefts = np.unique(np.linspace(0, max(columns - side, 0), 9).astype(int))
    bottoms, rights = np.minimum(tops + side, rows), np.minimum(lefts + side, columns)
    counts = sums[np.ix_(bottoms, rights)] - sums[np.ix_(tops, rights)]
    counts += sums[np.ix_(tops, lefts)] - sums[np.ix_(bottoms, lefts)]
    best = np.argwhere(counts == counts.max())
    row, column = best[len(best) // 2]  # of ties the middle one: picture borders are atypical
    return int(tops[row]), int(lefts[column])


def check_label_map(
    name: str, label: ClassLabels, shape: Sequence[int], n_classes: int
) -> ClassLabels:
    """Return the label map after checking its size, and that labels are classes or `UNKNOWN`.

    Raises
    ------
    InvalidProblemError
        If a check fails.
    """
    if label.shape != tuple(shape) or label.dtype != np.uint8:
        raise InvalidProblemError(
            f"{name}: expected labels of bytes of shape {tuple(shape)}, received {label.dtype} of "
            f"shape {label.shape}."
        )
    used = np.flatnonzero(np.bincount(label.ravel(), minlength=256))
    strange = used[(used >= n_classes) & (used != UNKNOWN)]
    if len(strange):
        raise InvalidProblemError(
            f"{name}: label {strange[0]} is none of the {n_classes} classes (0 to "
            f"{n_classes - 1}), nor unknown ({UNKNOWN})."
        )
    return label


def check_class_weights(given: Sequence[float] | None, n_classes: int) -> FloatArray:
    """Return one weight per class, 1 by default.

    Raises
    ------
    InvalidProblemError
        If the number of weights is not the number of classes, or one is not above 0.
    """
    if given is None:
        return np.ones(n_classes)
    values = np.array([check_positive("class_weights", number) for number in given])
    if len(values) != n_classes:
        raise InvalidProblemError(
            f"class weights: expected {n_classes}, one a class, received {len(values)}."
        )
    return values


def check_known(read: Sequence[ReadPicture], classes: Sequence[str]) -> tuple[int, ...]:
    """Return the number of known pixels of each class; at least two classes must be known.

    Raises
    ------
    InvalidProblemError
        If there are no pictures, or fewer than two classes are known.
    """
    if not read:
        raise InvalidProblemError("There are no labelled images to learn from.")
    counts = np.zeros(256, dtype=np.int64)
    for picture in read:
        counts += np.bincount(picture.labels.ravel(), minlength=256)
    found = counts[: len(classes)]
    if not found.any():
        raise InvalidProblemError("No pixel has a known label; there is nothing to learn.")
    if np.count_nonzero(found) < 2:
        only = classes[int(found.argmax())]
        raise InvalidProblemError(
            f"All known pixels are {only}; paint some of another class, or learn at more detail."
        )
    return tuple(int(count) for count in found)
