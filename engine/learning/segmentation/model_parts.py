"""Common parts of segmentation model files: checks of arrays, and the view of deep pictures."""

import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.datasets.picture_view import PictureView, view_from_json

Parts = Mapping[str, NDArray[Any]]


def check_model_parts(
    parts: Parts, name: str, *, wanted: Collection[str], settings: Parts, numbers: Collection[str]
) -> None:
    """Check that a model file has all parts, the right feature settings and finite numbers.

    Parameters
    ----------
    parts : mapping of names to arrays
    name : str, of the file.
    wanted : names of all required parts.
    settings : required settings of the features.
    numbers : names of finite numbers; all but theta are single numbers.

    Raises
    ------
    InvalidProblemError
        With one sentence that names the file and the part.
    """
    if missing := set(wanted) - set(parts):
        raise InvalidProblemError(f"{name} is damaged: it lacks {min(missing)}.")
    if not all(np.array_equal(parts[key], values) for key, values in settings.items()):
        raise InvalidProblemError(f"{name} was learned with other image features.")
    for key in numbers:
        values = parts[key]
        if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
            raise InvalidProblemError(f"{name} is damaged: {key} is not a finite number.")
        if key != "theta" and values.shape != ():
            raise InvalidProblemError(f"{name} is damaged: {key} is not one number.")


def whole_number(parts: Parts, key: str) -> int:
    """Return a non-negative integer of a file; 0 if it is missing, as in older files.

    Raises
    ------
    InvalidProblemError
        If the value is not a non-negative integer.
    """
    value = parts.get(key, np.array(0))
    if value.shape != () or value.dtype.kind not in "iu" or value < 0:
        raise InvalidProblemError(f"{key} is not a number from 0 on.")
    return int(value)


def whole_numbers(numbers: NDArray[Any], name: str) -> tuple[int, ...]:
    """Return a list of whole numbers of a file.

    Raises
    ------
    InvalidProblemError
        If the array holds anything else.
    """
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InvalidProblemError(f"{name}: expected whole numbers.")
    return tuple(int(number) for number in numbers)


def view_parts(view: PictureView | None) -> dict[str, NDArray[Any]]:
    """Return the array that stores the view of a model's deep training pictures."""
    return {} if view is None else {"view": np.array(json.dumps(view.as_json()))}


def view_from_parts(parts: Parts) -> PictureView | None:
    """Return the view of a model's deep training pictures; None if there were none.

    Raises
    ------
    InvalidProblemError
        If the view is damaged.
    """
    if "view" not in parts:
        return None
    try:
        return view_from_json(json.loads(str(parts["view"])))
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidProblemError("its display settings cannot be read.") from error
