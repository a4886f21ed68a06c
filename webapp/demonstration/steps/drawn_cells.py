"""Drawn pictures of cells: round bright blobs of known centres on a dark, uneven ground."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_CELL = np.array([196.0, 92.0, 148.0])
_GROUND = np.array([52.0, 40.0, 68.0])
_NOISE = 9.0  # grey levels
_LEAST_RADIUS, _LARGEST_RADIUS = 7.0, 12.0  # pixels
_GAP = 8.0  # pixels at least between two cells
_TRIES = 400


@dataclass(frozen=True, slots=True)
class DrawnCells:
    """Picture, shape (height, width, 3), with the centre (row, column) and radius of each cell."""

    image: NDArray[np.uint8]
    centres: list[tuple[float, float]]
    radii: list[float]

    def is_ground(self, row: float, column: float, margin: float) -> bool:
        """Return True if every cell is farther away than ``margin`` pixels."""
        away = (
            np.hypot(row - centre[0], column - centre[1]) - radius
            for centre, radius in zip(self.centres, self.radii, strict=True)
        )
        return all(distance > margin for distance in away)

    def ground_lines(self, count: int, margin: float) -> list[tuple[float, float, float]]:
        """Return horizontal lines (first column, last column, row) that touch no cell."""
        height, width = self.image.shape[:2]
        lines: list[tuple[float, float, float]] = []
        for row in np.linspace(0.1 * height, 0.9 * height, count):
            columns = np.arange(margin, width - margin, 2.0)
            free = [self.is_ground(float(row), float(column), margin) for column in columns]
            begin, length = _longest_run(free)
            if length > 1:
                lines.append(
                    (float(columns[begin]), float(columns[begin + length - 1]), float(row))
                )
        return lines


def _longest_run(free: list[bool]) -> tuple[int, int]:
    """Return the begin and the length of the longest run of True."""
    best = (0, 0)
    begin = 0
    for k, is_free in enumerate([*free, False]):
        if not is_free:
            best = max(best, (begin, k - begin), key=lambda run: run[1])
            begin = k + 1
    return best


def draw_cells(rng: np.random.Generator, shape: tuple[int, int], most: int) -> DrawnCells:
    """Draw at most ``most`` cells that do not touch, under uneven light and noise."""
    height, width = shape
    centres: list[tuple[float, float]] = []
    radii: list[float] = []
    for _ in range(_TRIES):
        radius = float(rng.uniform(_LEAST_RADIUS, _LARGEST_RADIUS))
        edge = radius + 2.0
        row = float(rng.uniform(edge, height - edge))
        column = float(rng.uniform(edge, width - edge))
        is_free = all(
            np.hypot(row - centre[0], column - centre[1]) > radius + other + _GAP
            for centre, other in zip(centres, radii, strict=True)
        )
        if is_free and len(centres) < most:
            centres.append((row, column))
            radii.append(radius)
    rows, columns = np.mgrid[:height, :width].astype(np.float64)
    cover = np.zeros(shape)
    for centre, radius in zip(centres, radii, strict=True):
        away = np.hypot(rows - centre[0], columns - centre[1])
        cover = np.maximum(cover, np.clip(radius - away + 0.5, 0.0, 1.0))
    light = 1.0 + 0.18 * np.sin(rows / height * 2.5 + columns / width * 2.0)
    colour = (_GROUND + cover[..., None] * (_CELL - _GROUND)) * light[..., None]
    noisy = colour + rng.normal(0.0, _NOISE, colour.shape)
    image = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    return DrawnCells(image, centres, radii)
