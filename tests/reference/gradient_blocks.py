"""Histograms of oriented gradients, written out (Dalal and Triggs 2005)."""

import numpy as np
from numpy.typing import NDArray


def gradient_blocks(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    """Histograms of 9 unsigned directions in blocks of 2 x 2 cells of 8 x 8 pixels, (., ., 36).

    A pixel counts in the channel of its largest gradient. The picture is mirrored by a cell around
    and filled up to whole cells; blocks are normalised twice, with a limit of 0.2 between.
    """
    rows, columns = (8 + side + 8 + -side % 8 for side in picture.shape[:2])
    mirror = [np.arange(-8, size - 8) for size in (rows, columns)]
    mirror = [
        np.where(k < 0, -1 - k, np.where(k < n, k, 2 * n - 1 - k))
        for k, n in zip(mirror, picture.shape[:2], strict=True)
    ]
    padded = picture[np.ix_(*mirror)]
    cells = np.zeros((rows // 8, columns // 8, 9))
    for i in range(rows):
        for j in range(columns):
            down = padded[i + 1, j] - padded[i - 1, j] if 0 < i < rows - 1 else np.zeros(3)
            right = padded[i, j + 1] - padded[i, j - 1] if 0 < j < columns - 1 else np.zeros(3)
            sizes = np.hypot(down, right)
            k = sizes.argmax()
            angle = np.degrees(np.arctan2(down[k], right[k])) % 180.0
            cells[i // 8, j // 8, int(angle // 20.0) % 9] += sizes[k] / 64
    blocks = np.zeros((rows // 8 - 1, columns // 8 - 1, 36))
    for i, j in np.ndindex(blocks.shape[:2]):
        block = cells[i : i + 2, j : j + 2].ravel()
        block = np.minimum(block / np.sqrt((block**2).sum() + 1e-10), 0.2)
        blocks[i, j] = block / np.sqrt((block**2).sum() + 1e-10)
    return blocks
