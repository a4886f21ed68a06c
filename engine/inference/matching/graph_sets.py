"""Active odd sets of a graph's matching problem, and the curvature at a solution."""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.graph_problem import GraphProblem, free_parts, solve_scaled
from engine.objectives.learning_dual import as_semidefinite

IDLE = 1e-9  # nats: sets of smaller multipliers are not stored


@dataclass(frozen=True, slots=True)
class HeldSets:
    """Active odd sets of a solution.

    Parameters
    ----------
    nodes : tuple of ndarray
    multipliers : ndarray, shape (k,), nats; of any sign if the room is 0.
    rooms : ndarray, shape (k,), (|U| - 1) / 2 less the marginals of the pairs inside.
    """

    nodes: tuple[IntArray, ...] = ()
    multipliers: FloatArray = field(default_factory=lambda: np.empty(0))
    rooms: FloatArray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, slots=True)
class GraphCurvature:
    """Hessian of log Z_rho in the scores, evaluated at a solution.

    ``edges``, ``rho`` and ``interior`` as in ``solve_over_graph_polytope``.
    """

    edges: IntArray
    rho: FloatArray
    interior: FloatArray
    is_perfect: bool = True

    def of_features(
        self, tau: FloatArray, features: FloatArray, sets: HeldSets | None = None
    ) -> FloatArray:
        """Return F^T (D - D B^T (B D B^T + S)^-1 B D) F, shape (K, K), positive semidefinite.

        D: minus the inverse of the entropy's Hessian; B: the sums at nodes and in the sets; S: room
        over multiplier of the sets; F (e, K). Zeros, which carry no information, on overflow.
        """
        hessian = np.zeros((features.shape[1],) * 2)
        sets = HeldSets() if sets is None else sets
        stiffness = np.where(sets.rooms > 0.0, sets.rooms / np.maximum(sets.multipliers, IDLE), 0.0)
        for own in free_parts(self.edges, self.interior, len(self.rho)):
            problem = GraphProblem.build(tau[own], self.edges[own], self.rho, self.is_perfect)
            member = np.zeros((len(sets.nodes), len(self.rho)), dtype=np.bool_)
            for k, nodes in enumerate(sets.nodes):
                member[k, nodes] = True
            inside = np.array(member[:, self.edges[own]].all(axis=2), dtype=np.float64)
            kept = inside.sum(axis=1) > 0.0
            inside = inside[kept]
            inverse = problem.inverse_curvature(
                np.maximum(problem.complete(tau[own]), TOLERANCES.smallest_entry)
            )
            weighted = inverse[: len(own), None] * features[own]
            sums = np.zeros((len(problem.nodes), features.shape[1]))
            for end in (0, 1):
                np.add.at(sums, problem.edges[:, end], weighted)
            sums = np.concatenate([sums, inside @ weighted])
            matrix = bordered_matrix(problem, inverse, inside, stiffness[kept])
            hessian += features[own].T @ weighted - sums.T @ solve_scaled(matrix, sums)
        return as_semidefinite(hessian)


def bordered_matrix(
    problem: GraphProblem, inverse: FloatArray, inside: FloatArray, stiffness: FloatArray
) -> FloatArray:
    """Return B diag(inverse) B^T + diag(stiffness of the sets): nodes first, then sets."""
    count = len(problem.nodes)
    weighted = inside * inverse[: len(problem.edges)]
    matrix = np.empty((count + len(inside),) * 2)
    matrix[:count, :count] = problem.node_matrix(inverse)
    ends = problem.edges.ravel()
    for k, row in enumerate(weighted):
        matrix[count + k, :count] = np.bincount(ends, np.repeat(row, 2), count)
    matrix[:count, count:] = matrix[count:, :count].T
    matrix[count:, count:] = weighted @ inside.T
    places = np.arange(count, len(matrix))
    matrix[places, places] += stiffness
    return matrix
