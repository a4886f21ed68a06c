"""Losses of a picture of Domke 2013: by tree-reweighted messages, by mean field, and local ones.

Products learn by messages alone (`engine.objectives.grid_losses`). Mean field has the same losses,
truncated or with a threshold, for masks and label maps; local losses need no inference.

References
----------
Domke 2013, section 3.2 and algorithm 2.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.papers.domke2013.grid_mean_field import (
    GridMeanField,
    edges_of_known,
    logistic_loss,
)
from benchmarks.papers.domke2013.local_losses import LOCAL_LOSSES, known_labels, local_loss
from engine.core.arguments import FloatArray
from engine.core.options import check_choice
from engine.crf.class_features import ClassExample, ClassLabels
from engine.crf.grid_features import GridExample, LabelScores
from engine.kernels import class_losses as begin
from engine.objectives import grid_losses
from engine.objectives.grid_losses import Tape
from engine.objectives.marginal_losses import (
    CLIQUE,
    LIKELIHOOD,
    MARGINAL_LOSSES,
    NODE_LOSSES,
    Gradient,
    LossOptions,
)

INFERENCES = ("trw", "mean-field")


@dataclass(frozen=True, slots=True)
class PaperOptions(LossOptions):
    """Options of a loss with its ``inference``, one of `INFERENCES`; local losses ignore it."""

    names: ClassVar[tuple[str, ...]] = (*MARGINAL_LOSSES, *LOCAL_LOSSES)
    inference: str = "trw"

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an unknown name or a number out of range."""
        LossOptions.__post_init__(self)
        check_choice("inference", self.inference, INFERENCES)


def is_by_mean_field(options: LossOptions) -> bool:
    """Return whether the loss is one of mean-field marginals."""
    return isinstance(options, PaperOptions) and options.inference == "mean-field"


def loss_and_gradient(
    example: GridExample | ClassExample,
    theta: FloatArray,
    options: LossOptions,
    tape: Tape | None = None,
) -> Gradient:
    """Return the loss of one picture and its gradient in theta, shape (K,).

    Mean field takes 16 L bytes a pixel and sweep; see `engine.objectives.grid_losses`.
    """
    if options.loss in LOCAL_LOSSES:
        return local_loss(example, theta, options.loss)
    if is_by_mean_field(options):
        return mean_field_loss(example, theta, options)
    return grid_losses.loss_and_gradient(example, theta, options, tape)


def mean_field_loss(
    example: GridExample | ClassExample, theta: FloatArray, options: LossOptions
) -> Gradient:
    """Return a loss of mean-field marginals; the likelihood is a difference of two bounds."""
    value, gradient = _run(example, theta, options, is_held=False)
    if options.loss != LIKELIHOOD:
        return value, gradient
    known, slope = _run(example, theta, options, is_held=True)
    return value - known, gradient - slope


def _run(
    example: GridExample | ClassExample,
    theta: FloatArray,
    options: LossOptions,
    *,
    is_held: bool,
) -> Gradient:
    """Pass forth and back, keeping all marginals, and back-propagate through them."""
    labels = known_labels(example)
    field = GridMeanField(example.features, theta, labels if is_held else None)
    states: list[FloatArray] = []
    for _ in range(options.max_sweeps):
        change = field.sweep(states)
        if options.threshold is not None and not change > options.threshold:
            break
    value, adjoint, slopes = begin_mean_field(field, labels, options)
    field.go_back(states, adjoint, slopes)
    return value, example.features.pull_back_labels(slopes)


def begin_mean_field(
    field: GridMeanField, labels: ClassLabels, options: LossOptions
) -> tuple[float, FloatArray, LabelScores]:
    """Return the loss, or the likelihood's bound, with derivatives in log q and in scores."""
    n = field.nodes.shape[2]
    if options.loss == LIKELIHOOD:
        return field.lower_bound()
    if options.loss == CLIQUE:
        return *logistic_loss(field.logs, labels, edges_of_known(labels < n)), field.zeros()
    weights = np.array(options.weights or np.ones(n))
    if options.loss == "univariate-logistic":
        counts = np.append(weights, 0.0)[np.minimum(labels, n)]
        return *logistic_loss(field.logs, labels, counts), field.zeros()
    nothing, adjoint = np.empty((0, *field.nodes.shape)), np.empty_like(field.nodes)
    value = begin.begin_nodes(
        NODE_LOSSES[options.loss],
        options.sharpness,
        field.marginals,
        labels,
        weights,
        nothing,
        nothing,
        adjoint,
    )
    return float(value), adjoint, field.zeros()
