"""Rows of the scores of all pairs, from a dense matrix or from one-hot codes on demand."""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Protocol

import numpy as np

from engine.core.arguments import FloatArray, IntArray, as_float_array, check_shape
from engine.core.errors import InvalidProblemError
from engine.kernels.lookup_rows import sum_lookups
from engine.kernels.matching_rows import measure_rows
from engine.kernels.threads import for_row_ranges, one_blas_thread
from engine.oracles.matching import LARGEST_WEIGHT
from engine.oracles.matching_certificate import round_costs, scale_exponent
from engine.oracles.one_hot_scores import OneHotScores

ORDINARY_BITS = 300  # scores within 2^-300 .. 2^300 need no rescaling
DENSE_BYTES = 900_000_000  # for n up to 10,600 all products are computed once a call
COMBINATIONS = 256  # a row's table of a group of questions is 2 kB
BLOCK_ENTRIES = 1 << 18  # a block of rows computed on demand is 2 MB: it stays in the cache

RowTask = Callable[[FloatArray, int], None]


class ScoreRows(Protocol):
    """Rows of a symmetric matrix of scores, and its entries as even integer costs.

    ``extent`` bounds the finite |score|. Rows and ``extent`` are in units of 2^unit times
    the caller's, where unit is 0 unless scores are astronomically large or small; costs count
    2^-exponent of these units and are sums of ``roundings`` rounded numbers.
    """

    n_nodes: int
    unit: int
    extent: float
    exponent: int
    roundings: int

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield (first row, rows) for all rows from ``start`` to ``stop``."""

    def scores_of(self, heads: IntArray, tails: IntArray) -> FloatArray:
        """Return the scores of the pairs, as given by the caller."""

    def costs_of(self, heads: IntArray, tails: IntArray) -> IntArray:
        """Return even integer costs of the pairs, exactly as ``price_rows`` computes them."""


class DenseRows:
    """Rows of a given (n, n) array, whose upper triangle counts."""

    def __init__(self, scores: FloatArray) -> None:
        scores = as_float_array("scores", scores)
        check_shape("scores", scores, (None, None))
        if scores.shape[0] != scores.shape[1]:
            raise InvalidProblemError(f"scores: expected a square matrix, received {scores.shape}.")
        self.n_nodes = len(scores)
        self._scores = self._rows = scores
        self.extent = self._measure()
        nodes = np.arange(self.n_nodes)
        for step in (1, 7, self.n_nodes // 3, self.n_nodes // 2):
            self._check_symmetry(nodes, (nodes + step) % max(self.n_nodes, 1))
        self.unit = unit_exponent(self.extent)
        if self.unit:
            self._rows = np.ldexp(scores, -self.unit)
        self.extent = math.ldexp(self.extent, -self.unit)
        self.exponent = scale_exponent(self.n_nodes, self.extent)
        self.roundings = 1

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield the rows as one view."""
        yield start, self._rows[start:stop]

    def scores_of(self, heads: IntArray, tails: IntArray) -> FloatArray:
        """Return scores of the pairs above the diagonal, compared with those below it."""
        self._check_symmetry(heads, tails)
        found: FloatArray = self._scores[np.minimum(heads, tails), np.maximum(heads, tails)]
        return found

    def costs_of(self, heads: IntArray, tails: IntArray) -> IntArray:
        """Return even integer costs of the pairs."""
        return round_costs(np.ldexp(self.scores_of(heads, tails), -self.unit), self.exponent)

    def _measure(self) -> float:
        extents = [0.0]

        def measure(block: FloatArray, first: int) -> None:
            extent = np.zeros(self.n_nodes)
            if measure_rows(block, first, extent):
                raise InvalidProblemError(
                    "scores: expected finite numbers, or -inf for a forbidden pair, "
                    "received NaN or +inf."
                )
            extents.append(float(extent.max(initial=0.0)))

        for_all_rows(self, measure)
        return max(extents)

    def _check_symmetry(self, rows: IntArray, columns: IntArray) -> None:
        """Reject pairs whose two scores differ by more than rounding or only one is -inf.

        A few pairs per node and every pair that is considered are compared: comparing all would
        cost as much as the rest of a warm call.
        """
        above, below = self._scores[rows, columns], self._scores[columns, rows]
        size = np.maximum(np.abs(above), np.abs(below))
        with np.errstate(invalid="ignore"):
            alike = np.abs(above - below) <= np.where(np.isinf(size), 0.0, 1e-9 * size)
        differs = (above != below) & ~alike & (rows != columns)
        if differs.any():
            i, j = rows[differs][0], columns[differs][0]
            raise InvalidProblemError(
                f"scores: expected a symmetric matrix, received {self._scores[i, j]} at "
                f"({i}, {j}) and {self._scores[j, i]} at ({j}, {i})."
            )


class OneHotRows:
    """Rows of Z S Z^T, computed by exact sums, all at once or block by block on demand.

    The whole matrix is computed if it fits into ``DENSE_BYTES``, since a call reads it about ten
    times. S is first rounded to multiples of a power of two so coarse that sums of one entry per
    question are exact in float64, and so fine that rounding is at the last digit of a score.
    Questions are grouped: a table lists a row's score with every combination of answers to a group,
    and an entry of the row is one look-up per group.
    """

    def __init__(self, scores: OneHotScores, room: FloatArray | None = None) -> None:
        self.n_nodes = scores.n_nodes
        self._scores = scores
        self.roundings = scores.codes.shape[1]
        extent = float(sum(self._largest(q) for q in range(self.roundings)))
        self.unit = unit_exponent(extent)
        self.extent = math.ldexp(extent, -self.unit)
        self.exponent = scale_exponent(self.n_nodes, self.extent)
        # Sums must stay below 2^53 units of rounding, 2^(1 - exponent) each.
        finest = scale_exponent(1, self.extent) - 8
        self.exponent = min(self.exponent, finest)
        self._cost_block = round_costs(np.ldexp(scores.block, -self.unit), self.exponent)
        rounded = np.ldexp(-self._cost_block.astype(np.float64), -self.exponent)
        self._folded = OneHotScores(scores.codes, rounded).folded(0, self.n_nodes)
        self._members, self._places = _grouped_answers(scores.codes, len(scores.block))
        self.dense: FloatArray | None = None
        if 8 * self.n_nodes**2 <= DENSE_BYTES:
            if room is None or len(room) != self.n_nodes:
                room = np.empty((self.n_nodes, self.n_nodes))
            dense = room

            def write(start: int, stop: int) -> None:
                for first in range(start, stop, self._height):
                    self._write_rows(first, dense[first : min(first + self._height, stop)])

            for_row_ranges(self.n_nodes, write)
            self.dense = dense

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield the rows as one view, or blocks of ``BLOCK_ENTRIES`` in an array that is reused."""
        if self.dense is not None:
            yield start, self.dense[start:stop]
            return
        room = np.empty((min(self._height, stop - start), self.n_nodes))
        for first in range(start, stop, self._height):
            block = room[: min(self._height, stop - first)]
            self._write_rows(first, block)
            yield first, block

    def scores_of(self, heads: IntArray, tails: IntArray) -> FloatArray:
        """Return the scores of the pairs."""
        return self._scores.of_pairs(heads, tails)

    def costs_of(self, heads: IntArray, tails: IntArray) -> IntArray:
        """Return even integer costs of the pairs: sums of rounded entries of S."""
        total = np.zeros(len(heads), dtype=np.int64)
        for codes in self._scores.codes.T:
            total += self._cost_block[codes[heads], codes[tails]]
        return total

    @property
    def _height(self) -> int:
        return max(1, BLOCK_ENTRIES // max(self.n_nodes, 1))

    def _write_rows(self, first: int, block: FloatArray) -> None:
        """Fill the block with the rows from ``first``; a block's tables stay in the cache."""
        table = self._folded[first : first + len(block)] @ self._members
        sum_lookups(table, self._places, block)

    def _largest(self, question: int) -> float:
        used = np.unique(self._scores.codes[:, question])
        return float(np.abs(self._scores.block[np.ix_(used, used)]).max(initial=0.0))


def _grouped_answers(codes: IntArray, n_columns: int) -> tuple[FloatArray, IntArray]:
    """Return columns of Z in each answer combination (L, V), and each node's combinations (n, G).

    Questions join a group while it has at most ``COMBINATIONS`` combinations.
    """
    members: list[FloatArray] = [np.empty((0, n_columns))]
    places: list[IntArray] = []
    first = 0  # first combination of the present group
    for column in codes.T:
        used, answer = np.unique(column, return_inverse=True)
        own = np.eye(n_columns)[used]
        if places and len(members[-1]) * len(used) <= COMBINATIONS:
            places[-1] = first + (places[-1] - first) * len(used) + answer
            members[-1] = (members[-1][:, np.newaxis] + own).reshape(-1, n_columns)
        else:
            first += len(members[-1])
            members.append(own)
            places.append(first + answer)
    table = np.array(places, dtype=np.int64).reshape(-1, len(codes))
    return np.concatenate(members).T, np.ascontiguousarray(table.T)


def for_all_rows(rows: ScoreRows, task: RowTask) -> None:
    """Call ``task(block, first row)`` over all rows, on several threads if that saves time.

    A thread gets equally many rows from the top and the bottom, so that tasks that only read right
    of the diagonal are shared evenly too.
    """
    n = rows.n_nodes
    half = n // 2

    def work(start: int, stop: int) -> None:
        mirrored = half if stop == half else n - stop
        for begin, end in ((start, stop), (mirrored, n - start)):
            for first, block in rows.blocks(begin, end):
                task(block, first)

    with one_blas_thread() if isinstance(rows, OneHotRows) else nullcontext():
        for_row_ranges(half, work)


def unit_exponent(extent: float) -> int:
    """Return 0 for scores of ordinary size, else the exponent that scales the largest to about 1.

    Raises
    ------
    InvalidProblemError
        If sums of such scores would overflow float64.
    """
    if extent > LARGEST_WEIGHT:
        raise InvalidProblemError(
            f"scores: expected magnitudes up to {LARGEST_WEIGHT:.0e}, received {extent:.3g}."
        )
    exponent = math.frexp(extent)[1]
    return exponent if abs(exponent) > ORDINARY_BITS else 0


def rows_of(
    scores: FloatArray | OneHotScores, room: FloatArray | None = None
) -> DenseRows | OneHotRows:
    """Wrap either form of scores; raise InvalidProblemError on NaN, +inf or an asymmetric array.

    ``room``, shape (n, n), is overwritten if scores have to be copied.
    """
    return OneHotRows(scores, room) if isinstance(scores, OneHotScores) else DenseRows(scores)
