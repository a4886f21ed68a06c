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
MAX_WHOLE = 2.0**53  # float64 holds every whole number up to this
ByteImage = NDArray[np.uint8]  # a picture: rows, columns and, if it has colours, three of them


def as_finite_array(name: str, values: Any, *, shape: Sequence[int | None]) -> FloatArray:
    """Return ``values`` as a contiguous float64 array of the given shape (None: any length).

    Raises
    ------
    InvalidProblemError
        If the array cannot be made float64, has another shape, or holds NaN or infinity.
    """
    array = as_float_array(name, values)
    check_shape(name, array, shape)
    if not np.isfinite(array).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise InvalidProblemError(f"{name}: entry {where} is {array[where]}, not a finite number.")
    return array


def as_float_array(name: str, values: Any) -> FloatArray:
    """Return ``values`` as a contiguous float64 array in which no whole number was rounded.

    Raises
    ------
    InvalidProblemError
        If they are not an array of real numbers (complex or sparse arrays, text), a number
        is beyond float64, or an integer has no exact float64 value.
    """
    if hasattr(values, "toarray"):  # SciPy's sparse arrays: NumPy would make one object of them
        raise InvalidProblemError(
            f"{name}: expected a dense array, received a {type(values).__name__}; its method "
            "toarray() makes one, with 0 where no entry is stored."
        )
    refuse_masked(name, values)
    try:
        given = np.asarray(values)
        if np.iscomplexobj(given):
            raise InvalidProblemError(f"{name}: expected real numbers, received complex ones.")
        array = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InvalidProblemError):
            raise
        raise InvalidProblemError(f"{name}: expected numbers, received {error}.") from error
    if given.dtype == object or np.issubdtype(given.dtype, np.integer):
        _check_integers(name, given, array)
    return array.reshape(given.shape)


def refuse_masked(name: str, values: Any) -> None:
    """Refuse a masked array with masked entries, whose hidden numbers NumPy would bring back."""
    if np.ma.is_masked(values):
        raise InvalidProblemError(
            f"{name}: expected numbers, received an array with masked entries; its method "
            "filled(value) puts a number in their place."
        )


def _check_integers(name: str, given: NDArray[Any], array: FloatArray) -> None:
    """Raise InvalidProblemError if float64 changed an integer, as it may beyond 2^53."""
    if np.abs(array).max(initial=0.0) < MAX_WHOLE:
        return
    for number, nearest in zip(given.ravel().tolist(), array.ravel().tolist(), strict=True):
        if isinstance(number, int) and number != nearest:
            raise InvalidProblemError(
                f"{name}: {number} is no float64 number; the nearest is {nearest:.0f}."
            )


def check_shape(name: str, array: NDArray[Any], shape: Sequence[int | None]) -> None:
    """Raise InvalidProblemError unless ``array`` has the given shape (None: any length)."""
    matches = array.ndim == len(shape) and all(
        wanted is None or wanted == length
        for wanted, length in zip(shape, array.shape, strict=False)
    )
    if not matches:
        wanted_text = "(" + ", ".join("any" if s is None else str(s) for s in shape) + ")"
        raise InvalidProblemError(f"{name}: expected shape {wanted_text}, received {array.shape}.")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Mark ``array`` as read-only and return it, as for every array in a result."""
    array.setflags(write=False)
    return array


def as_kernel_input(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only contiguous view of ``array``, or a copy if it is not contiguous.

    Numba compiles a kernel again for each combination of writable, read-only and strided arrays.
    Inputs that always have the same form are compiled for once; the array itself stays writable.
    """
    return read_only(np.ascontiguousarray(array).view())
