"""Losses of a picture with several classes as functions of theta, with exact derivatives.

What `engine.objectives.grid_losses` is for two labels. Pixels whose label is unknown say nothing
themselves; messages pass through them. With some unknown, "surrogate-likelihood" is that of what is
known, log Z(theta) - log Z(theta, y known): few sweeps make it truncated EM, whose derivative is
that of the messages so far, not a difference of marginals that have not settled.

References
----------
Domke 2013, sections 4, 7 and 7.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray, check_positive
from engine.core.errors import InvalidProblemError
from engine.crf.class_features import ClassExample, ClassFeatures, ClassScores
from engine.crf.grid_features import CodeArray
from engine.kernels import class_losses as begin
from engine.kernels.class_messages import reverse_sweep
from engine.objectives.class_messages import ClassMessages
from engine.objectives.grid_losses import LOCAL_LOSSES

NODE_LOSSES = {
    "univariate-logistic": begin.UNIVARIATE_LOGISTIC,
    "univariate-quadratic": begin.UNIVARIATE_QUADRATIC,
    "smoothed-classification": begin.SMOOTHED_CLASSIFICATION,
}
LIKELIHOOD, CLIQUE = "surrogate-likelihood", "clique-logistic"
CLASS_LOSSES = (*NODE_LOSSES, LIKELIHOOD, CLIQUE, *LOCAL_LOSSES)

Gradient = tuple[float, FloatArray]


@dataclass(frozen=True, slots=True)
class ClassLoss:
    """Which loss after how many sweeps.

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

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an unknown name or a number out of range."""
        if self.loss not in CLASS_LOSSES:
            names = ", ".join(CLASS_LOSSES)
            raise InvalidProblemError(f"loss: expected one of {names}, received {self.loss!r}.")
        if self.iterations < 1 or (self.threshold is not None and not self.threshold > 0.0):
            raise InvalidProblemError("iterations and threshold must be above 0.")
        check_positive("sharpness", self.sharpness)


def loss_and_gradient(example: ClassExample, theta: FloatArray, options: ClassLoss) -> Gradient:
    """Return the loss of one picture and its gradient in theta, shape (K,).

    Notes
    -----
    Memory 16 L bytes a pixel and sweep.
    """
    if options.loss in LOCAL_LOSSES:
        return _local_loss(example, theta, options.loss)
    if options.loss != LIKELIHOOD:
        return _run(example, theta, options, is_held=False)
    value, gradient = _run(example, theta, options, is_held=False)
    known, slope = _run(example, theta, options, is_held=True)
    return value - known, gradient - slope


def _run(
    example: ClassExample, theta: FloatArray, options: ClassLoss, *, is_held: bool
) -> Gradient:
    """Sweep keeping all messages, then walk back."""
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
    n = chains.potentials.shape[2]
    adjoint, nodes = np.empty_like(chains.messages), np.empty_like(chains.potentials)
    extra, pairs = np.zeros_like(chains.scores.agreement), np.zeros((2, n, n))
    if options.loss in NODE_LOSSES:
        value = begin.begin_nodes(
            NODE_LOSSES[options.loss],
            options.sharpness,
            chains.marginals(),
            example.labels,
            np.array(options.weights or np.ones(n)),
            chains.messages,
            adjoint,
            nodes,
        )
    else:
        is_clique = options.loss == CLIQUE
        sums = (adjoint, nodes, extra, pairs)
        fixed = (*chains.fixed[:-1], chains.messages, example.labels)
        value = begin.begin_edges(*fixed, is_clique, *sums)
        value += 0.0 if is_clique else chains.level
    for before, after in reversed(list(pairwise(states))):
        reverse_sweep(*chains.fixed, before, after, adjoint, nodes, extra, pairs)
    # The kernels' tables are exp(2 theta).
    return float(value), example.features.pull_back(nodes, 2.0 * extra, 2.0 * pairs)


def _local_loss(example: ClassExample, theta: FloatArray, loss: str) -> Gradient:
    """Losses that need no inference: what is unknown, and edges at it, do not count."""
    features, scores = example.features, example.features.scores(theta)
    extra, pairs = np.zeros_like(scores.agreement), np.zeros_like(scores.pairs)
    logits = scores.nodes.astype(np.float64)
    known = example.labels < logits.shape[2]
    labels = np.where(known, example.labels, 0).astype(np.int64)
    neighbours = list(_neighbours(features, labels, known)) if loss == "pseudolikelihood" else []
    for one in neighbours:
        table = scores.pairs[one.way]
        logits[one.place] += (table.T if one.is_first else table)[one.label]
        logits[(*one.place, one.label)] += scores.agreement[one.way][one.code]
    norms = np.logaddexp.reduce(logits, axis=2)
    chosen = np.take_along_axis(logits, labels[..., None], axis=2)[..., 0]
    value = float((norms - chosen)[known].sum())
    slope = np.exp(logits - norms[..., None])
    slope[(*np.nonzero(known), labels[known])] -= 1.0
    slope[~known] = 0.0
    for one in neighbours:
        table = pairs[one.way]
        np.add.at(table.T if one.is_first else table, one.label, slope[one.place])
        np.add.at(extra[one.way], one.code, slope[(*one.place, one.label)])
    if loss == "piecewise":
        for way in range(2):
            value += _piecewise(features, scores, labels, known, way, extra[way], pairs[way])
    return value, features.pull_back(slope, extra, pairs)


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """Pixels, (rows, columns), with a neighbour of known label; whether they are the first end."""

    place: tuple[IntArray, IntArray]
    label: IntArray
    code: CodeArray
    way: int
    is_first: bool


def _neighbours(
    features: ClassFeatures, labels: IntArray, known: BoolArray
) -> Iterator[_Neighbours]:
    for way, codes in enumerate(features.codes):
        rows, columns = np.nonzero(np.ones(codes.shape, dtype=bool))
        code = codes[rows, columns]
        first, second = (rows, columns), (rows + way, columns + 1 - way)
        for is_first, place, other in ((True, first, second), (False, second, first)):
            seen = known[other]
            here = (place[0][seen], place[1][seen])
            yield _Neighbours(here, labels[other][seen], code[seen], way, is_first)


def _piecewise(
    features: ClassFeatures,
    scores: ClassScores,
    labels: IntArray,
    known: BoolArray,
    way: int,
    extra: FloatArray,
    pairs: FloatArray,
) -> float:
    """The loss of each edge between known pixels by itself."""
    codes, n = features.codes[way], len(pairs)
    rows, columns = np.nonzero(np.ones(codes.shape, dtype=bool))
    first, second = (rows, columns), (rows + way, columns + 1 - way)
    both = known[first] & known[second]
    tables = scores.pairs[way] + scores.agreement[way][:, None, None] * np.eye(n)
    counts = np.zeros_like(tables)
    places = (codes[rows, columns], labels[first], labels[second])
    np.add.at(counts, tuple(place[both] for place in places), 1.0)
    norms = np.logaddexp.reduce(tables.reshape(len(tables), -1), axis=1)[:, None, None]
    slope = counts.sum(axis=(1, 2), keepdims=True) * np.exp(tables - norms) - counts
    extra += np.trace(slope, axis1=1, axis2=2)
    pairs += slope.sum(axis=0)
    return float((counts * (norms - tables)).sum())
