"""Newton's method for pseudomarginals of matchings of any graph under its degree constraints.

    max <W, tau> + H_rho(tau)   with   d_i + f_i = 1,   f_i = 0 if perfect, f_i >= 0 if not

A step is one linear system in a multiplier per node (``graph_problem``). An edge's second
derivative may be positive (tau above 1 / (1 + c)); on the constraints the objective is still
concave (Tang 2015, theorem 1), which is all that the step needs.

Odd-set inequalities are not part of the problem: the value is a bound from above over the matching
polytope (``graph_polytope``).
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import (
    FloatArray,
    IntArray,
    as_finite_array,
    check_shape,
    read_only,
)
from engine.core.errors import InvalidProblemError
from engine.core.options import check_flag, check_number
from engine.core.status import Status
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.graph_problem import GraphProblem, free_parts
from engine.inference.matching.newton_path import maximise
from engine.kernels.threads import one_blas_thread

MAX_STEPS = 200


@dataclass(frozen=True, slots=True)
class GraphSolution:
    """Pseudomarginals of a graph's matchings with their certificate.

    ``marginals`` (e,) and ``singles`` (n,), each node's probability of staying single, read-only;
    ``value`` <W, tau> + H_rho(tau), nats; ``upper_bound``, certified, of its maximum under the
    degree constraints; ``iterations`` Newton steps; ``status`` converged if both are close enough.
    """

    marginals: FloatArray
    singles: FloatArray
    value: float
    upper_bound: float
    iterations: int
    status: Status


def compute_graph_pseudomarginals(
    scores: FloatArray,
    edges: IntArray,
    rho: FloatArray,
    interior: FloatArray,
    *,
    is_perfect: bool = True,
    tolerance: float = 1e-9,
    start: FloatArray | None = None,
) -> GraphSolution:
    """Maximise <W, tau> + H_rho(tau) under the degree constraints of a graph.

    Parameters
    ----------
    scores : ndarray, shape (e,), nats
    edges : ndarray, shape (e, 2), nodes 0 .. n - 1
    rho : ndarray, shape (n,), in [0, 1]; above 0 where nodes may stay single
    interior : ndarray, shape (e,)
        A feasible point; edges at exactly 0 or 1 stay there, the others lie strictly between.
    is_perfect : bool
    tolerance : float, nats, target certified gap
    start : ndarray, shape (e,), optional, a solution for nearby scores

    Returns
    -------
    GraphSolution
        Marginals of the edges and of staying single, with both bounds.

    Raises
    ------
    InvalidProblemError
        If the scores are not finite, or a node that may stay single has rho = 0.

    Notes
    -----
    O(n^3 + e) a step and O(n^2) memory; about ten steps, more if the optimum is near a vertex.

    Examples
    --------
    >>> path = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    >>> found = compute_graph_pseudomarginals(np.zeros(4), path, np.ones(4), np.full(4, 0.5))
    >>> found.marginals.round(6).tolist(), round(found.value, 6)
    ([0.5, 0.5, 0.5, 0.5], 0.0)
    """
    check_flag("is_perfect", is_perfect)
    check_number("tolerance", tolerance, at_least=0.0)
    scores = as_finite_array("scores", scores, shape=(len(edges),))
    check_shape("interior", interior, (len(edges),))
    if not is_perfect and not (rho > 0.0).all():
        raise InvalidProblemError("rho: expected numbers above 0 where nodes may stay single.")
    marginals, singles = np.array(interior, dtype=np.float64), np.zeros(len(rho))
    if not is_perfect:
        singles[:] = 1.0  # of nodes without a choice; the others' are overwritten
        singles[edges[interior >= 1.0]] = 0.0
    value = bound = float(scores[interior >= 1.0].sum())
    steps = 0
    parts = free_parts(edges, interior, len(rho))
    own_tolerance = tolerance / max(len(parts), 1)
    with one_blas_thread():
        for own in parts:
            problem = GraphProblem.build(scores[own], edges[own], rho, is_perfect)
            centre = problem.complete(interior[own])
            x = centre if start is None else problem.complete(start[own])
            inside = (1.0 - TOLERANCES.pull) * x + TOLERANCES.pull * centre
            found = maximise(problem, inside, centre, own_tolerance, MAX_STEPS)
            marginals[own] = found.point[: len(own)]
            singles[problem.nodes] = found.point[len(own) :] if not is_perfect else 0.0
            value, bound = value + found.value, bound + found.upper_bound
            steps += found.steps
    status = Status.CONVERGED if bound - value <= tolerance else Status.STALLED
    return GraphSolution(read_only(marginals), read_only(singles), value, bound, steps, status)
