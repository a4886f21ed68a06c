"""Search for a configuration of probability above zero by a satisfiability solver."""

from collections.abc import Iterator
from math import inf

import numpy as np

from engine.core.arguments import IntArray
from engine.core.errors import InfeasibleError
from engine.core.progress import StopCallback, never_stop
from engine.graphs.factor_graph import FactorGraph, PairwiseForm
from engine.graphs.pairwise import PairwiseModel
from engine.inference.pairwise.zeros import possible_scores

CONFLICTS = 2_000  # of the solver between two calls of should_stop


def find_feasible(
    graph: FactorGraph,
    form: PairwiseForm,
    *,
    most_conflicts: float = inf,
    should_stop: StopCallback = never_stop,
) -> IntArray | None:
    """Return a possible configuration, or None if stopped or out of conflicts.

    Labels without a partner are removed first (arc consistency); the others become clauses: one
    label a variable, and for each label and edge one of its partners at the other end.

    Raises
    ------
    InfeasibleError
        If every configuration has probability zero.

    References
    ----------
    Biere, Faller, Fazekas, Fleury, Froleyks and Pollitt 2024 (CaDiCaL); Ignatiev, Morgado and
    Marques-Silva 2018 (PySAT).
    """
    if not form.model.has_zeros:
        return np.zeros(graph.n_variables, dtype=np.int64)
    from pysat.solvers import Solver  # half a second to load, and only models with zeros need it

    model = possible_scores(form.model)
    nodes = model.graph.node_start
    with Solver(name="glucose4", bootstrap_with=_clauses(model)) as solver:
        left = most_conflicts
        while left > 0 and not should_stop():
            left -= CONFLICTS
            solver.conf_budget(CONFLICTS)
            answer = solver.solve_limited()
            if answer is False:
                raise InfeasibleError("Every configuration of this model has probability zero.")
            if answer:
                true = np.array(solver.get_model()[: int(nodes[-1])]) > 0
                chosen = [np.argmax(true[nodes[i] : nodes[i + 1]]) for i in range(form.n_variables)]
                return np.array(chosen, dtype=np.int64)
    return None


def _clauses(model: PairwiseModel) -> Iterator[list[int]]:
    """Yield the clauses over literals 1 + place of a node's label."""
    graph, possible = model.graph, np.isfinite(model.scores)
    for i in range(graph.n_nodes):
        low = int(graph.node_start[i]) + 1
        own = possible[graph.node_start[i] : graph.node_start[i + 1]]
        yield [low + int(x) for x in np.flatnonzero(own)]
        yield from ([-(low + int(x))] for x in np.flatnonzero(~own))
        yield from ([-(low + x), -(low + y)] for y in range(len(own)) for x in range(y))
    for e, (i, j) in enumerate(graph.edges):
        table = graph.edge_table(possible, e)
        for node, other, rows in ((i, j, table), (j, i, table.T)):
            here, there = int(graph.node_start[node]) + 1, int(graph.node_start[other]) + 1
            own = possible[graph.node_start[node] : graph.node_start[node + 1]]
            for x in np.flatnonzero(own & ~rows.all(axis=1)):
                # One clause a label and edge: fewer than one for each forbidden pair.
                yield [-(here + int(x)), *(there + int(y) for y in np.flatnonzero(rows[x]))]
