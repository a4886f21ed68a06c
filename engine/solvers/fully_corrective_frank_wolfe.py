"""Fully corrective Frank-Wolfe: optimise the weights of all vertices after every oracle call.

Each block's point is a combination of its interior start and of vertices. Where lambda is small, L
is a narrow valley: the residual may hardly change while the entropy still has far to go, and a step
along one direction, plain or pairwise, moves by about lambda and no further. Weights of several
vertices that move at once follow the valley's floor: Newton's method in the weights, whose Hessian

    P P^T / lambda - A (grad^2 H) A^T        rows of P: statistics of the atoms; A: the atoms

is small. Every start keeps a least weight, which contracts the polytope towards it: the entropy has
no barrier at a vertex, and beside one an edge would have to grow back from nothing. The least
weight shrinks with the gap by the rule of barrier Frank-Wolfe. The gap is the oracle's over the
whole polytope, never the contracted one's, so that it stays a certificate.

References
----------
Lacoste-Julien and Jaggi 2015 (linear convergence); Krishnan, Lacoste-Julien and Sontag 2015
(barrier Frank-Wolfe, corrections over the vertices known so far).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.options import check_number
from engine.core.status import Status
from engine.core.tolerances import TOLERANCES
from engine.kernels.threads import one_blas_thread
from engine.objectives.learning_dual import make_learning_dual
from engine.objectives.protocol import CurvedEntropy, Point, Structure, check_parts
from engine.oracles.protocol import Vertex, inner_product
from engine.solvers.control import Callbacks, Limits, Run
from engine.solvers.frank_wolfe import PARTS, make_result
from engine.solvers.iterate import Iterate
from engine.solvers.result import LearningResult

NEWTON_STEPS = 20  # corrections after each oracle call; two or three suffice near the optimum
ENOUGH = 0.1  # share of the oracle's gap that the correction may leave among known vertices
CONTRACTION = 0.25  # first least weight of the starts; it shrinks with the gap
LEAST_START = 1e-12  # weight of a start, so that no entry of the point rounds to 0 or 1
JOIN = 0.1  # a weight on its floor moves only if it gains at least this share of the best slope
DAMPING = 1e-12  # added to the scaled Hessian's diagonal: vertices may be linearly dependent


@dataclass(slots=True)
class _Atoms:
    """Start and active vertices of one block, with their statistics and weights."""

    start: Point
    vertices: list[Vertex]
    statistics: FloatArray
    weights: FloatArray

    def add(self, vertex: Vertex, statistics: FloatArray) -> None:
        """Add a vertex of weight 0 unless it is already active."""
        if any(vertex.equals(known) for known in self.vertices):
            return
        self.vertices.append(vertex)
        self.statistics = np.vstack([self.statistics, statistics])
        self.weights = np.append(self.weights, 0.0)

    def keep(self, weights: FloatArray) -> None:
        """Set new weights and drop the vertices of weight 0."""
        kept = weights > 0.0
        self.vertices = [v for v, stays in zip(self.vertices, kept[1:], strict=True) if stays]
        self.statistics, self.weights = self.statistics[kept], weights[kept]

    def combine(self, weights: FloatArray) -> Point:
        """Return weights[0] start + sum_k weights[k + 1] vertices[k]."""
        point: Point = weights[0] * self.start
        for vertex, weight in zip(self.vertices, weights[1:], strict=True):
            vertex.add_to(point, float(weight))
        return point

    def expand(
        self, structure: Structure, theta: FloatArray, point: Point
    ) -> tuple[FloatArray, FloatArray]:
        """Return slopes and curvature of <theta, phi> + H in the weights.

        Slopes (k + 1,): <a - tau, A theta + grad H(tau)> of every atom a; curvature (k + 1, k + 1):
        -<a, grad^2 H(tau) b> of every pair of atoms.
        """
        entropy = cast(CurvedEntropy, structure.entropy)
        scores = structure.scores(theta) + entropy.gradient(point)
        share = self.vertices[0].share
        slopes = [share * inner_product(self.start, scores)]
        slopes += [vertex.inner(scores) for vertex in self.vertices]
        here = share * inner_product(point, scores)
        return np.array(slopes) - here, entropy.curvature_among(point, self.start, self.vertices)


@dataclass(slots=True)
class FullyCorrectiveFrankWolfe:
    """Fully corrective Frank-Wolfe solver over all blocks.

    Parameters
    ----------
    structures : sequence of Structure
        Structures with a `CurvedEntropy`.
    ridge : float
        lambda > 0.
    limits : Limits
    callbacks : Callbacks
        Checkpoints are not kept.

    Notes
    -----
    With k vertices in use a correction costs O(k^3 + k^2 K) beside a pass over the points. An
    optimum deep in the interior of a large polytope needs about as many vertices as nodes.
    Checkpoints are not kept.

    Examples
    --------
    >>> from engine.crf.bipartite import BipartiteItems
    >>> from engine.structures.bipartite import BipartiteStructure
    >>> pairs = BipartiteStructure(BipartiteItems(np.eye(2)[:, :, None]), np.array([0, 1]))
    >>> result = FullyCorrectiveFrankWolfe([pairs], 1.0).solve()
    >>> result.theta.round(3).tolist(), result.is_certified
    ([0.006], True)
    """

    structures: Sequence[Structure]
    ridge: float
    limits: Limits = field(default_factory=Limits)
    callbacks: Callbacks = field(default_factory=Callbacks)
    _atoms: list[_Atoms] = field(init=False)
    _contraction: float = field(init=False)

    def __post_init__(self) -> None:
        """Raise InvalidProblemError for an option out of range."""
        check_number("ridge", self.ridge, above=0.0)

    def solve(self) -> LearningResult:
        """Iterate until the certified gap is small, a limit is hit or rounding allows no step.

        Raises
        ------
        InvalidProblemError
            If there is no block or ridge is not above 0.
        """
        with one_blas_thread():
            check_parts(self.structures, *PARTS, "entropy.curvature_among")
            dual = make_learning_dual([s.observed for s in self.structures], self.ridge)
            iterate = Iterate(self.structures, dual)
            iterate.begin()
            run = Run(self.limits, self.callbacks)
            self._atoms = [
                _Atoms(point.copy(), [], row[None], np.ones(1))
                for point, row in zip(iterate.points, iterate.statistics.copy(), strict=True)
            ]
            self._contraction = CONTRACTION
            while True:
                iterate.iteration += 1
                theta = iterate.theta
                asked = iterate.ask(range(len(self.structures)), theta)
                value, gap = iterate.value, sum(direction.gap for direction in asked)
                before = run.upper, run.lower
                run.record(iterate.iteration, iterate.oracle_calls, value, value - gap)
                status = run.verdict(iterate.iteration)
                if status is None and (run.upper, run.lower) == before:
                    status = Status.STALLED  # every correction lowers L until rounding hides it
                if status is not None:
                    return make_result(iterate, run, theta, status)
                for atoms, direction in zip(self._atoms, asked, strict=True):
                    atoms.add(direction.vertex, direction.statistics)
                self._correct(iterate, gap)

    def _correct(self, iterate: Iterate, gap: float) -> None:
        """Take Newton steps in the weights until they promise little beside the oracle's gap."""
        for step in range(NEWTON_STEPS):
            slopes, hessian, owners = self._expand(iterate)
            weights = np.concatenate([atoms.weights for atoms in self._atoms])
            is_start = np.diff(owners, prepend=-1) > 0
            if step == 0:
                self._contract(gap, -float(slopes[is_start].sum()))
            floor = np.where(is_start, self._contraction, 0.0)
            if _left_to_gain(weights, floor, slopes, owners) <= ENOUGH * gap:
                return
            change = newton_change(weights, floor, slopes, hessian, owners)
            if not self._advance(iterate, weights, change, float(slopes @ change), owners):
                return

    def _contract(self, gap: float, cost: float) -> None:
        """Shrink the starts' least weights if they cost a quarter of the gap (nats) or more."""
        if cost > 0.0 and gap / (4.0 * cost) < self._contraction:
            smaller = min(gap / (4.0 * cost), self._contraction / 2.0)
            self._contraction = max(smaller, LEAST_START)

    def _expand(self, iterate: Iterate) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return slopes and Hessian of -L in all atoms' weights, and the block of each atom."""
        theta = iterate.theta
        statistics = np.vstack([atoms.statistics for atoms in self._atoms])
        owners = np.repeat(np.arange(len(self.structures)), [len(a.weights) for a in self._atoms])
        hessian = statistics @ statistics.T / self.ridge
        slopes = np.empty(len(owners))
        for m, (structure, atoms) in enumerate(zip(self.structures, self._atoms, strict=True)):
            own = np.flatnonzero(owners == m)
            slopes[own], curvature = atoms.expand(structure, theta, iterate.points[m])
            hessian[np.ix_(own, own)] += curvature
        return slopes, hessian, owners

    def _advance(
        self,
        iterate: Iterate,
        weights: FloatArray,
        change: FloatArray,
        slope: float,
        owners: IntArray,
    ) -> bool:
        """Shorten the change until L falls as promised; return True if it fell."""
        before, step = iterate.value, 1.0
        while step > 1e-10 and slope > 0.0:
            moved = np.maximum(weights + step * change, 0.0)
            shares = [moved[owners == m] for m in range(len(self.structures))]
            shares = [share / share.sum() for share in shares]
            for m, (atoms, share) in enumerate(zip(self._atoms, shares, strict=True)):
                iterate.put(m, atoms.combine(share), share @ atoms.statistics)
            if iterate.value <= before - TOLERANCES.armijo * step * slope:
                for atoms, share in zip(self._atoms, shares, strict=True):
                    atoms.keep(share)
                return True
            step *= 0.5
        for m, atoms in enumerate(self._atoms):
            iterate.put(m, atoms.combine(atoms.weights), atoms.weights @ atoms.statistics)
        return False


def _left_to_gain(
    weights: FloatArray, floor: FloatArray, slopes: FloatArray, owners: IntArray
) -> float:
    """Return the gain promised by moving each owner's weight above its floor to its best atom."""
    movable = np.where(weights > floor, weights, 0.0)
    sums = np.maximum(np.bincount(owners, movable), TOLERANCES.tiny)
    means = np.bincount(owners, movable * slopes) / sums
    tops = slopes[_largest_of_each(slopes, owners)]
    return float((tops - means).sum())


def newton_change(
    weights: FloatArray,
    floor: FloatArray,
    slopes: FloatArray,
    hessian: FloatArray,
    owners: IntArray,
) -> FloatArray:
    """Return an approximate maximiser d of slopes d - d^T hessian d / 2 with weights + d >= floor.

    The weights of each owner keep their sum. A primal active set: steps among the free weights, one
    less whenever a weight meets its floor, one more where a weight on its floor would gain most
    (Nocedal and Wright 2006, algorithm 16.3). The model rises with every step, so that the change
    is an ascent wherever it stops.
    """
    change = np.zeros(len(weights))
    free = weights > floor
    worth = JOIN * float(slopes.max())
    for _ in range(3 * len(weights) + 10):
        pull = slopes - hessian @ change
        heaviest = _largest_of_each(np.where(free, weights + change, -1.0), owners)
        move = _free_move(hessian, pull, free, heaviest[owners])
        falling = np.flatnonzero(free & (move < 0.0))
        room = (weights + change - floor)[falling] / -move[falling]
        if len(falling) and room.min() < 1.0:
            hit = falling[np.argmin(room)]
            change += max(float(room.min()), 0.0) * move
            change[hit], free[hit] = floor[hit] - weights[hit], False
            continue
        change += move
        pull = slopes - hessian @ change
        gain = np.where(free, 0.0, pull - pull[heaviest[owners]])
        if gain.max() <= worth:
            break
        free[np.argmax(gain)] = True
    return change


def _largest_of_each(values: FloatArray, owners: IntArray) -> IntArray:
    """Return the index of each owner's largest value."""
    count = int(owners[-1]) + 1
    return np.array([np.argmax(np.where(owners == m, values, -np.inf)) for m in range(count)])


def _free_move(
    hessian: FloatArray, pull: FloatArray, free: BoolArray, partner: IntArray
) -> FloatArray:
    """Return the Newton step in which every free weight trades with its owner's heaviest.

    The diagonal is scaled to 1 first: entries of weight 1e-12 have 1e12 times others' curvature.
    """
    move = np.zeros(len(pull))
    own = np.flatnonzero(free & (partner != np.arange(len(pull))))
    other = partner[own]
    traded = (
        hessian[np.ix_(own, own)]
        - hessian[np.ix_(own, other)]
        - hessian[np.ix_(other, own)]
        + hessian[np.ix_(other, other)]
    )
    scale = 1.0 / np.sqrt(np.maximum(np.diag(traded), TOLERANCES.tiny))
    scaled = traded * scale[:, None] * scale + DAMPING * np.eye(len(own))
    trade = scale * np.linalg.solve(scaled, scale * (pull[own] - pull[other]))
    move[own] = trade
    np.subtract.at(move, other, trade)
    return move
