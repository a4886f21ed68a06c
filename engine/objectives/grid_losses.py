"""Losses of a labelled picture as functions of theta, with exact derivatives.

Marginal losses are functions of the pseudomarginals after a fixed number of sweeps, or after the
number that reaches a threshold; derivatives run back through the sweeps (truncated fitting and
back-propagation). The pseudolikelihood, the piecewise likelihood and the independent logistic
loss need no inference. Values are sums over the picture, nats; smaller is better.

References
----------
Domke 2013, sections 4, 7 and 7.3.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.options import check_choice, check_number, check_whole
from engine.crf.grid_features import CodeArray, GridExample, GridScores
from engine.kernels import backpropagation as back
from engine.kernels.edge_codes import count_label_pairs
from engine.kernels.mean_field_grid import (
    add_edge_bases,
    begin_mean_field_adjoint,
    fill_logits,
    mean_field_pass,
    pull_edge_bases,
    reverse_mean_field_pass,
)
from engine.kernels.pseudolikelihood_grid import pseudolikelihood
from engine.objectives.grid_chains import GridChains

MARGINAL_LOSSES = {
    "surrogate-likelihood": back.SURROGATE_LIKELIHOOD,
    "univariate-logistic": back.UNIVARIATE_LOGISTIC,
    "univariate-quadratic": back.UNIVARIATE_QUADRATIC,
    "smoothed-classification": back.SMOOTHED_CLASSIFICATION,
    "clique-logistic": back.CLIQUE_LOGISTIC,
}
LOCAL_LOSSES = ("pseudolikelihood", "piecewise", "independent")
INFERENCES = ("trw", "mean-field")

COUPLING = np.array([1.0, -1.0, -1.0, 1.0])
"""Coefficients of J_ij in the entries (00, 01, 10, 11) of a table."""

NOTHING = np.empty((0, 0))
"""Empty adjoint of log odds: only the last pass has one."""

MAX_SWEEPS = 500
"""Maximum number of sweeps to reach a threshold; the loss is then that of the last sweep."""


@dataclass(frozen=True, slots=True)
class LossOptions:
    """Options of a loss: its name and its inference.

    Parameters
    ----------
    loss : one of `MARGINAL_LOSSES` or `LOCAL_LOSSES`
    inference : "trw" or "mean-field"; local losses ignore it
    iterations : int, sweeps (forward and backward) when no threshold is given
    threshold : float, optional
        Sweep until no marginal changes by more than this, or no message m by more than this in
        |new - old| / (new + old).
    sharpness : float, alpha of the smoothed classification loss
    rho : float, in (0, 1/2], edge appearance probability of "trw"

    Examples
    --------
    >>> LossOptions("clique-logistic", iterations=5).inference
    'trw'
    """

    loss: str = "univariate-logistic"
    inference: str = "trw"
    iterations: int = 40
    threshold: float | None = None
    sharpness: float = 15.0
    rho: float = 0.5

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an unknown name or a number out of range."""
        check_choice("loss", self.loss, (*MARGINAL_LOSSES, *LOCAL_LOSSES))
        check_choice("inference", self.inference, INFERENCES)
        check_whole("iterations", self.iterations, at_least=1)
        check_number("threshold", self.threshold, above=0.0, optional=True)
        check_number("sharpness", self.sharpness, above=0.0)
        check_number("rho", self.rho, above=0.0, at_most=0.5)


@dataclass(slots=True)
class _Adjoints:
    """Derivatives with respect to scores: nodes (rows, columns), edge tables by code."""

    node: FloatArray
    horizontal: FloatArray
    vertical: FloatArray


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
    example: GridExample, theta: FloatArray, options: LossOptions, tape: Tape | None = None
) -> tuple[float, FloatArray]:
    """Return the loss of one picture and its gradient in theta, shape (K,).

    Notes
    -----
    Time about three times that of the sweeps; memory 32 (mean field: 16) bytes a pixel and sweep,
    in ``tape`` if the caller gives one, for one run at a time.
    """
    tape = Tape() if tape is None else tape
    tape.rewind()
    scores = example.features.scores(theta)
    adjoints = _Adjoints(
        np.zeros(example.features.shape),
        np.zeros_like(scores.horizontal),
        np.zeros_like(scores.vertical),
    )
    if options.loss in LOCAL_LOSSES:
        value = _local_loss(example, scores, options.loss, adjoints)
    elif options.inference == "trw":
        value = _tree_reweighted_loss(example, theta, options, tape, adjoints)
    else:
        value = _mean_field_loss(example, scores, options, tape, adjoints)
    gradient = example.features.pull_back(adjoints.node, adjoints.horizontal, adjoints.vertical)
    return value, gradient


def _tree_reweighted_loss(
    example: GridExample, theta: FloatArray, options: LossOptions, tape: Tape, adjoints: _Adjoints
) -> float:
    """Sweep forward and keep all messages, then back-propagate."""
    chains = GridChains(example.features, options.rho, theta)
    tape.keep(chains.messages)
    for _ in range(options.iterations if options.threshold is None else MAX_SWEEPS):
        change = chains.sweep(1)
        tape.keep(chains.messages)
        if options.threshold is not None and not change > options.threshold:  # or NaN
            break
    adjoint = np.zeros_like(chains.messages)
    sums = (adjoints.node, adjoints.horizontal, adjoints.vertical)
    scores = chains.scores
    value = back.begin_adjoint(
        MARGINAL_LOSSES[options.loss],
        options.sharpness,
        example.labels,
        scores.node,
        chains.odds,
        *chains.codes,
        *chains.tables,
        scores.horizontal,
        scores.vertical,
        options.rho,
        chains.messages,
        adjoint,
        *sums,
    )
    fixed = (chains.odds, *chains.codes, *chains.tables, options.rho)
    for before, after in reversed(list(pairwise(tape.states))):
        back.reverse_sweep(*fixed, before, after, adjoint, *sums)
    return float(value)


def _mean_field_loss(
    example: GridExample, scores: GridScores, options: LossOptions, tape: Tape, adjoints: _Adjoints
) -> float:
    """Pass forth and back and keep all marginals, then back-propagate."""
    edges = example.features.edges
    codes = (edges.horizontal, edges.vertical)
    tables = (scores.horizontal, scores.vertical)
    sums = (adjoints.horizontal, adjoints.vertical)
    couplings = (scores.horizontal @ COUPLING, scores.vertical @ COUPLING)
    bases = scores.node.copy()
    for down in range(2):
        add_edge_bases(codes[down], tables[down], down, bases)
    q = _pass_forth_and_back(bases, codes, couplings, options, tape)
    logits, logit_adjoint, adjoint = np.empty_like(q), np.empty_like(q), np.zeros_like(q)
    before, after = tape.states[-2:]
    fill_logits(bases, *codes, *couplings, before, after, logits)
    value = begin_mean_field_adjoint(
        MARGINAL_LOSSES[options.loss],
        options.sharpness,
        example.labels,
        scores.node,
        *codes,
        *tables,
        logits,
        q,
        logit_adjoint,
        adjoint,
        adjoints.node,
        *sums,
    )
    base_adjoint = np.zeros_like(q)
    coupling_adjoints = tuple(np.zeros_like(coupling) for coupling in couplings)
    totals = (adjoint, base_adjoint, *coupling_adjoints)
    for index in range(len(tape.states) - 1, 0, -1):
        before, after = tape.states[index - 1 : index + 1]
        alone = logit_adjoint if index == len(tape.states) - 1 else NOTHING
        reverse_mean_field_pass(*codes, *couplings, index % 2 == 1, before, after, alone, *totals)
    adjoints.node += base_adjoint
    for down in range(2):
        pull_edge_bases(codes[down], down, base_adjoint, coupling_adjoints[down], sums[down])
    return float(value)


def _pass_forth_and_back(
    bases: FloatArray,
    codes: tuple[CodeArray, CodeArray],
    couplings: tuple[FloatArray, FloatArray],
    options: LossOptions,
    tape: Tape,
) -> FloatArray:
    """Pass forth and back, keep the marginals of every pass, and return the last."""
    q = np.full(bases.shape, 0.5)
    tape.keep(q)
    for _ in range(options.iterations if options.threshold is None else MAX_SWEEPS):
        mean_field_pass(bases, *codes, *couplings, True, q)
        tape.keep(q)
        change = mean_field_pass(bases, *codes, *couplings, False, q)
        tape.keep(q)
        if options.threshold is not None and not change > options.threshold:  # or NaN
            break
    return q


def _local_loss(example: GridExample, scores: GridScores, loss: str, adjoints: _Adjoints) -> float:
    """Return a loss that needs no inference, and add its adjoints."""
    edges, labels = example.features.edges, example.labels
    if loss == "pseudolikelihood":
        return float(
            pseudolikelihood(
                labels,
                scores.node,
                edges.horizontal,
                edges.vertical,
                scores.horizontal,
                scores.vertical,
                adjoints.node,
                adjoints.horizontal,
                adjoints.vertical,
            )
        )
    signed = np.where(labels, scores.node, -scores.node)
    total = float(np.logaddexp(0.0, -signed).sum())
    adjoints.node += np.where(labels, -1.0, 1.0) * np.exp(-np.logaddexp(0.0, signed))
    if loss == "piecewise":
        parts = (
            (edges.horizontal, scores.horizontal, adjoints.horizontal, 0),
            (edges.vertical, scores.vertical, adjoints.vertical, 1),
        )
        for codes, tables, adjoint, down in parts:
            counts = np.zeros_like(tables)
            count_label_pairs(codes, labels, down, counts)
            norms = np.logaddexp.reduce(tables, axis=1, keepdims=True)
            total += float((counts * (norms - tables)).sum())
            adjoint += counts.sum(axis=1, keepdims=True) * np.exp(tables - norms) - counts
    return total
