"""Edge probabilities that minimise the tree-reweighted bound of one model."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, read_only
from engine.core.progress import StopCallback, never_stop
from engine.graphs.pairwise import PairwiseGraph, PairwiseModel
from engine.graphs.spanning_trees import maximum_spanning_tree, tree_probabilities
from engine.inference.pairwise.tree_reweighted import TreeReweighted

# Smallest share of the uniform-tree start that is kept, so that no rho reaches zero.
KEPT_START = 0.05
# Most halvings of a step: near the optimum a whole tree is far too long a step.
HALVINGS = 12


@dataclass(frozen=True, slots=True, eq=False)
class TreeWeights:
    """Edge probabilities with their bounds on log Z (nats), step by step.

    ``solver`` has the probabilities, and the messages that gave the last bound.
    """

    solver: TreeReweighted
    rho: FloatArray
    upper_bound: float
    bounds: tuple[float, ...]


def optimise_tree_weights(
    model: PairwiseModel,
    *,
    max_steps: int = 20,
    max_iterations: int = 500,
    tolerance: float = 1e-6,
    should_stop: StopCallback = never_stop,
) -> TreeWeights:
    """Minimise the tree-reweighted bound over the spanning-tree polytope.

    Conditional gradient: the bound's derivative by rho_e is minus the mutual information of the
    edge, so the best vertex is a maximum spanning tree of the mutual informations. A step is
    halved until the (certified) bound falls, and the next one starts at twice its length; the
    start is the uniform distribution over trees. Messages are kept from one solve to the next.

    References
    ----------
    Wainwright, Jaakkola and Willsky 2005, section V-B.
    """
    graph = model.graph
    start = tree_probabilities(graph)

    def solve_at(weights: FloatArray, near: TreeReweighted | None) -> _Trial:
        solver = TreeReweighted(graph, weights, from_trees=True)
        if near is not None:
            solver.start_from(near)
        answer = solver.solve(
            model,
            max_iterations=max_iterations,
            tolerance=tolerance,
            warm=near is not None,
            should_stop=should_stop,
        )
        # Tree probabilities always have a bound; without one no step would be taken.
        bound = np.inf if answer.upper_bound is None else answer.upper_bound
        return _Trial(solver, bound, mutual_information(graph, answer.tables))

    best = solve_at(start, None)
    bounds = [best.bound]
    step = 1.0
    for step_number in range(max_steps):
        tree = maximum_spanning_tree(graph, best.information)
        target = (1.0 - KEPT_START) * tree + KEPT_START * start
        rho = best.solver.rho
        step = min(2.0 / (step_number + 3.0), 2.0 * step)
        for _ in range(HALVINGS):
            trial = solve_at(rho + step * (target - rho), best.solver)
            if trial.bound < best.bound or should_stop():
                break
            step *= 0.5
        if trial.bound >= best.bound:
            break
        best = trial
        bounds.append(best.bound)
        if should_stop():
            break
    rho = read_only(np.array(best.solver.rho))
    return TreeWeights(best.solver, rho, best.bound, tuple(bounds))


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """Solver with its edge weights and messages, and its result."""

    solver: TreeReweighted
    bound: float
    information: FloatArray


def mutual_information(graph: PairwiseGraph, tables: FloatArray) -> FloatArray:
    """Return the mutual information of each edge table, shape (n_edges,), nats."""
    information = np.zeros(graph.n_edges)
    for e in range(graph.n_edges):
        table = graph.edge_table(tables, e)
        rows, columns = np.nonzero(table)
        used = table[rows, columns]
        # The product of two margins may underflow, their logarithms do not.
        logs = np.log(used) - np.log(table.sum(axis=1)[rows]) - np.log(table.sum(axis=0)[columns])
        information[e] = float(used @ logs)
    return information
