"""Objects of a mask: joined pixels, counted and measured."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import BoolArray, FloatArray

COLUMNS = ("number", "area", "perimeter", "row", "column", "mean", "sureness")


@dataclass(frozen=True, slots=True, eq=False)
class ObjectTable:
    """Objects by area, largest first; arrays of one entry an object.

    Parameters
    ----------
    labels : ndarray, shape (height, width), int32: 0, or the number of the object, from 1.
    area : ndarray, shape (n,), float64, in units of the pixel size squared.
    perimeter : ndarray, shape (n,), float64, in units of the pixel size.
    centre : ndarray, shape (n, 2), float64: row and column of the centroid, pixels of the mask.
    mean : ndarray, shape (n,), float64, mean of the picture's values within the object.
    sureness : ndarray, shape (n,), float64
        Mean probability of the pixels' class, where that is known (nan elsewhere).

    Examples
    --------
    >>> mask = np.array([[True, True, False, True]])
    >>> len(measure_objects(mask, np.zeros(mask.shape)))
    2
    """

    labels: NDArray[np.int32]
    area: FloatArray
    perimeter: FloatArray
    centre: FloatArray
    mean: FloatArray
    sureness: FloatArray

    def __len__(self) -> int:
        return len(self.area)

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping of `COLUMNS` an object."""
        columns = (
            range(1, len(self) + 1),
            self.area,
            self.perimeter,
            self.centre[:, 0],
            self.centre[:, 1],
            self.mean,
            self.sureness,
        )
        return [
            {name: None if value != value else float(value) for name, value in pairs}
            for pairs in (zip(COLUMNS, row, strict=True) for row in zip(*columns, strict=True))
        ]


def measure_objects(
    mask: BoolArray,
    values: NDArray[Any],
    probability: NDArray[np.floating[Any]] | None = None,
    *,
    pixel_size: float = 1.0,
    min_pixels: int = 1,
) -> ObjectTable:
    """Count and measure the objects of a mask; pixels joined by sides or corners are one object.

    Parameters
    ----------
    mask : ndarray, shape (height, width), bool
    values : ndarray, shape (height, width), of the picture, for the mean.
    probability : ndarray, shape (height, width), optional, of the pixel's class.
    pixel_size : float, length of a pixel's side, in the unit wanted.
    min_pixels : int, smaller objects are left out.

    Returns
    -------
    ObjectTable

    Notes
    -----
    The perimeter is that of `skimage.measure.perimeter`: borders through the middles of pixels,
    diagonal steps counting as sqrt(2). Objects of one pixel have none.

    Examples
    --------
    >>> mask = np.array([[True, True, False, True]])
    >>> measure_objects(mask, np.zeros(mask.shape), pixel_size=2.0).area.tolist()
    [8.0, 4.0]
    """
    from skimage.measure import label, regionprops  # slow to import

    joined = label(mask, connectivity=2)  # type: ignore[no-untyped-call]
    found = [o for o in regionprops(joined, values) if o.num_pixels >= min_pixels]  # type: ignore[no-untyped-call]
    found.sort(key=lambda o: (-o.num_pixels, o.label))
    numbers = np.zeros(int(joined.max()) + 1, dtype=np.int32)
    numbers[[o.label for o in found]] = np.arange(1, len(found) + 1)
    labels = numbers[joined]
    sureness = np.full(len(found), np.nan)
    if probability is not None and found:
        counts = np.bincount(labels.ravel(), minlength=len(found) + 1)[1:]
        sums = np.bincount(labels.ravel(), weights=probability.ravel(), minlength=len(found) + 1)
        sureness = sums[1:] / counts
    return ObjectTable(
        labels,
        np.array([o.num_pixels for o in found], dtype=np.float64) * pixel_size**2,
        np.array([o.perimeter for o in found], dtype=np.float64) * pixel_size,
        np.array([o.centroid for o in found], dtype=np.float64).reshape(-1, 2),
        np.array([o.intensity_mean for o in found], dtype=np.float64),
        sureness,
    )
