"""Sums over perfect matchings node by node, stored per set of later nodes that are already matched.

Nodes are in a given order. At node f a state is a mask: bit k is set if node f + k has a partner
among the nodes before f. A layer is the states of one node, ``keys`` (s,), all different, indexed
by ``slots``, a hash table with open addressing whose size is a power of two above s, -1 if
empty. ``offsets`` (d,), ascending, are the distances from f to its later neighbours, at most 63,
and ``scores`` (d,) theirs, nats.
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner


@njit(cache=True, nogil=True)
def take_node(
    keys: IntArray,
    before: FloatArray,
    offsets: IntArray,
    scores: FloatArray,
    slots: IntArray,
    next_keys: IntArray,
    next_before: FloatArray,
) -> int:
    """Match node f in every state; return the number of states of the next layer, -1 for too many.

    ``before`` (s,) is the log of the summed weight of all paths into a state; ``next_keys`` and
    ``next_before`` receive those of the next layer, in the order of their discovery.
    """
    count = 0
    slots[:] = -1
    for s in range(len(keys)):
        mask = np.uint64(keys[s])
        if mask & np.uint64(1):
            count = _add(mask >> np.uint64(1), before[s], slots, next_keys, next_before, count)
            if count < 0:
                return -1
            continue
        for k in range(len(offsets)):
            bit = np.uint64(1) << np.uint64(offsets[k])
            if mask & bit:
                continue
            following = (mask | bit) >> np.uint64(1)
            weight = before[s] + scores[k]
            count = _add(following, weight, slots, next_keys, next_before, count)
            if count < 0:
                return -1
    return count


@njit(cache=True, nogil=True)
def collect_node(
    keys: IntArray,
    before: FloatArray,
    offsets: IntArray,
    scores: FloatArray,
    slots: IntArray,
    next_keys: IntArray,
    next_after: FloatArray,
    total: float,
    after: FloatArray,
    marginals: FloatArray,
) -> None:
    """Sum the continuations of every state, and the marginals (d,) of f with its later neighbours.

    ``after`` (s,) receives the log of the summed weight of all paths from a state, -inf for none;
    ``next_after`` is the next layer's; ``total`` the log of the weight of all perfect matchings.
    """
    slots[:] = -1
    for s in range(len(next_keys)):
        slots[_find(np.uint64(next_keys[s]), slots, next_keys)] = s
    marginals[:] = 0.0
    for s in range(len(keys)):
        mask = np.uint64(keys[s])
        if mask & np.uint64(1):
            after[s] = next_after[slots[_find(mask >> np.uint64(1), slots, next_keys)]]
            continue
        top, summed = -np.inf, 0.0
        for k in range(len(offsets)):
            bit = np.uint64(1) << np.uint64(offsets[k])
            if mask & bit:
                continue
            following = (mask | bit) >> np.uint64(1)
            value = scores[k] + next_after[slots[_find(following, slots, next_keys)]]
            if value == -np.inf:
                continue
            marginals[k] += np.exp(before[s] + value - total)
            if value > top:
                summed = summed * np.exp(top - value) + 1.0
                top = value
            else:
                summed += np.exp(value - top)
        after[s] = top + np.log(summed) if summed > 0.0 else -np.inf


@inner
def _find(key: np.uint64, slots: IntArray, keys: IntArray) -> int:
    """Return the slot of a key in the table, or the empty slot for it."""
    last = len(slots) - 1
    place = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & last
    while slots[place] >= 0 and np.uint64(keys[slots[place]]) != key:
        place = (place + 1) & last
    return int(place)


@inner
def _add(
    key: np.uint64,
    weight: float,
    slots: IntArray,
    keys: IntArray,
    logs: FloatArray,
    count: int,
) -> int:
    """Add a path into a state; return the number of states, -1 if there is no space."""
    place = _find(key, slots, keys)
    known = slots[place]
    if known < 0:
        if count == len(keys):
            return -1
        slots[place] = count
        keys[count] = np.int64(key)
        logs[count] = weight
        return count + 1
    high, low = max(logs[known], weight), min(logs[known], weight)
    logs[known] = high + np.log1p(np.exp(low - high))
    return count
