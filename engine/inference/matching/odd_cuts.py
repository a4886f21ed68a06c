"""Odd cuts of a graph below a value, exactly (Padberg and Rao 1982).

A smallest odd cut is among the cuts of a cut tree (Gomory and Hu 1961): the graph is split along
minimum cuts until every part is merged into one node, by scans that need no flow where that is
possible (``engine.kernels.odd_cuts``).
"""

import numpy as np

from engine.core.arguments import BoolArray, FloatArray
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.kernels.odd_cuts import gather_groups, merge_or_cut, take_side

WORK_AT_ONCE = 3e7
"""Entries looked at by flows between two questions whether to stop: a tenth of a second."""


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
        an odd number of them.
    most : int, cuts returned at most, the lightest.

    Returns
    -------
    tuple of ndarray
        Sides (m, n) and what they weigh (m,). None means that every odd cut weighs ``enough`` up
        to rounding.

    Raises
    ------
    StoppedError
        If ``should_stop`` answered True.

    Notes
    -----
    O(n^3) where scans merge nodes, O(n^2) or so for each of up to n flows: with a thousand students
    two seconds.
    """
    weights, n = np.ascontiguousarray(weights), len(weights)
    found: list[tuple[float, BoolArray]] = []
    work = [(np.arange(n), np.ones(n, dtype=np.bool_))]
    while work:
        group, terminal = work.pop()
        m = len(terminal)
        w, odd = gather_groups(weights, is_odd, group, m)
        side, is_open, value = np.zeros(m, dtype=np.bool_), True, enough
        while is_open:
            if should_stop():
                raise StoppedError("Cancelled.")
            flows = max(int(WORK_AT_ONCE / (m * m)), 1)
            m, value, is_open = merge_or_cut(w, odd, terminal, group, m, enough, flows, side)
        if value >= enough:
            continue
        side, terminal = side[:m], terminal[:m]
        if odd[:m][side].sum() % 2 == 1:
            found.append((value, side[group]))
        work.extend(take_side(group, terminal, side, inside) for inside in (True, False))
    found = sorted(found, key=lambda cut: cut[0])[:most]
    sides = np.array([side for _, side in found], dtype=np.bool_).reshape(-1, n)
    return sides, np.array([value for value, _ in found])
