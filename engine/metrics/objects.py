"""Count and measurement of the objects (connected pixels) of a mask."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import BoolArray, FloatArray
from engine.core.options import check_number, check_whole

COLUMNS = ("number", "area", "perimeter", "row", "column", "mean", "sureness")


@dataclass(frozen=True, slots=True, eq=False)
class ObjectTable:
    """Measured objects of a mask, largest area first; arrays have one entry per object.

    Parameters
    ----------
    labels : ndarray, shape (height, width), int32: number of the object from 1, or 0.
    area : ndarray, shape (n,), float64, in units of the pixel size squared.
    perimeter : ndarray, shape (n,), float64, in units of the pixel size.
    steps : ndarray, shape (n, 3), float64, of the perimeter: across, down and diagonal, in pixels;
        `perimeter_of` returns their length for pixels of any width and height.
    centre : ndarray, shape (n, 2), float64: row and column of the centroid, pixels of the mask.
    mean : ndarray, shape (n,), float64, mean of the picture's values within the object.
    sureness : ndarray, shape (n,), float64
        Mean probability of the pixels' class; nan if unknown.

    Examples
    --------
    >>> mask = np.array([[True, True, False, True]])
    >>> len(measure_objects(mask, np.zeros(mask.shape)))
    2
    """

    labels: NDArray[np.int32]
    area: FloatArray
    perimeter: FloatArray
    steps: FloatArray
    centre: FloatArray
    mean: FloatArray
    sureness: FloatArray

    def __len__(self) -> int:
        return len(self.area)

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping of `COLUMNS` per object."""
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
    pixel_size: float | tuple[float, float] = 1.0,
    min_pixels: int = 1,
) -> ObjectTable:
    """Count and measure the objects of a mask; pixels joined by sides or corners are one object.

    Parameters
    ----------
    mask : ndarray, shape (height, width), bool
    values : ndarray, shape (height, width), of the picture, for the mean.
    probability : ndarray, shape (height, width), optional, of the pixel's class.
    pixel_size : float, or two: width and height of a pixel, in the requested unit.
    min_pixels : int, smaller objects are left out.

    Returns
    -------
    ObjectTable

    Notes
    -----
    The perimeter is that of `skimage.measure.perimeter`: borders through the middles of pixels,
    diagonal steps of length sqrt(2), or the diagonal of pixels that are not square. Objects of one
    pixel have perimeter 0. Means leave out values that are not finite.

    Examples
    --------
    >>> mask = np.array([[True, True, False, True]])
    >>> measure_objects(mask, np.zeros(mask.shape), pixel_size=2.0).area.tolist()
    [8.0, 4.0]
    """
    check_number("pixel_size", pixel_size, above=0.0, or_array=True)
    check_whole("min_pixels", min_pixels, at_least=0)
    from skimage.measure import label, regionprops  # slow to import

    joined = label(mask, connectivity=2)  # type: ignore[no-untyped-call]
    found = [o for o in regionprops(joined, values) if o.num_pixels >= min_pixels]  # type: ignore[no-untyped-call]
    found.sort(key=lambda o: (-o.num_pixels, o.label))
    numbers = np.zeros(int(joined.max()) + 1, dtype=np.int32)
    numbers[[o.label for o in found]] = np.arange(1, len(found) + 1)
    labels = numbers[joined]
    count = len(found)
    sureness = np.full(count, np.nan)
    if probability is not None and found:
        sureness = _means(labels, probability, count)
    width, height = pixel_size if isinstance(pixel_size, tuple) else (pixel_size, pixel_size)
    steps = _border_steps(labels, count)
    return ObjectTable(
        labels,
        np.array([o.num_pixels for o in found], dtype=np.float64) * (width * height),
        perimeter_of(steps, width, height),
        steps,
        np.array([o.centroid for o in found], dtype=np.float64).reshape(-1, 2),
        _means(labels, values, count),
        sureness,
    )


def perimeter_of(steps: FloatArray, width: float, height: float) -> FloatArray:
    """Return the total length of steps across, down and diagonal (last axis) for a pixel size.

    Examples
    --------
    >>> perimeter_of(np.array([[4.0, 2.0, 1.0]]), 3.0, 4.0).tolist()
    [25.0]
    """
    return np.asarray(steps @ np.array([width, height, np.hypot(width, height)]))


def _means(labels: NDArray[np.int32], values: NDArray[Any], count: int) -> FloatArray:
    """Return the mean of the finite values within each object; nan if there are none."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    is_finite = np.isfinite(flat)
    of = labels.ravel()[is_finite]
    sums = np.bincount(of, weights=flat[is_finite], minlength=count + 1)[1:]
    counts = np.bincount(of, minlength=count + 1)[1:]
    means: FloatArray = np.full(count, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _border_steps(labels: NDArray[np.int32], count: int) -> FloatArray:
    """Return steps along the border of each object: across, down, diagonal, shape (count, 3).

    As in scikit-image, the number of a border pixel's neighbours on the border decides if it counts
    as a straight step, a diagonal step, or half of each. A straight step is divided between the
    directions across and down in proportion to the neighbours in each.
    """
    border = np.pad(labels > 0, 1)
    inner = border[1:-1, 1:-1].copy()
    for rows, columns in ((0, 1), (2, 1), (1, 0), (1, 2)):
        inner &= border[rows : rows + labels.shape[0], columns : columns + labels.shape[1]]
    border[1:-1, 1:-1] &= ~inner
    row, column = np.nonzero(border[1:-1, 1:-1])

    def on_border(down: int, right: int) -> NDArray[np.int8]:
        return border[row + 1 + down, column + 1 + right].astype(np.int8)

    beside = on_border(0, -1) + on_border(0, 1)
    above = on_border(-1, 0) + on_border(1, 0)
    corners = on_border(-1, -1) + on_border(-1, 1) + on_border(1, -1) + on_border(1, 1)
    straight = beside + above
    is_straight = np.isin(straight, (2, 3)) & (corners <= 2)
    is_diagonal = ((straight == 0) & (corners == 2)) | ((straight == 1) & (corners == 3))
    is_mixed = (straight == 1) & np.isin(corners, (1, 2))
    share = is_straight + 0.5 * is_mixed
    across = share * np.divide(beside, straight, out=np.zeros(len(row)), where=straight > 0)
    down = share * np.divide(above, straight, out=np.zeros(len(row)), where=straight > 0)
    diagonal = is_diagonal + 0.5 * is_mixed
    number = labels[row, column]
    steps = np.zeros((count, 3))
    for place, weights in enumerate((across, down, diagonal)):
        steps[:, place] = np.bincount(number, weights=weights, minlength=count + 1)[1:]
    return steps
