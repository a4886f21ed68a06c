"""Where a solver in the polytope stands: one point per block and what follows from them."""

import json
from collections.abc import Sequence

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.checkpoint import SavedState, State, StatePart
from engine.objectives.learning_dual import LearningDual, make_learning_dual
from engine.objectives.protocol import ExtremeDirection, LearningBlock, Point, Segment
from engine.solvers.step_rules import LineProblem

REFRESH = 50  # moves of a block after which its statistics are computed anew, not carried on


class Walk:
    """Points, statistics and entropies of all blocks; knows how to move, save and restore them.

    theta and the quadratic part of a step need no more than the statistics, K numbers a block, to
    which a move adds those of its direction (Tang 2015, E.2.2). Points are kept for the entropy,
    whose gradient depends on tau itself.

    It has no points before ``begin`` or ``restore``: initial points that are not walked from
    would take the room of those that are.
    """

    def __init__(self, blocks: Sequence[LearningBlock], ridge: float) -> None:
        self.blocks = blocks
        self.dual: LearningDual = make_learning_dual([block.observed for block in blocks], ridge)
        self.points: list[Point] = []
        self.oracle_calls = 0
        self.iteration = 0
        self._moves = [0] * len(blocks)

    def begin(self) -> None:
        """Go to the initial points."""
        self.points = [block.initial_point() for block in self.blocks]
        pairs = list(zip(self.blocks, self.points, strict=True))
        self.statistics = np.array([block.statistics(point) for block, point in pairs])
        self.entropies = np.array([block.entropy(point) for block, point in pairs])

    @property
    def theta(self) -> FloatArray:
        """theta(tau), shape (K,)."""
        return self.dual.parameters(self.statistics.sum(axis=0))

    @property
    def value(self) -> float:
        """L(tau), nats."""
        return self.dual.dual_value(self.statistics.sum(axis=0), float(self.entropies.sum()))

    def ask(self, block: int, theta: FloatArray) -> ExtremeDirection:
        """Call the oracle of one block at the given weights and its present point."""
        self.oracle_calls += 1
        return self.blocks[block].compute_extreme_direction(theta, self.points[block])

    def line(
        self, moved: Sequence[int], segments: Sequence[Segment], changes: Sequence[FloatArray]
    ) -> LineProblem:
        """Return the objective along a direction that moves the given blocks."""
        residual = self.dual.observed - self.statistics.sum(axis=0)
        return LineProblem(residual, np.sum(changes, axis=0), self.dual.ridge, segments)

    def move(self, block: int, segment: Segment, change: FloatArray, step: float) -> None:
        """Take a step: entropy exactly, statistics by the same combination as the point."""
        self.entropies[block] = segment.entropy(step)[0]
        self.points[block] = segment.point(step)
        self.statistics[block] += step * change
        self._moves[block] += 1
        if self._moves[block] % REFRESH == 0:
            self.statistics[block] = self.blocks[block].statistics(self.points[block])

    def place(self, block: int, point: Point, statistics: FloatArray) -> None:
        """Put a block at a point whose statistics are known."""
        self.points[block] = point
        self.statistics[block] = statistics
        self.entropies[block] = self.blocks[block].entropy(point)

    def save(self, rng: np.random.Generator | None = None) -> State:
        """Return everything that ``restore`` needs."""
        state: State = {
            "iteration": np.array(self.iteration),
            "oracle_calls": np.array(self.oracle_calls),
            "statistics": self.statistics,
            "entropies": self.entropies,
            "moves": np.array(self._moves),
        }
        if rng is not None:
            state["rng"] = np.array(json.dumps(rng.bit_generator.state))
        for index, (block, point) in enumerate(zip(self.blocks, self.points, strict=True)):
            state |= {f"block{index}_{name}": part for name, part in block.pack(point).items()}
        return state

    def restore(self, state: SavedState, rng: np.random.Generator | None = None) -> None:
        """Go back to a saved state of the same problem."""
        self.points = [
            block.unpack(StatePart(state, f"block{index}_"))
            for index, block in enumerate(self.blocks)
        ]
        self.statistics = state["statistics"].copy()
        self.entropies = state["entropies"].copy()
        self.iteration = int(state["iteration"])
        self.oracle_calls = int(state["oracle_calls"])
        self._moves = [int(x) for x in state["moves"]]
        if rng is not None and "rng" in state:
            rng.bit_generator.state = json.loads(str(state["rng"]))
