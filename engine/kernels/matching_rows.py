"""Passes over rows of a dense symmetric score matrix: extent, sweep, selection, pricing.

Every kernel works on ``block``, the rows ``first .. first + len(block)`` of the matrix, so that a
caller may split rows between threads or compute them on demand. Scores may be -inf (forbidden).
``price`` is minus the dual of the cost problem: feasible prices have
price_i + price_j >= score_ij for every pair.
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner
from engine.kernels.laminar import LaminarFamily, fill_shared_duals

CHUNK = 32  # columns that are tested together, without a branch, before single ones


@inner
def count_above(row: FloatArray, price: FloatArray, threshold: float) -> int:
    """Count the entries of ``row - price`` above the threshold; compiles to vector instructions.

    Short slices from index 0, no branch, a whole-number sum: any other form is three times slower,
    and most of a call's time is spent here.
    """
    hits = 0
    for k in range(len(row)):
        hits += row[k] - price[k] > threshold
    return hits


@inner
def count_violated(row: FloatArray, half: FloatArray, scale: float, threshold: float) -> int:
    """Count the entries with rint(row * scale) + half above the threshold, as `count_above`."""
    hits = 0
    for k in range(len(row)):
        hits += np.rint(row[k] * scale) + half[k] > threshold
    return hits


@njit(cache=True, nogil=True)
def measure_rows(block: FloatArray, first: int, extent: FloatArray) -> int:
    """Raise ``extent``, shape (n,), to the largest finite |score| of each column; count bad ones.

    NaN and +inf are bad; the diagonal is ignored.
    """
    bad = 0
    n = block.shape[1]
    for r in range(block.shape[0]):
        for part in range(2):
            begin = 0 if part == 0 else first + r + 1
            end = first + r if part == 0 else n
            row = block[r, begin:end]
            largest = extent[begin:end]
            for k in range(len(row)):
                size = abs(row[k])
                bad += not (row[k] < np.inf)
                largest[k] = size if size < np.inf and size > largest[k] else largest[k]
    return bad


@njit(cache=True, nogil=True)
def sweep_rows(block: FloatArray, first: int, price: FloatArray, best: FloatArray) -> None:
    """Raise ``best[j]`` to max_i (score_ij - price_i) over the rows i != j of the block."""
    n = block.shape[1]
    for r in range(block.shape[0]):
        i = first + r
        row = block[r]
        own = price[i]
        for j in range(i):
            gain = row[j] - own
            best[j] = gain if gain > best[j] else best[j]
        for j in range(i + 1, n):
            gain = row[j] - own
            best[j] = gain if gain > best[j] else best[j]


@inner
def _place_of(row: FloatArray, kept: IntArray, score: float, worst: int) -> int:
    """Return the index of the kept column that this score may replace: its equal or the worst."""
    for q in range(len(kept)):
        if kept[q] >= 0 and row[kept[q]] == score:
            return q
    return worst


@njit(cache=True, nogil=True)
def select_rows(
    block: FloatArray, first: int, price: FloatArray, chosen: IntArray, gains: FloatArray
) -> None:
    """Select for each row the columns with the k largest score_ij - price_j, one of equal scores.

    ``chosen``, ``gains``: shape (n, k), unordered; rows of the block are written; -1 if fewer
    exist. Columns of equal score are nearly always identical nodes, and k copies of one node would
    leave the duals of the sparse graph far from those of the whole. Among equal gains the first
    after a row's own pseudo-random column wins, so that identical nodes choose different partners.
    """
    n = block.shape[1]
    k = chosen.shape[1]
    for r in range(block.shape[0]):
        i = first + r
        row = block[r]
        kept = chosen[i]
        value = gains[i]
        for q in range(k):
            kept[q] = -1
            value[q] = -np.inf
        worst = 0
        threshold = -np.inf
        turn = (i * 40503) % n
        for part in range(2):
            begin = turn if part == 0 else 0
            end = n if part == 0 else turn
            for left in range(begin, end, CHUNK):
                right = min(left + CHUNK, end)
                if count_above(row[left:right], price[left:right], threshold) == 0:
                    continue
                for j in range(left, right):
                    gain = row[j] - price[j]
                    if gain > threshold and j != i:
                        place = _place_of(row, kept, row[j], worst)
                        if gain <= value[place]:
                            continue
                        kept[place] = j
                        value[place] = gain
                        worst = 0
                        for q in range(1, k):
                            if value[q] < value[worst]:
                                worst = q
                        threshold = value[worst]


@njit(cache=True, nogil=True)
def reach_rows(
    block: FloatArray,
    first: int,
    price: FloatArray,
    label: IntArray,
    outermost: IntArray,
    chosen: IntArray,
    gains: FloatArray,
) -> None:
    """Select, for each outer row of a tree that cannot grow, the k best columns to extend it.

    These are vertices of other outermost nodes that are not inner. Same output as select_rows.
    """
    n = block.shape[1]
    for r in range(block.shape[0]):
        i = first + r
        for q in range(chosen.shape[1]):
            chosen[i, q] = -1
            gains[i, q] = -np.inf
        if label[i] != 1:
            continue
        worst = 0
        turn = (i * 40503) % n
        for step in range(n):
            j = step + turn if step + turn < n else step + turn - n
            gain = block[r, j] - price[j]
            if gain > gains[i, worst] and label[j] != 2 and outermost[j] != outermost[i]:
                chosen[i, worst] = j
                gains[i, worst] = gain
                for q in range(chosen.shape[1]):
                    worst = q if gains[i, q] < gains[i, worst] else worst


def price_rows(
    block: FloatArray,
    first: int,
    scale: float,
    tolerance: float,
    dual: IntArray,
    family: LaminarFamily,
    chosen: IntArray,
    slacks: IntArray,
) -> int:
    """Check every pair i < j of the block's rows against the duals; return the number violated.

    Costs are the even integers -2 rint(score * scale / 2). A float test, which errs only towards
    suspicion, by ``tolerance`` in the unit of the costs, precedes the one in integers: with a
    tolerance of 0 not even tight pairs (ties create many) are tested twice. The k most
    violated pairs of each row are written to ``chosen`` and ``slacks``, shape (n, k); -1 if there
    are fewer.
    """
    half, shared = dual / 2.0, np.empty(len(dual), dtype=np.int64)
    arrays = dual, half, family, chosen, slacks, shared
    return int(_price_rows(block, first, 0.5 * scale, tolerance, *arrays))


@njit(cache=True, nogil=True)
def _price_rows(
    block: FloatArray,
    first: int,
    scale: float,
    tolerance: float,
    dual: IntArray,
    half: FloatArray,
    family: LaminarFamily,
    chosen: IntArray,
    slacks: IntArray,
    shared: IntArray,
) -> int:
    """Check the pairs of a block; ``half`` (n,) are the duals / 2, ``shared`` (n,) work space."""
    n = block.shape[1]
    violated = 0
    for r in range(block.shape[0]):
        i = first + r
        row = block[r]
        for q in range(chosen.shape[1]):
            chosen[i, q] = -1
            slacks[i, q] = 0
        worst = 0
        filled = False
        threshold = -half[i] - tolerance
        for left in range(i + 1, n, CHUNK):
            right = min(left + CHUNK, n)
            if count_violated(row[left:right], half[left:right], scale, threshold) == 0:
                continue
            for j in range(left, right):
                gain = np.rint(row[j] * scale)
                if gain + half[j] <= threshold:
                    continue
                slack = -2 * np.int64(gain) - dual[i] - dual[j]
                if slack < 0 and family.root[i] == family.root[j]:
                    if slack + 2 * family.around[family.root[i]] >= 0:
                        continue  # the outermost blossom is enough, whatever is inside
                    if not filled:
                        fill_shared_duals(family, i, shared)
                        filled = True
                    slack += 2 * shared[family.begin[j]]
                if slack >= 0:
                    continue
                violated += 1
                if slack < slacks[i, worst]:
                    chosen[i, worst] = j
                    slacks[i, worst] = slack
                    for q in range(chosen.shape[1]):
                        worst = q if slacks[i, q] > slacks[i, worst] else worst
    return violated
