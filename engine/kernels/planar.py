"""Walks around the faces of plane drawings: cycles of a permutation of darts."""

import numpy as np
from numba import njit

from engine.core.arguments import IntArray


@njit(cache=True, nogil=True)
def walk_cycles(following: IntArray) -> tuple[IntArray, IntArray]:
    """Return all entries of a permutation cycle by cycle, (n,), and where each cycle ends."""
    n = len(following)
    seen = np.zeros(n, dtype=np.bool_)
    order = np.empty(n, dtype=np.int64)
    ends = np.empty(n, dtype=np.int64)
    count, cycles = 0, 0
    for first in range(n):
        if seen[first]:
            continue
        k = first
        while not seen[k]:
            seen[k] = True
            order[count] = k
            count += 1
            k = following[k]
        ends[cycles] = count
        cycles += 1
    return order, ends[:cycles].copy()


def count_cycles(following: IntArray) -> int:
    """Return the number of cycles of a permutation."""
    return len(walk_cycles(following)[1])
