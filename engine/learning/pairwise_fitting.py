"""Marginal-based learning of pairwise models on any graph, with any labels, some of them hidden.

    minimise  sum_m Q(tau^m(theta)) + lambda/2 ||theta||^2     by L-BFGS

with tau the converged tree-reweighted or mean-field marginals, and exact gradients. With some
labels hidden, "surrogate-em" minimises log Z(theta) - log Z(theta, y observed), which is the
surrogate likelihood if no label is hidden. It is a difference of convex functions; the other losses
are not convex either, so there is no certificate.

References
----------
Domke 2013, sections 4 to 7.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_choice, check_number, check_whole
from engine.graphs.factor_graph import Factor, FactorGraph
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.inference.factors.mean_field import mean_field
from engine.inference.pairwise.marginal_gradients import (
    ImplicitGradient,
    implicit_mean_field_gradient,
    mean_field_tables,
)
from engine.inference.pairwise.tree_reweighted import TreeReweighted
from engine.objectives.marginal_losses import HIDDEN, PAIRWISE_LOSSES, marginal_loss
from engine.solvers.lbfgs import SmoothFit, minimise_by_lbfgs

EM = "surrogate-em"
LOSSES = (*PAIRWISE_LOSSES, EM)
INFERENCES = ("trw", "mean-field")
MEMORY = 10  # number of steps that L-BFGS stores

Gradient = tuple[float, FloatArray]


@dataclass(frozen=True, slots=True)
class PairwiseExample:
    """Training example: a graph with features on its tables, and labels that may be unknown.

    Parameters
    ----------
    graph : PairwiseGraph
    features : ndarray, shape (graph.size, K)
        Features of each entry of each node's and edge's table.
    labels : ndarray of int, shape (n_nodes,); -1 where unknown.

    Examples
    --------
    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> example = PairwiseExample(graph, np.zeros((graph.size, 1)), np.array([1, HIDDEN]))
    >>> example.graph.size
    8
    """

    graph: PairwiseGraph
    features: FloatArray
    labels: IntArray

    def __post_init__(self) -> None:
        """Raise InvalidProblemError if shapes disagree or a label is out of range."""
        if self.features.ndim != 2 or len(self.features) != self.graph.size:
            raise InvalidProblemError(
                f"features: expected {self.graph.size} rows, received {self.features.shape}."
            )
        self.graph.places(np.where(np.asarray(self.labels) == HIDDEN, 0, self.labels))


@dataclass(frozen=True, slots=True)
class PairwiseFitting:
    """Options of pairwise learning: the loss and the inference.

    Parameters
    ----------
    loss : one of `LOSSES`
    inference : "trw" or "mean-field"
    sharpness : alpha of the smoothed classification loss.
    rho : float, edge appearance probability of "trw"; 1/2 is valid on grids.
    tolerance : change of messages (nats) or probabilities at which inference has converged.
    iterations : largest number of sweeps. "surrogate-em" with few sweeps is truncated EM, whose
        objective is that of the messages so far.

    Examples
    --------
    >>> PairwiseFitting("surrogate-em", rho=1.0).inference
    'trw'
    """

    loss: str = "univariate-logistic"
    inference: str = "trw"
    sharpness: float = 15.0
    rho: float = 0.5
    tolerance: float = 1e-10
    iterations: int = 2000

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an unknown name or a number out of range."""
        check_choice("loss", self.loss, LOSSES)
        check_choice("inference", self.inference, INFERENCES)
        check_number("sharpness", self.sharpness, above=0.0)
        check_number("rho", self.rho, above=0.0, at_most=1.0)
        check_number("tolerance", self.tolerance, above=0.0)
        check_whole("iterations", self.iterations, at_least=1)


class PairwiseObjective:
    """Loss of one example and its gradient in theta; messages start from the previous call's."""

    def __init__(self, example: PairwiseExample, options: PairwiseFitting) -> None:
        self._example, self._options = example, options
        graph = example.graph
        is_trw = options.inference == "trw"
        self._free = TreeReweighted(graph, options.rho) if is_trw else None
        self._clamped = TreeReweighted(graph, options.rho) if is_trw else None
        self._implicit: Callable[[FloatArray, FloatArray], FloatArray] | None = None
        if is_trw and options.loss != EM:
            self._implicit = ImplicitGradient(graph, options.rho)

    def __call__(self, theta: FloatArray) -> Gradient:
        """Return the loss and its gradient, shape (K,)."""
        scores = self._example.features @ theta
        if self._options.loss == EM:
            return self._surrogate_em(scores)
        _, tables = self._solve(scores, self._free)
        value, slope = marginal_loss(
            self._example.graph,
            tables,
            self._example.labels,
            self._options.loss,
            self._options.sharpness,
        )
        gradient = self._pull_back(scores, tables, slope)
        return value, np.asarray(gradient @ self._example.features)

    def marginals(self, theta: FloatArray) -> FloatArray:
        """Return the tables of marginals at theta with no label clamped."""
        return self._solve(self._example.features @ theta, self._free)[1]

    def _pull_back(self, scores: FloatArray, tables: FloatArray, slope: FloatArray) -> FloatArray:
        if self._implicit is not None:
            return self._implicit(tables, slope)
        return implicit_mean_field_gradient(self._example.graph, scores, tables, slope)

    def _surrogate_em(self, scores: FloatArray) -> Gradient:
        """Return log Z minus log Z with observed labels clamped, and the gradient."""
        example = self._example
        held = scores.copy()
        for i in np.flatnonzero(np.asarray(example.labels) != HIDDEN).tolist():
            table = example.graph.node_table(held, i)
            seen = int(example.labels[i])
            table[:seen] = table[seen + 1 :] = -np.inf
        value, tables = self._solve(scores, self._free)
        clamped, held_tables = self._solve(held, self._clamped)
        return value - clamped, np.asarray((tables - held_tables) @ example.features)

    def _solve(self, scores: FloatArray, solver: TreeReweighted | None) -> tuple[float, FloatArray]:
        """Return the surrogate log Z and its tables of marginals."""
        options, graph = self._options, self._example.graph
        if solver is not None:
            found = solver.solve(
                PairwiseModel(graph, scores),
                max_iterations=options.iterations,
                tolerance=options.tolerance,
                warm=options.loss != EM,
            )
            return found.log_partition, found.tables
        factors = [Factor((v,), graph.node_table(scores, v)) for v in range(graph.n_nodes)]
        factors += [
            Factor((int(i), int(j)), graph.edge_table(scores, e))
            for e, (i, j) in enumerate(graph.edges)
        ]
        product = mean_field(
            FactorGraph(graph.cardinalities, tuple(factors)),
            max_iterations=options.iterations,
            tolerance=options.tolerance,
        )
        return product.lower_bound, mean_field_tables(graph, np.concatenate(product.marginals))


def fit_pairwise(
    examples: Sequence[PairwiseExample],
    options: PairwiseFitting,
    *,
    ridge: float = 1.0,
    start: FloatArray | None = None,
    max_iterations: int = 200,
    tolerance: float = 1e-9,
) -> SmoothFit:
    """Learn a pairwise model: minimise the summed loss of the examples with a ridge.

    Parameters
    ----------
    examples : sequence of PairwiseExample, with one number K of features.
    options : PairwiseFitting
    ridge : float above 0, lambda.
    start : ndarray, shape (K,), optional; 0 if None.
    max_iterations : int, of L-BFGS.
    tolerance : float, relative decrease of the objective in a step at which learning ends.

    Returns
    -------
    SmoothFit
        ``theta``, shape (K,), a local minimum: there is no certificate.

    Raises
    ------
    InvalidProblemError
        If there are no examples, their numbers of features differ, or ridge is not above 0.

    References
    ----------
    Domke 2013, sections 4 to 7.

    Examples
    --------
    Two nodes with equal labels in 3 of 4 examples, on a tree: log 3, apart from the ridge.

    >>> graph = PairwiseGraph(np.array([2, 2]), np.array([[0, 1]]))
    >>> features = np.array([[0.0, 0, 0, 0, 1, 0, 0, 1]]).T
    >>> seen = [PairwiseExample(graph, features, np.array([0, k % 4 == 0])) for k in range(400)]
    >>> fit = fit_pairwise(seen, PairwiseFitting("surrogate-em", rho=1.0), ridge=1e-6)
    >>> fit.theta.round(3).tolist()
    [1.099]
    """
    check_number("ridge", ridge, above=0.0)
    check_whole("max_iterations", max_iterations)
    check_number("tolerance", tolerance, at_least=0.0)
    sizes = {example.features.shape[1] for example in examples}
    if len(sizes) != 1:
        raise InvalidProblemError("Expected examples with one number of features.")
    objectives = [PairwiseObjective(example, options) for example in examples]

    def total(theta: FloatArray) -> Gradient:
        value, gradient = 0.5 * ridge * float(theta @ theta), ridge * theta
        for objective in objectives:
            own, change = objective(theta)
            value, gradient = value + own, gradient + change
        return value, gradient

    first = np.zeros(sizes.pop()) if start is None else np.array(start, dtype=np.float64)
    return minimise_by_lbfgs(
        total, first, memory=MEMORY, tolerance=tolerance, max_iterations=max_iterations
    )
