"""Maximum-weight matchings of graphs with many edges, solved on complete graphs.

Added edges of weight 0 make a graph complete; each stands for two unmatched nodes. The matcher of
complete graphs rounds weights to 64 bits; if that loses digits, the few edges that an optimum may
use, by its duals, are solved without rounding.
"""

import numpy as np

from engine.core.arguments import IntArray
from engine.core.exact_numbers import WholeArray, largest_of, scaled
from engine.oracles.exact_matching import cheapest_perfect_matching, near_optimal
from engine.oracles.matching_certificate import IntegerDuals
from engine.oracles.perfect_matching import CompleteGraphMatcher
from engine.oracles.score_rows import ORDINARY_BITS, DenseRows

MOST_BITS = ORDINARY_BITS
"""Largest number of bits of whole numbers that float64 rounds without rescaling."""

MANTISSA_BITS = 53


def match_dense(n_nodes: int, edges: IntArray, counts: WholeArray) -> IntArray:
    """Return the indices of a matching with the largest sum of ``counts``, all above 0.

    Parameters
    ----------
    n_nodes : int, at least 1.
    edges : ndarray, shape (m, 2), no two between the same nodes and no loops.
    counts : ndarray, shape (m,), whole numbers of at most ``MOST_BITS`` bits.

    Notes
    -----
    O(n^2) memory.
    """
    even = n_nodes + n_nodes % 2
    heads, tails = edges.min(axis=1), edges.max(axis=1)
    scores = np.zeros((even, even))
    scores[heads, tails] = scores[tails, heads] = counts.astype(np.float64)
    rows = DenseRows(scores)
    partner, duals = CompleteGraphMatcher().solve_rounded(rows)
    is_rounded = rows.exponent < 1 or largest_of(counts).bit_length() > MANTISSA_BITS
    if is_rounded:
        partner = _without_rounding(rows, heads, tails, counts, partner, duals)
    return np.flatnonzero(partner[heads] == tails)


def _without_rounding(
    rows: DenseRows,
    heads: IntArray,
    tails: IntArray,
    counts: WholeArray,
    partner: IntArray,
    duals: IntegerDuals,
) -> IntArray:
    """Return the partners of an optimum, from the duals of an optimum for rounded costs."""
    n = rows.n_nodes
    # In units of ``half``, the costs of ``rows`` are those of the counts times ``scale``.
    half, scale = 1 << max(-rows.exponent, 0), 1 << max(rows.exponent, 0)
    first, second = np.triu_indices(n, 1)
    cost = np.zeros(len(first), dtype=counts.dtype)
    cost[heads * (2 * n - heads - 1) // 2 + tails - heads - 1] = -counts
    near = near_optimal(
        first,
        second,
        scaled(cost, scale),
        rows.costs_of(first, second),
        2 * half,
        duals,
        np.flatnonzero(partner[first] == second),
    )
    first, second = first[near.edges], second[near.edges]
    chosen = cheapest_perfect_matching(n, first, second, near.cost)
    partner = np.empty(n, dtype=np.int64)
    partner[first[chosen]], partner[second[chosen]] = second[chosen], first[chosen]
    return partner
