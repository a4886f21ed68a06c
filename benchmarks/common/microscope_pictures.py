"""Pictures as a fluorescence microscope takes them, with the class of every pixel known."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

PIXEL_SIZE = 0.325  # micrometres
DARK, DYE, STAIN = 210.0, 420.0, 1300.0  # counts of a 12-bit camera
CLASSES = ("Nucleus", "Cell body", "Background")


@dataclass(frozen=True, slots=True)
class KnownPicture:
    """One file and the class of every pixel, by its place among the classes; 255 is unknown."""

    path: Path
    labels: NDArray[np.uint8]


def draw_cells(
    rng: np.random.Generator, side: int = 512
) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return counts of 12 bits and labels: nuclei, their cell bodies, and what lies between.

    Cells differ in brightness so much that a bright body is lighter than a faint nucleus; light
    falls off to one side, and specks of dust are bright without being cells.
    """
    rows, columns = np.mgrid[:side, :side]
    labels = np.full((side, side), 2, dtype=np.uint8)
    light = np.full((side, side), DARK)
    for _ in range(int(rng.integers(10, 17) * (side / 512) ** 2) or 1):
        y, x = rng.uniform(0.05 * side, 0.95 * side, 2)
        turn, long, short = rng.uniform(0, np.pi), rng.uniform(32, 48), rng.uniform(24, 32)
        bright = rng.lognormal(0, 0.35)
        body = _ellipse(rows, columns, (y, x), turn, (long, short))
        shift = rng.uniform(-5, 5, 2)
        size = rng.uniform(11, 16, 2)
        nucleus = _ellipse(rows, columns, (y + shift[0], x + shift[1]), turn, tuple(size))
        light[body < 1] = DARK + DYE * bright * (1.15 - 0.5 * body[body < 1])
        light[nucleus < 1] = DARK + STAIN * bright * (1.1 - 0.35 * nucleus[nucleus < 1])
        labels[body < 1] = 1
        labels[nucleus < 1] = 0
    for _ in range(8):
        y, x = rng.uniform(0, side, 2)
        light += rng.uniform(300, 1500) * np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / 6)
    texture = 1 + 0.12 * _smooth(rng, side, 3) + 0.1 * _smooth(rng, side, 40)
    fall = 1 - 0.3 * columns / side
    counts = rng.poisson(np.maximum(light * texture * fall, 0) / 4) * 4 + rng.normal(
        0, 12, labels.shape
    )
    return np.clip(np.rint(counts), 0, 4095).astype(np.uint16), labels


def _ellipse(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    centre: tuple[float, float],
    turn: float,
    radii: tuple[float, float],
) -> NDArray[np.float64]:
    """Below 1 inside."""
    y, x = rows - centre[0], columns - centre[1]
    along, across = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    return (along / radii[0]) ** 2 + (across / radii[1]) ** 2


def _smooth(rng: np.random.Generator, side: int, reach: int) -> NDArray[np.float64]:
    from scipy.ndimage import gaussian_filter

    noise = gaussian_filter(rng.normal(size=(side, side)), reach)
    return np.asarray(noise / noise.std())


def write_cells(folder: Path, count: int, *, seed: int, side: int = 512) -> list[KnownPicture]:
    """Write so many pictures as 12-bit TIFF with the size of a pixel, as ImageJ does."""
    import tifffile

    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for k in range(count):
        counts, labels = draw_cells(np.random.default_rng([seed, k]), side)
        path = folder / f"field_{k:03d}.tif"
        size = (1 / PIXEL_SIZE, 1 / PIXEL_SIZE)
        tifffile.imwrite(path, counts, imagej=True, resolution=size, metadata={"unit": "um"})
        made.append(KnownPicture(path, labels))
    return made


def known_in(folder: Path) -> Iterator[KnownPicture]:
    """Pictures of a folder whose masks lie beside them: NAME.jpg and NAME.png or NAME_mask.png.

    What the mask marks is the first class and all else the second.
    """
    from engine.datasets import read_mask

    for path in sorted(folder.iterdir()):
        masks = [folder / f"{path.stem}{end}" for end in ("_mask.png", ".mask.png", ".png")]
        mask = next((one for one in masks if one.exists() and one != path), None)
        if mask is None or path.stem.endswith(("_mask", ".mask")):
            continue
        with Image.open(path) as picture:
            known = read_mask(mask)
            if known.shape == picture.size[::-1]:
                yield KnownPicture(path, np.where(known, 0, 1).astype(np.uint8))
