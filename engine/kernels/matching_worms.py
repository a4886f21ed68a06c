"""Markov chain on perfect matchings whose steps pass through matchings without two students.

A worm opens a pair. Its head then takes one partner after another, each from a student who becomes
the head, until it takes the worm's tail. No step is rejected.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray

CellArray = NDArray[np.uint64]
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_FULL = 4294967295.0  # the low half of a cell when its own student gets all of it


def fill_cells(
    scores: FloatArray, potentials: FloatArray, first: int, last: int, cells: CellArray
) -> None:
    """Write the tables that draw j with probability ~ exp(W_ij + l_j), i from first to last.

    Walker's alias method: each of n cells is drawn equally often; cell j gives j with the
    probability in its low half, in units of 2^-32, and otherwise the student in its high half.

    ``scores`` (n, n), -inf for pairs that are never drawn; ``potentials`` l (n,); ``cells`` (n, n).
    """
    share = np.empty(len(potentials))
    poor, rich = np.empty((2, len(potentials)), dtype=np.int64)
    _fill_cells(scores, potentials, first, last, cells, share, poor, rich)


@njit(cache=True, nogil=True)
def _fill_cells(
    scores: FloatArray,
    potentials: FloatArray,
    first: int,
    last: int,
    cells: CellArray,
    share: FloatArray,
    poor: IntArray,
    rich: IntArray,
) -> None:
    """Write the tables of some rows; ``share``, ``poor`` and ``rich`` (n,) are work space."""
    n = len(potentials)
    for i in range(first, last):
        likeliest = -1
        for j in range(n):
            share[j] = scores[i, j] + potentials[j]
            if j != i and (likeliest < 0 or share[j] > share[likeliest]):
                likeliest = j
        top, total = share[likeliest], 0.0
        for j in range(n):
            share[j] = math.exp(share[j] - top) if j != i else 0.0
            total += share[j]
        n_poor, n_rich = 0, 0
        for j in range(n):
            share[j] *= n / total
            cells[i, j] = (np.uint64(likeliest) << _HALF) | np.uint64(min(share[j], 1.0) * _FULL)
            if share[j] < 1.0:
                poor[n_poor] = j
                n_poor += 1
            else:
                rich[n_rich] = j
                n_rich += 1
        while n_poor > 0 and n_rich > 0:
            n_poor -= 1
            small, large = poor[n_poor], rich[n_rich - 1]
            cells[i, small] = (np.uint64(large) << _HALF) | np.uint64(share[small] * _FULL)
            share[large] -= 1.0 - share[small]
            if share[large] < 1.0:
                n_rich -= 1
                poor[n_poor] = large
                n_poor += 1
        for k in range(n_poor + n_rich):  # filled up to rounding: the cell is theirs alone
            j = poor[k] if k < n_poor else rich[k - n_poor]
            full = _FULL if share[j] > 0.5 else 0.0
            cells[i, j] = (np.uint64(likeliest) << _HALF) | np.uint64(full)


@njit(cache=True, nogil=True)
def walk_worms(
    cells: CellArray,
    partner: IntArray,
    worms: IntArray,
    draws: CellArray,
    stride: int,
    counts: NDArray[np.int32],
    counted: IntArray,
) -> None:
    """Take a step for every draw, in place; count the pairs after every ``stride`` worms.

    With w_ij = exp(W_ij), weigh a matching without the tail t and the head h by its own weight
    times Z_h / g_t, where g_j = exp(l_j) and Z_h = sum_j w_hj g_j. The head takes j, whose partner
    b becomes the head, with probability w_hj g_j / Z_h; the reverse step from b has w_bj g_j / Z_b.
    The weights differ by w_hj Z_b / (w_bj Z_h), which gives detailed balance. The same holds when a
    worm opens, at any t with the same probability, and when its head takes t. So after every worm
    the matching is one of P ~ exp(total score), whatever the potentials l are.

    ``cells`` (n, n) as written by ``fill_cells``. For each of c chains: ``partner`` (c, n), with
    former partners for tail and head, and ``worms`` (c, 3): tail, -1 if none is open, head, number
    of closed worms; ``draws`` (t, c) of 64 random bits; ``counts`` (c, n, n), incremented above the
    diagonal; ``counted`` (c,), matchings. Steps wait for distant cells, of several chains at once.
    """
    chains, n = partner.shape
    size = np.uint64(n)
    for t in range(len(draws)):
        for k in range(chains):
            draw, tail, head = draws[t, k], worms[k, 0], worms[k, 1]
            drawn = np.int64(((draw >> _HALF) * size) >> _HALF)
            if tail < 0:
                worms[k, 0], worms[k, 1] = drawn, partner[k, drawn]
                continue
            cell = cells[head, drawn]
            taken = drawn if (draw & _LOW) < (cell & _LOW) else np.int64(cell >> _HALF)
            if taken != tail:
                worms[k, 1] = partner[k, taken]
                partner[k, head], partner[k, taken] = taken, head
                continue
            partner[k, head], partner[k, tail] = tail, head
            worms[k, 0] = -1
            worms[k, 2] += 1
            if worms[k, 2] % stride == 0:
                counted[k] += 1
                for i in range(n):
                    if i < partner[k, i]:
                        counts[k, i, partner[k, i]] += 1
