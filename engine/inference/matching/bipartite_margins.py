"""Multipliers of row and column sums that are accurate beside marginals near 1.

    sum_j d_ij (g_ij - y_i - z_j) = shortfall of row i, and the same for every column

A pair with tau near 1 dominates both of its sums, which are then nearly the same equation: their
difference, entries of 1e-10 beside one of 1, would be lost. So the column of such a pair is
replaced by the difference of row and column, which does not contain the pair. Rows are eliminated;
the remaining matrix of the columns is positive semidefinite for every counting number, since the
entropy is concave on the simplex of a row.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from engine.core.arguments import FloatArray, IntArray
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.bipartite_points import excess

LIKELY = 0.5
"""Marginal above which a pair is treated as likely: at most one in a row and in a column."""

Sums = tuple[FloatArray, FloatArray]  # rows, then differences or negated columns; (n, k) each


@dataclass(slots=True)
class Margins:
    """Linear system of the multipliers at one point.

    Parameters
    ----------
    tau : ndarray, shape (n, n)
    rates : ndarray, shape (n, n), d

    Raises
    ------
    numpy.linalg.LinAlgError
        If the system is singular in floating point.
    """

    tau: FloatArray
    rates: FloatArray
    _likely: tuple[IntArray, IntArray] = field(init=False)
    _rows: FloatArray = field(init=False)
    _cross: FloatArray = field(init=False)
    _scale: FloatArray = field(init=False)
    _factor: tuple[FloatArray, bool] = field(init=False)

    def __post_init__(self) -> None:
        i, j = (places.astype(np.int64) for places in np.nonzero(self.tau > LIKELY))
        self._likely = i, j
        others, n = self.rates.copy(), len(self.rates)
        others[i, j] = 0.0
        of_rows, of_columns = others.sum(axis=1), others.sum(axis=0)
        self._rows = of_rows.copy()
        self._rows[i] += self.rates[i, j]
        self._cross = -others
        self._cross[i, j] = of_rows[i]
        moved = np.zeros((n, n))
        moved[j] = others[i]
        matrix = -(moved + moved.T)
        matrix[np.arange(n), np.arange(n)] += of_columns
        matrix[j, j] += of_rows[i]
        with np.errstate(all="ignore"):  # a matrix that is not finite has no factor
            matrix -= (self._cross / self._rows[:, None]).T @ self._cross
            matrix = matrix[:-1, :-1]  # a constant may move from all rows to all columns
            self._scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), TOLERANCES.tiny))
            matrix *= self._scale[:, None] * self._scale
        self._factor = _factor(matrix)

    def sums(self, entries: FloatArray) -> Sums:
        """Return the row sums and column equations of entries (n, n, k)."""
        i, j = self._likely
        likely, others = entries[i, j], entries.copy()
        others[i, j] = 0.0
        rows, columns = others.sum(axis=1), -others.sum(axis=0)
        columns[j] += rows[i]
        rows[i] += likely
        return rows, columns

    def targets(self, entries: FloatArray) -> Sums:
        """Return the sums of entries (n, n) plus the excess of tau."""
        rows, columns = self.sums(entries[:, :, None])
        errors, n = excess(self.tau)[:, None], len(self.tau)
        return rows + errors[:n], columns - errors[n:]  # a likely pair's row has no excess

    def solve(self, sums: Sums) -> Sums:
        """Return the multipliers whose spread has these sums, in the form that ``spread`` takes."""
        rows, columns = sums
        right = columns - self._cross.T @ (rows / self._rows[:, None])
        second = np.zeros(columns.shape)
        scale = self._scale[:, None]
        second[:-1] = cho_solve(self._factor, right[:-1] * scale, check_finite=False) * scale
        return (rows - self._cross @ second) / self._rows[:, None], second

    def solve_by_node(self, right: FloatArray) -> FloatArray:
        """Return the multipliers of rows and columns, (2n,) or (2n, k), for sums of that shape."""
        (i, j), n = self._likely, len(self.tau)
        sides = right.reshape(len(right), -1)
        rows, columns = sides[:n], -sides[n:]
        columns[j] += rows[i]
        of_rows, second = self.solve((rows, columns))
        of_rows[i] += second[j]
        return np.concatenate([of_rows, -second]).reshape(right.shape)

    def explained(self, sums: Sums) -> FloatArray:
        """Return the products of sums with their own multipliers, shape (k, k)."""
        return inner_product(sums, self.solve(sums))

    def by_node(self, multipliers: Sums) -> FloatArray:
        """Return y of the rows and z of the columns, (2n,), of multipliers with k = 1."""
        i, j = self._likely
        rows, second = multipliers[0][:, 0].copy(), multipliers[1][:, 0]
        rows[i] += second[j]
        return np.concatenate([rows, -second])

    def spread(self, multipliers: Sums) -> FloatArray:
        """Return y_i + z_j of every entry, (n, n), without the cancelling terms of likely pairs."""
        (i, j), n = self._likely, len(self.tau)
        by_node = self.by_node(multipliers)
        total = by_node[:n, None] + by_node[n:]
        total[i, j] = multipliers[0][i, 0]
        return np.asarray(total)


def inner_product(first: Sums, second: Sums) -> FloatArray:
    """Return the products of sums (n, K) with multipliers (n, k), shape (K, k)."""
    return np.asarray(first[0].T @ second[0] + first[1].T @ second[1])


def _factor(matrix: FloatArray) -> tuple[FloatArray, bool]:
    for boost in TOLERANCES.boosts:
        try:
            factor, lower = cho_factor(matrix + boost * np.eye(len(matrix)))
        except ValueError as error:  # not finite
            raise np.linalg.LinAlgError from error
        except np.linalg.LinAlgError:
            continue
        return factor, bool(lower)
    raise np.linalg.LinAlgError
