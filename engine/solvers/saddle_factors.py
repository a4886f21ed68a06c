"""Factors of the saddle-point matrices of Newton steps under equations."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # submodules load when first used: a command that solves no programme starts faster

from engine.core.arguments import FloatArray, IntArray
from engine.solvers.core_factors import (
    CoreFactors,
    EliminationPlan,
    Factors,
    factorise,
    plan_elimination,
)

LARGEST_BLOCK = 400  # maximum number of rows of a block that is inverted


@dataclass(frozen=True, slots=True, eq=False)
class SaddlePlan:
    """Decomposition of a matrix [[H, A^T], [A, -B]] into blocks.

    Parameters
    ----------
    n_inner : int, rows of H.
    rows : ndarray of int, rows of B that are not empty, block by block.
    entries : ndarray, shape (n, 2): the places in ``rows`` of the entries of its blocks, each
        block row by row, blocks of one size together.
    sizes : list of tuple of int: rows of a block, and the number of blocks of that size.
    fixed : ndarray of int, rows of B that are empty: equations of inner variables alone.
    owner : ndarray, shape (n_inner,): the row of ``fixed`` that contains a variable; -1 if several
    or none do.
    elimination : EliminationPlan, of the inner variables.
    """

    n_inner: int
    rows: IntArray
    entries: IntArray
    sizes: list[tuple[int, int]]
    fixed: IntArray
    owner: IntArray
    elimination: EliminationPlan


def plan_saddle(pattern: Any, n_inner: int, most: float = np.inf) -> SaddlePlan | None:
    """Find the blocks of B and the order in which inner variables are eliminated.

    Return None if there are no inner variables, a block is too large, or an equation of inner
    variables alone has no variable of its own.

    Parameters
    ----------
    pattern : sparse array, symmetric, no entry below 0, with an entry wherever the matrix has one.
    n_inner : int
    most : float, multiplications beyond which no order is searched for.
    """
    pattern = scipy.sparse.csr_array(pattern)
    across, square = pattern[n_inner:, :n_inner], pattern[n_inner:, n_inner:]
    is_fixed = np.diff(square.indptr) == 0
    fixed, free = np.flatnonzero(is_fixed), np.flatnonzero(~is_fixed)
    alone = across[fixed].tocoo()
    uses = np.bincount(alone.col, minlength=n_inner)
    owner = np.full(n_inner, -1)
    owner[alone.col] = alone.row
    owner[uses != 1] = -1
    counts = np.bincount(owner[owner >= 0], minlength=len(fixed))
    _, found = scipy.sparse.csgraph.connected_components(square[free][:, free], directed=False)
    label = found.astype(np.int64)
    size = np.bincount(label)
    if n_inner == 0 or counts.min(initial=1) == 0 or size.max(initial=1) > LARGEST_BLOCK:
        return None
    by_block = np.lexsort((label, size[label]))
    rows, label = free[by_block], label[by_block]
    sizes = [(int(s), int(c)) for s, c in zip(*np.unique(size, return_counts=True), strict=True)]
    joining = scipy.sparse.csr_array(across[rows])
    blocks = _membership(label, len(size))
    # One variable of a fixed equation is eliminated, so the others have the same neighbours.
    _, group = np.unique(
        np.where(owner >= 0, owner, len(fixed) + np.arange(n_inner)), return_inverse=True
    )
    members = _membership(group, int(group.max()) + 1)
    touched = blocks @ joining
    near = members @ (touched.T @ touched + pattern[:n_inner, :n_inner]) @ members.T
    weights = np.bincount(group) - np.bincount(group, owner >= 0).astype(bool)
    elimination = plan_elimination(near, group, weights.astype(np.float64), most)
    return SaddlePlan(n_inner, rows, _block_entries(sizes), sizes, fixed, owner, elimination)


def _membership(group: IntArray, n_groups: int) -> Any:
    """Return the sparse array, shape (n_groups, n), with a 1 for each row at its group."""
    n = len(group)
    return scipy.sparse.csr_array((np.ones(n), (group, np.arange(n))), shape=(n_groups, n))


def _block_entries(sizes: list[tuple[int, int]]) -> IntArray:
    parts, first = [np.empty((0, 2), dtype=np.int64)], 0
    for size, count in sizes:
        starts = first + size * np.arange(count)
        row, column = (k.ravel() for k in np.indices((size, size)))
        places = starts[:, None, None] + np.column_stack([row, column])
        parts.append(places.reshape(-1, 2))
        first += size * count
    return np.concatenate(parts)


class SaddleFactors:
    """Factors of K = [[H, A^T], [A, -B]] where H is positive definite and B block diagonal.

    The blocks of B are inverted one by one, each equation of inner variables alone determines one
    variable, and the remaining matrix is definite.

    Parameters
    ----------
    matrix : sparse array, K
    lifted : ndarray, shape (rows of B,): numbers added to the diagonal of B.
    plan : SaddlePlan
    values : ndarray, shape (n_inner,)
        The variable of the largest value in an equation is determined by the other variables.

    Raises
    ------
    RuntimeError
        If K is singular to the last digit.
    """

    def __init__(self, matrix: Any, lifted: FloatArray, plan: SaddlePlan, values: FloatArray):
        n = self._n = plan.n_inner
        matrix = scipy.sparse.csr_array(matrix)
        self._rows, self._fixed = n + plan.rows, n + plan.fixed
        self._across = scipy.sparse.csr_array(matrix[self._rows][:, :n])
        self._inverse = _invert_blocks(
            scipy.sparse.csr_array(-matrix[self._rows][:, self._rows]), lifted[plan.rows], plan
        )
        self._definite = scipy.sparse.csr_array(
            matrix[:n][:, :n] + self._across.T @ (self._inverse @ self._across)
        )
        equations = scipy.sparse.csr_array(matrix[self._fixed][:, :n])
        self._pivots = _largest_of_each(plan.owner, values)
        self._scale = equations[:, self._pivots].diagonal()
        kept = np.delete(np.arange(n), self._pivots)
        self._basis = _free_basis(equations, self._pivots, self._scale, kept)
        reduced = self._basis.T @ self._definite @ self._basis
        self._factors: Factors
        elimination = plan.elimination
        if elimination.has_core:
            place = np.full(n, -1)
            place[kept] = np.arange(len(kept))
            first, core = (k[k >= 0] for k in (place[elimination.first], place[elimination.core]))
            self._factors = CoreFactors(
                reduced, EliminationPlan(first, core, elimination.multiplications)
            )
        else:
            self._factors = factorise(reduced)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return K^-1 times a vector."""
        n, found = self._n, np.empty_like(right)
        bent = self._inverse @ right[self._rows]
        force = right[:n] + self._across.T @ bent
        start = np.zeros(n)
        start[self._pivots] = right[self._fixed] / self._scale
        moved = self._basis.T @ (force - self._definite @ start)
        inner = start + self._basis @ self._factors.solve(moved)
        found[:n] = inner
        found[self._rows] = self._inverse @ (self._across @ inner) - bent
        found[self._fixed] = (force - self._definite @ inner)[self._pivots] / self._scale
        return found


def _largest_of_each(owner: IntArray, values: FloatArray) -> IntArray:
    """Return each equation's variable of largest value, in the order of the equations."""
    own = np.flatnonzero(owner >= 0)
    ascending = own[np.lexsort((values[own], owner[own]))]
    return ascending[np.diff(owner[ascending], append=len(values)) > 0]


def _free_basis(equations: Any, pivots: IntArray, scale: FloatArray, kept: IntArray) -> Any:
    """Return a basis, (n, n_kept), of the equations' null space; pivots depend on others."""
    others = scipy.sparse.diags_array(-1.0 / scale) @ equations[:, kept]
    one = scipy.sparse.eye_array(len(kept))
    stacked = scipy.sparse.vstack([one, others], format="csr")
    return scipy.sparse.csr_array(stacked[np.argsort(np.concatenate([kept, pivots]))])


def _invert_blocks(square: Any, lifted: FloatArray, plan: SaddlePlan) -> Any:
    """Return the inverse of a block diagonal matrix whose diagonal is lifted."""
    n = len(plan.rows)
    starts = np.zeros(n, dtype=np.int64)  # of each row's block among the rows, and of its entries
    width, entries, first, filled = np.zeros(n, dtype=np.int64), starts.copy(), 0, 0
    for size, count in plan.sizes:
        end = first + size * count
        starts[first:end] = np.repeat(np.arange(first, end, size), size)
        entries[first:end] = filled + size * np.arange(size * count)
        width[first:end] = size
        first, filled = end, filled + size * size * count
    found = square.tocoo()
    flat = np.zeros(len(plan.entries))
    flat[entries[found.row] + found.col - starts[found.row]] = found.data
    diagonal = entries + np.arange(n) - starts
    flat[diagonal] += lifted
    scale = 1.0 / np.sqrt(flat[diagonal])
    row, column = plan.entries.T
    flat *= scale[row] * scale[column]
    at = 0
    for size, count in plan.sizes:
        end = at + size * size * count
        blocks = flat[at:end].reshape(count, size, size)
        try:
            blocks[:] = np.linalg.inv(blocks)
        except np.linalg.LinAlgError as error:
            raise RuntimeError("A block is singular.") from error
        at = end
    flat *= scale[row] * scale[column]
    return scipy.sparse.csr_array((flat, (row, column)), shape=(n, n))
