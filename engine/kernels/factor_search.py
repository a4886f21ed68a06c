"""Local search over configurations of a factor graph: exact moves on random forests, repeated.

``arrays`` is that of a `graphs.factor_layout.FactorLayout`, ``scores`` its flat tables, finite. A
state is ``labels`` (one per variable) with ``places`` (the index of each factor's entry).

References: Hamze and de Freitas 2004 (trees within a model); Lourenco, Martin and Stutzle 2003
(iterated local search).
"""

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.compiling import inner

FactorArrays = tuple[
    IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray
]
# (cardinalities, scope_start, scope_variable, scope_stride, table_start, variable_start,
#  variable_factor, variable_stride, label_start)

OUTSIDE, CHOSEN, WAITING, DONE = 0, 1, 2, 3
MOST_JOINED = 32  # largest number of trees that one variable may join


@inner
def relabel(
    variable: int, label: int, arrays: FactorArrays, labels: IntArray, places: IntArray
) -> None:
    """Change the label of a variable, and update the entry indices of its factors."""
    step = label - labels[variable]
    for k in range(arrays[5][variable], arrays[5][variable + 1]):
        places[arrays[6][k]] += arrays[7][k] * step
    labels[variable] = label


@inner
def score_around(
    variable: int, arrays: FactorArrays, scores: FloatArray, places: IntArray
) -> float:
    """Return the sum of the current entries of a variable's factors."""
    total = 0.0
    for k in range(arrays[5][variable], arrays[5][variable + 1]):
        total += scores[places[arrays[6][k]]]
    return total


@inner
def _find(root: IntArray, v: int) -> int:
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v


@njit(cache=True, nogil=True)
def choose_forest(
    region: IntArray,
    arrays: FactorArrays,
    state: IntArray,
    root: IntArray,
    degree: IntArray,
    chosen: IntArray,
) -> int:
    """Choose variables of ``region`` in order that close no cycle; return their number.

    No factor has more than two variables in the forest. Writes ``chosen``, their ``degree``, and
    CHOSEN into ``state``, which must be OUTSIDE everywhere; ``root`` is work space.
    """
    _, scope_start, scope_variable, _, _, variable_start, variable_factor, _, _ = arrays
    near = np.empty(MOST_JOINED, dtype=np.int64)
    trees = np.empty(MOST_JOINED, dtype=np.int64)
    count = 0
    for v in region:
        joined, fits = 0, True
        for k in range(variable_start[v], variable_start[v + 1]):
            factor, others = variable_factor[k], 0
            for s in range(scope_start[factor], scope_start[factor + 1]):
                u = scope_variable[s]
                if u == v or state[u] == OUTSIDE:
                    continue
                others += 1
                tree, is_new = _find(root, u), True
                for j in range(joined):
                    is_new = is_new and near[j] != u
                    fits = fits and (near[j] == u or trees[j] != tree)
                if is_new and fits:
                    fits = joined < MOST_JOINED
                    if fits:
                        near[joined], trees[joined] = u, tree
                        joined += 1
            fits = fits and others < 2
            if not fits:
                break
        if not fits:
            continue
        state[v], root[v], degree[v] = CHOSEN, v, joined
        for j in range(joined):
            root[trees[j]] = v
            degree[near[j]] += 1
        chosen[count] = v
        count += 1
    return count


@inner
def _other_in_forest(factor: int, v: int, arrays: FactorArrays, state: IntArray) -> int:
    """Return the position in its scope of the factor's other variable in the forest, or -1."""
    for s in range(arrays[1][factor], arrays[1][factor + 1]):
        u = arrays[2][s]
        if u != v and state[u] != OUTSIDE:
            return s
    return -1


@inner
def _gather(
    v: int,
    arrays: FactorArrays,
    scores: FloatArray,
    labels: IntArray,
    places: IntArray,
    state: IntArray,
    gains: FloatArray,
) -> float:
    """Write the scores of a variable's labels in factors with no other variable in the forest."""
    start, old = arrays[8][v], 0.0
    for x in range(arrays[0][v]):
        gains[start + x] = 0.0
    for k in range(arrays[5][v], arrays[5][v + 1]):
        factor, stride = arrays[6][k], arrays[7][k]
        if _other_in_forest(factor, v, arrays, state) >= 0:
            continue
        base = places[factor] - stride * labels[v]
        old += scores[places[factor]]
        for x in range(arrays[0][v]):
            gains[start + x] += scores[base + stride * x]
    return old


@inner
def _send(
    v: int,
    turn: int,
    arrays: FactorArrays,
    scores: FloatArray,
    labels: IntArray,
    places: IntArray,
    state: IntArray,
    gains: FloatArray,
    pair: FloatArray,
    answer: IntArray,
) -> tuple[int, float]:
    """Maximise over a leaf; return (its neighbour or -1, current score of their factors).

    ``answer[v, b]`` is its best label if the neighbour has b, ties by ``turn``.
    """
    cards, start = arrays[0], arrays[8]
    parent, old = -1, 0.0
    for k in range(arrays[5][v], arrays[5][v + 1]):
        factor = arrays[6][k]
        s = _other_in_forest(factor, v, arrays, state)
        if s < 0 or state[arrays[2][s]] == DONE:
            continue
        u, own, far = arrays[2][s], arrays[7][k], arrays[3][s]
        if parent < 0:
            parent = u
            pair[: cards[v], : cards[u]] = 0.0
        old += scores[places[factor]]
        base = places[factor] - own * labels[v] - far * labels[u]
        for a in range(cards[v]):
            for b in range(cards[u]):
                pair[a, b] += scores[base + own * a + far * b]
    for b in range(cards[parent] if parent >= 0 else 1):
        best, value = 0, -np.inf
        for shift in range(cards[v]):
            a = (shift + turn) % cards[v]
            new = gains[start[v] + a] + (pair[a, b] if parent >= 0 else 0.0)
            if new > value:
                best, value = a, new
        answer[v, b] = best
        if parent >= 0:
            gains[start[parent] + b] += value
    return parent, old


@njit(cache=True, nogil=True)
def improve_forest(
    region: IntArray,
    turns: IntArray,
    arrays: FactorArrays,
    scores: FloatArray,
    labels: IntArray,
    places: IntArray,
    work: tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, FloatArray, FloatArray],
    answer: IntArray,
) -> float:
    """Relabel a forest in ``region`` optimally, the rest unchanged; return the gain, >= 0.

    Dynamic programming from the leaves. ``work``: state (zeros, also after), root, degree, chosen,
    order, parent (n_variables,), gains (labels of all), pair (most labels, most labels);
    ``answer`` (n_variables, most labels).
    """
    state, root, degree, chosen, order, parent, gains, pair = work
    count = choose_forest(region, arrays, state, root, degree, chosen)
    old, new = 0.0, 0.0
    last = 0
    for j in range(count):
        v = chosen[j]
        old += _gather(v, arrays, scores, labels, places, state, gains)
        if degree[v] <= 1:
            state[v] = WAITING
            order[last] = v
            last += 1
    for j in range(count):
        v = order[j]
        turn = turns[v % turns.shape[0]]
        u, joining = _send(v, turn, arrays, scores, labels, places, state, gains, pair, answer)
        old += joining
        state[v], parent[v] = DONE, u
        if u < 0:
            new += gains[arrays[8][v] + answer[v, 0]]
            continue
        degree[u] -= 1
        if degree[u] <= 1 and state[u] == CHOSEN:
            state[u] = WAITING
            order[last] = u
            last += 1
    for j in range(count - 1, -1, -1):
        v = order[j]
        state[v] = OUTSIDE
        label = answer[v, labels[parent[v]] if parent[v] >= 0 else 0]
        if label != labels[v]:
            relabel(v, label, arrays, labels, places)
    return new - old


@inner
def _spread(
    centre: int, size: int, arrays: FactorArrays, marked: IntArray, region: IntArray
) -> int:
    """Write the nearest variables around a centre, breadth first; ``marked`` is zero afterwards."""
    region[0], count, at = centre, 1, 0
    marked[centre] = 1
    while at < count and count < size:
        v = region[at]
        at += 1
        for k in range(arrays[5][v], arrays[5][v + 1]):
            factor = arrays[6][k]
            for s in range(arrays[1][factor], arrays[1][factor + 1]):
                u = arrays[2][s]
                if marked[u] == 0 and count < size:
                    marked[u] = 1
                    region[count] = u
                    count += 1
    for j in range(count):
        marked[region[j]] = 0
    return count


@njit(cache=True, nogil=True)
def iterate_search(
    drawn: IntArray,
    sizes: IntArray,
    disturbed: IntArray,
    arrays: FactorArrays,
    scores: FloatArray,
    labels: IntArray,
    places: IntArray,
    work: tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, FloatArray, FloatArray],
    answer: IntArray,
) -> float:
    """Disturb a region, improve around it by two forests, keep the result if no worse; return gain.

    One round per row of ``drawn`` (rounds, any width): random numbers >= 0. ``sizes`` and
    ``disturbed`` (rounds,): numbers of variables around the centre to improve, and to relabel.
    """
    n = labels.shape[0]
    region = np.empty(n, dtype=np.int64)
    before = np.empty(n, dtype=np.int64)
    total = 0.0
    for t in range(drawn.shape[0]):
        random = drawn[t]
        width = random.shape[0]
        count = _spread(random[0] % n, min(n, sizes[t]), arrays, work[0], region)
        for j in range(count):
            before[j] = labels[region[j]]
        gain = 0.0
        for j in range(min(disturbed[t], count)):
            v = region[j]
            gain -= score_around(v, arrays, scores, places)
            relabel(v, random[(1 + j) % width] % arrays[0][v], arrays, labels, places)
            gain += score_around(v, arrays, scores, places)
        after = region[:count].copy()
        for part in range(2):
            for j in range(count - 1, 0, -1):  # another order, and so another forest
                i = (random[(j + 7 * part) % width] // (part + 1)) % (j + 1)
                after[i], after[j] = after[j], after[i]
            gain += improve_forest(after, random, arrays, scores, labels, places, work, answer)
        if gain >= 0.0:
            total += gain
            continue
        for j in range(count):
            if labels[region[j]] != before[j]:
                relabel(region[j], before[j], arrays, labels, places)
    return total
