"""Losses of a labelled picture as functions of theta, with exact derivatives, for any labels.

Marginal losses are functions of the pseudomarginals after a fixed number of sweeps, or after the
number that reaches a threshold; derivatives run back through the sweeps (truncated fitting and
back-propagation). Tree-reweighted messages have two backends: masks have those of two labels, label
maps those of any number (`engine.objectives.class_losses`). Values are sums over the picture, nats;
smaller is better.

Pixels of unknown label do not count themselves; messages pass through them. With some unknown,
"surrogate-likelihood" is that of the known labels, log Z(theta) - log Z(theta, y known).

References
----------
Domke 2013, sections 4 to 7.3.
"""

from itertools import pairwise

import numpy as np

from engine.core.arguments import FloatArray
from engine.crf.class_features import ClassExample
from engine.crf.grid_features import GridExample
from engine.kernels import backpropagation as back
from engine.objectives import class_losses
from engine.objectives.grid_chains import GridChains
from engine.objectives.marginal_losses import (
    CLIQUE,
    LIKELIHOOD,
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
    if isinstance(example, ClassExample):
        return class_losses.tree_reweighted_loss(example, theta, options)
    return _two_label_loss(example, theta, options, Tape() if tape is None else tape)


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
