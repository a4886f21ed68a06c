"""What is checked of the parts of every model file, before anything is made of them."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError

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
