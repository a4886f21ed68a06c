"""Losses of a picture with several classes as functions of theta, with exact derivatives.

The counterpart of `engine.objectives.grid_losses` for more than two labels. Pixels of unknown label
do not count themselves; messages pass through them. With some unknown, "surrogate-likelihood" is
that of the known labels, log Z(theta) - log Z(theta, y known). Few sweeps make it truncated EM,
which differentiates the messages so far, where subtracted marginals would not have converged.

References
----------
Domke 2013, sections 4 to 7.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_positive
from engine.crf.class_features import ClassExample, ClassFeatures, ClassScores
from engine.crf.grid_features import CodeArray
from engine.kernels import class_losses as begin
from engine.kernels.class_messages import reverse_sweep
from engine.objectives import class_gradients as at_rest
from engine.objectives.class_gradients import ScoreSlopes
from engine.objectives.class_mean_field import ClassMeanField, MeanFieldSlopes, clique_loss
from engine.objectives.class_messages import ClassMessages, Messages
from engine.objectives.grid_losses import INFERENCES, LOCAL_LOSSES
from engine.objectives.perturbation import SIDES

NODE_LOSSES = {
    "univariate-logistic": begin.UNIVARIATE_LOGISTIC,
    "univariate-quadratic": begin.UNIVARIATE_QUADRATIC,
    "smoothed-classification": begin.SMOOTHED_CLASSIFICATION,
}
LIKELIHOOD, CLIQUE = "surrogate-likelihood", "clique-logistic"
CLASS_GRADIENTS = ("truncated", "implicit", *SIDES)
CLASS_LOSSES = (*NODE_LOSSES, LIKELIHOOD, CLIQUE, *LOCAL_LOSSES)

Gradient = tuple[float, FloatArray]


@dataclass(frozen=True, slots=True)
class ClassLoss:
    """Options of a loss: its name, inference and number of sweeps.

    Parameters
    ----------
    loss : one of `CLASS_LOSSES`
    iterations : int, sweeps (forward and backward) at most; local losses need none
    threshold : float, optional: sweep until no message m changes by more than this in
        |new - old| / (new + old)
    sharpness : float, alpha of the smoothed classification loss
    weights : tuple of float, of the pixels of each class in losses of single pixels; all 1 if empty
    is_potts : bool, whether derivatives in the weights of label pairs, all zero, may be left out as
        zeros: that takes half of the time.
    gradient : one of `CLASS_GRADIENTS`: "truncated" back-propagates through every sweep. The others
        sweep until messages converge (to ``threshold``, 1e-11 by default), in double precision,
        whatever ``iterations``, and differentiate implicitly or by perturbation; the likelihood
        needs neither there.
    inference : "trw" or "mean-field", which sweeps in double precision always, and whose
        ``threshold`` is of the change of a marginal; local losses ignore it

    Examples
    --------
    >>> ClassLoss("clique-logistic", iterations=5).threshold is None
    True
    """

    loss: str = "univariate-logistic"
    iterations: int = 20
    threshold: float | None = None
    sharpness: float = 15.0
    weights: tuple[float, ...] = ()
    is_potts: bool = False
    gradient: str = "truncated"
    inference: str = "trw"

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an unknown name or a number out of range."""
        for name, value, known in (
            ("loss", self.loss, CLASS_LOSSES),
            ("gradient", self.gradient, CLASS_GRADIENTS),
            ("inference", self.inference, INFERENCES),
        ):
            if value not in known:
                names = ", ".join(known)
                raise InvalidProblemError(f"{name}: expected one of {names}, received {value!r}.")
        if self.iterations < 1 or (self.threshold is not None and not self.threshold > 0.0):
            raise InvalidProblemError("iterations and threshold must be above 0.")
        check_positive("sharpness", self.sharpness)


def loss_and_gradient(example: ClassExample, theta: FloatArray, options: ClassLoss) -> Gradient:
    """Return the loss of one picture and its gradient in theta, shape (K,).

    Notes
    -----
    Memory 16 L bytes a pixel and sweep; with converged messages 32 L a pixel for each of the 30
    vectors of "implicit", and for a few by perturbation.
    """
    if options.loss in LOCAL_LOSSES:
        return _local_loss(example, theta, options.loss)
    run = _run if options.gradient == "truncated" else _run_to_convergence
    if options.inference == "mean-field":
        run = _run_mean_field
    value, gradient = run(example, theta, options, is_held=False)
    if options.loss != LIKELIHOOD:
        return value, gradient
    known, slope = run(example, theta, options, is_held=True)
    return value - known, gradient - slope


def _run(
    example: ClassExample, theta: FloatArray, options: ClassLoss, *, is_held: bool
) -> Gradient:
    """Sweep and keep all messages, then back-propagate through them."""
    chains = ClassMessages(example.features, theta)
    chains.is_plain = chains.is_plain and options.is_potts
    if is_held:
        chains.hold(example.labels)
    states = [chains.messages.copy()]
    for _ in range(options.iterations):
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
    example: ClassExample, theta: FloatArray, options: ClassLoss, *, is_held: bool
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


def _run_mean_field(
    example: ClassExample, theta: FloatArray, options: ClassLoss, *, is_held: bool
) -> Gradient:
    """Pass forth and back, keeping all marginals or until they converge, and differentiate."""
    field = ClassMeanField(example.features, theta, example.labels if is_held else None)
    states: list[FloatArray] = []
    threshold = at_rest.REST if options.threshold is None else options.threshold
    limits = (threshold, at_rest.MOST_SWEEPS)
    is_truncated = options.gradient == "truncated"
    if is_truncated:
        for _ in range(options.iterations):
            change = field.sweep(states)
            if options.threshold is not None and not change > threshold:
                break
    else:
        field.rest(*limits)
    value, adjoint, slopes = _begin_mean_field(field, example, options)
    if is_truncated:
        field.go_back(states, adjoint, slopes)
    elif options.loss != LIKELIHOOD:  # the likelihood is stationary in converged marginals
        if options.gradient != "implicit":
            slope = adjoint / np.maximum(field.marginals, begin.SMALLEST)
            return value, field.perturbed(slope, SIDES[options.gradient], *limits)
        field.add_implicit(adjoint, slopes)
    return value, example.features.pull_back(slopes.nodes, slopes.agreement, slopes.pairs)


def _begin_mean_field(
    field: ClassMeanField, example: ClassExample, options: ClassLoss
) -> tuple[float, FloatArray, MeanFieldSlopes]:
    """Return the loss, or the likelihood's bound, with derivatives in log q and in scores."""
    n = field.nodes.shape[2]
    if options.loss == LIKELIHOOD:
        return field.lower_bound()
    if options.loss == CLIQUE:
        return *clique_loss(field.logs, example.labels, example.labels < n), field.zeros()
    nothing, adjoint = np.empty((0, *field.nodes.shape)), np.empty_like(field.nodes)
    value = begin.begin_nodes(
        NODE_LOSSES[options.loss],
        options.sharpness,
        field.marginals,
        example.labels,
        np.array(options.weights or np.ones(n)),
        nothing,
        nothing,
        adjoint,
    )
    return float(value), adjoint, field.zeros()


def begin_loss(
    chains: ClassMessages, example: ClassExample, options: ClassLoss
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


def _marginal_slope(chains: ClassMessages, example: ClassExample, options: ClassLoss) -> FloatArray:
    """Return dQ/dtau of nodes and of edges' own entries, flat; see `class_gradients.perturbed`."""
    marginals, chances = at_rest.own_marginals(chains, example.labels)
    nodes, edges = np.zeros_like(marginals), np.zeros_like(chances)
    if options.loss == CLIQUE:
        edges[chances < 1.0] = -1.0 / np.maximum(chances[chances < 1.0], begin.SMALLEST)
        return np.concatenate([nodes.ravel(), edges.ravel()])
    n = marginals.shape[2]
    place = np.nonzero(example.labels < n)
    labels = example.labels[place].astype(np.int64)
    weights = np.array(options.weights or np.ones(n))[labels]
    own, here = (*place, labels), marginals[place]
    chance = np.maximum(marginals[own], begin.SMALLEST)
    if options.loss == "univariate-logistic":
        nodes[own] = -weights / chance
    elif options.loss == "univariate-quadratic":
        nodes[place] = weights[:, None] * (here - np.eye(n)[labels])
    else:
        here[np.arange(len(labels)), labels] = -1.0
        rival = here.argmax(axis=1)
        lead = options.sharpness * (chance - here[np.arange(len(labels)), rival])
        loss = 1.0 / (1.0 + np.exp(np.minimum(lead, 700.0)))
        change = weights * options.sharpness * loss * (1.0 - loss)
        nodes[(*place, rival)] = change
        nodes[own] = -change
    return np.concatenate([nodes.ravel(), edges.ravel()])


def _local_loss(example: ClassExample, theta: FloatArray, loss: str) -> Gradient:
    """Return a loss that needs no inference; unknown pixels, and edges at them, do not count."""
    features, scores = example.features, example.features.scores(theta)
    extra, pairs = np.zeros_like(scores.agreement), np.zeros_like(scores.pairs)
    logits = scores.nodes.astype(np.float64)
    known = example.labels < logits.shape[2]
    labels = np.where(known, example.labels, 0).astype(np.int64)
    neighbours = list(_neighbours(features, labels, known)) if loss == "pseudolikelihood" else []
    for one in neighbours:
        table = scores.pairs[one.axis]
        logits[one.place] += (table.T if one.is_first else table)[one.label]
        logits[(*one.place, one.label)] += scores.agreement[one.axis][one.code]
    norms = np.logaddexp.reduce(logits, axis=2)
    chosen = np.take_along_axis(logits, labels[..., None], axis=2)[..., 0]
    value = float((norms - chosen)[known].sum())
    slope = np.exp(logits - norms[..., None])
    slope[(*np.nonzero(known), labels[known])] -= 1.0
    slope[~known] = 0.0
    for one in neighbours:
        table = pairs[one.axis]
        np.add.at(table.T if one.is_first else table, one.label, slope[one.place])
        np.add.at(extra[one.axis], one.code, slope[(*one.place, one.label)])
    if loss == "piecewise":
        for axis in range(2):
            value += _piecewise(features, scores, labels, known, axis, extra[axis], pairs[axis])
    return value, features.pull_back(slope, extra, pairs)


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """Pixels, (rows, columns), with a neighbour of known label on one side in one direction."""

    place: tuple[IntArray, IntArray]
    label: IntArray
    code: CodeArray
    axis: int
    is_first: bool


def _neighbours(
    features: ClassFeatures, labels: IntArray, known: BoolArray
) -> Iterator[_Neighbours]:
    for axis, codes in enumerate(features.codes):
        rows, columns = np.nonzero(np.ones(codes.shape, dtype=bool))
        code = codes[rows, columns]
        first, second = (rows, columns), (rows + axis, columns + 1 - axis)
        for is_first, place, other in ((True, first, second), (False, second, first)):
            seen = known[other]
            here = (place[0][seen], place[1][seen])
            yield _Neighbours(here, labels[other][seen], code[seen], axis, is_first)


def _piecewise(
    features: ClassFeatures,
    scores: ClassScores,
    labels: IntArray,
    known: BoolArray,
    axis: int,
    extra: FloatArray,
    pairs: FloatArray,
) -> float:
    """Return the summed losses of the single edges between known pixels."""
    codes, n = features.codes[axis], len(pairs)
    rows, columns = np.nonzero(np.ones(codes.shape, dtype=bool))
    first, second = (rows, columns), (rows + axis, columns + 1 - axis)
    both = known[first] & known[second]
    tables = scores.pairs[axis] + scores.agreement[axis][:, None, None] * np.eye(n)
    counts = np.zeros_like(tables)
    places = (codes[rows, columns], labels[first], labels[second])
    np.add.at(counts, tuple(place[both] for place in places), 1.0)
    norms = np.logaddexp.reduce(tables.reshape(len(tables), -1), axis=1)[:, None, None]
    slope = counts.sum(axis=(1, 2), keepdims=True) * np.exp(tables - norms) - counts
    extra += np.trace(slope, axis1=1, axis2=2)
    pairs += slope.sum(axis=0)
    return float((counts * (norms - tables)).sum())
