"""How far predicted label maps are from the truth, class by class."""

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
