"""Losses of a labelled picture as functions of theta, with exact derivatives, for any labels.

Marginal losses are functions of the pseudomarginals after a fixed number of sweeps, or after the
number that reaches a threshold; derivatives run back through the sweeps (truncated fitting and
back-propagation). Tree-reweighted messages have two backends: masks have those of two labels, label
maps those of any number (`engine.objectives.class_losses`). The losses that need no inference exist
once. Values are sums over the picture, nats; smaller is better.

Pixels of unknown label do not count themselves; messages pass through them. With some unknown,
"surrogate-likelihood" is that of the known labels, log Z(theta) - log Z(theta, y known).

References
----------
Domke 2013, sections 4 to 7.3.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.crf.class_features import ClassExample, ClassLabels
from engine.crf.grid_features import CodeArray, GridExample, LabelScores
from engine.kernels import backpropagation as back
from engine.objectives import class_losses
from engine.objectives.grid_chains import GridChains
from engine.objectives.marginal_losses import (
    CLIQUE,
    LIKELIHOOD,
    LOCAL_LOSSES,
    NODE_LOSSES,
    Gradient,
    LossOptions,
)

KINDS = {**NODE_LOSSES, CLIQUE: back.CLIQUE_LOGISTIC, LIKELIHOOD: back.SURROGATE_LIKELIHOOD}
"""Losses of the kernel of two labels, by name."""


class Tape:
    """Copies of the states of an inference run, in memory that the next run uses again.

    Fresh memory for every copy costs as much as the sweeps: the system clears it page by page.
    """

    def __init__(self) -> None:
        self.states: list[FloatArray] = []
        self._room: list[FloatArray] = []

    def rewind(self) -> None:
        """Drop the states but keep the memory."""
        self.states.clear()

    def keep(self, state: FloatArray) -> None:
        """Append a copy of a state."""
        place = len(self.states)
        if place == len(self._room):
            self._room.append(np.empty(state.size))
        elif self._room[place].size < state.size:
            self._room[place] = np.empty(state.size)
        kept = self._room[place][: state.size].reshape(state.shape)
        kept[...] = state
        self.states.append(kept)


def loss_and_gradient(
    example: GridExample | ClassExample,
    theta: FloatArray,
    options: LossOptions,
    tape: Tape | None = None,
) -> Gradient:
    """Return the loss of one picture and its gradient in theta, shape (K,).

    Notes
    -----
    Time about three times that of the sweeps. Memory a pixel and sweep: 32 bytes for masks, in
    ``tape`` if the caller gives one, for one run at a time; 16 L for label maps.
    """
    if options.loss in LOCAL_LOSSES:
        return _local_loss(example, theta, options.loss)
    if isinstance(example, ClassExample):
        return class_losses.tree_reweighted_loss(example, theta, options)
    return _two_label_loss(example, theta, options, Tape() if tape is None else tape)


def known_labels(example: GridExample | ClassExample) -> ClassLabels:
    """Return the labels as bytes; those from the number of labels on are unknown."""
    return example.labels.view(np.uint8)


def _two_label_loss(
    example: GridExample, theta: FloatArray, options: LossOptions, tape: Tape
) -> Gradient:
    """Sweep forward and keep all messages, then back-propagate."""
    tape.rewind()
    chains = GridChains(example.features, options.rho, theta)
    tape.keep(chains.messages)
    for _ in range(options.max_sweeps):
        change = chains.sweep(1)
        tape.keep(chains.messages)
        if options.threshold is not None and not change > options.threshold:  # or NaN
            break
    scores = chains.scores
    adjoints = back.Adjoints(
        np.zeros_like(chains.messages),
        np.zeros(example.features.shape),
        np.zeros_like(scores.horizontal),
        np.zeros_like(scores.vertical),
    )
    factors = back.GridFactors(chains.odds, *chains.codes, *chains.tables, options.rho)
    value = back.begin_adjoint(
        KINDS[options.loss],
        options.sharpness,
        example.labels,
        scores.node,
        scores.horizontal,
        scores.vertical,
        factors,
        chains.messages,
        adjoints,
    )
    for before, after in reversed(list(pairwise(tape.states))):
        back.reverse_sweep(factors, before, after, adjoints)
    return float(value), example.features.pull_back(*adjoints[1:])


def _local_loss(example: GridExample | ClassExample, theta: FloatArray, loss: str) -> Gradient:
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
