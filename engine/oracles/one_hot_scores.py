"""Scores of all pairs of survey answers, stored as one-hot codes and a block matrix."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray, as_finite_array, check_shape
from engine.core.errors import InvalidProblemError


@dataclass(frozen=True, slots=True)
class OneHotScores:
    """Score matrix W = Z S Z^T that is never formed: W_ij = sum_q S[codes_iq, codes_jq].

    Parameters
    ----------
    codes : ndarray, shape (n, Q), integer
        For each student and question the column of the one-hot matrix Z that is 1; the columns of
        a question are its own.
    block : ndarray, shape (L, L), float64, nats
        Symmetric matrix S; only entries within a question's own block are used.

    Notes
    -----
    `rows` computes scores on demand as a dense product, O(L) a pair, in O(n L) memory; the matcher
    keeps all n^2 scores if they fit into its limit.

    References
    ----------
    Tang et al. (2015), appendix A.3.

    Examples
    --------
    >>> scores = OneHotScores(np.array([[0], [1], [0]]), np.array([[2.0, -1.0], [-1.0, 3.0]]))
    >>> scores.rows(0, 3).tolist()
    [[2.0, -1.0, 2.0], [-1.0, 3.0, -1.0], [2.0, -1.0, 2.0]]
    """

    codes: IntArray
    block: FloatArray

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        check_shape("codes", codes, (None, None))
        block = as_finite_array("block", self.block, shape=(None, None))
        if block.shape[0] != block.shape[1]:
            raise InvalidProblemError(f"block: expected a square matrix, received {block.shape}.")
        if not np.issubdtype(codes.dtype, np.integer):
            raise InvalidProblemError(f"codes: expected integers, received {codes.dtype}.")
        if codes.size and (codes.min() < 0 or codes.max() >= block.shape[0]):
            raise InvalidProblemError(
                f"codes: expected 0..{block.shape[0] - 1}, received {codes.min()}..{codes.max()}."
            )
        if not np.array_equal(block, block.T):
            raise InvalidProblemError("block: expected a symmetric matrix.")
        object.__setattr__(self, "codes", np.ascontiguousarray(codes, dtype=np.int64))
        object.__setattr__(self, "block", block)

    @property
    def n_nodes(self) -> int:
        """Number of students."""
        return int(self.codes.shape[0])

    def one_hot(self) -> FloatArray:
        """One-hot matrix Z, shape (n, L)."""
        matrix = np.zeros((self.n_nodes, self.block.shape[0]))
        np.put_along_axis(matrix, self.codes, 1.0, axis=1)
        return matrix

    def folded(self, start: int, stop: int) -> FloatArray:
        """Return rows ``start..stop`` of Z S, (stop - start, L), from questions' own blocks."""
        folded = np.zeros((stop - start, self.block.shape[0]))
        for codes in self.codes.T:
            own = np.unique(codes)
            folded[:, own] += self.block[codes[start:stop][:, np.newaxis], own]
        return folded

    def rows(self, start: int, stop: int) -> FloatArray:
        """Return scores of students ``start..stop`` with all students, shape (stop - start, n)."""
        product: FloatArray = self.folded(start, stop) @ self.one_hot().T
        return product

    def of_pairs(self, heads: IntArray, tails: IntArray) -> FloatArray:
        """Return scores of the pairs (heads[k], tails[k]), shape (len(heads),)."""
        total = np.zeros(len(heads))
        for codes in self.codes.T:
            total += self.block[codes[heads], codes[tails]]
        return total
