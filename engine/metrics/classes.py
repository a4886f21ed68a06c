"""Errors of predicted label maps against the true ones, class by class."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_whole


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """Confusion matrix: ``counts[y, x]`` known pixels of class y were predicted as x.

    The figures of classes that occur neither in truth nor in predictions are NaN.

    Parameters
    ----------
    counts : ndarray, shape (L, L), int64, pixels by true class (row) and prediction (column).

    Examples
    --------
    >>> Confusion(np.array([[3, 1], [0, 4]])).error
    0.125
    """

    counts: IntArray

    @property
    def error(self) -> float:
        """Share of wrong pixels."""
        total = int(self.counts.sum())
        return 1.0 - float(np.trace(self.counts)) / total if total else float("nan")

    @property
    def n_wrong(self) -> int:
        """Number of wrong pixels."""
        return int(self.counts.sum() - np.trace(self.counts))

    @property
    def errors(self) -> FloatArray:
        """Share of each class's pixels that were predicted as another class, shape (L,)."""
        with np.errstate(invalid="ignore"):
            return np.asarray(1.0 - np.diag(self.counts) / self.counts.sum(axis=1))

    @property
    def overlaps(self) -> FloatArray:
        """Intersection over union of each class, shape (L,)."""
        union = self.counts.sum(axis=0) + self.counts.sum(axis=1) - np.diag(self.counts)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.diag(self.counts) / union)

    @property
    def mean_overlap(self) -> float:
        """Mean intersection over union of the classes that occur."""
        values = self.overlaps
        return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")

    def __add__(self, other: "Confusion") -> "Confusion":
        """Return the sum of both confusion matrices."""
        return Confusion(self.counts + other.counts)


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """Accuracy figures of several pictures.

    Parameters
    ----------
    n_pictures : int, number of pictures with a known pixel.
    error : float, share of wrong pixels, mean over pictures, as for masks.
    overlap : float
        Intersection over union, mean over the classes that occur in the picture and over pictures.
    classes : tuple of dict, length L, figures of each class over the pixels of all pictures.

    Examples
    --------
    >>> ClassFigures(1, 0.25, 0.5, ()).error
    0.25
    """

    n_pictures: int
    error: float
    overlap: float
    classes: tuple[dict[str, float], ...]


def class_figures(counts: Sequence[Confusion]) -> ClassFigures | None:
    """Return the accuracy figures of pictures; None if no picture has a known pixel.

    A row of ``classes`` has "pixels" (known pixels of the class), "iou", "found" (recall: share of
    these pixels predicted as the class) and "right" (precision: share of right predictions).

    Parameters
    ----------
    counts : sequence of Confusion, one per picture.

    Returns
    -------
    ClassFigures or None

    Examples
    --------
    >>> truth = np.array([[0, 1]], dtype=np.uint8)
    >>> figures = class_figures([confusion(truth, truth, 2)])
    >>> figures.n_pictures, figures.error
    (1, 0.0)
    """
    known = [one for one in counts if one.counts.any()]
    if not known:
        return None
    total = np.sum([one.counts for one in known], axis=0)
    overlaps = Confusion(total).overlaps
    pixels, given, hits = total.sum(axis=1), total.sum(axis=0), np.diag(total)
    with np.errstate(invalid="ignore"):
        columns = (pixels.astype(float), overlaps, hits / pixels, hits / given)
    names = ("pixels", "iou", "found", "right")
    rows = tuple(
        dict(zip(names, map(float, row), strict=True)) for row in zip(*columns, strict=True)
    )
    return ClassFigures(
        len(known),
        float(np.mean([one.error for one in known])),
        float(np.mean([one.mean_overlap for one in known])),
        rows,
    )


def confusion(predicted: NDArray[np.uint8], truth: NDArray[np.uint8], n_classes: int) -> Confusion:
    """Return the confusion matrix of known pixels, whose true label is below ``n_classes``.

    Parameters
    ----------
    predicted : ndarray, shape (H, W), uint8, labels.
    truth : ndarray, shape (H, W), uint8, labels; 255 where nothing is known.
    n_classes : int, L.

    Returns
    -------
    Confusion

    Raises
    ------
    InvalidProblemError
        If the sizes differ.

    Examples
    --------
    >>> truth = np.array([[0, 1, 255]], dtype=np.uint8)
    >>> confusion(np.array([[0, 0, 0]], dtype=np.uint8), truth, 2).error
    0.5
    """
    check_whole("n_classes", n_classes, at_least=1)
    if predicted.shape != truth.shape:
        raise InvalidProblemError(
            f"prediction and truth differ in size: {predicted.shape} and {truth.shape}."
        )
    known = truth < n_classes
    joint = truth[known].astype(np.int64) * n_classes + predicted[known]
    counts = np.bincount(joint, minlength=n_classes**2)
    return Confusion(counts.reshape(n_classes, n_classes))
