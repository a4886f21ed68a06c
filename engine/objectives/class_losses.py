"""Tree-reweighted losses of label maps as functions of theta, with exact derivatives.

The backend of `engine.objectives.grid_losses` for any number of labels. With few sweeps the
likelihood of the known labels is truncated EM, which differentiates the messages so far, where
subtracted marginals would not have converged.

References
----------
Domke 2013, sections 4 to 7.3.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.core.arguments import FloatArray
from engine.crf.class_features import ClassExample
from engine.kernels import class_losses as begin
from engine.kernels.class_messages import reverse_sweep
from engine.objectives.class_messages import ClassMessages, Messages
from engine.objectives.marginal_losses import (
    CLIQUE,
    LIKELIHOOD,
    NODE_LOSSES,
    Gradient,
    LossOptions,
)


@dataclass(slots=True)
class ScoreSlopes:
    """Derivatives in log potentials (H, W, L), and in log tables by code and by label pair."""

    nodes: Messages
    extra: FloatArray
    pairs: FloatArray

    @classmethod
    def zeros(cls, chains: ClassMessages) -> "ScoreSlopes":
        """Return slopes that are all 0."""
        n = chains.potentials.shape[2]
        nodes, extra = np.zeros_like(chains.potentials), np.zeros_like(chains.scores.agreement)
        return cls(nodes, extra, np.zeros((2, n, n)))


def tree_reweighted_loss(
    example: ClassExample, theta: FloatArray, options: LossOptions
) -> Gradient:
    """Return a marginal loss of one picture and its gradient in theta, shape (K,)."""
    value, gradient = _run(example, theta, options, is_held=False)
    if options.loss != LIKELIHOOD:
        return value, gradient
    known, slope = _run(example, theta, options, is_held=True)
    return value - known, gradient - slope


def _run(
    example: ClassExample, theta: FloatArray, options: LossOptions, *, is_held: bool
) -> Gradient:
    """Sweep and keep all messages, then back-propagate through them."""
    chains = ClassMessages(example.features, theta)
    chains.is_plain = chains.is_plain and options.is_potts
    if is_held:
        chains.hold(example.labels)
    states = [chains.messages.copy()]
    for _ in range(options.max_sweeps):
        change = chains.sweep()
        states.append(chains.messages.copy())
        if options.threshold is not None and not change > options.threshold:
            break
    value, adjoint, slopes = begin_loss(chains, example, options)
    sums = (slopes.nodes, slopes.extra, slopes.pairs)
    for before, after in reversed(list(pairwise(states))):
        reverse_sweep(*chains.fixed, before, after, adjoint, *sums)
    return value, pull_back(example, slopes)


def begin_loss(
    chains: ClassMessages, example: ClassExample, options: LossOptions
) -> tuple[float, Messages, ScoreSlopes]:
    """Return the loss of the present messages, with derivatives in messages and scores."""
    n = chains.potentials.shape[2]
    adjoint, slopes = np.empty_like(chains.messages), ScoreSlopes.zeros(chains)
    if options.loss in NODE_LOSSES:
        value = begin.begin_nodes(
            NODE_LOSSES[options.loss],
            options.sharpness,
            chains.marginals(),
            example.labels,
            np.array(options.weights or np.ones(n)),
            chains.messages,
            adjoint,
            slopes.nodes,
        )
    else:
        is_clique = options.loss == CLIQUE
        sums = (adjoint, slopes.nodes, slopes.extra, slopes.pairs)
        fixed = (*chains.fixed[:-1], chains.messages, example.labels)
        value = begin.begin_edges(*fixed, is_clique, *sums)
        value += 0.0 if is_clique else chains.level
    return float(value), adjoint, slopes


def pull_back(example: ClassExample, slopes: ScoreSlopes) -> FloatArray:
    """Return the gradient in theta; the kernels' tables are exp(2 theta)."""
    return example.features.pull_back(slopes.nodes, 2.0 * slopes.extra, 2.0 * slopes.pairs)
