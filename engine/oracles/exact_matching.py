"""Perfect matchings of sparse graphs, optimal in integer weights of any size.

The compiled solver counts in 64 bits. Longer weights are rounded first; the duals of that solution
leave few edges that an optimum can use (reduced-cost fixing), and on those edges reduced costs are
small enough to keep more digits in the next solution, until no digit is lost.

With costs c_e = (unit / 2) r_e + d_e, even integers r and duals y, z of r in units of unit / 2,
every perfect matching N costs

    (unit / 2) [sum_v y_v + sum_B z_B] + sum_{e in N} (unit / 2 * slack_e + d_e)
        + (unit / 2) sum_B z_B (|N cut B| - 1),

where slack >= 0 and |N cut B| is odd. No optimum costs more than the matching found, whose slacks
are 0. Therefore ``allowance`` bounds the last two sums.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.core.exact_numbers import (
    WholeArray,
    compact,
    largest_of,
    rounded_multiples,
    scaled,
)
from engine.kernels.blossom import solve_perfect_matching
from engine.kernels.laminar import laminar_family
from engine.kernels.matching_edges import compressed_rows, edge_slacks
from engine.oracles.matching_certificate import (
    HEADROOM_BITS,
    IntegerDuals,
    check_edges,
    check_partners,
    check_values,
)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Edges that an optimum of a perfect matching problem may use, with equivalent costs.

    Parameters
    ----------
    edges : ndarray, shape (k,), int64, indices of the edges that were kept.
    cost : ndarray, shape (k,), integers
        The perfect matchings on the kept edges that are best under these costs are the optima.
    """

    edges: IntArray
    cost: WholeArray


def best_perfect_matching(n_nodes: int, edges: IntArray, counts: WholeArray) -> IntArray:
    """Return the indices, sorted, of a perfect matching with the largest sum of counts.

    Parameters
    ----------
    n_nodes : int
    edges : ndarray, shape (m, 2), int64
        The first of the heaviest parallel edges counts; loops are in no matching.
    counts : ndarray, shape (m,), int64 or Python integers of any size.

    Raises
    ------
    InvalidProblemError
        If the number of nodes is so large that rounding costs more than a solution gains.
    InfeasibleError
        If there is no perfect matching.
    CertificateError
        If a result fails its own proof of optimality: a bug.
    """
    if n_nodes % 2:
        raise InfeasibleError(f"an odd number of nodes ({n_nodes}): no perfect matching exists.")
    best = _heaviest_parallel(edges, counts)
    heads, tails = edges[best].T
    chosen = cheapest_perfect_matching(n_nodes, heads, tails, -counts[best])
    return np.sort(best[chosen])


def cheapest_perfect_matching(
    n_nodes: int, heads: IntArray, tails: IntArray, cost: WholeArray
) -> IntArray:
    """Return the indices of a perfect matching of least cost in a simple graph."""
    kept = np.arange(len(heads))
    previous: int | None = None
    while True:
        cost = compact(cost)
        unit = rounding_unit(n_nodes, cost)
        if previous is not None and unit >= previous:
            raise InvalidProblemError(
                f"weights: {n_nodes} nodes of a matching are too many for weights of "
                f"{largest_of(cost).bit_length()} bits: round the weights."
            )
        rounded = 2 * rounded_multiples(cost, unit)
        ends = heads[kept], tails[kept]
        duals, chosen = solve_rounded(n_nodes, *ends, rounded)
        if unit == 1:
            return kept[chosen]
        near = near_optimal(*ends, cost, rounded, unit, duals, chosen)
        kept, cost, previous = kept[near.edges], near.cost, unit


def rounding_unit(n_nodes: int, cost: WholeArray) -> int:
    """Return the least power of two whose multiples add up safely in the compiled solver."""
    bits = largest_of(cost).bit_length() + 1 + max(n_nodes, 1).bit_length() - HEADROOM_BITS
    return 1 << max(bits, 0)


def solve_rounded(
    n_nodes: int, heads: IntArray, tails: IntArray, cost: IntArray
) -> tuple[IntegerDuals, IntArray]:
    """Solve for even costs in 64 bits; return the checked duals and the chosen edges."""
    start, neighbour, edge = compressed_rows(n_nodes, heads, tails)
    dual = np.zeros(n_nodes, dtype=np.int64)
    mate = np.full(n_nodes, -1, dtype=np.int64)
    found, blossom_dual, parent, outermost, label = solve_perfect_matching(
        start, neighbour, cost[edge], dual, mate
    )
    if not found:
        _raise_infeasible(label, outermost)
    check_partners(mate)
    chosen = np.flatnonzero(mate[heads] == tails)
    duals = IntegerDuals(dual, blossom_dual, parent)
    check_edges(duals, heads, tails, cost)
    check_values(duals, sum(cost[chosen].tolist()))
    return duals, chosen


def near_optimal(
    heads: IntArray,
    tails: IntArray,
    cost: WholeArray,
    rounded: IntArray,
    unit: int,
    duals: IntegerDuals,
    chosen: IntArray,
) -> Candidates:
    """Return the edges that an optimum may use, with their reduced costs.

    The dual of a blossom that no optimum can leave three times is cut to the least that forbids it.
    """
    n_nodes, half = len(duals.dual), unit // 2
    rest = _difference(cost, scaled(rounded, half))
    lowest = max(0, -int(rest.min()))
    allowance = sum(rest[chosen].tolist()) + n_nodes // 2 * lowest
    slack = edge_slacks(heads, tails, rounded, duals.dual, duals.family)
    near = np.flatnonzero(slack <= (allowance + largest_of(rest)) // half)
    near = near[_total(slack[near], half, rest[near]) <= allowance - lowest]
    enough = allowance // unit + 1
    reduced = _without_excess(duals, enough)
    slack = edge_slacks(heads[near], tails[near], rounded[near], reduced.dual, reduced.family)
    return Candidates(near, _total(slack, half, rest[near]))


def _without_excess(duals: IntegerDuals, enough: int) -> IntegerDuals:
    """Return the duals to subtract: large blossoms keep ``enough`` and others their whole dual."""
    n = len(duals.dual)
    alone = duals.dual - duals.family.around[:n]
    excess = np.maximum(duals.blossom_dual - enough, 0)
    excess[:n] = 0
    family = laminar_family(n, duals.parent, excess)
    return IntegerDuals(alone + family.around[:n], excess, duals.parent)


def _total(slack: IntArray, half: int, rest: WholeArray) -> WholeArray:
    """Return ``half * slack + rest``."""
    return _difference(scaled(slack, half), -rest)


def _difference(left: WholeArray, right: WholeArray) -> WholeArray:
    """Return ``left - right``, in int64 if both are int64, which then have a spare bit."""
    if left.dtype == object or right.dtype == object:
        return compact(left.astype(object) - right.astype(object))
    return left - right


def _heaviest_parallel(edges: IntArray, counts: WholeArray) -> IntArray:
    """Return indices of the heaviest (then the first) edges between two different nodes."""
    low, high = edges.min(axis=1), edges.max(axis=1)
    rank = np.unique(counts, return_inverse=True)[1]
    order = np.lexsort((np.arange(len(low)), -rank, high, low))
    low, high = low[order], high[order]
    new = low < high  # no loops
    new[1:] &= (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    return np.sort(order[new])


def _raise_infeasible(label: IntArray, outermost: IntArray) -> None:
    inner = tuple(np.flatnonzero(label == 2).tolist())
    n_outer = len(np.unique(outermost[label == 1]))
    if not inner:
        raise InfeasibleError(
            f"no perfect matching exists: {_groups(n_outer)} joined to nobody else."
        )
    nodes = "1 of the nodes" if len(inner) == 1 else f"{len(inner)} of the nodes"
    raise InfeasibleError(
        f"no perfect matching exists: without {nodes} there would be at least "
        f"{_groups(n_outer)} joined to nobody else.",
        inner,
    )


def _groups(count: int) -> str:
    if count == 1:
        return "one group of odd size that is"
    return f"{count} groups of odd size that are"
