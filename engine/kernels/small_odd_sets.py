"""Branch and bound over all odd sets of few nodes with small cuts."""

import numpy as np
from numba import njit

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.kernels.compiling import inner


@njit(cache=True, nogil=True)
def find_small_odd_sets(
    tau: FloatArray,
    sums: FloatArray,
    partner: IntArray,
    spare: FloatArray,
    largest: int,
    target: float,
    budget: int,
    found: BoolArray,
) -> tuple[int, float, bool]:
    """Search every odd set of 3 .. ``largest`` nodes whose cut may be less than ``target`` <= 1.

    Two nodes with a marginal above 1/2 are a unit. No such set splits two units, hence it is one
    node, whose unit's other node is left out, or a node without a unit, and whole units. Branch and
    bound from there: with S included and Q still to add, cut(S + Q) = cut(S) + cut(Q) - 2 x(S, Q),
    and every unit of Q has a cut of at least its ``spare``. The unit with the largest gain is
    included, then left out; branches whose gains together do not reach the target are cut off.

    Parameters
    ----------
    tau : ndarray, shape (n, n); sums : (n,), its row sums.
    partner : ndarray, shape (n,), the other node of the unit, -1 without one.
    spare : ndarray, shape (largest, n)
        Row r: the least cut of a unit, at its first node, within r nodes at most, its own included.
    found : ndarray, shape (m, n), receives up to m of the sets with a cut below ``target``.

    Returns
    -------
    tuple of int, float, bool
        Number of sets found; the smallest cut seen, inf for none, which is the smallest of all if
        below the target; whether the search was finished within ``budget`` branchings.
    """
    n = len(tau)
    mark = np.zeros(n, dtype=np.int64)  # 1 included, -1 left out
    members = np.empty(largest + 1, dtype=np.int64)
    branch = np.empty(n + 1, dtype=np.int64)
    count, least, steps = 0, np.inf, 0
    for root in range(n):
        size, depth = 1, 0
        members[0] = root
        mark[root] = 1
        gain = tau[root].copy()
        if partner[root] >= 0:
            mark[partner[root]] = -1
        while True:
            steps += 1
            if steps > budget:
                return count, least, False
            cut = 0.0
            for a in range(size):
                cut += sums[members[a]] - gain[members[a]]
            if size >= 3 and size % 2 == 1:
                least = min(least, cut)
                if cut < target and count < len(found):
                    count = _note_set(found, count, members, size)
            chosen, reach = _best_growth(
                gain, mark, partner, spare[largest - size], largest - size, size % 2 == 1
            )
            if chosen >= 0 and cut - reach < target:
                branch[depth] = chosen
                depth += 1
                size = _take(tau, gain, mark, members, size, chosen)
                if partner[chosen] >= 0:
                    size = _take(tau, gain, mark, members, size, partner[chosen])
                continue
            # Back to the last included unit: leave it out instead.
            while depth > 0 and mark[branch[depth - 1]] == -1:
                depth -= 1
                _mark_unit(mark, partner, branch[depth], 0)
            if depth == 0:
                break
            node = branch[depth - 1]
            _mark_unit(mark, partner, node, -1)
            size -= 1
            gain -= tau[node]
            if partner[node] >= 0:
                size -= 1
                gain -= tau[partner[node]]
        _mark_unit(mark, partner, root, 0)
    return count, least, True


@inner
def _take(
    tau: FloatArray, gain: FloatArray, mark: IntArray, members: IntArray, size: int, node: int
) -> int:
    """Add a node to the set; return the new size."""
    members[size] = node
    mark[node] = 1
    gain += tau[node]
    return size + 1


@inner
def _mark_unit(mark: IntArray, partner: IntArray, node: int, value: int) -> None:
    mark[node] = value
    if partner[node] >= 0:
        mark[partner[node]] = value


@inner
def _note_set(found: BoolArray, count: int, members: IntArray, size: int) -> int:
    """Add the set unless it is already there; return the number of sets."""
    for k in range(count):
        same = True
        for a in range(size):
            same = same and found[k, members[a]]
        if same and found[k].sum() == size:
            return count
    found[count] = False
    for a in range(size):
        found[count, members[a]] = True
    return count + 1


@inner
def _best_growth(
    gain: FloatArray,
    mark: IntArray,
    partner: IntArray,
    spare: FloatArray,
    room: int,
    is_odd: bool,
) -> tuple[int, float]:
    """Return the undecided unit with the largest gain, and a bound on the decrease of the cut.

    An odd set may stay as it is, so that only gains above 0 count; an even one must include at
    least one single node, at any cost.
    """
    chosen, top, total, single = -1, -np.inf, 0.0, -np.inf
    for j in range(len(gain)):
        if mark[j] != 0 or (partner[j] >= 0 and (partner[j] < j or room < 2)) or room < 1:
            continue
        toward = gain[j] if partner[j] < 0 else gain[j] + gain[partner[j]]
        value = 2.0 * toward - spare[j]
        total += max(value, 0.0)  # or the largest times the remaining places, if that is less
        if partner[j] < 0:
            single = max(single, value)
        if value > top:
            chosen, top = j, value
    total = min(total, room * max(top, 0.0))
    if is_odd:
        return (chosen, total) if top > 0.0 else (-1, 0.0)
    return chosen, total + min(single, 0.0)
