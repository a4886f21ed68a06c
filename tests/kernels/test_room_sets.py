"""Sets of atoms on the way to a group, against sums over their pairs."""

import numpy as np
import pytest
from numba import njit

from engine.kernels.room_sets import (
    SET,
    SetPath,
    add_pairs,
    append_atom,
    can_complete,
    is_least,
    weigh_joining,
)
from engine.kernels.room_tables import PairValues

N, MEMBERS, SCALE = 7, (4, 1, 6), 0.5


@njit
def _grow(scores, bonus, sizes, price, chosen):  # type: ignore[no-untyped-def]
    """Append atoms one after another; return what is known of every set on the way."""
    m = len(chosen) + 1
    members, joins = np.full(m, -1, dtype=np.int64), np.zeros(m)
    within, sums, sets = np.zeros((m, m)), np.zeros((m, len(price))), np.zeros(m, dtype=SET)
    pairs = PairValues(scores, bonus, SCALE)
    path = SetPath(members, joins, within, sums, sets)
    for k in range(m - 1):
        new = chosen[k]
        append_atom(path, k, new, -1, pairs, sizes, price)
        add_pairs(new, pairs, sums[k], sums[k + 1])
    return members, within, sums, sets


@njit
def _joins_last(scores, bonus, price, within, members, new, total):  # type: ignore[no-untyped-def]
    """Whether a new atom may join the last set, and contributes least to it."""
    joins, count = np.zeros(len(members)), len(members) - 1
    if not weigh_joining(members, count, new, PairValues(scores, bonus, SCALE), joins):
        return False, False
    share = 0.5
    return True, is_least(within[count], members, count, joins, total, new, price, share, 1e-12)


@pytest.fixture(params=[True, False], ids=["bonus", "no bonus"])
def atoms(request):
    """Scores, bonus, sizes, prices and the worth of every pair."""
    rng = np.random.default_rng(3)
    scores, bonus = (np.tril(m, -1) for m in rng.normal(size=(2, N, N)))
    scores, bonus = scores + scores.T, bonus + bonus.T
    if not request.param:
        return scores, np.zeros((0, 0)), rng.integers(1, 3, N), rng.random(N), SCALE * scores
    return scores, bonus, rng.integers(1, 3, N), rng.random(N), SCALE * scores + bonus


def test_it_sums_pairs_prices_and_people_of_every_set(atoms):
    scores, bonus, sizes, price, worth = atoms
    _, within, sums, sets = _grow(scores, bonus, sizes, price, np.array(MEMBERS))
    for k in range(1, len(MEMBERS) + 1):
        own = list(MEMBERS[:k])
        pairs = worth[np.ix_(own, own)]
        assert within[k, :k] == pytest.approx(pairs.sum(axis=1))
        assert sums[k] == pytest.approx(worth[own].sum(axis=0))
        assert sets[k]["worth"] == pytest.approx(pairs.sum() / 2)
        assert sets[k]["price"] == pytest.approx(price[own].sum())
        assert sets[k]["people"] == -sizes[own].sum()


def test_a_member_cannot_join_and_of_others_those_that_contribute_least_do(atoms):
    scores, bonus, sizes, price, worth = atoms
    members, within, sums, _ = _grow(scores, bonus, sizes, price, np.array(MEMBERS))
    for new in range(N):
        can_join, contributes_least = _joins_last(
            *(scores, bonus, price, within, members, new, sums[-1, new])
        )
        assert can_join == (new not in MEMBERS)
        if can_join:
            whole = [*MEMBERS, new]
            given = worth[np.ix_(whole, whole)].sum(axis=1) - 0.5 * price[whole]
            assert contributes_least == (np.argmin(given) == len(MEMBERS))


@pytest.mark.parametrize(
    ("people", "atoms", "answer"), [(0, 0, True), (1, 0, False), (2, 2, True), (1, 2, False)]
)
def test_whether_so_many_atoms_can_bring_so_many_people(people, atoms, answer):
    assert can_complete(people, atoms) is answer
