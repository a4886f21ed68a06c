"""Means over images with their confidence intervals, and calibration of probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 2_000
FEWEST_RESAMPLES = 200
# Images drawn for one interval; beyond 10,000 images fewer resamples are as precise.
DRAWN = 20_000_000
DRAWN_AT_ONCE = 500_000  # fits into the processor's caches
BINS = 10
# Fixed, so that the same images give the same interval on every page and in every export.
SEED = 1979


@dataclass(frozen=True, slots=True)
class Interval:
    """Mean over images with its 95 % interval from a bootstrap over images.

    ``low`` and ``high`` are None with fewer than two images, which show nothing about others.
    """

    mean: float
    low: float | None
    high: float | None
    n_images: int


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Pixels whose probability lies in one bin between two tenths, over all images.

    ``predicted`` is their mean probability, ``observed`` the share of foreground, with its
    95 % interval over images.
    """

    predicted: float
    observed: float
    low: float
    high: float
    n_pixels: int


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return the mean of one number per image with its interval; None without images."""
    return mean_intervals(values)[0] if len(values) else None


def mean_intervals(*columns: Sequence[float]) -> list[Interval]:
    """Return the mean of each column with its interval; columns are measures of the same images."""
    numbers = np.array(columns, dtype=np.float64).T
    return _intervals(numbers, _resampled_sums(numbers))


def _intervals(numbers: NDArray[np.float64], sums: NDArray[np.float64]) -> list[Interval]:
    means, n_images = numbers.mean(axis=0), len(numbers)
    if n_images == 1:
        return [Interval(float(mean), None, None, 1) for mean in means]
    lows, highs = np.percentile(sums / n_images, [2.5, 97.5], axis=0)
    return [
        Interval(float(mean), float(low), float(high), n_images)
        for mean, low, high in zip(means, lows, highs, strict=True)
    ]


def difference_interval(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """Return the mean of first minus second over the same images, paired, with its interval."""
    return mean_interval(list(np.subtract(first, second)))


def reliability_counts(
    marginals: NDArray[np.float32], mask: NDArray[np.bool_]
) -> dict[str, list[float]]:
    """Return pixels, summed probability and foreground pixels for each tenth of probability."""
    totals = np.zeros((3, BINS))
    # By rows of about a million pixels, so that temporary arrays stay small.
    step = max(1, 2**20 // max(marginals.shape[1], 1))
    for start in range(0, marginals.shape[0], step):
        p, inside = marginals[start : start + step].ravel(), mask[start : start + step].ravel()
        which = np.minimum((p * BINS).astype(np.intp), BINS - 1)
        for row, weights in zip(totals, (None, p, inside), strict=True):
            row += np.bincount(which, weights=weights, minlength=BINS)
    return {
        "pixels": totals[0].astype(int).tolist(),
        "predicted": totals[1].tolist(),
        "observed": totals[2].tolist(),
    }


def reliability_bins(counts: Sequence[dict[str, list[float]]]) -> list[ReliabilityBin]:
    """Return the reliability bins of several images together; empty bins are left out."""
    if not counts:
        return []
    totals = _totals(counts)
    return _bins(totals, _resampled_sums(totals))


def means_and_reliability(
    columns: Sequence[ArrayLike], counts: Sequence[dict[str, list[float]]]
) -> tuple[list[Interval], list[ReliabilityBin]]:
    """Return ``mean_intervals`` and ``reliability_bins`` of the same images, drawn only once."""
    numbers, totals = np.array(columns, dtype=np.float64).T, _totals(counts)
    sums = _resampled_sums(np.hstack((numbers, totals)))
    k = numbers.shape[1]
    return _intervals(numbers, sums[:, :k]), _bins(totals, sums[:, k:])


def _totals(counts: Sequence[dict[str, list[float]]]) -> NDArray[np.float64]:
    """Return the pixels, predicted and observed of each image by bin, shape (images, 3 BINS)."""
    keys = ("pixels", "predicted", "observed")
    return np.array([[x for key in keys for x in count[key]] for count in counts], np.float64)


def _bins(totals: NDArray[np.float64], sums: NDArray[np.float64]) -> list[ReliabilityBin]:
    pixels, predicted, observed = totals.sum(axis=0).reshape(3, BINS)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = sums[:, 2 * BINS :] / sums[:, :BINS]
    bins = []
    for k in np.flatnonzero(pixels):
        low, high = np.nanpercentile(shares[:, k], [2.5, 97.5])
        bins.append(
            ReliabilityBin(
                predicted=float(predicted[k] / pixels[k]),
                observed=float(observed[k] / pixels[k]),
                low=float(low),
                high=float(high),
                n_pixels=int(pixels[k]),
            )
        )
    return bins


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float | None:
    """Return the pixel-weighted mean distance of predicted and observed shares; None if empty."""
    total = sum(entry.n_pixels for entry in bins)
    if total == 0:
        return None
    return sum(abs(b.predicted - b.observed) * b.n_pixels for b in bins) / total


def _resampled_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of the rows of ``values``, (images, k), over images drawn with replacement.

    Shape (resamples, k). How often each image was drawn is counted first, so that the sums are
    products of matrices; blocks of resamples keep the memory flat at any number of images.
    """
    n = len(values)
    n_resamples = max(FEWEST_RESAMPLES, min(RESAMPLES, DRAWN // n))
    block = max(1, DRAWN_AT_ONCE // n)
    generator = np.random.default_rng(SEED)
    sums = []
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        drawn = generator.integers(0, n, size=(size, n))
        drawn += n * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        sums.append(counts @ values)
    return np.concatenate(sums)
