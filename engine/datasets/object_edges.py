"""Edges of numbered objects as a class of their own, from which a model learns to separate them."""

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.crf.class_features import ClassLabels

EDGE_CLASSES = ("Background", "Object", "Edge")
"""Names of the labels of `edges_of`, in the order of their numbers."""
BACKGROUND, OBJECT, EDGE = range(3)


def edges_of(numbers: NDArray[np.integer]) -> ClassLabels:
    """Return labels of numbered objects: background, inside, and edge.

    A pixel of an object lies at its edge if one of its eight neighbours does not belong to the
    object, so that two pixels of edge separate objects that touch. The border of the picture is no
    edge: an object that it cuts goes on.

    Parameters
    ----------
    numbers : ndarray, shape (height, width), whole numbers
        The number of the object at every pixel; 0 for none.

    Returns
    -------
    ndarray, shape (height, width), uint8: 0 background, 1 object, 2 edge.

    Raises
    ------
    InvalidProblemError
        If the numbers are no picture.

    Examples
    --------
    >>> edges_of(np.array([[1, 1, 1, 2, 2, 2, 0]]))
    array([[1, 1, 2, 2, 1, 2, 0]], dtype=uint8)
    """
    numbers = np.asarray(numbers)
    if numbers.ndim != 2 or numbers.dtype.kind not in "iu":
        raise InvalidProblemError("numbers: expected whole numbers in rows and columns.")
    height, width = numbers.shape
    around = np.pad(numbers, 1, mode="edge") if numbers.size else numbers
    differs = np.zeros(numbers.shape, dtype=bool)
    for down in range(3):
        for right in range(3):
            differs |= around[down : down + height, right : right + width] != numbers
    labels = np.where(differs, EDGE, OBJECT)
    return np.where(numbers == 0, BACKGROUND, labels).astype(np.uint8)
