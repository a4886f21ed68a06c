"""All odd sets of few nodes that little leaves: branch and bound."""

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
    """Look at every odd set of 3 .. ``largest`` nodes that less than ``target`` <= 1 may leave.

    Two nodes with a marginal above 1/2 are a unit: no such set splits two units, hence it is one
    node, from whose unit the other is left out, or a node without one, and whole units. Branch and
    bound from there: with S taken in and Q yet to come, cut(S + Q) = cut(S) + cut(Q) - 2 x(S, Q),
    and of Q every unit leaves at least its ``spare``. The unit that gains most is taken in, then
    left out; nothing is looked at further where all gains together do not reach the target.

    Parameters
    ----------
    tau : ndarray, shape (n, n); sums : (n,), its row sums.
    partner : ndarray, shape (n,), the other of the unit, -1 without one.
    spare : ndarray, shape (largest, n)
        Row r: what leaves a unit, given at its first node, among r nodes at most, its own included.
    found : ndarray, shape (m, n), gets up to m of the sets that less than ``target`` leaves.

    Returns
    -------
    tuple of int, float, bool
        Sets found; the smallest cut seen, inf without one, which is the smallest of all if below
        the target; whether the search was finished within ``budget`` branchings.
    """
    n = len(tau)
    mark = np.zeros(n, dtype=np.int64)  # 1 taken in, -1 left out
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
            # Back to the last unit that was taken in: leave it out instead.
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
    """Take a node into the set; return the new size."""
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
    """Add the set unless it is there; return the number of sets."""
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
    """Return the undecided unit that gains most, and by how much growth may lower the cut.

    An odd set may stay as it is, so that only gains above 0 count; an even one has to take in a
    single node at least, whatever that costs.
    """
    chosen, top, total, single = -1, -np.inf, 0.0, -np.inf
    for j in range(len(gain)):
        if mark[j] != 0 or (partner[j] >= 0 and (partner[j] < j or room < 2)) or room < 1:
            continue
        toward = gain[j] if partner[j] < 0 else gain[j] + gain[partner[j]]
        value = 2.0 * toward - spare[j]
        total += max(value, 0.0)  # or as often as there is room for the largest, if that is less
        if partner[j] < 0:
            single = max(single, value)
        if value > top:
            chosen, top = j, value
    total = min(total, room * max(top, 0.0))
    if is_odd:
        return (chosen, total) if top > 0.0 else (-1, 0.0)
    return chosen, total + min(single, 0.0)
