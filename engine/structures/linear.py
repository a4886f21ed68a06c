"""Custom structure: features of every entry of a point, and any oracle and entropy."""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray, as_finite_array, check_shape
from engine.objectives.protocol import Entropy
from engine.oracles.protocol import LinearMinimizationOracle, Vertex


@dataclass(slots=True)
class LinearStructure:
    """Observation whose scores are <theta, features> of every entry of a point.

    Parameters
    ----------
    features : ndarray, shape (size, K), one row per entry of a point, in flat order.
    labels : Vertex, the observed Y.
    oracle : LinearMinimizationOracle
    entropy : Entropy
    start : ndarray of ``size`` entries in any shape, a point in the interior of the polytope.

    Raises
    ------
    InvalidProblemError
        If the features are not finite or their number differs from that of the start's entries.

    Examples
    --------
    See ``tests/structures/test_ones_own.py``: chains by Viterbi's algorithm, and spanning trees.
    """

    features: FloatArray
    labels: Vertex
    oracle: LinearMinimizationOracle
    entropy: Entropy
    start: FloatArray
    observed: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.features = as_finite_array("features", self.features, shape=(None, None))
        self.start = np.asarray(self.start, dtype=np.float64)
        check_shape("features", self.features, (self.start.size, None))
        self.observed = self.statistics(self.labels)

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return <theta, features> in the shape of a point."""
        return np.asarray((self.features @ theta).reshape(self.start.shape))

    def statistics(self, at: FloatArray | Vertex) -> FloatArray:
        """Return phi of a point or of a vertex, shape (K,)."""
        if isinstance(at, Vertex) and at.places is not None:
            return np.asarray(at.share * (at.values @ self.features[at.places]))
        share, tables = (at.share, at.values) if isinstance(at, Vertex) else (self.share, at)
        return np.asarray(share * (tables.ravel() @ self.features))

    @property
    def share(self) -> float:
        """Weight of an entry in inner products, as in the labels."""
        return self.labels.share
