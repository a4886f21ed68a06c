"""Removal of labels that no best configuration has, before any search (dead-end elimination)."""

import numpy as np

from engine.core.arguments import IntArray
from engine.graphs.factor_graph import PairwiseForm
from engine.kernels.dead_ends import remove_dead_ends

MAX_WORK = 100_000_000  # table entries, a fifth of a second


def labels_without_dead_ends(form: PairwiseForm, max_work: int = MAX_WORK) -> list[IntArray]:
    """Return each variable's labels that a best configuration may have, in order.

    A label goes if another label of its variable is better whatever the other variables are. Every
    best configuration has only labels that are left. Variables of factors of three or more
    variables lose only impossible labels.

    Parameters
    ----------
    form : PairwiseForm
    max_work : int, optional
        Table entries after which the removal ends; the labels found by then are removed.

    Returns
    -------
    list of ndarray of int64, one for each variable, never empty

    Notes
    -----
    A pass takes sum over edges of L_i^2 L_j + L_i L_j^2 steps at most, for L labels of an end.

    References
    ----------
    Desmet, De Maeyer, Hazes and Lasters 1992; Goldstein 1994 (the stronger condition used here).

    Examples
    --------
    >>> from engine.graphs.factor_graph import Factor, FactorGraph, to_pairwise
    >>> alike = Factor((0, 1), np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> graph = FactorGraph(np.array([2, 2]), (alike, Factor((0,), np.array([0.0, 3.0]))))
    >>> [left.tolist() for left in labels_without_dead_ends(to_pairwise(graph))]
    [[1], [1]]
    """
    model = form.model
    starts = model.graph.node_start
    kept = np.ones(int(starts[-1]), dtype=np.bool_)
    remove_dead_ends(model.graph.layout, model.scores, form.n_variables, kept, max_work)
    return [np.flatnonzero(kept[starts[v] : starts[v + 1]]) for v in range(form.n_variables)]
