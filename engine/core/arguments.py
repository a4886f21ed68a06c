"""Argument checks used at public boundaries; kernels assume that these have run."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ByteArray = NDArray[np.uint8]
ByteImage = NDArray[np.uint8]  # a picture: rows, columns and, where it has colours, three of them


def as_finite_array(name: str, values: Any, *, shape: Sequence[int | None]) -> FloatArray:
    """Return ``values`` as a contiguous float64 array of the given shape (None: any length).

    Raises
    ------
    InvalidProblemError
        If the array cannot be made float64, has another shape, or holds NaN or infinity.
    """
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidProblemError(f"{name}: expected numbers, received {error}.") from error
    check_shape(name, array, shape)
    if not np.isfinite(array).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise InvalidProblemError(f"{name}: entry {where} is {array[where]}, not a finite number.")
    return array


def check_shape(name: str, array: NDArray[Any], shape: Sequence[int | None]) -> None:
    """Raise InvalidProblemError unless ``array`` has the given shape (None: any length)."""
    matches = array.ndim == len(shape) and all(
        wanted is None or wanted == length
        for wanted, length in zip(shape, array.shape, strict=False)
    )
    if not matches:
        wanted_text = "(" + ", ".join("any" if s is None else str(s) for s in shape) + ")"
        raise InvalidProblemError(f"{name}: expected shape {wanted_text}, received {array.shape}.")


def check_positive(name: str, value: float) -> float:
    """Return ``value`` as float; raise InvalidProblemError unless it is finite and above zero."""
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise InvalidProblemError(f"{name}: expected a number above 0, received {value}.")
    return number


def check_seconds(name: str, seconds: float | None) -> None:
    """Raise InvalidProblemError unless a limit of time is from 0 on; None is no limit."""
    if seconds is not None and not seconds >= 0:  # nan too
        raise InvalidProblemError(f"{name}: expected seconds from 0, received {seconds}.")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Mark ``array`` as read-only and return it; results hand out arrays this way."""
    array.setflags(write=False)
    return array
