"""Reader of the CMU house sequence: frames with landmarks, shape contexts and published pairs."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from engine.core.arguments import FloatArray, as_finite_array, read_only
from engine.core.errors import InvalidProblemError

N_LANDMARKS = 30
N_FEATURES = 60
GAPS = tuple(range(0, 100, 10))

Split = Literal["train", "validate", "test"]


@dataclass(frozen=True, slots=True)
class HouseFrame:
    """One frame of the house sequence.

    ``landmarks`` (30, 2), pixels, the same physical point in the same row of every frame;
    ``features`` (30, 60), shape-context counts of each landmark; ``image`` may not exist.
    """

    number: int
    landmarks: FloatArray
    features: FloatArray
    image: Path


def read_house_frame(folder: Path, number: int) -> HouseFrame:
    """Read frame ``number`` (1 to 111).

    Parameters
    ----------
    folder : Path
        Holds ``label/houseN``, ``houseNNN.scf`` and ``images/house.seq(N-1).png``.
    number : int

    Returns
    -------
    HouseFrame
        With read-only arrays.

    Raises
    ------
    InvalidProblemError
        If a file is missing, holds something other than numbers or has another shape.
    """
    landmarks = _read_table(folder / "label" / f"house{number}", (N_LANDMARKS, 2))
    features = _read_table(folder / f"house{number:03d}.scf", (N_LANDMARKS, N_FEATURES))
    image = folder / "images" / f"house.seq{number - 1}.png"
    return HouseFrame(number, landmarks, features, image)


def read_house_pairs(folder: Path, gap: int, split: Split) -> tuple[tuple[int, int], ...]:
    """Read the published pairs of frame numbers that lie ``gap`` frames apart.

    Two lines of ``pairs/houses<gap>_<split>.txt`` make a pair; a line's ``houseNNN.scf`` names
    the frame.

    Parameters
    ----------
    folder : Path
    gap : int
        One of 0, 10, ..., 90 frames.
    split : {"train", "validate", "test"}

    Returns
    -------
    tuple of (int, int)

    Raises
    ------
    InvalidProblemError
        If the file is missing, a line names no frame, the lines are odd in number, or a pair is
        not ``gap`` frames apart.
    """
    path = folder / "pairs" / f"houses{gap}_{split}.txt"
    lines = [line for line in _read_text(path).splitlines() if line.strip()]
    frames = [_frame_of(path, k, line) for k, line in enumerate(lines, start=1)]
    if not frames or len(frames) % 2:
        raise InvalidProblemError(
            f"{path.name}: expected two lines for every pair of frames, received {len(frames)}."
        )
    pairs = tuple(zip(frames[::2], frames[1::2], strict=True))
    for first, second in pairs:
        if second - first != gap:
            raise InvalidProblemError(
                f"{path.name}: expected frames {gap} apart, received {first} and {second}."
            )
    return pairs


def _frame_of(path: Path, line_number: int, line: str) -> int:
    found = re.search(r"house(\d{3})\.scf\b", line)
    if found is None:
        raise InvalidProblemError(
            f"{path.name}, line {line_number}: expected the name of a frame such as house001.scf, "
            f"received {line[:60]!r}."
        )
    return int(found.group(1))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError as error:
        raise InvalidProblemError(f"{path.name}: cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise InvalidProblemError(f"{path.name}: expected plain text, received bytes.") from error


def _read_table(path: Path, shape: tuple[int, int]) -> FloatArray:
    rows = [line.split() for line in _read_text(path).splitlines() if line.strip()]
    if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
        widths = sorted({len(row) for row in rows})
        raise InvalidProblemError(
            f"{path.name}: expected {shape[0]} lines of {shape[1]} numbers, received "
            f"{len(rows)} lines of {' or '.join(map(str, widths)) or 'no'} numbers."
        )
    try:
        table = np.array(rows, dtype=np.float64)
    except ValueError as error:
        raise InvalidProblemError(f"{path.name}: {error}.") from error
    if not np.isfinite(table).all():
        raise InvalidProblemError(f"{path.name}: expected finite numbers, received NaN or inf.")
    return read_only(table)


def squared_difference_features(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return F_ij = -(s_i - s'_j)^2 for every descriptor entry, shape (n, n, K).

    With theta >= 0 the score of an edge is minus a weighted squared distance of descriptors.

    Parameters
    ----------
    first, second : ndarray, shape (n, K), descriptors of the items of each side

    References
    ----------
    Caetano, McAuley, Cheng, Le and Smola (2009), Learning graph matching, section 5.
    """
    first = as_finite_array("first", first, shape=(None, None))
    second = as_finite_array("second", second, shape=first.shape)
    return -((first[:, None, :] - second[None, :, :]) ** 2)
