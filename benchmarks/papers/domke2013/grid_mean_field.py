"""Losses of a picture of any number of labels under mean field, with exact derivatives.

The counterpart of tree-reweighted messages: the same losses, truncated or with a threshold. The
surrogate likelihood is here the negative of mean field's lower bound for the known labels,

    log Z >= F(q) = sum_i <theta_i, q_i> + sum_ij q_i^T theta_ij q_j - sum_i <q_i, log q_i>.

References
----------
Domke 2013, section 3.2 and algorithm 2.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.domke2013.mean_field_passes import pass_once, reverse_pass
from engine.core.arguments import BoolArray, FloatArray
from engine.crf.class_features import ClassFeatures, ClassLabels
from engine.crf.grid_features import GridFeatures, LabelScores


class GridMeanField:
    """Mean-field marginals of one picture at one theta, uniform to begin with.

    Parameters
    ----------
    features : GridFeatures or ClassFeatures
    theta : ndarray, shape (K,)
    labels : ndarray, shape (rows, columns), uint8, optional: known pixels are fixed to their label.
    """

    def __init__(
        self,
        features: GridFeatures | ClassFeatures,
        theta: FloatArray,
        labels: ClassLabels | None = None,
    ) -> None:
        self.features, scores = features, features.label_scores(theta)
        self.nodes = scores.nodes
        if labels is not None:
            n = self.nodes.shape[2]
            others = (labels < n)[..., None] & (labels[..., None] != np.arange(n))
            self.nodes[others] = -np.inf
        self._tables = (np.ascontiguousarray(scores.right), np.ascontiguousarray(scores.down))
        self._edges = (*features.codes, *self._tables)
        self.marginals = np.full(self.nodes.shape, 1.0 / self.nodes.shape[2])
        self.logs = np.log(self.marginals)

    def zeros(self) -> LabelScores:
        """Return slopes that are all 0."""
        right, down = self._tables
        return LabelScores(np.zeros_like(self.nodes), np.zeros_like(right), np.zeros_like(down))

    def sweep(self, states: list[FloatArray] | None = None) -> float:
        """Pass forth and back, keeping marginals before each pass; return the last change."""
        change = 0.0
        for is_forth in (True, False):
            if states is not None:
                states.append(self.marginals.copy())
            change = pass_once(self.nodes, *self._edges, is_forth, self.marginals, self.logs)
        return change

    def go_back(self, states: list[FloatArray], adjoint: FloatArray, slopes: LabelScores) -> None:
        """Back-propagate derivatives in log q through the passes of ``sweep`` to the scores."""
        ends = list(pairwise([*states, self.marginals]))
        for place in range(len(ends) - 1, -1, -1):
            self.undo(place % 2 == 0, *ends[place], adjoint, slopes)

    def undo(
        self,
        is_forth: bool,
        before: FloatArray,
        after: FloatArray,
        adjoint: FloatArray,
        slopes: LabelScores,
    ) -> None:
        """Back-propagate derivatives in log q through one pass to ``slopes`` and earlier log q."""
        sums = (slopes.nodes, slopes.right, slopes.down)
        reverse_pass(*self._edges, is_forth, before, after, adjoint, *sums)

    def lower_bound(self) -> tuple[float, FloatArray, LabelScores]:
        """Return F(q), never above log Z, with its derivatives in log q and in the scores."""
        q, slopes = self.marginals, self.zeros()
        slopes.nodes[...] = q
        logits = np.where(q > 0.0, self.nodes, 0.0)
        value = float((q * (logits - np.where(q > 0.0, self.logs, 0.0))).sum())
        sums = (slopes.right, slopes.down)
        for axis, (tables, out) in enumerate(zip(self._tables, sums, strict=True)):
            codes = self.features.codes[axis]
            own, other = _ends(logits, axis)
            first, second = _ends(q, axis)
            pairs = first[..., :, None] * second[..., None, :]
            flat = pairs.reshape(-1, pairs.shape[-1] ** 2)
            for entry in range(flat.shape[1]):
                counts = np.bincount(codes.ravel(), flat[:, entry], len(tables))
                out.reshape(len(tables), -1)[:, entry] = counts
            value += float((out * tables).sum())
            at = tables[codes]
            own += np.einsum("ijxy,ijy->ijx", at, second)
            other += np.einsum("ijxy,ijx->ijy", at, first)
        slope = q * (logits - np.where(q > 0.0, self.logs, 0.0) - 1.0)
        return value, slope, slopes


def _ends(planes: NDArray[Any], axis: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return views of the first and the second ends of the edges of a direction."""
    return (planes[:, :-1], planes[:, 1:]) if axis == 0 else (planes[:-1], planes[1:])


def edges_of_known(known: BoolArray) -> FloatArray:
    """Return the number of edges between two known pixels at each pixel."""
    counts = np.zeros(known.shape)
    for axis in range(2):
        both = np.logical_and(*_ends(known, axis))
        for end in _ends(counts, axis):
            end += both
    return counts


def logistic_loss(
    logs: FloatArray, labels: ClassLabels, counts: FloatArray
) -> tuple[float, FloatArray]:
    """Return -sum_i counts_i log q_i(y_i) over known pixels, and its slope in log q.

    With `edges_of_known` it is the clique logistic loss: edges are products of their ends.
    """
    slope = np.zeros_like(logs)
    rows, columns = np.nonzero(labels < logs.shape[2])
    own = (rows, columns, labels[rows, columns])
    slope[own] = -counts[rows, columns]
    return float((slope[own] * logs[own]).sum()), slope
