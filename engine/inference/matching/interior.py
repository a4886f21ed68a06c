"""Pseudomarginals over the matching polytope from its inside: slower, and never at a standstill.

Takes over where the path of ``newton`` stands still: where two odd sets are left by next to nothing
but each other's pairs, or a marginal is nearer 0 than numbers go, the conditions that hold with
equality leave multipliers free. Here no set is held at equality and no marginal reaches 0:

    max <W, tau> + H_rho(tau) + mu sum_ij log tau_ij + mu sum_U log r_U     sum_j tau_ij = 1
    r_U = (|U| - 1) / 2 - tau(E(U)),   mu -> 0

A primal-dual step is one linear system in as many unknowns as nodes and sets. Odd sets that the
point violates join on the way. Points lie inside the polytope, and what mu costs is known.

References
----------
Nocedal and Wright 2006, chapter 19 (interior-point methods).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.messages import scale_to_rows
from engine.inference.matching.newton_point import NewtonPoint
from engine.inference.matching.odd_sets import EXACT_SOON, OddSetProof, examine_odd_sets
from engine.inference.matching.polytope_bound import bound_value

MAX_STEPS = 400  # linear systems: 30 to 120 where the path stood still
TO_THE_BOUNDARY = 0.9  # largest share of the way there that a step takes
FLATTEST = 1e-9  # |curvature| of a pair is kept above this; only steps are affected
SHRINK = 0.2  # of mu after a step that went nearly all of its way
LAST_MU = 1e-14  # nats: below, rooms are rounding errors
PATIENCE = 15  # steps at the last mu that bring nothing
LOOK_EVERY = 5.0  # factor of mu after which odd sets are looked at again
ROOM = 0.05  # of a set that joins where it has none
RARE = 1e-3  # entries below are raised before a point is judged
MOST_RAISED = 2.3  # nats that one is raised by: tenfold
TINY = 1e-40
NEARLY = 10.0  # times the gap wanted: all odd cuts are looked at from there
SURE = 0.75  # of pairs whose 1 - tau is summed: at most one at a node, also on the way


@dataclass(frozen=True, slots=True)
class InteriorSolution:
    """A point inside the polytope and the closest bound.

    Parameters
    ----------
    tau : ndarray, shape (n, n), symmetric with row sums 1.
    value : float, <W, tau> + H_rho(tau), nats.
    upper_bound : float, certified, of the maximum over the matching polytope.
    proof : OddSetProof, of tau.
    point : NewtonPoint, potentials and multipliers where the point was.
    steps : int, linear systems solved.
    """

    tau: FloatArray
    value: float
    upper_bound: float
    proof: OddSetProof
    point: NewtonPoint
    steps: int

    @property
    def gap(self) -> float:
        """Return how far the bounds are apart, relative to values above 1."""
        return (self.upper_bound - self.value) / max(1.0, abs(self.value))


@dataclass(frozen=True, slots=True)
class _Point:
    """``tau`` (n, n) and its duals ``z`` = mu / tau, ``room`` of the sets and ``multipliers``."""

    tau: FloatArray
    z: FloatArray
    nu: FloatArray
    member: FloatArray
    room: FloatArray
    multipliers: FloatArray


def solve_from_inside(
    scores: FloatArray,
    rho: FloatArray,
    accuracy: float,
    *,
    exact_up_to: int,
    known: tuple[IntArray, ...] = (),
    should_stop: StopCallback = never_stop,
) -> InteriorSolution:
    """Maximise <W, tau> + H_rho(tau) over the matching polytope of a dense graph.

    Parameters
    ----------
    scores : ndarray, shape (n, n), symmetric, nats; -inf excludes a pair.
    rho : ndarray, shape (n,), reweighting in [0, 1].
    accuracy : float, wanted gap, relative to values above 1.
    known : tuple of ndarray, odd sets that may bind: every one found on the way costs steps.
    exact_up_to : int, nodes up to which all odd cuts are looked at if nothing else proves them.
    should_stop : asked before every step.

    Raises
    ------
    StoppedError
        If ``should_stop`` answered True.

    Notes
    -----
    O(n^3) a step, ten arrays (n, n).
    """
    problem = _Interior(scores, rho)
    point, mu = problem.start()
    point = problem.join(point, _rows(known, len(rho)), mu)
    trail = [(point, mu)]
    best: InteriorSolution | None = None
    looked_at, improved_at = mu, 0
    for step in range(1, MAX_STEPS + 1):
        if should_stop():
            raise StoppedError("Cancelled.")
        following = problem.step(point, mu)
        if following is None:
            break
        point, length = following
        if length > 0.5 and (mu * LOOK_EVERY <= looked_at or mu <= LAST_MU):
            looked_at = mu
            wanted = accuracy if mu > LAST_MU else np.inf
            found = problem.judge(point, step, exact_up_to, should_stop, wanted)
            before = np.inf if best is None else best.gap
            best = found if best is None else _better(best, found)
            if best.proof.holds and best.gap <= accuracy:
                break
            if best.gap < 0.9 * before:
                improved_at = step
            new = _others(_rows(found.proof.violated, len(rho)), point.member)
            if len(new):
                point, mu = problem.go_back(trail, np.concatenate([point.member, new]))
                looked_at, improved_at = mu, step
                continue
            trail.append((point, mu))
        if mu <= LAST_MU and step - improved_at > PATIENCE:
            break
        if length > 0.8:
            mu = max(SHRINK * mu, LAST_MU)
    return problem.judge(point, step, exact_up_to, should_stop) if best is None else best


def _better(one: InteriorSolution, other: InteriorSolution) -> InteriorSolution:
    """Return the point that is proved, the better of two such, with the closer of both bounds."""
    bound = min(one.upper_bound, other.upper_bound)
    kept = max(one, other, key=lambda found: (found.proof.holds, found.value))
    return replace(kept, upper_bound=max(bound, kept.value), steps=other.steps)


class _Interior:
    """One problem, and the primal-dual steps towards its optimum."""

    def __init__(self, scores: FloatArray, rho: FloatArray) -> None:
        n = len(rho)
        self.asked, self.rho = scores, rho
        self.allowed: BoolArray = (scores > -np.inf) & ~np.eye(n, dtype=np.bool_)
        self.scores = np.where(self.allowed, scores, 0.0)
        self.counts = rho[:, None] + rho[None, :] - 1.0

    def start(self) -> tuple[_Point, float]:
        """Return a point well inside and a first mu."""
        n = len(self.scores)
        tau, _ = scale_to_rows(np.where(self.allowed, 1.0 / (n - 1), 0.0))
        tau = np.where(self.allowed, np.maximum(tau, 1e-6), 0.0)
        mu = max(float(np.abs(self.scores).max()), 1.0) / n
        z = np.where(self.allowed, mu / np.maximum(tau, TINY), 0.0)
        none = np.empty(0)
        return _Point(tau, z, np.zeros(n), np.empty((0, n)), none, none), mu

    def go_back(
        self, trail: list[tuple[_Point, float]], member: FloatArray
    ) -> tuple[_Point, float]:
        """Return the last point of the trail, with its mu, that has room for all these sets.

        Room above mu: they join with multipliers below one nat, so that the point stays near the
        centre. From a point that violates them by however little it is a long way back there.
        """
        while True:
            point, mu = trail[-1]
            new = _others(member, point.member)
            if len(trail) == 1 or (self._room(point.tau, new) > mu).all():
                trail[-1] = self.join(point, new, mu), mu
                return trail[-1]
            trail.pop()

    def join(self, point: _Point, new: FloatArray, mu: float) -> _Point:
        """Return the point with further sets (m, n)."""
        room = self._room(point.tau, new)
        room = np.where(room > mu, room, ROOM)
        return replace(
            point,
            member=np.concatenate([point.member, new]),
            room=np.concatenate([point.room, room]),
            multipliers=np.concatenate([point.multipliers, mu / room]),
        )

    def _room(self, tau: FloatArray, member: FloatArray) -> FloatArray:
        """Return what the pairs inside every set leave, shape (m,)."""
        return np.asarray((member.sum(axis=1) - 1.0) / 2.0 - _inside(member, tau))

    def judge(
        self,
        point: _Point,
        steps: int,
        exact_up_to: int,
        should_stop: StopCallback,
        wanted: float = np.inf,
    ) -> InteriorSolution:
        """Return what is proved at a point.

        All odd cuts of many nodes, which take longer than all the rest, are looked at only where
        the gap is ``wanted`` or nearly so.
        """
        tau, residual = scale_to_rows(point.tau, should_stop)
        dual = NewtonPoint(
            self.asked,
            point.nu + self.rho,
            sets=tuple(np.flatnonzero(row) for row in point.member),
            multipliers=point.multipliers,
        )
        value, bound = bound_value(self.asked, self.rho, tau, residual, dual)
        raised, residual = scale_to_rows(self._raise_rare(point), should_stop)
        _, other = bound_value(self.asked, self.rho, raised, residual, dual)
        bound = min(bound, other)
        is_near = bound - value <= NEARLY * wanted * max(1.0, abs(value))
        looked_at = exact_up_to if is_near else min(exact_up_to, EXACT_SOON)
        proof = examine_odd_sets(tau, exact_up_to=looked_at, should_stop=should_stop)
        return InteriorSolution(tau, value, bound, proof, dual, steps)

    def step(self, point: _Point, mu: float) -> tuple[_Point, float] | None:
        """Take one step; return the next point and the share of the step taken, None at the end."""
        tau, member, n = point.tau, point.member, len(point.tau)
        safe = np.where(self.allowed, tau, 1.0)
        rest = self._rest(tau)
        curvature = 1.0 / safe - self.counts / rest + point.z / safe
        curvature = np.where(curvature < 0, -1.0, 1.0) * np.maximum(np.abs(curvature), FLATTEST)
        rate = np.where(self.allowed, 1.0 / curvature, 0.0)
        pull = self._gradient(safe, rest) + mu / safe
        pulled = rate * pull
        missing, crowding = self._missing(tau), self._crowding(point)
        m = len(member)
        matrix = np.empty((n + m, n + m))
        matrix[:n, :n] = rate
        matrix[np.arange(n), np.arange(n)] += rate.sum(axis=1)
        right = np.empty(n + m)
        right[:n] = pulled.sum(axis=1) - missing
        matrix[n:, :n] = member * (member @ rate)
        matrix[:n, n:] = matrix[n:, :n].T
        for k in range(m):
            nodes = np.flatnonzero(member[k])
            both = member[:, nodes]
            matrix[n + k, n:] = ((both @ rate[np.ix_(nodes, nodes)]) * both).sum(axis=1) / 2.0
            matrix[n + k, n + k] += point.room[k] / point.multipliers[k]
        right[n:] = _inside(member, pulled)
        right[n:] += crowding + mu / point.multipliers
        dual = _solve(matrix, right)
        if dual is None:
            return None
        nu, multipliers = dual[:n], dual[n:]
        spread = nu[:, None] + nu + (member.T * multipliers) @ member
        move = rate * (pull - spread)
        of_z = np.where(self.allowed, mu / safe - point.z - point.z / safe * move, 0.0)
        of_room = -crowding - _inside(member, move)
        of_multipliers = multipliers - point.multipliers
        length = min(
            1.0,
            TO_THE_BOUNDARY
            * min(
                _way(safe, np.where(self.allowed, move, 0.0)),
                _way(rest, -move),
                _way(np.where(self.allowed, point.z, 1.0), of_z),
                _way(point.room, of_room),
                _way(point.multipliers, of_multipliers),
            ),
        )
        following = _Point(
            self._settle(tau + length * move),
            point.z + length * of_z,
            point.nu + length * (nu - point.nu),
            member,
            point.room + length * of_room,
            point.multipliers + length * of_multipliers,
        )
        return following, length

    def _raise_rare(self, point: _Point) -> FloatArray:
        """Return tau with small entries raised to where their duals say they are.

        A step that takes most of a small entry away takes too much: its logarithm falls by more
        than the step counts with. What that adds up to is nothing, but one pair's gradient that
        is above 0 costs the bound as much as a likely pair's.
        """
        tau, prices = point.tau, (point.member.T * point.multipliers) @ point.member
        safe = np.where(self.allowed, tau, 1.0)
        excess = self._gradient(safe, self._rest(tau)) - prices - point.nu[:, None] - point.nu
        rises = self.allowed & (tau < RARE) & (excess > 0.0)
        return np.asarray(tau * np.exp(np.where(rises, np.minimum(excess, MOST_RAISED), 0.0)))

    def _gradient(self, safe: FloatArray, rest: FloatArray) -> FloatArray:
        """Return W + grad H where tau is ``safe``, 1 of no pair, and 1 - tau is ``rest``."""
        return np.asarray(self.scores - self.counts * (1.0 + np.log(rest)) - 1.0 - np.log(safe))

    def _crowding(self, point: _Point) -> FloatArray:
        """Return how far the sets' room is from what their pairs leave."""
        return np.asarray(point.room - self._room(point.tau, point.member))

    def _rest(self, tau: FloatArray) -> FloatArray:
        """Return 1 - tau, of sure pairs by what else their first node has."""
        spare = np.where(tau > SURE, 0.0, tau).sum(axis=1)
        first = np.minimum(np.arange(len(tau))[:, None], np.arange(len(tau)))
        return np.where(tau > SURE, np.maximum(spare[first], TINY), 1.0 - tau)

    def _missing(self, tau: FloatArray) -> FloatArray:
        """Return 1 less the row sums; beside a sure pair, what its small entries tell."""
        likely = tau > SURE
        missing = 1.0 - tau.sum(axis=1)
        spare = np.where(likely, 0.0, tau).sum(axis=1)
        first, second = np.nonzero(np.triu(likely))
        missing[first] = 0.0
        missing[second] = spare[first] - spare[second]
        return np.asarray(missing)

    def _settle(self, tau: FloatArray) -> FloatArray:
        """Give every sure pair what the others of its first node leave it."""
        tau = np.where(self.allowed, np.maximum((tau + tau.T) / 2.0, TINY), 0.0)
        spare = np.where(tau > SURE, 0.0, tau).sum(axis=1)
        first, second = np.nonzero(np.triu(tau > SURE))
        tau[first, second] = tau[second, first] = 1.0 - spare[first]
        return tau


def _rows(sets: tuple[IntArray, ...], n_nodes: int) -> FloatArray:
    """Return which nodes sets hold, shape (m, n), 0 or 1."""
    member = np.zeros((len(sets), n_nodes))
    for row, nodes in zip(member, sets, strict=True):
        row[nodes] = 1.0
    return member


def _others(member: FloatArray, known: FloatArray) -> FloatArray:
    """Return the rows that are not among the known ones."""
    seen = {row.tobytes() for row in known}
    return member[[row.tobytes() not in seen for row in member]]


def _inside(member: FloatArray, values: FloatArray) -> FloatArray:
    """Return the sum over the pairs inside every set, shape (m,)."""
    return np.asarray(((member @ values) * member).sum(axis=1) / 2.0)


def _way(value: FloatArray, move: FloatArray) -> float:
    """Return how often ``move`` can be taken before some value is 0."""
    falls = move < 0.0
    return float((value[falls] / -move[falls]).min(initial=np.inf))


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """Solve a symmetric system, scaled first; in the least squares where it is singular."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(matrix).max(axis=1), TINY))
    scaled = matrix * scale[:, None] * scale
    wanted = right * scale
    if not np.isfinite(scaled).all() or not np.isfinite(wanted).all():
        return None
    factor, pivots, failure = dgetrf(scaled)
    found, _ = dgetrs(factor, pivots, wanted)
    if failure or not np.isfinite(found).all():
        found = np.linalg.lstsq(scaled, wanted, rcond=1e-14)[0]
    return np.asarray(found * scale)
