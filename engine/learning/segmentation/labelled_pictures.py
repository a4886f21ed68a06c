"""Reading of pictures with masks: checks, and scaling down to the size of their models."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.crf.image_grid import model_shape, shrink_image, shrink_maps, shrink_mask
from engine.learning.segmentation.given_maps import Maps, MapsInStep, check_image

Images = Iterable[NDArray[np.uint8]]
Masks = Iterable[NDArray[np.bool_]]


class LabelledPicture(NamedTuple):
    """Picture (rows, columns, 3) uint8 at the size of its model, with its labels and maps.

    ``maps`` are log-odds, (rows, columns, C) float32, with C = 0 if there are none;
    ``is_marked`` is True if the mask marked any pixel before it was scaled down.
    """

    colours: NDArray[np.uint8]
    labels: NDArray[np.bool_]
    maps: NDArray[np.float32]
    is_marked: bool


def labelled_pictures(
    images: Images,
    masks: Masks,
    max_side: int,
    maps: Maps | None = None,
    *,
    n_maps: int | None = None,
) -> Iterator[LabelledPicture]:
    """Yield pictures with masks one at a time, with ``n_maps`` maps or as many as the first.

    Raises
    ------
    InvalidProblemError
        If the numbers differ, an image is not (H, W, 3) uint8, an image and its mask differ in
        size, or maps fail `given_maps.check_maps`.
    """
    beside, number = MapsInStep(maps, n_maps), 0
    for number, (image, mask) in enumerate(zip_longest(images, masks), start=1):
        if image is None or mask is None:
            lone, other = ("image", "mask") if mask is None else ("mask", "image")
            raise InvalidProblemError(f"{lone} {number} has no {other}.")
        check_image(f"image {number}", image)
        rows, columns = int(image.shape[0]), int(image.shape[1])
        if mask.shape != (rows, columns) or mask.dtype != np.bool_:
            raise InvalidProblemError(
                f"image {number}: expected a mask of booleans of shape {(rows, columns)}, "
                f"received {mask.dtype} of shape {mask.shape}."
            )
        shape = model_shape((rows, columns), max_side)
        planes = shrink_maps(beside.next(f"image {number}", (rows, columns)), shape)
        yield LabelledPicture(
            shrink_image(image, shape), shrink_mask(mask, shape), planes, bool(mask.any())
        )
    beside.end(number)


def check_some(count: int) -> None:
    """Raise InvalidProblemError if the number of pictures is 0."""
    if count == 0:
        raise InvalidProblemError("There are no labelled images to learn from.")


def check_labels(
    counts: Sequence[int], sizes: Sequence[int], max_side: int, *, is_any_marked: bool
) -> None:
    """Raise InvalidProblemError if the masks mark no pixel or every pixel.

    Parameters
    ----------
    counts, sizes : marked pixels and all pixels of each picture at the size of its model.
    is_any_marked : True if any mask marked any pixel at its own size.
    """
    check_some(len(sizes))
    if not is_any_marked:
        raise InvalidProblemError("No mask marks any pixel; there is nothing to learn.")
    if not any(counts):
        raise InvalidProblemError(
            f"What the masks mark is too small to be seen once images are shrunk to {max_side} "
            "pixels a side; learn at more pixels a side (max_side)."
        )
    if list(counts) == list(sizes):
        raise InvalidProblemError("The masks mark every pixel; there is nothing to learn.")
