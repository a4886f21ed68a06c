"""Multiscale filter bank: the appearance of a pixel and its surroundings, 72 features per pixel.

Lightness at six scales: Gaussian, Laplacian, length of the gradient, difference of Gaussians,
eigenvalues of the structure tensor and of the Hessian (the set of ilastik and scikit-image); both
colour axes: Gaussians at these scales; at one pixel: red, green and blue, lightness and colour
axes, hue and saturation. If positions are used: the pixel's distances from the top, the left and
the middle.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.kernels.filter_bank import blur, fill_derivatives, fill_eigenvalues
from engine.kernels.threads import count_threads

FloatPlanes = NDArray[np.float32]

SCALES = (0.7, 1.4, 2.8, 5.6, 11.2, 22.4)
"""Standard deviations of the Gaussians, pixels of the model."""

REACH = 3.0
"""Standard deviations at which Gaussians end: 0.3 % of their weight lies beyond."""

FINER = 1.6
"""Ratio of the two scales in a difference of Gaussians."""

INNER_SCALE = 0.5
"""Scale of the gradients whose products the structure tensor averages, as a share of its own."""


def plane_names() -> tuple[str, ...]:
    """Return the names of the planes of every bank, in order."""
    of_lightness = (
        *("Gaussian", "Laplacian", "gradient", "difference of Gaussians"),
        *("structure tensor, larger", "structure tensor, smaller"),
        *("Hessian, larger", "Hessian, smaller"),
    )
    scaled = [f"{name} at {scale}" for scale in SCALES for name in of_lightness]
    scaled += [f"{axis} at {scale}" for scale in SCALES for axis in ("green-red", "blue-yellow")]
    plain = ("red", "green", "blue", "lightness", "green-red", "blue-yellow")
    return (*scaled, *plain, "hue across", "hue along", "saturation")


class Frame(NamedTuple):
    """Position of a window in a whole picture: first row and column, and the size of the whole."""

    top: int
    left: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class FilterBank:
    """Choice of filters; ``position`` includes the position within the picture."""

    position: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        place = ("from the top", "from the left", "from the middle") if self.position else ()
        return (*plane_names(), *place)

    @property
    def n_features(self) -> int:
        """Number of features per pixel."""
        return len(self.names)

    def compute(
        self, colours: NDArray[np.uint8], frame: Frame | None = None, *, is_shared: bool = False
    ) -> FloatPlanes:
        """Return all features of a picture, (rows, columns, 3) uint8, one plane per feature.

        ``frame`` is the picture's position if it is a window of a larger one. If ``is_shared``,
        several threads share the filters.

        Returns
        -------
        ndarray, shape (n_features, rows, columns), float32

        Notes
        -----
        About 1 ms and 320 bytes per thousand pixels.
        """
        rows, columns = colours.shape[:2]
        planes = np.empty((self.n_features, rows, columns), dtype=np.float32)
        fractions = np.ascontiguousarray(np.moveaxis(colours, 2, 0), dtype=np.float32)
        fractions *= np.float32(1 / 255)
        axes = _colour_axes(fractions)
        work: list[Callable[[], None]] = []
        place = 0
        for scale in SCALES:
            work.append(partial(_fill_scale, axes[0], scale, planes[place : place + 8]))
            place += 8
        for scale in SCALES:
            for axis in axes[1:]:
                work.append(partial(blur_into, axis, scale, planes[place]))
                place += 1
        if is_shared:
            with ThreadPoolExecutor(count_threads()) as pool:
                for done in [pool.submit(one) for one in reversed(work)]:  # the widest first
                    done.result()
        else:
            for one in work:
                one()
        planes[place : place + 3] = fractions
        planes[place + 3 : place + 6] = axes
        planes[place + 6 : place + 9] = _hue_and_saturation(fractions)
        if self.position:
            _fill_positions(planes[place + 9 :], frame or Frame(0, 0, rows, columns))
        return planes


def _colour_axes(fractions: FloatPlanes) -> FloatPlanes:
    """Return lightness and two opponent axes, close to CIE L*, a*, b* of sRGB and as cheap."""
    from skimage.color import rgb2lab  # imported here: it takes longer than all other imports

    axes: FloatPlanes = np.ascontiguousarray(rgb2lab(fractions, channel_axis=0), dtype=np.float32)
    return axes * np.float32(0.01)


def _hue_and_saturation(fractions: FloatPlanes) -> FloatPlanes:
    """Return hue as a point on a circle, so that reds are close, and saturation, (3, ...)."""
    top, bottom = fractions.max(axis=0), fractions.min(axis=0)
    red, green, blue = fractions
    across = red - (green + blue) / 2
    along = np.float32(np.sqrt(0.75)) * (green - blue)
    chroma = np.maximum(top - bottom, np.float32(1e-3))
    return np.stack([across / chroma, along / chroma, chroma / np.maximum(top, 1e-2)])


def _fill_scale(lightness: FloatPlanes, scale: float, planes: FloatPlanes) -> None:
    """Write the eight filters of one scale."""
    shape = lightness.shape
    products, averaged = (np.empty((3, *shape), dtype=np.float32) for _ in range(2))
    fine, unused = (np.empty(shape, dtype=np.float32) for _ in range(2))
    pair = np.empty((2, *shape), dtype=np.float32)
    blur_into(lightness, max(INNER_SCALE * scale, 0.5), fine)
    fill_derivatives(fine, np.float32(scale), unused, products, pair, unused)
    for product, average in zip(products, averaged, strict=True):
        blur_into(product, scale, average)
    fill_eigenvalues(averaged, planes[4:6])
    blur_into(lightness, scale, planes[0])
    fill_derivatives(planes[0], np.float32(scale), planes[2], products, planes[6:8], planes[1])
    blur_into(lightness, scale / FINER, fine)
    np.subtract(fine, planes[0], out=planes[3])


def blur_into(plane: FloatPlanes, scale: float, out: FloatPlanes) -> None:
    """Write a plane, (rows, columns), blurred by a Gaussian; ``out`` is another plane."""
    weights = gaussian_weights(scale)
    work = np.empty(plane.shape[1] + 2 * len(weights), dtype=np.float32)
    blur(plane, weights, work, out)


def gaussian_weights(scale: float) -> FloatPlanes:
    """Return Gaussian weights from the middle outwards, float32; mirrored, they sum to 1."""
    steps = np.arange(int(np.ceil(REACH * scale)) + 1)
    weights = np.exp(-0.5 * (steps / scale) ** 2)
    return np.asarray(weights / (2 * weights.sum() - weights[0]), dtype=np.float32)


def _fill_positions(planes: FloatPlanes, frame: Frame) -> None:
    """Write the position in the whole picture, with each side counted as 1."""
    rows, columns = planes.shape[1:]
    down = (np.arange(rows, dtype=np.float32) + np.float32(frame.top + 0.5)) / frame.rows
    across = (np.arange(columns, dtype=np.float32) + np.float32(frame.left + 0.5)) / frame.columns
    planes[0], planes[1] = down[:, None], across[None]
    planes[2] = np.hypot(down[:, None] - np.float32(0.5), across[None] - np.float32(0.5))
