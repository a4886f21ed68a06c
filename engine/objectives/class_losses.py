"""Tree-reweighted losses of label maps as functions of theta, with exact derivatives.

The backend of `engine.objectives.grid_losses` for any number of labels. With few sweeps the
likelihood of the known labels is truncated EM, which differentiates the messages so far, where
subtracted marginals would not have converged.

References
----------
Domke 2013, sections 4 to 7.3.
"""

from itertools import pairwise

import numpy as np

from engine.core.arguments import FloatArray
from engine.crf.class_features import ClassExample
from engine.kernels import class_losses as begin
from engine.kernels.class_messages import reverse_sweep
from engine.objectives import class_gradients as at_rest
from engine.objectives.class_gradients import ScoreSlopes
from engine.objectives.class_messages import ClassMessages, Messages
from engine.objectives.marginal_losses import (
    CLIQUE,
    LIKELIHOOD,
    NODE_LOSSES,
    Gradient,
    LossOptions,
    logistic_loss,
    node_loss,
)
from engine.objectives.perturbation import SIDES


def tree_reweighted_loss(
    example: ClassExample, theta: FloatArray, options: LossOptions
) -> Gradient:
    """Return a marginal loss of one picture and its gradient in theta, shape (K,)."""
    run = _run if options.gradient == "truncated" else _run_to_convergence
    value, gradient = run(example, theta, options, is_held=False)
    if options.loss != LIKELIHOOD:
        return value, gradient
    known, slope = run(example, theta, options, is_held=True)
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


def _run_to_convergence(
    example: ClassExample, theta: FloatArray, options: LossOptions, *, is_held: bool
) -> Gradient:
    """Sweep until messages converge, and differentiate there."""
    chains = ClassMessages(example.features, theta, is_double=True)
    chains.is_plain = chains.is_plain and options.is_potts
    if is_held:
        chains.hold(example.labels)
    threshold = at_rest.REST if options.threshold is None else options.threshold
    at_rest.rest(chains, threshold)
    value, adjoint, slopes = begin_loss(chains, example, options)
    if options.loss == LIKELIHOOD:  # log Z is stationary in converged messages
        return value, pull_back(example, slopes)
    if options.gradient == "implicit":
        at_rest.add_implicit(chains, adjoint, slopes)
        return value, pull_back(example, slopes)
    slope = _marginal_slope(chains, example, options)
    sides = SIDES[options.gradient]
    return value, at_rest.perturbed(chains, example.labels, slope, sides, threshold)


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


def _marginal_slope(
    chains: ClassMessages, example: ClassExample, options: LossOptions
) -> FloatArray:
    """Return dQ/dtau of nodes and of edges' own entries, flat; see `class_gradients.perturbed`."""
    marginals, chances = at_rest.own_marginals(chains, example.labels)
    edges = np.zeros_like(chances)
    if options.loss == CLIQUE:
        edges[chances < 1.0] = logistic_loss(chances[chances < 1.0])[1]
        return np.concatenate([np.zeros(marginals.size), edges.ravel()])
    n = marginals.shape[2]
    labels = example.labels.ravel().astype(np.int64)
    known = labels < n
    labels[~known] = 0
    _, slope = node_loss(
        marginals.astype(np.float64).ravel(),
        np.arange(0, marginals.size + 1, n),
        labels,
        known,
        options.loss,
        options.sharpness,
        np.array(options.weights or np.ones(n))[labels],
    )
    return np.concatenate([slope, edges.ravel()])
