"""Losses of a picture that need no inference, with their derivatives in theta.

References
----------
Domke 2013, section 7 (table of losses).
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.crf.class_features import ClassExample, ClassLabels
from engine.crf.grid_features import CodeArray, GridExample, LabelScores
from engine.objectives.marginal_losses import Gradient

LOCAL_LOSSES = ("pseudolikelihood", "piecewise", "independent")


def known_labels(example: GridExample | ClassExample) -> ClassLabels:
    """Return the labels as bytes; those from the number of labels on are unknown."""
    return example.labels.view(np.uint8)


def local_loss(example: GridExample | ClassExample, theta: FloatArray, loss: str) -> Gradient:
    """Return a loss that needs no inference; unknown pixels, and edges at them, do not count."""
    scores = example.features.label_scores(theta)
    logits, n = scores.nodes, scores.nodes.shape[2]
    tables = (scores.right, scores.down)
    labels = known_labels(example).astype(np.int64)
    known = labels < n
    labels = np.where(known, labels, 0)
    sums = (np.zeros_like(scores.right), np.zeros_like(scores.down))
    edges = [_edges(example.features.codes[axis], labels, known, axis) for axis in range(2)]
    if loss == "pseudolikelihood":
        for table, edge in zip(tables, edges, strict=True):
            for one in edge:
                logits[one.place] += one.rows(table)
    norms = np.logaddexp.reduce(logits, axis=2)
    chosen = np.take_along_axis(logits, labels[..., None], axis=2)[..., 0]
    value = float((norms - chosen)[known].sum())
    slope = np.exp(logits - norms[..., None])
    slope[(*np.nonzero(known), labels[known])] -= 1.0
    slope[~known] = 0.0
    for table, out, edge in zip(tables, sums, edges, strict=True):
        if loss == "pseudolikelihood":
            for one in edge:
                one.add_to(out, slope[one.place])
        elif loss == "piecewise":
            value += _piecewise(table, out, edge[0], labels, known)
    return value, example.features.pull_back_labels(LabelScores(slope, *sums))


@dataclass(frozen=True, slots=True)
class _EdgeEnds:
    """Pixels, (rows, columns), with a neighbour of known label on one side in one direction."""

    place: tuple[IntArray, IntArray]
    label: IntArray
    code: CodeArray
    is_first: bool

    def rows(self, table: FloatArray) -> FloatArray:
        """Return the scores of the pixels' labels beside the neighbours' labels, shape (n, L)."""
        if self.is_first:
            return table[self.code, :, self.label]
        return table[self.code, self.label]

    def add_to(self, table: FloatArray, slope: FloatArray) -> None:
        """Add derivatives, (n, L), to the entries that ``rows`` read."""
        n = table.shape[1]
        places = self.code.astype(np.int64) * n + self.label
        for x in range(n):
            sums = np.bincount(places, slope[:, x], len(table) * n).reshape(-1, n)
            table[:, x, :] += sums if self.is_first else 0.0
            table[:, :, x] += 0.0 if self.is_first else sums


def _edges(
    codes: CodeArray, labels: IntArray, known: BoolArray, axis: int
) -> tuple[_EdgeEnds, _EdgeEnds]:
    """Return the first ends of all edges of a direction, and the second ends."""
    rows, columns = np.nonzero(np.ones(codes.shape, dtype=bool))
    code = codes[rows, columns]
    first, second = (rows, columns), (rows + axis, columns + 1 - axis)

    def ends(place: tuple[IntArray, IntArray], other: tuple[IntArray, IntArray]) -> _EdgeEnds:
        seen = known[other]
        here = (place[0][seen], place[1][seen])
        return _EdgeEnds(here, labels[other][seen], code[seen], place is first)

    return ends(first, second), ends(second, first)


def _piecewise(
    tables: FloatArray, out: FloatArray, first: _EdgeEnds, labels: IntArray, known: BoolArray
) -> float:
    """Return the summed losses of the single edges between known pixels; add their derivatives."""
    both, n = known[first.place], tables.shape[1]
    own = labels[first.place][both]
    places = (first.code[both].astype(np.int64) * n + own) * n + first.label[both]
    counts = np.bincount(places, minlength=tables.size).reshape(tables.shape).astype(np.float64)
    norms = np.logaddexp.reduce(tables.reshape(len(tables), -1), axis=1)[:, None, None]
    out += counts.sum(axis=(1, 2), keepdims=True) * np.exp(tables - norms) - counts
    return float((counts * (norms - tables)).sum())
