"""Labelled pictures of several classes: read one at a time, checked, and cut to what is learned."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, check_positive
from engine.core.errors import InvalidProblemError
from engine.crf.class_features import UNKNOWN, ClassLabels
from engine.crf.filter_bank import Frame
from engine.crf.image_grid import shrink_image, shrink_labels, shrink_maps
from engine.learning.segmentation.class_model import Detail
from engine.learning.segmentation.labelled_pictures import Images
from engine.learning.segmentation.mask_prediction import check_image

LabelMaps = Iterable[ClassLabels]
Maps = Iterable[NDArray[np.floating] | None]

WINDOW = 512
"""Pixels a side that are kept of a picture whose model is larger: where its known labels lie."""


class ReadPicture(NamedTuple):
    """A picture, or the window of it that is learned from, at the size of its model."""

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
        that is no class, or maps have another number of planes or values outside 0 to 1.
    """
    beside = repeat(None) if maps is None else maps
    n_maps: int | None = None
    pairs = zip_longest(images, labels)
    for number, ((image, label), given) in enumerate(zip(pairs, beside, strict=False), start=1):
        if image is None or label is None:
            lone, other = ("image", "label map") if label is None else ("label map", "image")
            raise InvalidProblemError(f"{lone} {number} has no {other}.")
        check_image(f"image {number}", image)
        check_label_map(f"image {number}", label, image.shape[:2], n_classes)
        planes = check_maps(f"image {number}", given)
        if n_maps is not None and planes.shape[2] != n_maps:
            raise InvalidProblemError(
                f"image {number}: expected {n_maps} maps as of the others, got {planes.shape[2]}."
            )
        n_maps = planes.shape[2]
        yield _windowed(image, label, planes, detail, n_classes)


def _windowed(
    image: NDArray[np.uint8],
    label: ClassLabels,
    planes: NDArray[np.float32],
    detail: Detail,
    n_classes: int,
) -> ReadPicture:
    """Shrink a picture to its model, and keep the window of it with the most known pixels."""
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
    """The corner of the window of ``side`` pixels that holds most known pixels."""
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
    row, column = best[len(best) // 2]  # among equals the middle: borders are the least alike
    return int(tops[row]), int(lefts[column])


def check_label_map(
    name: str, label: ClassLabels, shape: Sequence[int], n_classes: int
) -> ClassLabels:
    """Return the map if it has the picture's size and only known labels or `UNKNOWN`.

    Raises
    ------
    InvalidProblemError
        If not.
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


def check_maps(name: str, given: NDArray[np.floating] | None) -> NDArray[np.float32]:
    """Return maps as (H, W, C) float32, C = 0 where there are none.

    Raises
    ------
    InvalidProblemError
        If the shape is another, or a value is not between 0 and 1.
    """
    if given is None:
        return np.zeros((1, 1, 0), dtype=np.float32)
    values = given[:, :, None] if given.ndim == 2 else given
    if values.ndim != 3 or values.size == 0:
        raise InvalidProblemError(f"{name}: expected maps of shape (height, width, planes).")
    narrow = np.asarray(values, dtype=np.float32)
    if not (np.isfinite(narrow).all() and narrow.min() >= -1e-6 and narrow.max() <= 1 + 1e-6):
        raise InvalidProblemError(f"{name}: maps must hold probabilities, numbers from 0 to 1.")
    return narrow


def check_class_weights(given: Sequence[float] | None, n_classes: int) -> FloatArray:
    """Return one weight a class, 1 by default.

    Raises
    ------
    InvalidProblemError
        If there are not as many as classes, or one is not above 0.
    """
    if given is None:
        return np.ones(n_classes)
    values = np.array([check_positive("class weight", number) for number in given])
    if len(values) != n_classes:
        raise InvalidProblemError(
            f"class weights: expected {n_classes}, one a class, received {len(values)}."
        )
    return values


def check_known(read: Sequence[ReadPicture], classes: Sequence[str]) -> tuple[int, ...]:
    """Count the known pixels of each class; refuse where there is nothing to tell apart.

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
