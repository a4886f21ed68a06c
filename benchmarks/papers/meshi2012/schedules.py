"""Orders of star updates on the smoothed dual, for comparison: each does about n of them a call."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.inference.pairwise.map_linear_programme import SmoothedDual
from engine.kernels.messages_pairwise import Layout, soft_max
from engine.kernels.star_updates import refresh, star_update, update_in_order

Sweep = Callable[[SmoothedDual], None]


def cyclic(rng: np.random.Generator) -> Sweep:
    """Every node once, in the order of the file: the order of the product."""
    return lambda dual: dual.run(dual.model.graph.n_nodes)


def stochastic(rng: np.random.Generator) -> Sweep:
    """Nodes drawn at random, with replacement."""

    def sweep(dual: SmoothedDual) -> None:
        n = dual.model.graph.n_nodes
        order = rng.integers(0, n, size=n)
        update_in_order(order, dual.beta, dual.layout, dual.scores, dual.messages, dual.sent)

    return sweep


def greedy(rng: np.random.Generator) -> Sweep:
    """The node of largest gradient, by a heap; beta must be finite."""

    def sweep(dual: SmoothedDual) -> None:
        n = dual.model.graph.n_nodes
        update_greedily(n, dual.beta, dual.layout, dual.scores, dual.messages, dual.sent)

    return sweep


def permuted(rng: np.random.Generator) -> Sweep:
    """Every node once, in a new random order each time."""

    def sweep(dual: SmoothedDual) -> None:
        order = rng.permutation(dual.model.graph.n_nodes)
        update_in_order(order, dual.beta, dual.layout, dual.scores, dual.messages, dual.sent)

    return sweep


def there_and_back(rng: np.random.Generator) -> Sweep:
    """Forth and back in the order of the file."""
    forth = [True]

    def sweep(dual: SmoothedDual) -> None:
        order = np.arange(dual.model.graph.n_nodes, dtype=np.int64)[:: 1 if forth[0] else -1]
        forth[0] = not forth[0]
        arguments = (dual.beta, dual.layout, dual.scores, dual.messages, dual.sent)
        update_in_order(order.copy(), *arguments)

    return sweep


def residual(rng: np.random.Generator) -> Sweep:
    """The node whose incoming messages changed most since its last update: cheaper than greedy."""
    priority: list[FloatArray] = []

    def sweep(dual: SmoothedDual) -> None:
        n = dual.model.graph.n_nodes
        if not priority:
            priority.append(np.full(n, 1e300))
        update_by_residual(
            n, dual.beta, dual.layout, dual.scores, dual.messages, dual.sent, priority[0]
        )

    return sweep


def asynchronous(rng: np.random.Generator) -> Sweep:
    """Two threads sweep half of the nodes each on shared messages, without locks.

    Updates of neighbours at one time work on what was just overwritten: what is sent is computed
    anew after every sweep, so that the dual value is that of the messages. No descent is promised.
    """
    pool = ThreadPoolExecutor(2)

    def sweep(dual: SmoothedDual) -> None:
        halves = np.array_split(np.arange(dual.model.graph.n_nodes, dtype=np.int64), 2)
        arguments = (dual.beta, dual.layout, dual.scores, dual.messages, dual.sent)
        list(pool.map(lambda order: update_in_order(order, *arguments), halves))
        refresh(dual.beta, dual.layout, dual.scores, dual.messages, dual.sent)

    return sweep


SCHEDULES: dict[str, Callable[[np.random.Generator], Sweep]] = {
    "greedy": greedy,
    "cyclic": cyclic,
    "there and back": there_and_back,
    "permuted": permuted,
    "residual": residual,
    "asynchronous": asynchronous,
    "stochastic": stochastic,
}


@njit(cache=True, nogil=True)
def disagreement(
    node: int,
    beta: float,
    layout: Layout,
    scores: FloatArray,
    messages: FloatArray,
    sent: FloatArray,
    work: FloatArray,
) -> float:
    """Return max |mu_i(x) - mu_e(x)| at a node: the largest entry of the gradient of its block.

    ``work`` (2, largest cardinality).
    """
    cards, _, node_start, _, incident_start, incident_edge, message_start = layout
    low, high = incident_start[node], incident_start[node + 1]
    for x in range(cards[node]):
        work[0][x] = scores[node_start[node] + x]
        for k in range(low, high):
            work[0][x] += messages[message_start[incident_edge[k]] + x]
    norm = soft_max(work[0], cards[node], beta)
    largest = 0.0
    for k in range(low, high):
        start = message_start[incident_edge[k]]
        for x in range(cards[node]):
            work[1][x] = sent[start + x] - messages[start + x]
        edge_norm = soft_max(work[1], cards[node], beta)
        for x in range(cards[node]):
            own = math.exp(beta * (work[0][x] - norm))
            seen = math.exp(beta * (work[1][x] - edge_norm))
            largest = max(largest, abs(own - seen))
    return largest


@njit(cache=True, nogil=True)
def _sift(slot: int, heap: IntArray, place: IntArray, priority: FloatArray) -> None:
    """Restore the heap of largest priority after the entry at ``slot`` has changed."""
    n = heap.shape[0]
    node = heap[slot]
    while slot > 0:
        up = (slot - 1) // 2
        if priority[heap[up]] >= priority[node]:
            break
        heap[slot] = heap[up]
        place[heap[slot]] = slot
        slot = up
    while True:
        child = 2 * slot + 1
        if child >= n:
            break
        if child + 1 < n and priority[heap[child + 1]] > priority[heap[child]]:
            child += 1
        if priority[heap[child]] <= priority[node]:
            break
        heap[slot] = heap[child]
        place[heap[slot]] = slot
        slot = child
    heap[slot] = node
    place[node] = slot


@njit(cache=True, nogil=True)
def update_greedily(
    count: int,
    beta: float,
    layout: Layout,
    scores: FloatArray,
    messages: FloatArray,
    sent: FloatArray,
) -> None:
    """Apply ``count`` star updates, each at the node of largest gradient, by a priority queue."""
    cards, edges, _, _, incident_start, incident_edge, _ = layout
    n = cards.shape[0]
    work = np.empty((2, cards.max()))
    priority = np.empty(n)
    heap = np.arange(n)
    place = np.arange(n)
    for node in range(n):
        priority[node] = disagreement(node, beta, layout, scores, messages, sent, work)
    for slot in range(n - 1, -1, -1):
        _sift(slot, heap, place, priority)
    for _ in range(count):
        node = heap[0]
        star_update(node, beta, layout, scores, messages, sent, work[0])
        priority[node] = 0.0
        _sift(0, heap, place, priority)
        for k in range(incident_start[node], incident_start[node + 1]):
            end = incident_edge[k]
            other = edges[end // 2, 1 - end % 2]
            priority[other] = disagreement(other, beta, layout, scores, messages, sent, work)
            _sift(place[other], heap, place, priority)


@njit(cache=True, nogil=True)
def update_by_residual(
    count: int,
    beta: float,
    layout: Layout,
    scores: FloatArray,
    messages: FloatArray,
    sent: FloatArray,
    priority: FloatArray,
) -> None:
    """``count`` star updates at the nodes of largest ``priority`` (n,), which is kept up to date.

    It sums the largest changes of what was sent to a node since it was updated.
    """
    cards, edges, _, _, incident_start, incident_edge, message_start = layout
    n = cards.shape[0]
    work = np.empty(cards.max())
    heap, place = np.arange(n), np.arange(n)
    for slot in range(n - 1, -1, -1):
        _sift(slot, heap, place, priority)
    before = sent.copy()
    for _ in range(count):
        node = heap[0]
        star_update(node, beta, layout, scores, messages, sent, work)
        priority[node] = 0.0
        _sift(0, heap, place, priority)
        for k in range(incident_start[node], incident_start[node + 1]):
            end = incident_edge[k] ^ 1
            other = edges[end // 2, end % 2]
            change = 0.0
            for x in range(message_start[end], message_start[end + 1]):
                change = max(change, abs(sent[x] - before[x]))
                before[x] = sent[x]
            priority[other] += change
            _sift(place[other], heap, place, priority)
