"""Binary heap of (key, payload) pairs in one integer array, for event queues of searches."""

import numpy as np

from engine.core.arguments import IntArray
from engine.kernels.compiling import inner


@inner
def heap_push(heap: IntArray, size: int, key: int, payload: int) -> int:
    """Insert into ``heap``, shape (capacity, 2), with ``size`` rows in use; return the new size.

    The caller guarantees capacity; see ``heap_reserve``.
    """
    k = size
    while k > 0:
        above = (k - 1) >> 1
        if heap[above, 0] <= key:
            break
        heap[k, 0] = heap[above, 0]
        heap[k, 1] = heap[above, 1]
        k = above
    heap[k, 0] = key
    heap[k, 1] = payload
    return size + 1


@inner
def heap_pop(heap: IntArray, size: int) -> int:
    """Remove row 0 with the smallest key, read before by the caller; return the new size."""
    size -= 1
    key = heap[size, 0]
    payload = heap[size, 1]
    k = 0
    while True:
        below = 2 * k + 1
        if below >= size:
            break
        if below + 1 < size and heap[below + 1, 0] < heap[below, 0]:
            below += 1
        if heap[below, 0] >= key:
            break
        heap[k, 0] = heap[below, 0]
        heap[k, 1] = heap[below, 1]
        k = below
    heap[k, 0] = key
    heap[k, 1] = payload
    return size


@inner
def heap_reserve(heap: IntArray, size: int, room: int) -> IntArray:
    """Return a heap with the same rows and space for ``room`` more."""
    if size + room <= heap.shape[0]:
        return heap
    larger = np.empty((2 * (size + room), 2), dtype=np.int64)
    for k in range(size):
        larger[k, 0] = heap[k, 0]
        larger[k, 1] = heap[k, 1]
    return larger
