"""Proved best configurations by removing labels that a bound excludes, then elimination."""

import math

import numpy as np

from engine.core.arguments import IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.progress import StopCallback, WorkCallback, ignore_work, never_stop
from engine.core.rounding import UNIT_ROUNDOFF
from engine.core.status import Status
from engine.graphs.factor_graph import FactorGraph, PairwiseForm
from engine.inference.factors.elimination import Elimination
from engine.inference.map_estimate import EXACT_TOLERANCE, MapEstimate
from engine.inference.pairwise.map_linear_programme import SmoothedDual

ORDER_WORK = 8_000  # of removing labels and choosing an order, per factor, in table entries


def possible_labels(dual: SmoothedDual, value: float) -> list[IntArray]:
    """Return each node's labels that a labelling of score ``value`` or more may have.

    A label stays unless the dual bound less its reduced cost is below ``value``, so that every
    best labelling survives if ``value`` is a score that some labelling reaches.
    """
    graph = dual.model.graph
    bound = dual.upper_bound()
    rounding = 64 * UNIT_ROUNDOFF * float(np.abs(dual.scores).sum())
    slack = EXACT_TOLERANCE * max(1.0, abs(bound)) + rounding
    excluded = dual.reduced_costs() > bound - value + slack  # False where a number overflowed
    return [
        np.flatnonzero(~excluded[graph.node_start[i] : graph.node_start[i + 1]])
        for i in range(graph.n_nodes)
    ]


def map_by_elimination(
    graph: FactorGraph,
    form: PairwiseForm,
    estimate: MapEstimate,
    dual: SmoothedDual,
    *,
    max_work: float = math.inf,
    should_stop: StopCallback = never_stop,
    on_work: WorkCallback = ignore_work,
) -> MapEstimate:
    """Return a best configuration by elimination over the labels that the bound leaves.

    Parameters
    ----------
    graph, form : the model and its pairwise form
    estimate, dual : a labelling of the form and dual variables, as from the linear programme; the
        closer the two, the fewer labels remain
    max_work : largest number of table entries that elimination may visit
    on_work : takes the table entries that are visited next

    Raises
    ------
    InvalidProblemError
        If the remaining model is too wide, or costs more than that.
    InfeasibleError
        If every configuration has probability zero.
    StoppedError
        If ``should_stop`` returned True.

    References
    ----------
    Dantzig, Fulkerson and Johnson 1954 (removal by reduced costs).
    """
    on_work(ORDER_WORK * len(graph.factors))
    kept = possible_labels(dual, estimate.value)
    solver = Elimination(graph.restrict(kept[: form.n_variables]))
    if solver.work > max_work:
        raise InvalidProblemError(
            f"Exact inference would visit {solver.work:.2g} table entries, the limit is "
            f"{max_work:.2g}."
        )
    chosen, _ = solver.best(should_stop=should_stop, on_work=on_work)
    labels = np.array([kept[v][x] for v, x in enumerate(chosen)], dtype=np.int64)
    value = graph.score(labels)
    n_labels = int(graph.cardinalities.sum())
    n_kept = sum(len(kept[v]) for v in range(form.n_variables))
    return MapEstimate(
        labels=read_only(labels),
        value=value,
        upper_bound=value,
        status=Status.CONVERGED,
        iterations=estimate.iterations,
        guarantee=_guarantee(n_kept, n_labels),
        method="exact",
    )


def _guarantee(n_kept: int, n_labels: int) -> str:
    if n_kept == n_labels:
        return "Optimal: the best of all combinations of labels was found by elimination."
    return (
        f"Optimal: the linear programme's bound leaves {n_kept} of {n_labels} labels, and the best "
        "of all their combinations was found by elimination."
    )
