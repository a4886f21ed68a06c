"""Linear maximisation over the marginal polytope of a model of low treewidth."""

import numpy as np

from engine.core.arguments import FloatArray, check_shape
from engine.core.errors import InfeasibleError
from engine.core.rounding import sum_allowance
from engine.graphs.junction_tree import JunctionTree
from engine.kernels.junction_tree import collect, read_best
from engine.oracles.protocol import ExtremePoint, make_indicator


class JunctionTreeOracle:
    """Oracle of the best labelling of chains, trees and narrow models by dynamic programming.

    References
    ----------
    Viterbi 1967; Dawid 1992.

    Examples
    --------
    >>> tree = JunctionTree(np.full(2, 2), ((0, 1),))
    >>> scores = np.zeros(tree.size)
    >>> tree.split(scores)[2][:] = [0.0, 1, 0, 0, 3, 0, 0, 1]
    >>> JunctionTreeOracle(tree).compute_extreme_point(scores).value
    3.0
    """

    def __init__(self, tree: JunctionTree) -> None:
        self._tree = tree

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Return the indicator of a best labelling; scores (tree.size,), -inf where impossible.

        Raises
        ------
        InfeasibleError
            If every labelling is impossible.
        """
        tree = self._tree
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        check_shape("scores", scores, (tree.size,))
        cliques, separators, tables = tree.split(scores)
        beliefs = cliques + separators[tree.up] + spread_tables(tree, tables)
        messages = np.empty(tree.n_separator_entries)
        collect(*tree.layout, False, beliefs, messages)
        chosen = np.empty(len(tree.cliques), dtype=np.int64)
        read_best(*tree.layout, beliefs, chosen)
        first = tree.n_clique_entries
        second = first + tree.n_separator_entries
        places = np.concatenate(
            [
                chosen,
                first + tree.up[chosen],
                second + tree.table_places(tree.labels_of(chosen)),
            ]
        )
        value = float(scores[places].sum())
        if value == -np.inf:
            raise InfeasibleError("Every labelling of this model is impossible.")
        size = float(np.abs(scores[np.isfinite(scores)]).sum())
        allowance = sum_allowance(len(tree.cliques) + len(tree.scopes) + 8, size)
        return ExtremePoint(make_indicator(places), value, value + allowance)


def spread_tables(tree: JunctionTree, tables: FloatArray) -> FloatArray:
    """Return the tables' scores, added into the cliques that contain them, shape (entries,)."""
    finite = np.where(np.isneginf(tables), 0.0, tables)
    spread = np.asarray(tree.entries_of_tables @ finite)
    if finite is not tables and np.isneginf(tables).any():
        ruled_out = tree.entries_of_tables @ np.isneginf(tables).astype(np.float64)
        spread[ruled_out > 0.0] = -np.inf
    return spread
