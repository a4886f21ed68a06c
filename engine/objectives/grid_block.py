"""One labelled picture for the solvers that walk in the local polytope (Frank-Wolfe)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.checkpoint import SavedState, State
from engine.core.errors import InvalidProblemError
from engine.crf.grid_features import GridExample, GridFeatures
from engine.graphs.grid import Grid, GridTables
from engine.kernels.grid_segment import entropy_along, fill_gradient, move_towards
from engine.objectives.grid_inner import check_rho
from engine.objectives.protocol import ExtremeDirection
from engine.oracles.grid_roof_duality import GridRoofDuality


@dataclass(frozen=True, slots=True, eq=False)
class GridSegment:
    """The points tau + g (vertex - away); ``point`` moves tau itself."""

    shape: tuple[int, int]
    rho: float
    start: FloatArray
    vertex: FloatArray
    away: FloatArray

    @property
    def longest(self) -> float:
        """The largest step that stays in the polytope: 1 towards a vertex."""
        if self.away is self.start:
            return 1.0
        falling = self.away > self.vertex
        room = self.start[falling] / (self.away[falling] - self.vertex[falling])
        return float(min(room.min(initial=1.0), 1.0))

    def entropy(self, step: float) -> tuple[float, float, float]:
        """Return H(tau + g d) with its first and second derivative in g (nats)."""
        return entropy_along(self.shape, self.rho, self.start, self.vertex, self.away, step)  # type: ignore[no-any-return]

    def point(self, step: float) -> FloatArray:
        """Move the start by ``step`` and return it; the old point is spent."""
        move_towards(self.start, self.vertex, self.away, step)
        return self.start


class GridBlock:
    """A picture as a block of the learning problem (`engine.objectives.protocol.LearningBlock`).

    Points and vertices are flat tables of `engine.graphs.grid.Grid`. The oracle is roof duality,
    exact on the local polytope, so that gaps are certificates.

    Parameters
    ----------
    examples : Sequence of GridExample
        The example is asked for at every call and let go, so that it may live in a file.
    rho : float, in (0, 1/2]
    index : int, which of the examples this block is.

    Notes
    -----
    A point takes 80 bytes a pixel. The oracle's work space, 300 bytes a pixel, lives during a
    call only, so that memory grows with the threads and not with the pictures.
    """

    def __init__(self, examples: Sequence[GridExample], rho: float, index: int = 0) -> None:
        self._examples, self._index = examples, index
        self._rho = check_rho(rho)
        example = examples[index]
        self._shape = example.features.shape
        self._grid = Grid(*self._shape)
        self.observed = example.features.observed_statistics(example.labels)

    @property
    def _features(self) -> GridFeatures:
        return self._examples[self._index].features

    def initial_point(self) -> FloatArray:
        """Return the uniform tables, the centre of the polytope."""
        return self._grid.uniform().flat

    def statistics(self, point: FloatArray) -> FloatArray:
        """Return phi(tau), shape (K,)."""
        nodes, horizontal, vertical = self._views(point)
        return self._features.statistics(nodes[:, :, 1], horizontal, vertical)

    def entropy(self, point: FloatArray) -> float:
        """Return H_rho(tau) in nats."""
        value, _, _ = entropy_along(self._shape, self._rho, point, point, point, 0.0)
        return float(value)

    def gradient(self, theta: FloatArray, point: FloatArray) -> FloatArray:
        """Return A theta + grad H(tau), flat; theta_i(0) is left out of the nodes."""
        features = self._features
        scores, edges = features.scores(theta), features.edges
        flat = np.empty(self._grid.size)
        fill_gradient(
            scores.node,
            edges.horizontal,
            edges.vertical,
            scores.horizontal,
            scores.vertical,
            self._rho,
            self._views(point),
            self._views(flat),
        )
        return flat

    def compute_extreme_direction(self, theta: FloatArray, point: FloatArray) -> ExtremeDirection:
        """Answer the linear maximisation at the scores A theta + grad H(tau): one oracle call."""
        gradient = self.gradient(theta, point)
        answer = GridRoofDuality(self._grid).compute_extreme_point(gradient)
        return ExtremeDirection(
            vertex=answer.vertex,
            statistics=self.statistics(answer.vertex),
            gap=max(answer.upper_bound - float(np.dot(point, gradient)), 0.0),
        )

    def segment(
        self, point: FloatArray, vertex: FloatArray, away: FloatArray | None = None
    ) -> GridSegment:
        """Return the segment from ``point`` with direction vertex - point, or vertex - away."""
        start = point if away is None else away
        return GridSegment(self._shape, self._rho, point, vertex, start)

    def directional_slope(self, theta: FloatArray, point: FloatArray, vertex: FloatArray) -> float:
        """Return <s - tau, A theta + grad H(tau)> for a given vertex s (nats)."""
        return float(np.dot(vertex - point, self.gradient(theta, point)))

    def pack(self, point: FloatArray) -> State:
        """Return the arrays from which ``unpack`` restores the point."""
        return {"point": point}

    def unpack(self, state: SavedState) -> FloatArray:
        """Restore a point from ``pack``.

        Raises
        ------
        InvalidProblemError
            If the point belongs to a picture of another size.
        """
        point = np.array(state["point"], dtype=np.float64)
        if point.shape != (self._grid.size,):
            raise InvalidProblemError("The saved state belongs to other pictures.")
        return point

    def _views(self, flat: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Nodes (H, W, 2), horizontal (H, W-1, 4) and vertical (H-1, W, 4) tables of a point."""
        tables = GridTables(self._grid, flat)
        rows, columns = self._shape
        return (
            tables.nodes,
            tables.horizontal.reshape(rows, columns - 1, 4),
            tables.vertical.reshape(rows - 1, columns, 4),
        )
