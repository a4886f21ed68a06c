"""Subset-row cuts: of any three atoms, at most one group holds two or more.

Mixtures of groups violate this where three groups overlap in a ring, each used by half. Every cut
has a price, which each group with two or three of its atoms pays once.

References
----------
Jepsen, Petersen, Spoorendonk and Pisinger (2008), subset-row inequalities.
"""

from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from engine.core.arguments import FloatArray, IntArray

NONE: IntArray = np.empty((0, 3), dtype=np.int64)
VIOLATED = 0.02  # smallest violation of a cut that is added
CUTS_AN_ATOM = 3  # per atom, in one round
USED = 1e-4  # share below which a group is ignored


def payers(cuts: IntArray, members: IntArray, n_atoms: int) -> tuple[IntArray, IntArray]:
    """Return pairs of a cut and a group that holds two or more of its atoms, each shape (k,).

    ``cuts`` (c, 3), ``members`` (g, 8) padded with -1.
    """
    c, g = len(cuts), len(members)
    inside = csr_array(
        (np.ones(cuts.size), (np.repeat(np.arange(c), 3), cuts.ravel())), shape=(c, n_atoms)
    )
    group, place = np.nonzero(members >= 0)
    holds = csr_array((np.ones(len(group)), (members[group, place], group)), shape=(n_atoms, g))
    both = (inside @ holds).tocoo()
    pays = both.data >= 2.0
    return both.row[pays].astype(np.int64), both.col[pays].astype(np.int64)


def charges(cuts: IntArray, prices: FloatArray, members: IntArray, n_atoms: int) -> FloatArray:
    """Return the price that each group pays for cuts, shape (g,)."""
    cut, group = payers(cuts, members, n_atoms)
    return np.bincount(group, weights=prices[cut], minlength=len(members)).astype(np.float64)


def violated_cuts(members: IntArray, shares: FloatArray, n_atoms: int) -> IntArray:
    """Return cuts that a mixture violates, most violated first, a few per atom; shape (c, 3).

    ``members`` (g, 8) and ``shares`` (g,) of the mixture.
    """
    used = np.flatnonzero(shares > USED)
    together: list[dict[int, float]] = [{} for _ in range(n_atoms)]
    all_three: dict[tuple[int, int, int], float] = {}
    for group, share in zip(members[used].tolist(), shares[used].tolist(), strict=True):
        atoms = [a for a in group if a >= 0]
        for a, b in combinations(atoms, 2):
            together[a][b] = together[a].get(b, 0.0) + share
            together[b][a] = together[b].get(a, 0.0) + share
        for three in combinations(atoms, 3):
            all_three[three] = all_three.get(three, 0.0) + share
    found = []
    for i, near in enumerate(together):
        for j in near:
            for k, rest in together[j].items() if j > i else ():
                if k > j and k in near:
                    # A group with all three is in each of the three sums.
                    total = near[j] + near[k] + rest - 2.0 * all_three.get((i, j, k), 0.0)
                    if total > 1.0 + VIOLATED:
                        found.append((-total, i, j, k))
    return _few_an_atom(sorted(found), n_atoms)


def _few_an_atom(found: list[tuple[float, int, int, int]], n_atoms: int) -> IntArray:
    taken = [0] * n_atoms
    chosen = []
    for _, *cut in found:
        if max(taken[a] for a in cut) < CUTS_AN_ATOM:
            chosen.append(cut)
            for a in cut:
                taken[a] += 1
    return np.array(chosen, dtype=np.int64).reshape(-1, 3)
