"""Estimates of how many one-sided requests a placement honours, and at what price, before a run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.oracles.assignment import assignment_prices


@dataclass(frozen=True, slots=True)
class WishEffect:
    """Estimate for one value of a wish.

    Parameters
    ----------
    value : float, worth of an honoured wish (score).
    n_honoured : int, wishes that pay for themselves.
    cost : float, score that the rooms lose by them.
    cost_share : float, that cost over what the best rooms gain over rooms drawn at random.
    """

    value: float
    n_honoured: int
    cost: float
    cost_share: float


def estimate_wish_effects(
    scores: FloatArray, wishes: IntArray, values: Sequence[float]
) -> list[WishEffect]:
    """Estimate how many wishes rooms of two honour for each value of a wish.

    The prices u of the students (duals of the best assignment) say what each gains with the best
    partners that are left. Joining a and b costs u_a + u_b - W_ab, so a wish is honoured if it is
    worth more than that; of several wishes of one student the cheapest comes first. Prices do not
    change with the wishes that are honoured before, and rooms for more than two count as rooms for
    two, so it is an estimate.

    Parameters
    ----------
    scores : ndarray, shape (n, n), float64
        Scores W of pairs, symmetric; -inf where two may not share a room. The diagonal is ignored.
    wishes : ndarray, shape (m, 2), int64
        Students of each wish.
    values : sequence of float, worths of a wish (score), not negative.

    Returns
    -------
    list of WishEffect
        In the order of ``values``.

    Raises
    ------
    InvalidProblemError
        If a value is negative or a wish names the same student twice.

    Notes
    -----
    About 1 s and three n x n arrays for n = 2,500.

    References
    ----------
    Bertsekas (1991), Linear Network Optimization, section 1.3: reduced costs of an assignment.
    """
    if any(not value >= 0 for value in values):
        raise InvalidProblemError(f"values: expected none below 0, received {min(values)}.")
    first, second = np.asarray(wishes, dtype=np.int64).reshape(-1, 2).T
    if (first == second).any():
        raise InvalidProblemError("wishes: a student cannot wish for himself or herself.")
    table = np.asarray(scores, dtype=np.float64).copy()
    np.fill_diagonal(table, -np.inf)
    prices, is_paired = _prices(table)
    costs = np.maximum(prices[first] + prices[second] - table[first, second], 0.0)
    order, taken = np.argsort(costs, kind="stable"), set[int]()
    kept: list[float] = []
    for k in order.tolist():
        pair = {int(first[k]), int(second[k])}
        if np.isfinite(costs[k]) and not pair & taken:
            taken |= pair
            kept.append(float(costs[k]))
    at_random = float(table[np.isfinite(table)].mean()) if kept else 0.0
    gain = float(prices[is_paired].sum()) - 0.5 * int(is_paired.sum()) * at_random
    found = []
    for value in values:
        paid = [cost for cost in kept if cost < value]
        share = sum(paid) / gain if gain > 0 else 0.0
        found.append(WishEffect(float(value), len(paid), sum(paid), share))
    return found


def _prices(table: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return every student's price, and a mask of those who may share a room with somebody.

    Where the rules leave somebody over, that student stays alone at a score below all others.
    """
    is_paired: BoolArray = np.asarray(np.isfinite(table).any(axis=1), dtype=np.bool_)
    prices = np.zeros(len(table))
    if not is_paired.any():
        return prices, is_paired
    part = table[np.ix_(is_paired, is_paired)]
    known = part[np.isfinite(part)]
    low, high = float(known.min()), float(known.max())
    np.fill_diagonal(part, low - 2.0 * (high - low) - 1.0)
    rows, columns = assignment_prices(part)
    prices[is_paired] = 0.5 * (rows + columns)
    return prices, is_paired
