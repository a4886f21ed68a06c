"""State of a solver in the polytopes: one point per structure with its statistics and entropy."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.checkpoint import SavedState, State
from engine.core.errors import InvalidProblemError
from engine.objectives.objective import Objective
from engine.objectives.protocol import Point, Structure
from engine.oracles.protocol import Vertex, inner_product
from engine.solvers.step_rules import Line, Mapper, StepRule

REFRESH = 50  # moves of a structure after which its statistics are recomputed, not updated


@dataclass(frozen=True, slots=True)
class Direction:
    """Vertex that the oracle returned at one point of one structure, with its gap.

    Parameters
    ----------
    vertex : the vertex s that maximises <s, A theta + grad H(tau)>.
    statistics : ndarray, shape (K,), phi(s).
    gap : float, nats
        Certified upper bound of <s - tau, A theta + grad H(tau)> over the polytope: it uses the
        oracle's upper bound, so it stays a certificate when the oracle stopped early.

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> find_direction(pairs, np.zeros(1), pairs.start).statistics.tolist()
    [2.0]
    """

    vertex: Vertex
    statistics: FloatArray
    gap: float


def find_direction(structure: Structure, theta: FloatArray, point: Point) -> Direction:
    """Maximise the scores A theta + grad H(tau) over the polytope by one oracle call.

    Parameters
    ----------
    structure : Structure
    theta : ndarray, shape (K,)
    point : ndarray
        tau, where the entropy's gradient is taken.

    Returns
    -------
    Direction
        The vertex, with a certified gap in nats.

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> round(find_direction(pairs, np.ones(1), pairs.start).gap, 6)
    1.0
    """
    scores = structure.scores(theta) + structure.entropy.gradient(point)
    answer = structure.oracle.compute_extreme_point(scores)
    here = answer.vertex.share * inner_product(point, scores)
    gap = max(answer.upper_bound - here, 0.0)
    return Direction(answer.vertex, structure.statistics(answer.vertex), gap)


class Iterate:
    """Points, statistics and entropies of all structures, with the calls that query and move them.

    theta and the quadratic part of a step need only the statistics, K numbers a structure, to which
    a move adds those of its direction (Tang 2015, E.2.2). Points are kept for the entropy, whose
    gradient depends on tau itself. No point exists before ``begin`` or ``restore``.

    Parameters
    ----------
    structures : sequence of Structure
    objective : Objective
    mapper : ``map``, or a pool's to query and move structures on several threads.
    keep : callable, optional
        Moves an array of the solver's own to its storage. If given, vertices of all structures that
        move together are stored too, each in the place of the vertex before.

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> from engine.objectives import make_learning_dual
    >>> iterate = Iterate([pairs], make_learning_dual([pairs.observed], 1.0))
    >>> iterate.begin()
    >>> iterate.theta.tolist()
    [1.0]
    """

    def __init__(
        self,
        structures: Sequence[Structure],
        objective: Objective,
        mapper: Mapper = map,
        keep: Callable[[FloatArray], FloatArray] | None = None,
    ) -> None:
        self.structures, self.objective = structures, objective
        self.points: list[Point] = []
        self.oracle_calls = 0
        self.iteration = 0
        self.step = 0.0  # length of the last step
        self._map, self._keep = mapper, keep
        self._vertices: list[FloatArray | None] = [None] * len(structures)
        self._moves = [0] * len(structures)

    def begin(self) -> None:
        """Move all structures to their starting points."""
        self._go_to(structure.start for structure in self.structures)

    def _go_to(self, points: Iterable[Point]) -> None:
        """Copy points, one after the other, and sum up their statistics and entropies."""
        own = self._keep or (lambda point: point)
        self.points = [own(np.array(point, dtype=np.float64)) for point in points]
        pairs = list(zip(self.structures, self.points, strict=True))
        self.statistics = np.array(list(self._map(lambda p: p[0].statistics(p[1]), pairs)))
        self.entropies = np.array(list(self._map(lambda p: p[0].entropy.value(p[1]), pairs)))

    @property
    def theta(self) -> FloatArray:
        """Parameters theta(tau), shape (K,)."""
        return self.objective.parameters(self.statistics.sum(axis=0))

    @property
    def value(self) -> float:
        """Objective L(tau), nats."""
        return self.objective.value(self.statistics.sum(axis=0), float(self.entropies.sum()))

    def ask(self, chosen: Sequence[int], theta: FloatArray) -> list[Direction]:
        """Call the oracles of some structures at the given weights and their present points."""
        self.oracle_calls += len(chosen)
        return list(self._map(lambda m: self._ask_one(m, theta, len(chosen)), chosen))

    def _ask_one(self, m: int, theta: FloatArray, together: int) -> Direction:
        direction = find_direction(self.structures[m], theta, self.points[m])
        if self._keep is None or together < len(self.structures):
            return direction
        return Direction(self._held(m, direction.vertex), direction.statistics, direction.gap)

    def _held(self, m: int, vertex: Vertex) -> Vertex:
        """Copy a vertex into the storage of the vertex before, which is overwritten."""
        room = self._vertices[m]
        if room is None or room.shape != vertex.values.shape:
            if self._keep is None:
                return vertex
            room = self._vertices[m] = self._keep(vertex.values.copy())
        room[:] = vertex.values
        return Vertex(room, vertex.places, vertex.share)

    def move(self, chosen: Sequence[int], directions: Sequence[Direction], rule: StepRule) -> None:
        """Step from the points towards the vertices by the length that the rule chooses."""
        along = [
            self.structures[m].entropy.along(self.points[m], direction.vertex)
            for m, direction in zip(chosen, directions, strict=True)
        ]
        changes = np.array([d.statistics for d in directions]) - self.statistics[list(chosen)]
        slope, curvature = self.objective.slope(self.statistics.sum(axis=0), changes.sum(axis=0))
        line = Line(slope, curvature, along, len(self.structures), self._map)
        step = self.step = rule.choose(self.iteration, line)

        def carry_out(k: int) -> None:
            m = chosen[k]
            directions[k].vertex.move(self.points[m], step)
            self.entropies[m] = self.structures[m].entropy.value(self.points[m])

        list(self._map(carry_out, range(len(chosen))))
        for k, m in enumerate(chosen):
            self.statistics[m] += step * changes[k]
            self._moves[m] += 1
            if self._moves[m] % REFRESH == 0:
                self.statistics[m] = self.structures[m].statistics(self.points[m])

    def put(self, m: int, point: Point, statistics: FloatArray) -> None:
        """Set a structure's point, whose statistics are known."""
        self.points[m] = point
        self.statistics[m] = statistics
        self.entropies[m] = self.structures[m].entropy.value(point)

    def save(self) -> State:
        """Return points, their statistics as updated by the moves, and the counts of moves."""
        counts = {"iteration": self.iteration, "oracle_calls": self.oracle_calls}
        points = {f"point{m}": point for m, point in enumerate(self.points)}
        carried = {"statistics": self.statistics, "moves": np.array(self._moves)}
        return {name: np.array(count) for name, count in counts.items()} | points | carried

    def restore(self, state: SavedState) -> None:
        """Restore saved points of the same problem; the next step is that of an uninterrupted run.

        Recomputed statistics would differ in the last digit, and a vertex chosen between two that
        are nearly equal by much more.

        Raises
        ------
        InvalidProblemError
            If the state is of other observations.
        """
        try:
            self._go_to(state[f"point{m}"] for m in range(len(self.structures)))
        except (KeyError, ValueError) as error:
            raise InvalidProblemError("The saved state belongs to other observations.") from error
        if "moves" in state:  # absent in states saved by older versions
            self.statistics = np.array(state["statistics"])
            self._moves = np.array(state["moves"]).tolist()
        self.iteration = int(state["iteration"])
        self.oracle_calls = int(state["oracle_calls"])
