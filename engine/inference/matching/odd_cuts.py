"""Exact search for odd cuts of a graph below a value (Padberg and Rao 1982).

A smallest odd cut is among the cuts of a cut tree (Gomory and Hu 1961): the graph is split along
minimum cuts until every part is merged into one node, by scans that need no flow where that is
possible (``engine.kernels.odd_cuts``).
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.kernels.odd_cuts import contract, merge_or_cut

WORK_AT_ONCE = 3e7
"""Entries that flows visit between two calls of should_stop: a tenth of a second."""


def find_odd_cuts(
    weights: FloatArray,
    is_odd: BoolArray,
    enough: float,
    most: int,
    should_stop: StopCallback = never_stop,
) -> tuple[BoolArray, FloatArray]:
    """Find odd cuts below ``enough``, a smallest one among them.

    Parameters
    ----------
    weights : ndarray, shape (n, n), symmetric, non-negative, zero diagonal.
    is_odd : ndarray, shape (n,), True an even number of times: all nodes, or those that stand for
        an odd number of nodes.
    most : int, largest number of cuts returned, the lightest.

    Returns
    -------
    tuple of ndarray
        Sides (m, n) and weights (m,). No cut (m = 0) means that every odd cut weighs ``enough`` up
        to rounding.

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    O(n^3) if scans merge nodes, about O(n^2) for each of up to n flows: two seconds for a thousand
    students.
    """
    n = len(weights)
    found: list[tuple[float, BoolArray]] = []
    everyone = np.ones(n, dtype=np.bool_)
    work = [_Part(np.array(weights, order="C"), is_odd.copy(), everyone, np.arange(n), n)]
    while work:
        part = work.pop()
        side, is_open, value = np.zeros(part.count, dtype=np.bool_), True, enough
        while is_open:
            if should_stop():
                raise StoppedError("Cancelled.")
            flows = max(int(WORK_AT_ONCE / part.count**2), 1)
            part.count, value, is_open = merge_or_cut(
                *(part.weights, part.is_odd, part.terminal, part.group),
                *(part.count, enough, flows, side),
            )
        if value >= enough:
            continue
        side = side[: part.count]
        if part.is_odd[: part.count][side].sum() % 2 == 1:
            found.append((value, side[part.group]))
        work.extend(part.split(side))
    found = sorted(found, key=lambda cut: cut[0])[:most]
    sides = np.array([side for _, side in found], dtype=np.bool_).reshape(-1, n)
    return sides, np.array([value for value, _ in found])


@dataclass(slots=True)
class _Part:
    """Part that remains to be cut: the first ``count`` nodes of the arrays.

    ``weights`` are those among the nodes, ``is_odd`` and ``terminal`` masks of them; ``group`` (n,)
    is the node that contains each node of the whole graph.
    """

    weights: FloatArray
    is_odd: BoolArray
    terminal: BoolArray
    group: IntArray
    count: int

    def split(self, side: BoolArray) -> tuple["_Part", "_Part"]:
        """Return both sides of a cut, each with the other side merged into one non-terminal node.

        The larger side reuses these arrays, so that a cut costs as much as its smaller side.
        """
        few = side if 2 * side.sum() <= self.count else ~side
        own, others = np.flatnonzero(few), np.flatnonzero(~few)
        k = len(own)
        weights, place = np.zeros((k + 1, k + 1)), np.zeros(self.count, dtype=np.int64)
        weights[1:, 1:] = self.weights[np.ix_(own, own)]
        weights[0, 1:] = weights[1:, 0] = self.weights[np.ix_(own, others)].sum(axis=1)
        place[own] = np.arange(1, k + 1)
        rest_is_odd = self.is_odd[others].sum() % 2 == 1
        smaller = _Part(
            weights,
            np.concatenate([[rest_is_odd], self.is_odd[own]]),
            np.concatenate([[False], self.terminal[own]]),
            place[self.group],
            k + 1,
        )
        self.count = contract(self.weights, self.is_odd, self.terminal, self.group, self.count, few)
        return smaller, self
