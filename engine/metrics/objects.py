"""Count and measurement of the objects of a mask: connected pixels, or numbered objects."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import BoolArray, FloatArray
from engine.core.options import check_flag, check_number, check_whole

COLUMNS = ("number", "area", "perimeter", "row", "column", "mean", "sureness")
SHAPE = ("diameter", "eccentricity", "solidity", "feret")
"""Measures of shape: equivalent diameter, eccentricity, solidity, largest Feret diameter."""


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
    shape : ndarray, shape (n, 4), float64, columns of `SHAPE`; nan if they were not requested.
    channels : ndarray, shape (n, n_channels), float64, mean of each channel within the object.

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
    shape: FloatArray
    channels: FloatArray

    def __len__(self) -> int:
        return len(self.area)

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping of `COLUMNS`, and of `SHAPE` if it was measured, per object."""
        columns = dict(
            zip(
                COLUMNS,
                (
                    np.arange(1.0, len(self) + 1),
                    self.area,
                    self.perimeter,
                    *self.centre.T,
                    self.mean,
                    self.sureness,
                ),
                strict=True,
            )
        )
        if not np.isnan(self.shape).all():
            columns |= dict(zip(SHAPE, self.shape.T, strict=True))
        lines = zip(*(values.tolist() for values in columns.values()), strict=True)
        return [
            {
                name: None if value != value else value
                for name, value in zip(columns, line, strict=True)
            }
            for line in lines
        ]


def measure_objects(
    mask: BoolArray | NDArray[np.integer[Any]],
    values: NDArray[Any],
    probability: NDArray[np.floating[Any]] | None = None,
    *,
    pixel_size: float | tuple[float, float] = 1.0,
    min_pixels: int = 1,
    max_pixels: int | None = None,
    drop_border: bool = False,
    with_shape: bool = False,
) -> ObjectTable:
    """Count and measure the objects of a mask; pixels joined by sides or corners are one object.

    Parameters
    ----------
    mask : ndarray, shape (height, width), bool; or whole numbers of the objects, 0 for none.
    values : ndarray, shape (height, width) or (height, width, n_channels), of the picture; ``mean``
        is that of all channels.
    probability : ndarray, shape (height, width), optional, of the pixel's class.
    pixel_size : float, or two: width and height of a pixel, in the requested unit.
    min_pixels, max_pixels : int, smaller and larger objects are left out.
    drop_border : bool, True to leave out objects that touch the border of the picture.
    with_shape : bool, True to measure `SHAPE`, which takes half a millisecond an object.

    Returns
    -------
    ObjectTable

    Notes
    -----
    The perimeter is that of `skimage.measure.perimeter`: borders through the middles of pixels,
    diagonal steps of length sqrt(2), or the diagonal of pixels that are not square. Objects of one
    pixel have perimeter 0. Means leave out values that are not finite. Shapes are those of
    `skimage.measure.regionprops` with the size of a pixel as ``spacing``.

    Examples
    --------
    >>> mask = np.array([[True, True, False, True]])
    >>> measure_objects(mask, np.zeros(mask.shape), pixel_size=2.0).area.tolist()
    [8.0, 4.0]
    """
    check_number("pixel_size", pixel_size, above=0.0, or_array=True)
    check_whole("min_pixels", min_pixels, at_least=0)
    check_whole("max_pixels", max_pixels, at_least=0, optional=True)
    check_flag("drop_border", drop_border)
    check_flag("with_shape", with_shape)
    from skimage.measure import label, regionprops  # slow to import

    is_mask = mask.dtype == np.bool_
    joined = label(mask, connectivity=2) if is_mask else mask.astype(np.int32)  # type: ignore[no-untyped-call]
    labels, places = _numbered(joined, min_pixels, max_pixels, drop_border)
    count = int(labels.max(initial=0))
    width, height = pixel_size if isinstance(pixel_size, tuple) else (pixel_size, pixel_size)
    found = regionprops(labels, spacing=(height, width)) if with_shape else []  # type: ignore[no-untyped-call]
    area = places[:, 2] * (width * height)
    shape = np.full((count, len(SHAPE)), np.nan)
    if with_shape:
        shape[:, 0] = (4 * area / np.pi) ** 0.5
        shape[:, 1] = [each.eccentricity for each in found]
        shape[:, 2] = [each.solidity for each in found]
        shape[:, 3] = [_feret(each.image_convex, height, width) for each in found]
    planes = values if values.ndim == 3 else values[:, :, np.newaxis]
    of_channels = [_means(labels, planes[:, :, k], count) for k in range(planes.shape[2])]
    channels = np.stack(of_channels, axis=1)
    steps = _border_steps(labels, count)
    return ObjectTable(
        labels,
        area,
        perimeter_of(steps, width, height),
        steps,
        places[:, :2],
        channels.mean(axis=1),
        np.full(count, np.nan) if probability is None else _means(labels, probability, count),
        shape,
        channels,
    )


def kept_objects(
    numbers: NDArray[np.integer[Any]], *, min_pixels: int = 1, drop_border: bool = False
) -> NDArray[np.int32]:
    """Return objects numbered from the largest to the smallest, without those left out.

    Parameters
    ----------
    numbers : ndarray, shape (height, width): number of the object at every pixel, 0 for none.
    min_pixels : int, smaller objects are left out.
    drop_border : bool, True to leave out objects that touch the border of the picture.

    Returns
    -------
    ndarray, shape (height, width), int32

    Examples
    --------
    >>> kept_objects(np.array([[1, 1, 0, 2]]), min_pixels=2).tolist()
    [[1, 1, 0, 0]]
    """
    check_whole("min_pixels", min_pixels, at_least=0)
    check_flag("drop_border", drop_border)
    return _numbered(numbers, min_pixels, None, drop_border)[0]


def _numbered(
    joined: NDArray[np.integer[Any]], min_pixels: int, max_pixels: int | None, drop_border: bool
) -> tuple[NDArray[np.int32], FloatArray]:
    """Return objects renumbered from the largest to the smallest, and their centres and pixels.

    Objects outside the limits lose their numbers. The second array has row and column of the
    centroid and the number of pixels, shape (n, 3).
    """
    rows, columns = np.nonzero(joined)
    number = joined[rows, columns]
    pixels = np.bincount(number, minlength=1)
    keep = (pixels >= max(min_pixels, 1)) & (pixels <= (max_pixels or joined.size))
    keep[0] = False
    if drop_border:
        for edge in (joined[0], joined[-1], joined[:, 0], joined[:, -1]):
            keep[edge] = False
    kept = np.flatnonzero(keep)
    kept = kept[np.lexsort((kept, -pixels[kept]))]
    numbers = np.zeros(len(pixels), dtype=np.int32)
    numbers[kept] = np.arange(1, len(kept) + 1)
    sums = [np.bincount(number, weights=at, minlength=len(pixels)) for at in (rows, columns)]
    own = pixels[kept].astype(np.float64)
    return numbers[joined], np.stack([sums[0][kept] / own, sums[1][kept] / own, own], axis=1)


def _feret(hull: BoolArray, height: float, width: float) -> float:
    """Return the largest distance between points of the contour of a convex object.

    Of the contour only the corners of its hull are compared, among which the largest distance is.
    """
    from scipy.spatial import ConvexHull
    from scipy.spatial.distance import pdist
    from skimage.measure import find_contours

    contours = find_contours(np.pad(hull, 2), 0.5, fully_connected="high")  # type: ignore[no-untyped-call]
    points = np.vstack(contours)
    corners = points[ConvexHull(points).vertices] * (height, width)
    return float(np.sqrt(pdist(corners, "sqeuclidean").max()))


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
    directions across and down in proportion to the neighbours in each. Objects may touch: only
    neighbours of the same object count.
    """
    height, width = labels.shape
    padded = np.pad(labels, 1)
    is_border = np.zeros(labels.shape, dtype=bool)
    for rows, columns in ((0, 1), (2, 1), (1, 0), (1, 2)):
        is_border |= padded[rows : rows + height, columns : columns + width] != labels
    is_border &= labels > 0
    padded[1:-1, 1:-1][~is_border] = 0
    row, column = np.nonzero(is_border)
    number = labels[row, column]

    def on_border(down: int, right: int) -> NDArray[np.int8]:
        return np.asarray(padded[row + 1 + down, column + 1 + right] == number, dtype=np.int8)

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
    steps = np.zeros((count, 3))
    for place, weights in enumerate((across, down, diagonal)):
        steps[:, place] = np.bincount(number, weights=weights, minlength=count + 1)[1:]
    return steps
