"""Factors of sparse symmetric matrices in which elimination leaves a dense core."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import scipy  # submodules load when first used: a command that solves no programme starts faster

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.minimum_degree import eliminate_least_degrees

DENSE = 0.3  # a core begins where all degrees reach this share of the remaining rows
# A dense core pays where lists would take a second or more, and where it is not so small beside
# the eliminated rows that updating it takes longer.
LISTS_ALONE, BESIDE = 3e8, 150.0
COLUMNS = 500  # of a core that are updated at once


class Factors(Protocol):
    """Factorised matrix that solves linear equations."""

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the matrix's inverse times a vector, or times the columns of an array."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class EliminationPlan:
    """Order in which rows are eliminated.

    Parameters
    ----------
    first : ndarray of int, rows that are eliminated one by one.
    core : ndarray of int, the other rows, as one dense matrix.
    multiplications : float, predicted number in one factorisation.
    """

    first: IntArray
    core: IntArray
    multiplications: float

    @property
    def has_core(self) -> bool:
        """Return True if the dense core saves time."""
        is_wide = float(len(self.core)) ** 2 > BESIDE * len(self.first)
        return self.multiplications > LISTS_ALONE and is_wide


def plan_elimination(
    pattern: Any, group: IntArray, weights: FloatArray, most: float = np.inf
) -> EliminationPlan:
    """Choose an elimination order by least degree, and the rows of the dense core.

    Parameters
    ----------
    pattern : sparse array, shape (n_groups, n_groups), symmetric
    group : ndarray of int, shape (n,), of each row: rows of a group have the same neighbours.
    weights : ndarray, shape (n_groups,)
        How many rows each stands for: fewer than it has where some will be left out.
    most : float, multiplications beyond which the search ends; its prediction is then infinite.
    """
    graph = scipy.sparse.csr_array(pattern, copy=True)
    graph.setdiag(0.0)
    graph.eliminate_zeros()
    starts, neighbours = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    first, core, beside = eliminate_least_degrees(starts, neighbours, weights, DENSE, most)
    by_group = np.argsort(group, kind="stable")
    place = np.empty(len(weights), dtype=np.int64)
    place[first] = np.arange(len(first))
    is_core = np.zeros(len(weights), dtype=bool)
    is_core[core] = True
    work = beside + float(weights[core].sum()) ** 3 / 3.0
    rows = by_group[~is_core[group[by_group]]]
    ordered = rows[np.argsort(place[group[rows]], kind="stable")]
    return EliminationPlan(
        ordered, np.flatnonzero(is_core[group]), work if work <= most else np.inf
    )


class CoreFactors:
    """Factors of a symmetric matrix, definite or nearly so, whose pivots need no exchanges.

    Parameters
    ----------
    matrix : sparse array, shape (n, n)
    plan : EliminationPlan, of a pattern that contains the matrix's.

    Raises
    ------
    RuntimeError
        If the matrix is singular to the last digit.
    """

    def __init__(self, matrix: Any, plan: EliminationPlan) -> None:
        """Eliminate the first rows, then factorise the core."""
        matrix = scipy.sparse.csr_array(matrix)
        self._first, self._core = plan.first, plan.core
        ahead = matrix[self._first]
        self._beside = scipy.sparse.csr_array(ahead[:, self._core])
        self._sparse = factorise(ahead[:, self._first], order="NATURAL")
        reduced = matrix[self._core][:, self._core].toarray()
        for start in range(0, len(self._core), COLUMNS):
            some = slice(start, start + COLUMNS)
            beside = self._beside[:, some].toarray()
            reduced[:, some] -= self._beside.T @ self._sparse.solve(beside)
        self._core_solve = _dense_solve(reduced)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the matrix's inverse times a vector."""
        first = self._sparse.solve(right[self._first])
        core = self._core_solve(right[self._core] - self._beside.T @ first)
        found = np.empty_like(right)
        found[self._core] = core
        found[self._first] = self._sparse.solve(right[self._first] - self._beside @ core)
        return found


def _dense_solve(matrix: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the inverse of a dense symmetric matrix as a function; the matrix is overwritten.

    Near the end of an interior-point run rounding makes pivots negative; they need exchanges among
    rows of one scale.
    """
    diagonal = np.abs(np.diagonal(matrix))
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    matrix *= scale[:, None]
    matrix *= scale
    try:
        lower = scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        factors, pivots, info = scipy.linalg.lapack.dgetrf(matrix, overwrite_a=True)
        if info > 0:
            raise RuntimeError("The core is singular.") from None
        return lambda right: scale * scipy.linalg.lapack.dgetrs(factors, pivots, scale * right)[0]
    return lambda right: scale * scipy.linalg.cho_solve(lower, scale * right, check_finite=False)


def factorise(matrix: Any, order: Literal["MMD_AT_PLUS_A", "NATURAL"] = "MMD_AT_PLUS_A") -> Factors:
    """Factorise a sparse definite or quasi-definite matrix without exchanging pivots.

    Raises RuntimeError if the matrix is singular to the last digit.
    """
    factors: Factors = scipy.sparse.linalg.splu(
        scipy.sparse.csc_array(matrix),
        permc_spec=order,
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return factors
