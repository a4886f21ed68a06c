"""Several pictures as one block: the unit that Frank-Wolfe moves when pictures share threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.checkpoint import SavedState, State
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.crf.grid_features import GridExample
from engine.objectives.array_shelf import ArrayShelf
from engine.objectives.grid_block import GridBlock, GridSegment
from engine.objectives.protocol import ExtremeDirection

Tables = list[FloatArray]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class GridSetSegment:
    """The same step along one direction in each picture."""

    parts: Sequence[GridSegment]
    pool: ThreadPoolExecutor

    @property
    def longest(self) -> float:
        """The largest step that stays in every polytope."""
        return min(part.longest for part in self.parts)

    def entropy(self, step: float) -> tuple[float, float, float]:
        """Return the sum of entropies with its first and second derivative in g (nats)."""
        values = np.sum(list(self.pool.map(lambda part: part.entropy(step), self.parts)), axis=0)
        return float(values[0]), float(values[1]), float(values[2])

    def point(self, step: float) -> Tables:
        """Move every start by ``step``; the old points are spent."""
        return list(self.pool.map(lambda part: part.point(step), self.parts))


class GridSetBlock:
    """Some labelled pictures as one block (`engine.objectives.protocol.LearningBlock`).

    With all pictures in one block Frank-Wolfe is the batch algorithm; with as many as there are
    threads in each it is the block-coordinate one, a picture a thread.

    Parameters
    ----------
    examples : Sequence of GridExample
    rho : float, in (0, 1/2]
    shelf : ArrayShelf
        Where the points live, 80 bytes a pixel.
    pool : ThreadPoolExecutor
    vertex_shelf : ArrayShelf, optional
        Where the vertices live, 80 bytes a pixel, each until the next call of the oracle; by
        default every call makes new ones, which is well where a block has few pictures.
    should_stop : StopCallback
        Asked before every oracle call, which then raises StoppedError.
    """

    def __init__(
        self,
        examples: Sequence[GridExample],
        rho: float,
        *,
        shelf: ArrayShelf,
        pool: ThreadPoolExecutor,
        vertex_shelf: ArrayShelf | None = None,
        should_stop: StopCallback = never_stop,
    ) -> None:
        self._blocks = [GridBlock(examples, rho, k) for k in range(len(examples))]
        self._shelf, self._pool, self._should_stop = shelf, pool, should_stop
        self._vertex_shelf = vertex_shelf
        self._vertices: Tables = []  # one of each picture, if vertices have a shelf
        self.observed = np.sum([block.observed for block in self._blocks], axis=0)

    def initial_point(self) -> Tables:
        """Return the uniform tables of every picture, on the shelf."""
        return [self._shelf.keep(block.initial_point()) for block in self._blocks]

    def statistics(self, point: Tables) -> FloatArray:
        """Return phi(tau), shape (K,)."""
        return np.asarray(np.sum(self._map(GridBlock.statistics, point), axis=0))

    def entropy(self, point: Tables) -> float:
        """Return H_rho(tau) in nats."""
        return float(sum(self._map(GridBlock.entropy, point)))

    def compute_extreme_direction(self, theta: FloatArray, point: Tables) -> ExtremeDirection:
        """Answer the linear maximisation of every picture: one oracle call each.

        With a shelf for them, the vertices of the last call are spent.

        Raises
        ------
        StoppedError
            If asked to stop.
        """

        def ask(k: int) -> ExtremeDirection:
            if self._should_stop():
                raise StoppedError("Learning was stopped.")
            answer = self._blocks[k].compute_extreme_direction(theta, point[k])
            if not self._vertices:
                return answer
            self._vertices[k][:] = answer.vertex
            return replace(answer, vertex=self._vertices[k])

        if self._vertex_shelf is not None and not self._vertices:
            self._vertices = [self._vertex_shelf.keep(np.zeros_like(tables)) for tables in point]
        parts = list(self._pool.map(ask, range(len(self._blocks))))
        return ExtremeDirection(
            vertex=[part.vertex for part in parts],
            statistics=np.sum([part.statistics for part in parts], axis=0),
            gap=sum(part.gap for part in parts),
        )

    def segment(self, point: Tables, vertex: Tables, away: Tables | None = None) -> GridSetSegment:
        """Return the segment from ``point`` with direction vertex - point, or vertex - away."""
        parts = [
            block.segment(tables, end, None if away is None else away[k])
            for k, (block, tables, end) in enumerate(zip(self._blocks, point, vertex, strict=True))
        ]
        return GridSetSegment(parts, self._pool)

    def directional_slope(self, theta: FloatArray, point: Tables, vertex: Tables) -> float:
        """Return <s - tau, A theta + grad H(tau)> for a given vertex s (nats)."""
        return sum(
            block.directional_slope(theta, tables, end)
            for block, tables, end in zip(self._blocks, point, vertex, strict=True)
        )

    def pack(self, point: Tables) -> State:
        """Return the arrays from which ``unpack`` restores the point."""
        return {f"picture{k}": tables for k, tables in enumerate(point)}

    def unpack(self, state: SavedState) -> Tables:
        """Restore a point from ``pack``."""
        return [
            self._shelf.keep(block.unpack({"point": state[f"picture{k}"]}))
            for k, block in enumerate(self._blocks)
        ]

    def _map(self, work: Callable[[GridBlock, FloatArray], T], point: Tables) -> list[T]:
        return list(self._pool.map(work, self._blocks, point))
