"""Labelled picture: a binary grid with a known labelling, points in the local polytope."""

from collections.abc import Sequence

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.options import check_callables, check_number, check_whole
from engine.core.progress import StopCallback, never_stop
from engine.crf.grid_features import GridExample
from engine.entropies.grid import GridEntropy
from engine.graphs.grid import Grid, GridTables
from engine.objectives.grid_inner import check_rho
from engine.oracles.grid_roof_duality import GridRoofDuality
from engine.oracles.protocol import ExtremePoint, Vertex


class GridStructure:
    """Structure of one picture; points are flat tables of `engine.graphs.grid.Grid`.

    The oracle is roof duality, exact on the local polytope, so that gaps are certificates.

    Parameters
    ----------
    examples : Sequence of GridExample
        The example is read at every call and then released, so that it may be stored in a file.
    rho : float, in (0, 1/2]
    index : int, index of this example.
    should_stop : StopCallback, called before every oracle call, which then raises StoppedError.

    Notes
    -----
    A point takes 80 bytes per pixel. The oracle's work space, 300 bytes per pixel, exists only
    during a call, so that memory grows with the threads and not with the pictures.

    Examples
    --------
    >>> from engine.crf.grid_features import GridExample
    >>> from engine.crf.image_features import compute_image_features
    >>> picture = np.zeros((4, 5, 3), np.uint8)
    >>> example = GridExample(compute_image_features(picture), np.eye(4, 5, dtype=bool))
    >>> GridStructure([example], 0.5, 0).start.ndim
    1
    """

    def __init__(
        self,
        examples: Sequence[GridExample],
        rho: float,
        index: int = 0,
        should_stop: StopCallback = never_stop,
    ) -> None:
        check_number("rho", rho, above=0.0, at_most=0.5)
        check_whole("index", index)
        check_callables(should_stop=should_stop)
        self._examples, self._index = examples, index
        example = examples[index]
        self._grid = Grid(*example.features.shape)
        self.entropy = GridEntropy(example.features.shape, check_rho(rho))
        self.oracle = PassingRoofDuality(self._grid, should_stop)
        self.observed = example.features.observed_statistics(example.labels)

    @property
    def start(self) -> FloatArray:
        """Uniform tables, the centre of the polytope, as a new array."""
        return self._grid.uniform().flat

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return A theta, flat; theta_i(0) is omitted from the nodes."""
        features = self._examples[self._index].features
        scores, edges = features.scores(theta), features.edges
        flat = np.empty(self._grid.size)
        nodes, horizontal, vertical = self._views(flat)
        nodes[:, :, 0] = 0.0
        nodes[:, :, 1] = scores.node
        np.take(scores.horizontal, edges.horizontal, axis=0, out=horizontal, mode="clip")
        np.take(scores.vertical, edges.vertical, axis=0, out=vertical, mode="clip")
        return flat

    def statistics(self, at: FloatArray | Vertex) -> FloatArray:
        """Return phi(tau), shape (K,)."""
        tables = at.values if isinstance(at, Vertex) else at
        if tables.shape != (self._grid.size,):
            raise InvalidProblemError(
                f"point: expected {self._grid.size} entries, received {tables.shape}."
            )
        nodes, horizontal, vertical = self._views(tables)
        features = self._examples[self._index].features
        return features.statistics(nodes[:, :, 1], horizontal, vertical)

    def _views(self, flat: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return a point's node (H, W, 2), horizontal (H, W-1, 4), vertical (H-1, W, 4) tables."""
        tables = GridTables(self._grid, flat)
        rows, columns = self._grid.height, self._grid.width
        return (
            tables.nodes,
            tables.horizontal.reshape(rows, columns - 1, 4),
            tables.vertical.reshape(rows - 1, columns, 4),
        )


class PassingRoofDuality:
    """Roof duality that allocates its work space for each call and frees it afterwards."""

    def __init__(self, grid: Grid, should_stop: StopCallback) -> None:
        self._grid, self._should_stop = grid, should_stop

    def compute_extreme_point(self, scores: FloatArray) -> ExtremePoint:
        """Solve as `GridRoofDuality` does; raise StoppedError if the caller cancels."""
        if self._should_stop():
            raise StoppedError("Learning was stopped.")
        return GridRoofDuality(self._grid).compute_extreme_point(scores)
