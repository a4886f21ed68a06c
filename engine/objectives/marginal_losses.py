"""Losses of pseudomarginals: names, options, and values with slopes for any number of labels.

A loss is a function of tables of pseudomarginals; its slope is dQ/dtau. Values are sums over nodes
or edges of known label, smaller is better. `engine.objectives.grid_losses` differentiates losses of
grids in theta, `engine.learning.pairwise_fitting` those of any pairwise model.

References
----------
Domke 2013, section 7 (table of losses).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.options import check_choice, check_flag, check_number, check_positive, check_whole
from engine.graphs.pairwise import PairwiseGraph
from engine.kernels import class_losses as kernels

NODE_LOSSES = {
    "univariate-logistic": kernels.UNIVARIATE_LOGISTIC,
    "univariate-quadratic": kernels.UNIVARIATE_QUADRATIC,
    "smoothed-classification": kernels.SMOOTHED_CLASSIFICATION,
}
LIKELIHOOD, CLIQUE = "surrogate-likelihood", "clique-logistic"
PAIRWISE_LOSSES = (*NODE_LOSSES, CLIQUE)
MARGINAL_LOSSES = (LIKELIHOOD, *PAIRWISE_LOSSES)

MAX_SWEEPS = 500
"""Maximum number of sweeps to reach a threshold; the loss is then that of the last sweep."""

HIDDEN = -1
"""Label of a node whose label is unknown."""

FLOOR = 1e-300
"""Smallest probability in a logarithm; smaller ones are raised to it."""

Gradient = tuple[float, FloatArray]


@dataclass(frozen=True, slots=True)
class LossOptions:
    """Options of a loss of a grid: its name, and how far its messages are swept.

    Parameters
    ----------
    loss : one of ``names``
    iterations : int, sweeps (forward and backward) when no threshold is given
    threshold : float, optional
        Sweep until no message m changes by more than this in |new - old| / (new + old), at most
        `MAX_SWEEPS` times.
    sharpness : float, alpha of the smoothed classification loss
    rho : float, in (0, 1/2], edge appearance probability; 1/2 if edges score agreement
    weights : tuple of float, of the pixels of each class in losses of single pixels; all 1 if empty
    is_potts : bool, whether derivatives in the weights of label pairs, all zero, may be left out as
        zeros: that takes half of the time.

    Examples
    --------
    >>> LossOptions("clique-logistic", iterations=5).max_sweeps
    5
    """

    names: ClassVar[tuple[str, ...]] = MARGINAL_LOSSES
    loss: str = "univariate-logistic"
    iterations: int = 40
    threshold: float | None = None
    sharpness: float = 15.0
    rho: float = 0.5
    weights: tuple[float, ...] = ()
    is_potts: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an unknown name or a number out of range."""
        check_choice("loss", self.loss, self.names)
        check_whole("iterations", self.iterations, at_least=1)
        check_number("threshold", self.threshold, above=0.0, optional=True)
        check_number("sharpness", self.sharpness, above=0.0)
        check_number("rho", self.rho, above=0.0, at_most=0.5)
        for weight in self.weights:
            check_positive("weights", weight)
        check_flag("is_potts", self.is_potts)

    @property
    def max_sweeps(self) -> int:
        """Number of sweeps, or the largest one with a threshold."""
        return self.iterations if self.threshold is None else MAX_SWEEPS


def marginal_loss(
    graph: PairwiseGraph,
    tables: FloatArray,
    labels: IntArray,
    loss: str,
    sharpness: float = 15.0,
) -> Gradient:
    """Return a loss of pseudomarginals and its slope in them, shape (graph.size,).

    Parameters
    ----------
    tables : ndarray, flat tables of a `PairwiseGraph`
    labels : ndarray, shape (n_nodes,), HIDDEN where unknown: such nodes, and edges at them, do not
        count themselves, but the marginals of known nodes depend on their scores.
    loss : one of `PAIRWISE_LOSSES`
    sharpness : alpha of the smoothed classification loss.

    Raises
    ------
    InvalidProblemError
        For an unknown loss, a label out of range or a sharpness that is not above 0.
    """
    check_choice("loss", loss, PAIRWISE_LOSSES)
    check_positive("sharpness", sharpness)
    labels = np.asarray(labels, dtype=np.int64)
    known = labels != HIDDEN
    places = graph.places(np.where(known, labels, 0))
    slope = np.zeros(graph.size)
    if loss == CLIQUE:
        seen = places[graph.n_nodes :][known[graph.edges].all(axis=1)]
        value, slope[seen] = logistic_loss(tables[seen])
        return value, slope
    n = int(graph.node_start[-1])
    starts = np.asarray(graph.node_start)
    value, slope[:n] = node_loss(tables[:n], starts, labels, known, loss, sharpness)
    return value, slope


def logistic_loss(chances: FloatArray) -> Gradient:
    """Return -sum log of the marginals of the true labels, and its slope."""
    raised = np.maximum(chances, FLOOR)
    return -float(np.log(raised).sum()), -1.0 / raised


def node_loss(
    marginals: FloatArray,
    starts: IntArray,
    labels: IntArray,
    known: np.ndarray,
    loss: str,
    sharpness: float,
) -> Gradient:
    """Return a loss of single nodes and its slope in their marginals.

    Parameters
    ----------
    marginals : ndarray, flat distributions of all nodes
    starts : ndarray, shape (n + 1,), first entry of every node's distribution
    labels, known : ndarrays, shape (n,), labels, and False where unknown
    loss : one of `NODE_LOSSES`
    """
    cards = np.diff(starts)
    own = (starts[:-1] + labels)[known]
    slope = np.zeros(len(marginals))
    if loss == "univariate-logistic":
        chances = np.maximum(marginals[own], FLOOR)
        slope[own] = -1.0 / chances
        return -float(np.log(chances).sum()), slope
    if loss == "univariate-quadratic":
        error = np.where(np.repeat(known, cards), marginals, 0.0)
        error[own] -= 1.0
        return 0.5 * float((error * error).sum()), error
    with_rival = cards[known] > 1
    own = own[with_rival]
    rivals = _rivals(marginals, starts, labels, known & (cards > 1))
    lead = np.clip(sharpness * (marginals[own] - marginals[rivals]), -700.0, 700.0)
    value = 1.0 / (1.0 + np.exp(lead))
    change = sharpness * value * (1.0 - value)
    slope[rivals] += change
    slope[own] -= change
    return float(value.sum()), slope


def _rivals(
    marginals: FloatArray, starts: IntArray, labels: IntArray, nodes: np.ndarray
) -> IntArray:
    """Return the entry of each node's most probable wrong label."""
    others = marginals.copy()
    others[(starts[:-1] + labels)[nodes]] = -np.inf
    best = np.maximum.reduceat(others, starts[:-1])
    cards = np.diff(starts)
    is_best = (others == np.repeat(best, cards)) & np.repeat(nodes, cards)
    places = np.flatnonzero(is_best)
    owner = np.repeat(np.arange(len(labels)), cards)[places]
    return np.asarray(places[np.unique(owner, return_index=True)[1]])
