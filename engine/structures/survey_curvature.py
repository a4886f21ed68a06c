"""Exact Hessian of a year's log Z in theta: the information in its pairs about the weights.

    H = F^T D F - M^T (A D A^T)^-1 M,       M = A D F

F are the features of all pairs, D the rates at which marginals follow their scores, and the rows of
A the students and the binding odd sets. F^T D F is computed from counts of the pairs of answers to
every two questions, so that no pair's features are formed.
"""

import warnings

import numpy as np
from scipy.linalg import LinAlgError, LinAlgWarning, lstsq, solve
from scipy.sparse import csr_array

from engine.core.arguments import FloatArray, IntArray
from engine.core.tolerances import TOLERANCES
from engine.crf.pair_features import question_features
from engine.crf.survey_features import SurveyFeatures, upper_triangle
from engine.kernels.answer_cells import count_cells
from engine.kernels.threads import for_row_ranges

CLOSE = 1e-10  # constraints closer than this, relative to their size, count as repeated


def pair_information(
    features: SurveyFeatures, codes: IntArray, rates: FloatArray, sets: tuple[IntArray, ...] = ()
) -> FloatArray:
    """Return H, shape (K, K), positive semidefinite up to rounding.

    Parameters
    ----------
    features : SurveyFeatures
    codes : ndarray, shape (n, Q), columns of Z.
    rates : ndarray, shape (n, n), symmetric, d tau / d score; zero on the diagonal.
    sets : tuple of ndarray, students of the odd sets that hold with equality.

    Notes
    -----
    O(n^2 Q^2 / 4 + n^3) in time.
    """
    total = _outer_products(features, codes, rates)
    means = np.concatenate(
        [
            _row_statistics(features, codes, rates),
            *(_set_statistics(features, codes, rates, nodes)[None] for nodes in sets),
        ]
    )
    system = _constraint_system(rates, sets)
    absorbed = means.T @ _solve(system, means)
    return np.asarray(total - (absorbed + absorbed.T) / 2.0)


def _solve(system: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a symmetric system whose right sides are in its range, singular if pairs are certain.

    The diagonal is scaled to 1 and slightly raised, which changes only the part outside the range.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(system)), TOLERANCES.tiny))
    scaled = system * scale[:, None] * scale
    scaled[np.diag_indices(len(scaled))] += CLOSE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        try:
            found = solve(scaled, right * scale[:, None], assume_a="sym", check_finite=False)
        except LinAlgError:
            found = lstsq(scaled, right * scale[:, None], cond=CLOSE)[0]
    return np.asarray(found * scale[:, None])


def _cell_numbers(features: SurveyFeatures) -> tuple[IntArray, IntArray]:
    """Return the number of every unordered pair of answers (Q, L + 1, L + 1), and each question's
    first number (Q + 1,).
    """
    sizes = np.diff(features.column_offsets)
    cells = np.zeros((len(sizes), sizes.max(), sizes.max()), dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes * (sizes + 1) // 2)]).astype(np.int64)
    for q, size in enumerate(sizes):
        upper = upper_triangle(int(size))
        cells[q][upper] = starts[q] + np.arange(len(upper[0]))
        cells[q].T[upper] = cells[q][upper]
    return cells, starts


def _outer_products(features: SurveyFeatures, codes: IntArray, rates: FloatArray) -> FloatArray:
    """Return F^T D F, shape (K, K)."""
    cells, starts = _cell_numbers(features)
    own = codes - features.column_offsets[:-1]
    counts = np.zeros((starts[-1], starts[-1]))
    for q in range(len(starts) - 1):
        parts: list[FloatArray] = []

        def work(first: int, last: int, q: int = q, parts: list[FloatArray] = parts) -> None:
            part = np.zeros((starts[q + 1] - starts[q], starts[-1]))
            count_cells(own, cells, rates, first, last, q, part)
            parts.append(part)

        for_row_ranges(len(codes), work)
        counts[starts[q] : starts[q + 1]] = sum(parts)
    upper = np.triu(counts, 1)
    counts = upper + upper.T + np.diag(np.diag(counts))
    maps = _cell_features(features, starts)
    return np.asarray((maps.T @ (maps.T @ counts).T).T)


def _cell_features(features: SurveyFeatures, starts: IntArray) -> csr_array:
    """Return the features of every unordered pair of answers, (cells, K), two entries per row."""
    columns, numbers = [], []
    for q in range(len(starts) - 1):
        base = features.column_offsets[q]
        low, high = upper_triangle(int(features.column_offsets[q + 1] - base))
        places, values = question_features(features, q, base + low, base + high)
        columns.append(places)
        numbers.append(values)
    rows = np.repeat(np.arange(starts[-1]), 2)
    entries = np.concatenate(numbers).ravel(), (rows, np.concatenate(columns).ravel())
    return csr_array(entries, shape=(int(starts[-1]), features.n_features))


def _row_statistics(features: SurveyFeatures, codes: IntArray, rates: FloatArray) -> FloatArray:
    """Return sum_j D_ij f_ij for every student, shape (n, K)."""
    out = np.zeros((len(codes), features.n_features))
    rows = np.arange(len(codes))
    for q in range(codes.shape[1]):
        first, last = features.column_offsets[q : q + 2]
        hot = np.zeros((len(codes), last - first))
        hot[rows, codes[:, q] - first] = 1.0
        counts = rates @ hot
        for column in range(first, last):
            places, values = question_features(features, q, codes[:, q], np.full_like(rows, column))
            for k in range(2):
                out[rows, places[:, k]] += values[:, k] * counts[:, column - first]
    return out


def _set_statistics(
    features: SurveyFeatures, codes: IntArray, rates: FloatArray, nodes: IntArray
) -> FloatArray:
    """Return the sum of D_ij f_ij over the pairs inside a set, shape (K,)."""
    inside = np.ascontiguousarray(rates[np.ix_(nodes, nodes)])
    return np.asarray(_row_statistics(features, codes[nodes], inside).sum(axis=0) / 2.0)


def _constraint_system(rates: FloatArray, sets: tuple[IntArray, ...]) -> FloatArray:
    """Return A D A^T, shape (n + m, n + m)."""
    n, size = len(rates), len(rates) + len(sets)
    system = np.zeros((size, size))
    system[:n, :n] = rates
    system[np.arange(n), np.arange(n)] = rates.sum(axis=1)
    for k, nodes in enumerate(sets):
        inside = rates[np.ix_(nodes, nodes)]
        system[n + k, nodes] = system[nodes, n + k] = inside.sum(axis=1)
        for m, other in enumerate(sets):
            both = np.intersect1d(nodes, other)
            system[n + k, n + m] = rates[np.ix_(both, both)].sum() / 2.0
    return system
