"""Minimum T-joins against enumeration, on multigraphs with ties, zeros, loops and parts."""

import itertools

import numpy as np
import pytest

from engine.core.errors import InfeasibleError, InvalidProblemError
from engine.oracles.t_join import minimum_t_join


def smallest_join(n, edges, weights, terminals):
    """The least weight of all edge sets with odd degree at the terminals, inf if none."""
    wanted = np.isin(np.arange(n), terminals)
    best = np.inf
    for chosen in itertools.product([False, True], repeat=len(edges)):
        mask = np.array(chosen)
        odd = np.bincount(edges[mask].ravel(), minlength=n) % 2 == 1
        if np.array_equal(odd, wanted):
            best = min(best, weights[mask].sum())
    return best


@pytest.mark.parametrize("seed", range(60))
def test_the_join_is_the_cheapest_of_all(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    edges = rng.integers(0, n, (int(rng.integers(1, 12)), 2))
    weights = rng.integers(0, 4, len(edges)) * 1.0 if seed % 2 else rng.exponential(size=len(edges))
    terminals = rng.choice(n, 2 * int(rng.integers(0, n // 2 + 1)), replace=False)
    best = smallest_join(n, edges, weights, terminals)
    if best == np.inf:
        with pytest.raises(InfeasibleError, match="odd number"):
            minimum_t_join(n, edges, weights, terminals)
        return
    join = minimum_t_join(n, edges, weights, terminals)
    assert weights[join.edge_indices].sum() == pytest.approx(join.weight)
    assert join.weight == pytest.approx(best)
    assert best - 1e-9 <= join.lower_bound <= best + 1e-12


def test_what_has_no_meaning_is_refused():
    edge = np.array([[0, 1]])
    with pytest.raises(InvalidProblemError, match="at least 0"):
        minimum_t_join(2, edge, np.array([-1.0]), np.array([0, 1]))
    with pytest.raises(InvalidProblemError, match="terminals"):
        minimum_t_join(2, edge, np.array([1.0]), np.array([0, 2]))
    assert minimum_t_join(2, edge, np.array([1.0]), np.array([], dtype=int)).weight == 0.0
