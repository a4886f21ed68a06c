"""Weighted counts of the pairs of answers to two questions, over all pairs of students."""

from numba import njit

from engine.core.arguments import FloatArray, IntArray


@njit(cache=True, nogil=True)
def add_cells(
    counts: FloatArray,
    codes: IntArray,
    cells: IntArray,
    offsets: IntArray,
    question: int,
    answer: int,
    total: FloatArray,
) -> None:
    """Add what m students share with all students of one ``answer`` to ``question``.

    ``codes`` (m, Q) are the answers of the m students per question from 0; ``counts`` (m, C) sums
    their weights with the students of that answer, by the answers of those to the questions from
    ``question`` on, the answers of question q from ``offsets[q] - offsets[question]`` on;
    ``cells`` (Q, L, L) numbers every unordered pair of answers of a question. ``total`` (own cells,
    all cells) starts at the first cell of ``question``. Students who give the same answer are
    counted from both sides, so that their weights are halved.
    """
    base = cells[question, 0, 0]
    for i in range(len(counts)):
        share = 0.5 if codes[i, question] == answer else 1.0
        row = total[cells[question, codes[i, question], answer] - base]
        for q in range(question, codes.shape[1]):
            first = offsets[q] - offsets[question]
            of_pair = cells[q, codes[i, q]]
            for k in range(offsets[q + 1] - offsets[q]):
                row[of_pair[k]] += share * counts[i, first + k]
