"""Orders of star updates on the smoothed dual, for comparison: each does about n of them a call."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray
from engine.inference.pairwise.map_linear_programme import SmoothedDual
from engine.kernels.messages_pairwise import Layout
from engine.kernels.star_updates import _sift, refresh, star_update, update_in_order

Sweep = Callable[[SmoothedDual], None]


def in_one_order(schedule: str) -> Callable[[np.random.Generator], Sweep]:
    """Cyclic, stochastic (with replacement) or greedy (largest gradient, a heap)."""

    def make(rng: np.random.Generator) -> Sweep:
        return lambda dual: dual.run(dual.model.graph.n_nodes, schedule, rng)  # type: ignore[arg-type]

    return make


def permuted(rng: np.random.Generator) -> Sweep:
    """Every node once, in a new random order each time."""

    def sweep(dual: SmoothedDual) -> None:
        order = rng.permutation(dual.model.graph.n_nodes)
        update_in_order(order, dual.beta, dual.layout, dual.scores, dual.messages, dual._sent)

    return sweep


def there_and_back(rng: np.random.Generator) -> Sweep:
    """Forth and back in the order of the file."""
    forth = [True]

    def sweep(dual: SmoothedDual) -> None:
        order = np.arange(dual.model.graph.n_nodes, dtype=np.int64)[:: 1 if forth[0] else -1]
        forth[0] = not forth[0]
        update_in_order(
            order.copy(), dual.beta, dual.layout, dual.scores, dual.messages, dual._sent
        )

    return sweep


def residual(rng: np.random.Generator) -> Sweep:
    """The node whose incoming messages changed most since its last update: cheaper than greedy."""
    priority: list[FloatArray] = []

    def sweep(dual: SmoothedDual) -> None:
        n = dual.model.graph.n_nodes
        if not priority:
            priority.append(np.full(n, 1e300))
        update_by_residual(
            n, dual.beta, dual.layout, dual.scores, dual.messages, dual._sent, priority[0]
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
        arguments = (dual.beta, dual.layout, dual.scores, dual.messages, dual._sent)
        list(pool.map(lambda order: update_in_order(order, *arguments), halves))
        refresh(dual.beta, dual.layout, dual.scores, dual.messages, dual._sent)

    return sweep


SCHEDULES: dict[str, Callable[[np.random.Generator], Sweep]] = {
    "greedy": in_one_order("greedy"),
    "cyclic": in_one_order("cyclic"),
    "there and back": there_and_back,
    "permuted": permuted,
    "residual": residual,
    "asynchronous": asynchronous,
    "stochastic": in_one_order("stochastic"),
}


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
