"""Pairwise Frank-Wolfe: move weight from the worst vertex used so far to the best one.

Linearly convergent on polytopes for strongly convex objectives (Lacoste-Julien and Jaggi 2015),
where plain Frank-Wolfe zigzags when the optimum lies near a low-dimensional face. Each block's
point is a combination of its interior start and of vertices. Only vertices give weight away, so the
start keeps a share of the point and the iterate stays interior, until a plain step takes some.

Per pass and block: one oracle call, then either a pairwise step or, when moving towards the vertex
from the whole point promises more, a plain step; each with an exact line search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core.arguments import FloatArray
from engine.kernels.threads import one_blas_thread
from engine.objectives.protocol import ExtremeDirection, LearningBlock, Segment, Vertex
from engine.solvers.control import Limits, Run, Watch
from engine.solvers.frank_wolfe import make_result
from engine.solvers.result import LearningResult
from engine.solvers.step_rules import LineSearch
from engine.solvers.walk import Walk

DROP = 1e-8  # weight at which a vertex leaves the active set and becomes part of the start
CORRECTIONS = 4  # further pairwise steps among known vertices after each oracle call


@dataclass(slots=True)
class _Atom:
    vertex: Vertex
    statistics: FloatArray
    weight: float


class _Shortened:
    """A segment that ends where the giving vertex has no weight left."""

    def __init__(self, segment: Segment, longest: float) -> None:
        self._segment = segment
        self._longest = longest

    @property
    def longest(self) -> float:
        return self._longest

    def entropy(self, step: float) -> tuple[float, float, float]:
        return self._segment.entropy(step)

    def point(self, step: float) -> object:
        return self._segment.point(step)


@dataclass(slots=True)
class PairwiseFrankWolfe:
    """Pairwise Frank-Wolfe over blocks in turn; see ``FrankWolfe`` for the parameters.

    Notes
    -----
    Memory grows with the vertices in use, at most one per oracle call and block. Checkpoints are
    not kept: the active sets are cheap to rebuild only by running.
    """

    blocks: Sequence[LearningBlock]
    ridge: float
    limits: Limits = field(default_factory=Limits)
    watch: Watch = field(default_factory=Watch)
    _atoms: list[dict[bytes, _Atom]] = field(default_factory=list)

    def solve(self) -> LearningResult:
        """Walk until the certified gap is small enough or a limit is hit."""
        with one_blas_thread():
            walk = Walk(self.blocks, self.ridge)
            walk.begin()
            run = Run(self.limits, self.watch)
            self._atoms = [{} for _ in self.blocks]
            while True:
                walk.iteration += 1
                theta = walk.theta
                asked = [walk.ask(m, theta) for m in range(len(self.blocks))]
                value = walk.value
                gap = sum(direction.gap for direction in asked)
                run.record(walk.iteration, walk.oracle_calls, value, value - gap)
                status = run.verdict(walk.iteration)
                if status is not None:
                    return make_result(walk, run, theta, status)
                for m, direction in enumerate(asked):
                    self._improve(walk, m, direction)

    def _improve(self, walk: Walk, m: int, direction: ExtremeDirection) -> None:
        """Take one step with the new vertex, then a few among the vertices already known."""
        block, atoms = self.blocks[m], self._atoms[m]
        best = _Atom(direction.vertex, direction.statistics, 0.0)
        for correction in range(1 + CORRECTIONS):
            theta = walk.theta
            slopes = {
                key: block.directional_slope(theta, walk.points[m], atom.vertex)
                for key, atom in atoms.items()
            }
            worst = min(slopes, key=slopes.__getitem__) if slopes else None
            if correction:
                if len(slopes) < 2:
                    return
                key = max(slopes, key=slopes.__getitem__)
                if key == worst:
                    return
                best = atoms[key]
            towards = block.directional_slope(theta, walk.points[m], best.vertex)
            if worst is not None and -slopes[worst] > towards:
                self._exchange(walk, m, best, atoms[worst])
            elif correction == 0 or towards > 0.0:
                self._approach(walk, m, best)

    def _approach(self, walk: Walk, m: int, atom: _Atom) -> None:
        """Step from the point towards a vertex; everybody gives."""
        segment = self.blocks[m].segment(walk.points[m], atom.vertex)
        change = atom.statistics - walk.statistics[m]
        line = walk.line([m], [segment], [change])
        step = LineSearch().choose(walk.iteration, len(self.blocks), line)
        for other in self._atoms[m].values():
            other.weight *= 1.0 - step
        walk.move(m, segment, change, step)
        self._add(m, atom, step)

    def _exchange(self, walk: Walk, m: int, taker: _Atom, giver: _Atom) -> None:
        """Move weight from one vertex to another."""
        segment = self.blocks[m].segment(walk.points[m], taker.vertex, giver.vertex)
        bounded = _Shortened(segment, min(giver.weight, segment.longest))
        change = taker.statistics - giver.statistics
        line = walk.line([m], [bounded], [change])
        step = LineSearch().choose(walk.iteration, len(self.blocks), line)
        giver.weight -= step
        walk.move(m, bounded, change, step)
        self._add(m, taker, step)
        atoms = self._atoms[m]
        for key in [key for key, atom in atoms.items() if atom.weight <= DROP]:
            del atoms[key]

    def _add(self, m: int, atom: _Atom, weight: float) -> None:
        key = np.asarray(atom.vertex).tobytes()
        if key in self._atoms[m]:
            self._atoms[m][key].weight += weight
        else:
            self._atoms[m][key] = _Atom(atom.vertex, atom.statistics, weight)
