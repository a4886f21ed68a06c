"""Weighted counts of the pairs of answers to two questions, over all pairs of students."""

from numba import njit

from engine.core.arguments import FloatArray, IntArray


@njit(cache=True, nogil=True)
def count_cells(
    codes: IntArray,
    cells: IntArray,
    weights: FloatArray,
    first: int,
    last: int,
    question: int,
    total: FloatArray,
) -> None:
    """Add sum_{i < j} w_ij [cell of ``question`` = a] [cell of question q = b], q >= question.

    Covers the rows first .. last of the symmetric ``weights`` (n, n). ``codes`` (n, Q) are answers
    per question from 0; ``cells`` (Q, L, L) numbers every unordered pair of answers of a question,
    those of ``question`` from its own first number; ``total`` (own cells, all cells).
    """
    n, n_questions = codes.shape
    base = cells[question, 0, 0]
    for i in range(first, last):
        for j in range(i + 1, n):
            w = weights[i, j]
            if w == 0.0:
                continue
            row = total[cells[question, codes[i, question], codes[j, question]] - base]
            for q in range(question, n_questions):
                row[cells[q, codes[i, q], codes[j, q]]] += w
