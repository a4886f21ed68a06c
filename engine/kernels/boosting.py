"""Growth of decision trees on binned features, with a value for every class in each leaf.

One tree serves all classes: splits are searched with a few projections of the gradients of all
classes, and leaves then get a Newton step for each class.

References: Friedman 2001; Ke et al. 2017 (histograms, leaf by leaf); Iosipoi and Vakhrushev 2022
(projections of the gradients).
"""

from math import exp

import numpy as np
from numba import njit

from engine.core.arguments import FloatArray
from engine.kernels.compiling import inner


@njit(cache=True, nogil=True)
def bin_plane(values, edges, bins):  # type: ignore[no-untyped-def]
    """Write for each value, (n,) float32, the number of ascending edges, (B,), below it."""
    for i in range(len(values)):
        value = values[i]
        low, high = 0, len(edges)
        while low < high:
            middle = (low + high) >> 1
            if edges[middle] < value:
                low = middle + 1
            else:
                high = middle
        bins[i] = low


@njit(cache=True, nogil=True, error_model="numpy")
def fill_gradients(scores, labels, weights, projection, probabilities, seen):  # type: ignore[no-untyped-def]
    """Write each sample's probabilities, and its projected gradients and summed curvature.

    Parameters
    ----------
    scores : (n, L) float32, before the softmax
    labels : (n,) uint8
    weights : (n,) float32
    projection : (L, k) float32
    probabilities : (n, L) float32, output
    seen : (n, k + 1) float32, output: projected gradients, then the sum of the curvatures
    """
    n, count = scores.shape
    width = projection.shape[1]
    for i in range(n):
        top = scores[i, 0]
        for c in range(1, count):
            top = max(top, scores[i, c])
        total = np.float32(0.0)
        for c in range(count):
            probabilities[i, c] = exp(scores[i, c] - top)
            total += probabilities[i, c]
        curvature = np.float32(0.0)
        for k in range(width):
            seen[i, k] = 0.0
        for c in range(count):
            p = probabilities[i, c] / total
            probabilities[i, c] = p
            curvature += p * (np.float32(1.0) - p)
            gradient = p - (np.float32(1.0) if labels[i] == c else np.float32(0.0))
            for k in range(width):
                seen[i, k] += weights[i] * gradient * projection[c, k]
        seen[i, width] = weights[i] * curvature


@inner
def _add_rows(
    bins: FloatArray,
    rows: FloatArray,
    first: int,
    last: int,
    features: FloatArray,
    seen: FloatArray,
    table: FloatArray,
) -> None:
    """Write the histograms (F, B, k + 2) of some rows; the last entry counts the rows."""
    table[:] = 0.0
    width = seen.shape[1]
    for place in range(first, last):
        row = rows[place]
        for f in range(len(features)):
            entry = table[f, bins[row, features[f]]]
            for k in range(width):
                entry[k] += seen[row, k]
            entry[width] += 1.0


@inner
def _best_split(
    table: FloatArray, ridge: float, fewest: int, running: FloatArray, whole: FloatArray
) -> tuple[float, int, int]:
    """Return the gain, feature and bin of the best split of a node with these histograms."""
    n_features, n_bins, width = table.shape
    k_last = width - 2
    best, best_feature, best_bin = 0.0, -1, -1
    whole[:] = 0.0
    for b in range(n_bins):
        for k in range(width):
            whole[k] += table[0, b, k]
    alone = 0.0
    for k in range(k_last):
        alone += whole[k] * whole[k]
    alone /= whole[k_last] + ridge
    for f in range(n_features):
        running[:] = 0.0
        for b in range(n_bins - 1):
            if table[f, b, width - 1] == 0.0:
                continue
            for k in range(width):
                running[k] += table[f, b, k]
            left, right = running[width - 1], whole[width - 1] - running[width - 1]
            if left < fewest:
                continue
            if right < fewest:
                break
            below, above = 0.0, 0.0
            for k in range(k_last):
                below += running[k] * running[k]
                above += (whole[k] - running[k]) ** 2
            gain = below / (running[k_last] + ridge)
            gain += above / (whole[k_last] - running[k_last] + ridge) - alone
            if gain > best:
                best, best_feature, best_bin = gain, f, b
    return best, best_feature, best_bin


@njit(cache=True, nogil=True, error_model="numpy")
def grow_tree(  # type: ignore[no-untyped-def]
    bins, draws, seen, n_bins, n_leaves, max_depth, ridge, fewest, rows, nodes, places
):
    """Grow one tree, always splitting the leaf with the largest gain; return nodes and depth.

    Parameters
    ----------
    bins : (n, K) uint8
    draws : (2 n_leaves, F) int64, the features that a split of each node may use
    seen : (n, k + 1) float32, see `fill_gradients`
    n_bins, n_leaves, max_depth : int
    ridge : float, added to sums of curvatures
    fewest : int, least number of rows of a leaf
    rows : (n,) int32, overwritten: the rows leaf by leaf
    nodes : (2 n_leaves, 3) int32, output: feature (-1: a leaf), last bin of the left side, left
        child (a leaf: itself); the right child comes next
    places : (2 n_leaves, 2) int32, output: range of a node's rows
    """
    n, width = seen.shape
    table = np.empty((draws.shape[1], n_bins, width + 1), dtype=np.float32)
    gains = np.zeros(2 * n_leaves)
    splits = np.full((2 * n_leaves, 2), -1)
    depths = np.zeros(2 * n_leaves, dtype=np.int32)
    running, whole = np.empty(width + 1), np.empty(width + 1)
    spare = np.empty(n, dtype=np.int32)
    for i in range(n):
        rows[i] = i
    nodes[0, 0], nodes[0, 1], nodes[0, 2] = -1, 0, 0
    places[0, 0], places[0, 1] = 0, n
    _add_rows(bins, rows, 0, n, draws[0], seen, table)
    gains[0], splits[0, 0], splits[0, 1] = _best_split(table, ridge, fewest, running, whole)
    count, leaves, depth = 1, 1, 0
    while leaves < n_leaves:
        node = -1
        for candidate in range(count):  # the leaf with the largest gain
            is_open = nodes[candidate, 0] < 0 and splits[candidate, 0] >= 0
            if is_open and (node < 0 or gains[candidate] > gains[node]):
                node = candidate
        if node < 0:
            break
        feature, edge = draws[node, splits[node, 0]], splits[node, 1]
        first, last = places[node]
        left, others = first, 0
        for place in range(first, last):  # rows of the left child first, in order
            row = rows[place]
            if bins[row, feature] <= edge:
                rows[left] = row
                left += 1
            else:
                spare[others] = row
                others += 1
        rows[left:last] = spare[:others]
        nodes[node, 0], nodes[node, 1], nodes[node, 2] = feature, edge, count
        places[count, 0], places[count, 1] = first, left
        places[count + 1, 0], places[count + 1, 1] = left, last
        depth = max(depth, depths[node] + 1)
        for child in (count, count + 1):
            nodes[child, 0], nodes[child, 1], nodes[child, 2] = -1, 0, child
            depths[child] = depths[node] + 1
            if depths[child] < max_depth and places[child, 1] - places[child, 0] >= 2 * fewest:
                start, end = places[child]
                _add_rows(bins, rows, start, end, draws[child], seen, table)
                gains[child], splits[child, 0], splits[child, 1] = _best_split(
                    table, ridge, fewest, running, whole
                )
        count += 2
        leaves += 1
    return count, depth


@njit(cache=True, nogil=True, error_model="numpy")
def step_leaves(  # type: ignore[no-untyped-def]
    labels, weights, probabilities, rate, ridge, limit, rows, nodes, places, count, values, scores
):
    """Compute a Newton step for every class of each leaf, and add it to its rows' scores.

    Parameters
    ----------
    labels, weights, probabilities : as for `fill_gradients`
    rate, ridge : float
    limit : float, largest step before the rate
    rows, nodes, places, count : output of `grow_tree`
    values : (count, L) float32, output
    scores : (n, L) float32, incremented
    """
    classes = probabilities.shape[1]
    gradient, curvature = np.empty(classes), np.empty(classes)
    share = classes / (classes - 1.0)  # a shift of all scores changes nothing: Friedman's factor
    for node in range(count):
        values[node] = 0.0
        if nodes[node, 0] >= 0:
            continue
        gradient[:] = 0.0
        curvature[:] = 0.0
        for place in range(places[node, 0], places[node, 1]):
            row = rows[place]
            for c in range(classes):
                p = probabilities[row, c]
                gradient[c] += weights[row] * p
                curvature[c] += weights[row] * p * (1.0 - p)
            gradient[labels[row]] -= weights[row]
        for c in range(classes):
            step = -gradient[c] / (share * curvature[c] + ridge)
            values[node, c] = rate * min(max(step, -limit), limit)
        for place in range(places[node, 0], places[node, 1]):
            for c in range(classes):
                scores[rows[place], c] += values[node, c]
