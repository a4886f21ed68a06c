"""How far predicted label maps are from the truth, class by class."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """Counts of known pixels: ``counts[y, x]`` of class y that were given the label x.

    Classes that occur neither in truth nor in predictions have the figure NaN.
    """

    counts: IntArray

    @property
    def error(self) -> float:
        """Share of wrong pixels."""
        total = int(self.counts.sum())
        return 1.0 - float(np.trace(self.counts)) / total if total else float("nan")

    @property
    def errors(self) -> FloatArray:
        """Share of each class's pixels that were given another label, shape (L,)."""
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
        """Counts of both."""
        return Confusion(self.counts + other.counts)


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """Figures of several pictures; ``classes`` has a row a class, over the pixels of all of them.

    ``error`` and ``overlap`` are means over pictures, as of masks: the share of wrong pixels, and
    the mean intersection over union of the classes that occur in the picture.
    """

    n_pictures: int
    error: float
    overlap: float
    classes: tuple[dict[str, float], ...]


def class_figures(counts: Sequence[Confusion]) -> ClassFigures | None:
    """Return the figures of pictures; None where none has a known pixel.

    A row of ``classes`` has "pixels" (known ones), "iou", "found" (the share of them that were
    given this class) and "right" (the share of those given this class that are of it).
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
    """Count known pixels, those whose true label is below ``n_classes``.

    Raises
    ------
    InvalidProblemError
        If the sizes differ.
    """
    if predicted.shape != truth.shape:
        raise InvalidProblemError(
            f"prediction and truth differ in size: {predicted.shape} and {truth.shape}."
        )
    known = truth < n_classes
    joint = truth[known].astype(np.int64) * n_classes + predicted[known]
    counts = np.bincount(joint, minlength=n_classes**2)
    return Confusion(counts.reshape(n_classes, n_classes))
