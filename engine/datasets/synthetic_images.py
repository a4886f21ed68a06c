"""Synthetic labelled photographs: leaves on soil, with exact masks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_generator, check_whole

SOIL = np.array([0.42, 0.31, 0.22])
LEAF = np.array([0.28, 0.47, 0.17])
AUTUMN = np.array([0.62, 0.40, 0.16])


@dataclass(frozen=True, slots=True)
class LabelledImage:
    """A picture and its mask.

    Parameters
    ----------
    image : ndarray, shape (height, width, 3), uint8
    mask : ndarray, shape (height, width), bool

    Examples
    --------
    >>> LabelledImage(np.zeros((2, 3, 3), np.uint8), np.zeros((2, 3), bool)).mask.shape
    (2, 3)
    """

    image: NDArray[np.uint8]
    mask: NDArray[np.bool_]


def generate_leaf_image(
    *, rng: np.random.Generator, shape: tuple[int, int] = (120, 160), leaves: int = 3
) -> LabelledImage:
    """Draw leaves, some of them autumn-coloured, on soil with stones under uneven light.

    Colour alone does not separate leaf from soil: autumn leaves and moss overlap in colour with the
    other class, and noise blurs single pixels, so that neighbours and contours matter.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of all randomness; the same state gives the same picture.
    shape : (int, int)
        Height and width in pixels, at least 1.
    leaves : int
        Number of leaves; they may overlap.

    Returns
    -------
    LabelledImage

    Raises
    ------
    InvalidProblemError
        If a side is below one pixel or the number of leaves is negative.
    """
    height, width = shape
    if height < 1 or width < 1 or leaves < 0:
        raise InvalidProblemError(
            f"shape, leaves: expected sides of 1 and 0 leaves at least, received {shape}, {leaves}."
        )
    colour = _soil(rng, height, width)
    mask = np.zeros((height, width), dtype=bool)
    for _ in range(leaves):
        inside, shade = _leaf(rng, height, width)
        mix = rng.beta(0.5, 0.8)
        base = (1 - mix) * LEAF + mix * AUTUMN + rng.normal(0, 0.03, 3)
        colour[inside] = base * (1 + shade[inside, None])
        mask |= inside
    light = 1 + 0.22 * _smooth_noise(rng, height, width, 0.4)
    noisy = colour * light[..., None] + rng.normal(0, 0.045, colour.shape)
    image = np.clip(np.rint(255 * noisy), 0, 255).astype(np.uint8)
    read_only(image)
    read_only(mask)
    return LabelledImage(image, mask)


def generate_leaf_images(
    count: int, *, rng: np.random.Generator, shape: tuple[int, int] = (120, 160)
) -> tuple[LabelledImage, ...]:
    """Draw ``count`` pictures of one to four leaves; see `generate_leaf_image`.

    Parameters
    ----------
    count : int
    rng : Generator
    shape : tuple of int
        Height and width, pixels.

    Returns
    -------
    tuple of LabelledImage
        Pictures with their masks.

    Examples
    --------
    >>> leaves = generate_leaf_images(2, rng=np.random.default_rng(0), shape=(60, 80))
    >>> len(leaves), leaves[0].image.shape
    (2, (60, 80, 3))
    """
    check_whole("count", count)
    check_generator("rng", rng, optional=False)
    return tuple(
        generate_leaf_image(rng=rng, shape=shape, leaves=int(rng.integers(1, 5)))
        for _ in range(count)
    )


def _soil(rng: np.random.Generator, height: int, width: int) -> FloatArray:
    """Draw brown ground with lumps, grey stones and patches of moss, shape (height, width, 3)."""
    lumps = _smooth_noise(rng, height, width, 0.02)
    ground = SOIL * (1 + 0.3 * lumps[..., None])
    moss = _smooth_noise(rng, height, width, 0.06) > 1.6
    ground[moss] = 0.5 * ground[moss] + 0.5 * LEAF
    stones = _smooth_noise(rng, height, width, 0.03) > 1.9
    ground[stones] = 0.55 + 0.1 * lumps[stones, None]
    return np.asarray(ground, dtype=np.float64)


def _leaf(
    rng: np.random.Generator, height: int, width: int
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Draw a pointed oval with a wavy margin and darker veins: return its area and its shading."""
    side = min(height, width)
    centre = rng.uniform(0.15, 0.85, 2) * (height, width)
    length, angle = rng.uniform(0.2, 0.42) * side, rng.uniform(0, 2 * np.pi)
    breadth = length * rng.uniform(0.4, 0.65)
    rows, columns = np.mgrid[:height, :width].astype(np.float64)
    along = (rows - centre[0]) * np.sin(angle) + (columns - centre[1]) * np.cos(angle)
    across = (rows - centre[0]) * np.cos(angle) - (columns - centre[1]) * np.sin(angle)
    place = np.clip(along / max(length, 1.0), -1, 1)
    margin = breadth * (1 - place**2) * (1 + 0.08 * np.sin(18 * place + rng.uniform(0, 6)))
    inside = (np.abs(along) <= length) & (np.abs(across) <= margin)
    veins = np.abs(np.sin(0.9 * (along - np.abs(across)) / max(0.06 * side, 1.0)))
    midrib = np.abs(across) < 0.012 * side
    shade = 0.12 * veins - 0.25 * midrib + 0.08 * place
    return np.asarray(inside, dtype=np.bool_), np.asarray(shade, dtype=np.float64)


def _smooth_noise(rng: np.random.Generator, height: int, width: int, scale: float) -> FloatArray:
    """Return Gaussian noise blurred over ``scale`` of the shorter side, standardised."""
    from scipy.ndimage import gaussian_filter  # here to keep `import engine` light

    noise = rng.normal(size=(height, width))
    blurred = gaussian_filter(noise, sigma=max(scale * min(height, width), 0.5), mode="nearest")
    spread = float(blurred.std())
    return np.asarray((blurred - blurred.mean()) / (spread or 1.0), dtype=np.float64)
