"""Worms on perfect matchings: frequencies of whole matchings, whatever the potentials."""

from itertools import pairwise

import numpy as np
import pytest

from engine.kernels.matching_worms import fill_cells, walk_worms


def make_cells(scores, potentials):
    cells = np.empty(scores.shape, dtype=np.uint64)
    fill_cells(scores, potentials, 0, len(scores), cells)
    return cells


def shares_of(cells):
    """Return what the tables draw, exactly: the low half for j, the rest for the high half."""
    n = len(cells)
    own = (cells & np.uint64(0xFFFFFFFF)).astype(np.float64) / 2.0**32
    others = (cells >> np.uint64(32)).astype(np.int64)
    shares = own / n
    for i in range(n):
        np.add.at(shares[i], others[i], (1.0 - own[i]) / n)
    return shares


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
def test_tables_draw_what_they_are_made_for(spread):
    rng = np.random.default_rng(0)
    scores = spread * rng.normal(size=(40, 40))
    scores[rng.random((40, 40)) < 0.3] = -np.inf
    potentials = rng.normal(size=40)
    with np.errstate(divide="ignore"):
        wanted = np.exp(scores + potentials)
    np.fill_diagonal(wanted, 0.0)
    wanted /= wanted.sum(axis=1, keepdims=True)
    found = shares_of(make_cells(scores, potentials))
    assert np.abs(found - wanted).max() < 1e-9
    assert (found[wanted == 0.0] == 0.0).all()


@pytest.mark.parametrize("unevenness", [0.0, 1.5])
def test_matchings_come_as_often_as_their_weight_says(unevenness):
    """All three of four students, two of them seldom; one step at a time as well as all at once."""
    scores = np.zeros((4, 4))
    for (i, j), score in {(0, 1): 1.5, (2, 3): 0.5, (0, 2): -1.0, (1, 2): 0.7}.items():
        scores[i, j] = scores[j, i] = score
    rng = np.random.default_rng(1)
    cells = make_cells(scores, unevenness * rng.normal(size=4))
    draws = rng.integers(2**64, size=(400_000, 3), dtype=np.uint64)
    partner, worms = np.tile(np.array([1, 0, 3, 2]), (3, 1)), np.tile(np.array([-1, -1, 0]), (3, 1))
    counts, counted = np.zeros((3, 4, 4), dtype=np.int32), np.zeros(3, dtype=np.int64)
    for first, last in pairwise([0, 1, 2, 5, 200_000, len(draws)]):
        walk_worms(cells, partner, worms, draws[first:last], 1, counts, counted)
    weights = np.exp([2.0, -1.0, 0.7])
    assert (counted > 10_000).all()
    assert np.array_equal(counted, worms[:, 2])
    for chain in range(3):
        shares = counts[chain, 0, 1:] / counted[chain]
        assert shares == pytest.approx(weights / weights.sum(), abs=0.02)
    assert (np.tril(counts) == 0).all()
