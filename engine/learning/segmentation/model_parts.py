"""What every model file of pictures has in common: how its parts are checked, and the view."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.core.npz_file import read_model_parts
from engine.datasets.picture_view import PictureView, view_from_json

Parts = Mapping[str, NDArray[Any]]


def check_model_parts(
    parts: Parts, name: str, *, wanted: Collection[str], settings: Parts, numbers: Collection[str]
) -> None:
    """Refuse a file that lacks a part, was learned with other features, or holds no numbers.

    Parameters
    ----------
    parts : mapping of names to arrays
    name : str, of the file.
    wanted : names of all parts.
    settings : what features were computed with, as it has to be.
    numbers : names of finite numbers; all but theta are single ones.

    Raises
    ------
    InvalidProblemError
        One sentence, naming the file and the part.
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
    """Return a number from 0 on of a file; 0 in older ones, which do not know of it.

    Raises
    ------
    InvalidProblemError
        If it is none.
    """
    value = parts.get(key, np.array(0))
    if value.shape != () or value.dtype.kind not in "iu" or value < 0:
        raise InvalidProblemError(f"{key} is not a number from 0 on.")
    return int(value)


def view_parts(view: PictureView | None) -> dict[str, NDArray[Any]]:
    """Return what `read_view` reads: how deep pictures were shown that a model learned from."""
    return {} if view is None else {"view": np.array(json.dumps(view.as_json()))}


def read_view(path: Path, *, max_bytes: int) -> PictureView | None:
    """Return how deep pictures were shown that a model learned from; None if there were none.

    Raises
    ------
    InvalidProblemError
        As for `read_model_parts`, or if the view is damaged.
    """
    parts = read_model_parts(path, {"view"}, max_bytes=max_bytes)
    if "view" not in parts:
        return None
    try:
        return view_from_json(json.loads(str(parts["view"])))
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidProblemError(f"{path.name} is damaged: its view is none.") from error
