"""Naive mean field on factor graphs, a lower bound of log Z that respects every zero."""

from dataclasses import dataclass
from math import fsum

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.options import check_callables, check_number, check_whole
from engine.core.progress import StopCallback, never_stop
from engine.core.rounding import sum_allowance
from engine.core.status import Status
from engine.graphs.factor_graph import FactorGraph
from engine.graphs.factor_layout import FactorLayout, lay_out_factors
from engine.kernels.mean_field import expected_scores, update_variables

# Zeros are first softened to this much below the range of the other entries (nats), so that
# the uniform start is not impossible; the final updates use the true zeros.
SOFT_ZERO = 10.0
ROUNDINGS = 8  # of a term of the bound, besides one a variable of a factor and its table's sum


@dataclass(frozen=True, slots=True, eq=False)
class ProductMarginals:
    """Independent distributions of the variables, with their lower bound of log Z.

    Parameters
    ----------
    marginals : tuple of ndarray
        One distribution a variable, (cardinality,) each.
    lower_bound : float
        Nats; -inf if their product has weight at an impossible entry.
    iterations : int
    status : Status

    Examples
    --------
    >>> ProductMarginals((np.array([0.5, 0.5]),), 0.0, 1, Status.CONVERGED).lower_bound
    0.0
    """

    marginals: tuple[FloatArray, ...]
    lower_bound: float
    iterations: int
    status: Status


def mean_field(
    graph: FactorGraph,
    *,
    start: IntArray | None = None,
    max_iterations: int = 1000,
    tolerance: float = 1e-9,
    should_stop: StopCallback = never_stop,
) -> ProductMarginals:
    """Maximise <tau, theta> + sum_i H(tau_i) over products of distributions of the variables.

    Coordinate ascent; every iterate gives a lower bound of log Z, the result a local optimum.

    Parameters
    ----------
    graph : FactorGraph
    start : int ndarray, shape (n_variables,), optional
        A possible configuration to start from as well; the better of the two optima is returned.
        Without it the bound may be -inf for models with zeros.
    max_iterations : int
        Sweeps over the variables.
    tolerance : float
        Largest change of a probability at convergence.
    should_stop : callable
        Called after every sweep; the bound holds wherever it stops.

    Returns
    -------
    ProductMarginals
        The distributions, with the lower bound of log Z, nats.

    References
    ----------
    Wainwright and Jordan 2008, 5.3.

    Examples
    --------
    >>> from engine.graphs.factor_graph import Factor
    >>> graph = FactorGraph(np.array([2]), (Factor((0,), np.log([1.0, 3.0])),))
    >>> round(float(np.exp(mean_field(graph).lower_bound)), 6)
    4.0
    """
    check_whole("max_iterations", max_iterations)
    check_number("tolerance", tolerance, at_least=0.0)
    check_callables(should_stop=should_stop)
    layout = lay_out_factors(graph)
    constant = float(sum(f.table for f in graph.factors if not f.variables))
    cards = layout.cardinalities
    spread = np.repeat(1.0 / cards, cards)
    if np.isneginf(layout.scores).any():
        _ascend(layout, _softened(layout.scores), spread, max_iterations, tolerance, should_stop)
    starts = [spread]
    if start is not None:
        point = np.zeros(int(layout.label_start[-1]))
        point[layout.label_start[:-1] + start] = 1.0
        starts.append(point)
    answers = []
    for marginals in starts:
        iterations, change = _ascend(
            layout, layout.scores, marginals, max_iterations, tolerance, should_stop
        )
        status = Status.CONVERGED if change <= tolerance else Status.ITERATION_LIMIT
        if status is not Status.CONVERGED and iterations < max_iterations:
            status = Status.CANCELLED
        parts = tuple(np.split(marginals, layout.label_start[1:-1]))
        bound = constant + _value(layout, marginals)
        answers.append(ProductMarginals(parts, bound, iterations, status))
    return max(answers, key=lambda answer: answer.lower_bound)


def _softened(scores: FloatArray) -> FloatArray:
    possible = np.isfinite(scores)
    floor = scores[possible].min() - SOFT_ZERO if possible.any() else 0.0
    return np.where(possible, scores, floor)


def _ascend(
    layout: FactorLayout,
    scores: FloatArray,
    marginals: FloatArray,
    limit: int,
    tolerance: float,
    should_stop: StopCallback,
) -> tuple[int, float]:
    """Update ``marginals`` in place; return (iterations, last change)."""
    work = np.zeros(int(layout.cardinalities.max()))
    labels = np.zeros(int(np.diff(layout.arrays[1]).max(initial=1)), dtype=np.int64)
    change = np.inf
    for iteration in range(limit):
        change = update_variables(layout.arrays, scores, marginals, labels, work)
        if change <= tolerance or should_stop():
            return iteration + 1, change
    return limit, change


def _value(layout: FactorLayout, marginals: FloatArray) -> float:
    """Return the lower bound of a product, less an allowance for rounding."""
    expected = np.zeros(len(layout.table_start) - 1)
    magnitude = float(expected_scores(layout.arrays, layout.scores, marginals, expected))
    if not np.isfinite(magnitude):
        return -np.inf
    used = marginals[marginals > 0.0]
    entropies = -used * np.log(used)
    sums = np.add.reduceat(marginals, layout.label_start[:-1])
    largest = int(np.diff(layout.table_start).max(initial=1))
    terms = largest + int(np.diff(layout.arrays[1]).max(initial=0)) + ROUNDINGS
    size = magnitude + float(entropies.sum()) + len(sums)
    return fsum(expected) + fsum(entropies) - sum_allowance(terms, size)
