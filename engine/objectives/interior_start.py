"""Relative interior point of the perfect-matching polytope of any graph (Tang 2015, D.3).

Edges in no perfect matching are clamped to 0 and edges in every one to 1; the start is the average
of matchings that together use and avoid every other edge. One oracle call serves many edges: it
maximises the number of edges not used so far, then minimises the number not avoided so far.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray, read_only
from engine.core.options import check_whole

MatchingOracle = Callable[[FloatArray], IntArray]  # edge weights (e,) -> indices of chosen edges


@dataclass(frozen=True, slots=True)
class InteriorStart:
    """Interior point with the edges that are clamped to 0 and to 1.

    Parameters
    ----------
    tau : ndarray, shape (e,), strictly between 0 and 1 on free edges.
    is_never, is_always : ndarray, shape (e,), bool, edges clamped to 0 and to 1.
    oracle_calls : int

    Examples
    --------
    >>> found = InteriorStart(np.array([0.5, 1.0]), np.zeros(2, bool), np.array([False, True]), 3)
    >>> found.oracle_calls
    3
    """

    tau: FloatArray
    is_never: BoolArray
    is_always: BoolArray
    oracle_calls: int


def find_interior_start(n_edges: int, oracle: MatchingOracle) -> InteriorStart:
    """Average matchings until every free edge has been used and avoided.

    Parameters
    ----------
    n_edges : int
    oracle : callable
        Returns the edges of a perfect matching of largest total weight.

    Returns
    -------
    InteriorStart
        The point, and the clamped edges.

    Raises
    ------
    InfeasibleError
        From the oracle, if there is no perfect matching at all.

    Notes
    -----
    Every call but the last of each kind decides at least one edge, so there are at most e + 2
    calls; on dense graphs about one a node.

    Examples
    --------
    >>> find_interior_start(2, lambda weights: np.array([int(weights.argmax())])).tau.tolist()
    [0.5, 0.5]
    """
    check_whole("n_edges", n_edges)
    total = np.zeros(n_edges)
    is_used = np.zeros(n_edges, dtype=bool)
    is_avoided = np.zeros(n_edges, dtype=bool)
    calls = count = 0

    def ask(weights: FloatArray) -> IntArray:
        nonlocal calls
        calls += 1
        return oracle(weights)

    def take(chosen: IntArray) -> None:
        nonlocal count
        count += 1
        total[chosen] += 1.0
        is_used[chosen] = True
        rest = np.ones(n_edges, dtype=bool)
        rest[chosen] = False
        is_avoided[rest] = True

    while not is_used.all():
        chosen = ask(np.where(is_used, 0.0, 1.0))
        if count and is_used[chosen].all():
            break
        take(chosen)
    while not (is_avoided | ~is_used).all():
        kept = is_used & ~is_avoided
        chosen = ask(np.where(kept, -1.0, 0.0))
        if np.isin(np.flatnonzero(kept), chosen).all():
            break
        take(chosen)
    return InteriorStart(
        read_only(total / max(count, 1)),
        read_only(~is_used),
        read_only(is_used & ~is_avoided),
        calls,
    )
