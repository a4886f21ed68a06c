"""Checks of pictures, and of given maps: probabilities of another program beside them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.crf.class_features import MOST_CLASSES
from engine.datasets.masks import mask_fits
from engine.datasets.probability_maps import ROUNDING

Maps = Iterable[NDArray[np.floating] | None]
GivenMap = NDArray[np.floating] | None
Planes = NDArray[np.float32]

_END = object()


class MapsInStep:
    """Iterator over the maps of pictures, which checks that all have the same number of planes.

    Parameters
    ----------
    maps : iterable of ndarray, one per picture; None if pictures have no maps
    n_planes : required number of planes; by default that of the first map
    """

    def __init__(self, maps: Maps | None, n_planes: int | None = None) -> None:
        self._maps = None if maps is None else iter(maps)
        self.n_planes = n_planes

    def next(self, name: str, shape: Sequence[int]) -> Planes:
        """Return the map of the next picture, of ``shape``, after `check_maps`.

        Raises
        ------
        InvalidProblemError
            If there is no further map, or its number of planes differs from the others.
        """
        given = None if self._maps is None else next(self._maps, _END)
        if given is _END:
            raise InvalidProblemError(f"{name} has no map.")
        planes = check_maps(name, given, shape)  # type: ignore[arg-type]
        if self.n_planes is not None and planes.shape[2] != self.n_planes:
            raise InvalidProblemError(
                f"{name}: expected {_maps(self.n_planes)} as of the others, got {planes.shape[2]}."
            )
        self.n_planes = planes.shape[2]
        return planes

    def end(self, count: int) -> None:
        """Raise InvalidProblemError if there are more maps than the ``count`` pictures."""
        if self._maps is not None and next(self._maps, _END) is not _END:
            raise InvalidProblemError(f"map {count + 1} has no image.")


def check_image(name: str, image: NDArray[Any]) -> None:
    """Raise InvalidProblemError unless ``image`` holds bytes of shape (height, width, 3)."""
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or image.size == 0:
        raise InvalidProblemError(
            f"{name}: expected bytes of shape (height, width, 3), received "
            f"{image.dtype} of shape {image.shape}."
        )


def check_maps(name: str, given: GivenMap, shape: Sequence[int]) -> Planes:
    """Return checked maps as (H', W', C) float32, with C = 0 for None.

    Parameters
    ----------
    name : str, of the picture
    given : ndarray, shape (H', W') or (H', W', C), or None
    shape : (H, W), of the picture; a map may be a smaller or larger copy of it.

    Raises
    ------
    InvalidProblemError
        If the shape or the proportions are wrong, or a value is not between 0 and 1.
    """
    if given is None:
        return np.zeros((1, 1, 0), dtype=np.float32)
    values = given[:, :, None] if given.ndim == 2 else given
    if values.ndim != 3 or values.size == 0:
        raise InvalidProblemError(f"{name}: expected maps of shape (height, width, planes).")
    if values.shape[2] > MOST_CLASSES:
        raise InvalidProblemError(f"{name}: maps have at most {MOST_CLASSES} planes.")
    check_proportions(name, values.shape, shape)
    narrow = np.asarray(values, dtype=np.float32)
    low, high = float(narrow.min()), float(narrow.max())  # nan if any value is nan
    if not (low >= -ROUNDING and high <= 1 + ROUNDING):
        raise InvalidProblemError(f"{name}: maps must hold probabilities, numbers from 0 to 1.")
    return narrow


def check_proportions(name: str, maps_shape: Sequence[int], shape: Sequence[int]) -> None:
    """Raise InvalidProblemError unless maps have the proportions of their picture."""
    (rows, columns), (height, width) = maps_shape[:2], shape[:2]
    if not mask_fits((rows, columns), (int(height), int(width))):
        raise InvalidProblemError(
            f"{name}: its maps are {columns} x {rows} pixels but it is {width} x {height}; they "
            "have to be of the same picture."
        )


def maps_for(n_maps: int, maps: GivenMap, shape: Sequence[int]) -> Planes:
    """Return the checked maps of a picture of ``shape``, for a model with ``n_maps`` planes.

    Raises
    ------
    InvalidProblemError
        As `check_maps`, or if the number of planes differs from that in learning.
    """
    planes = check_maps("image", maps, shape)
    check_count(n_maps, planes.shape[2])
    return planes


def check_count(n_maps: int, n_given: int) -> None:
    """Raise InvalidProblemError unless a picture has the number of planes that a model needs."""
    if n_given != n_maps:
        raise InvalidProblemError(
            f"The model learned with {_maps(n_maps)} beside each image; this one comes with "
            f"{n_given}."
        )


def _maps(count: int) -> str:
    return f"{count} map{'s'[: count != 1]}"
