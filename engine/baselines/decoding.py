"""Decoding of one structure, and the result type of baselines that only decode."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_number
from engine.core.status import Status
from engine.kernels.threads import one_blas_thread
from engine.objectives.protocol import Structure
from engine.oracles.protocol import Vertex
from engine.solvers.result import TrajectoryPoint


class LabelledStructure(Structure, Protocol):
    """Structure that also holds its observed labels Y, for methods that count mistakes.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> labelled: LabelledStructure = pairs
    >>> labelled.labels.places.tolist()
    [0, 3]
    """

    @property
    def labels(self) -> Vertex:
        """Observed labels Y as a vertex."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """Structure y that maximises <theta, phi(y)> + loss_weight * loss(y).

    Parameters
    ----------
    vertex : Vertex
        y.
    statistics : ndarray, shape (K,)
        phi(y).
    loss : float
        Hamming loss in [0, 1]: the share of the labels that y lacks.
    excess : float
        At least 0: bound on the distance of the oracle's answer below the maximum, nats.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> decode(pairs, -np.ones(1)).loss
    1.0
    """

    vertex: Vertex
    statistics: FloatArray
    loss: float
    excess: float = 0.0


def decode(structure: LabelledStructure, theta: FloatArray, loss_weight: float = 0.0) -> Decoding:
    """Return the y that maximises score plus weighted loss; the loss is linear in y.

    Parameters
    ----------
    structure : LabelledStructure
    theta : ndarray, shape (K,), nats
    loss_weight : float
        Score added per unit of Hamming loss, nats.

    Returns
    -------
    Decoding
        The vertex, its statistics and its loss.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> decode(pairs, np.ones(1)).loss
    0.0
    """
    check_number("loss_weight", loss_weight)
    labels = structure.labels
    norm = float(np.sum(labels.values**2))
    with one_blas_thread():
        scores = structure.scores(theta)
        if loss_weight != 0.0:
            scores = np.array(scores)
            labels.add_to(scores, -loss_weight / (norm * labels.share))
        answer = structure.oracle.compute_extreme_point(scores)
        shared = answer.vertex.overlap(labels)
        statistics = structure.statistics(answer.vertex)
    return Decoding(answer.vertex, statistics, 1.0 - shared / norm, answer.gap)


@dataclass(frozen=True, slots=True)
class TrainedCompetitor:
    """Parameters that a baseline method learned, with its effort and status.

    Parameters
    ----------
    theta : ndarray, shape (K,), read-only
        Weights for prediction.
    objective, lower_bound : float or None
        Values of the method's own problem (regularised hinge loss); None if it has no objective.
    passes : int
        Number of passes over the data.
    oracle_calls : int
    seconds : float
        Wall clock.
    status : Status
    trajectory : tuple of TrajectoryPoint
        One point a pass.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.core.status import Status
    >>> fitted = TrainedCompetitor(np.zeros(1), None, None, 1, 1, 0.1, Status.CONVERGED, ())
    >>> fitted.gap_over_objective is None
    True
    """

    theta: FloatArray
    objective: float | None
    lower_bound: float | None
    passes: int
    oracle_calls: int
    seconds: float
    status: Status
    trajectory: tuple[TrajectoryPoint, ...]

    @property
    def gap_over_objective(self) -> float | None:
        """Relative gap (objective - lower bound) / objective; None for methods without objective.

        It differs from the gap of ``engine.core.gap``, used by results of learning and by
        ``trajectory``, which divides by the lower bound, counted as at least one nat. A hinge
        objective is not in nats and may lie far below one, and its lower bound begins at 0.
        """
        if self.objective is None or self.lower_bound is None:
            return None
        return (self.objective - self.lower_bound) / max(self.objective, 1e-300)


def count_features(observed: list[FloatArray]) -> int:
    """Return the number of features K that all observations share.

    Raises
    ------
    InvalidProblemError
        If there is no observation or the numbers of features differ.
    """
    lengths = {len(vector) for vector in observed}
    if len(lengths) != 1:
        found = ", ".join(map(str, sorted(lengths))) or "no observation"
        raise InvalidProblemError(f"Expected observations with one number of features: {found}.")
    return lengths.pop()
