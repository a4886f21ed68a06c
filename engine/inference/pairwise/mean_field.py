"""Naive mean field on pairwise models: always a lower bound of log Z."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.progress import StopCallback, never_stop
from engine.core.status import Status
from engine.entropies.mean_field import mean_field_entropy
from engine.graphs.pairwise import PairwiseModel
from engine.inference.marginals import Marginals
from engine.kernels.mean_field import update_nodes, write_products

# Zeros are first softened to this much below the range of the other entries (nats), so that
# the uniform start is not impossible; the final updates use the true zeros.
SOFT_ZERO = 10.0
# Share of the iterations that may be spent on the softened model.
SOFT_SHARE = 0.5


def mean_field(
    model: PairwiseModel,
    *,
    start: IntArray | None = None,
    max_iterations: int = 1000,
    tolerance: float = 1e-9,
    should_stop: StopCallback = never_stop,
) -> Marginals:
    """Maximise <tau, theta> + sum_i H(tau_i) over products of node distributions.

    Coordinate ascent; every iterate gives a lower bound of log Z, the result a local optimum.

    Parameters
    ----------
    start : int ndarray, shape (n_nodes,), optional
        A possible labelling to start from as well; the better of the two optima is returned.
        Without it the bound may be -inf for models with zeros.
    tolerance : largest change of a probability at convergence.
    should_stop : asked after every sweep; the bound holds wherever it stops.

    References
    ----------
    Wainwright and Jordan 2008, 5.3.
    """
    graph = model.graph
    scores = model.scores
    tables = graph.uniform()
    done = 0
    if model.has_zeros:
        limit = int(max_iterations * SOFT_SHARE)
        done, _ = _ascend(model, _softened(scores), tables, limit, tolerance, should_stop)
    result = _finish(model, tables, done, max_iterations, tolerance, should_stop)
    if start is None:
        return result
    other = _finish(model, graph.indicator(start), 0, max_iterations, tolerance, should_stop)
    return max(result, other, key=lambda answer: answer.log_partition)


def _softened(scores: FloatArray) -> FloatArray:
    possible = np.isfinite(scores)
    floor = scores[possible].min() - SOFT_ZERO if possible.any() else 0.0
    return np.where(possible, scores, floor)


def _ascend(
    model: PairwiseModel,
    scores: FloatArray,
    tables: FloatArray,
    limit: int,
    tolerance: float,
    should_stop: StopCallback,
) -> tuple[int, float]:
    """Update ``tables`` in place; return (iterations, last change)."""
    work = np.zeros(int(model.graph.cardinalities.max()))
    change = np.inf
    for iteration in range(limit):
        change = update_nodes(model.graph.layout, scores, tables, work)
        if change <= tolerance or should_stop():
            return iteration + 1, change
    return limit, change


def _finish(
    model: PairwiseModel,
    tables: FloatArray,
    done: int,
    limit: int,
    tolerance: float,
    should_stop: StopCallback,
) -> Marginals:
    """Ascend on the model itself and evaluate the product exactly."""
    iterations, change = _ascend(model, model.scores, tables, limit - done, tolerance, should_stop)
    if change <= tolerance:
        status = Status.CONVERGED
    else:
        status = Status.ITERATION_LIMIT if done + iterations >= limit else Status.CANCELLED
    write_products(model.graph.layout, tables)
    used = tables > 0.0
    value = float(tables[used] @ model.scores[used])
    if value > -np.inf:
        value += mean_field_entropy(model.graph).value(tables)
    return Marginals(
        tables=read_only(tables),
        log_partition=value,
        lower_bound=value,
        upper_bound=None,
        iterations=done + iterations,
        status=status,
        change=change,
    )
