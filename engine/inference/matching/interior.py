"""Interior-point method for pseudomarginals over the matching polytope: slower, but never stalls.

It takes over where the continuation of ``newton`` stalls: if almost only each other's pairs leave
two odd sets, or a marginal is below the smallest number, the tight conditions do not determine the
multipliers. Here no set is an equality constraint and no marginal reaches 0:

    max <W, tau> + H_rho(tau) + mu sum_ij log tau_ij + mu sum_U log r_U     sum_j tau_ij = 1
    r_U = (|U| - 1) / 2 - tau(E(U)),   mu -> 0

A primal-dual step is one linear system with one unknown for each node and set. Violated odd sets
are added during the search. Points lie inside the polytope, and the cost of mu is known.

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
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.messages import scale_to_rows
from engine.inference.matching.newton_point import NewtonPoint
from engine.inference.matching.odd_sets import EXACT_SOON, OddSetProof, examine_odd_sets
from engine.inference.matching.polytope_bound import bound_value
from engine.kernels.matching_newton import SURE

MAX_STEPS = 400  # linear systems: 30 to 120 where continuation stalled
SHRINK = 0.2  # factor of mu after a nearly full step
PATIENCE = 15  # steps without gain at the last mu
LOOK_EVERY = 5.0  # factor of mu after which odd sets are examined again
ROOM = 0.05  # room given to an added set that has none
RARE = 1e-3  # entries below are raised before a point is evaluated
MOST_RAISED = 2.3  # nats by which an entry is raised at most: tenfold
NEARLY = 10.0  # times the target gap: below, all odd cuts are examined


@dataclass(frozen=True, slots=True)
class InteriorSolution:
    """Interior point of the polytope with the closest bound.

    Parameters
    ----------
    tau : ndarray, shape (n, n), symmetric with row sums 1.
    value : float, <W, tau> + H_rho(tau), nats.
    upper_bound : float, certified, of the maximum over the matching polytope.
    proof : OddSetProof, of tau.
    point : NewtonPoint, potentials and multipliers at the point.
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
        """Return the difference of the bounds, relative to values above 1."""
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
    accuracy : float, target gap, relative to values above 1.
    known : tuple of ndarray, odd sets that may bind: sets found during the search cost steps.
    exact_up_to : int, most nodes for which all odd cuts are examined if nothing else proves them.
    should_stop : called before every step.

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.

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
        if length > 0.5 and (mu * LOOK_EVERY <= looked_at or mu <= TOLERANCES.last_barrier):
            looked_at = mu
            wanted = accuracy if mu > TOLERANCES.last_barrier else np.inf
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
        if mu <= TOLERANCES.last_barrier and step - improved_at > PATIENCE:
            break
        if length > 0.8:
            mu = max(SHRINK * mu, TOLERANCES.last_barrier)
    return problem.judge(point, step, exact_up_to, should_stop) if best is None else best


def _better(one: InteriorSolution, other: InteriorSolution) -> InteriorSolution:
    """Return the proved point, the better one if both are, with the closer of both bounds."""
    bound = min(one.upper_bound, other.upper_bound)
    kept = max(one, other, key=lambda found: (found.proof.holds, found.value))
    return replace(kept, upper_bound=max(bound, kept.value), steps=other.steps)


class _Interior:
    """Primal-dual steps towards the optimum of one problem."""

    def __init__(self, scores: FloatArray, rho: FloatArray) -> None:
        n = len(rho)
        self.asked, self.rho = scores, rho
        self.allowed: BoolArray = (scores > -np.inf) & ~np.eye(n, dtype=np.bool_)
        self.scores = np.where(self.allowed, scores, 0.0)
        self.counts = rho[:, None] + rho[None, :] - 1.0

    def start(self) -> tuple[_Point, float]:
        """Return a clearly interior point and a first mu."""
        n = len(self.scores)
        tau, _ = scale_to_rows(np.where(self.allowed, 1.0 / (n - 1), 0.0))
        tau = np.where(self.allowed, np.maximum(tau, 1e-6), 0.0)
        mu = max(float(np.abs(self.scores).max()), 1.0) / n
        z = np.where(self.allowed, mu / np.maximum(tau, TOLERANCES.smallest_entry), 0.0)
        none = np.empty(0)
        return _Point(tau, z, np.zeros(n), np.empty((0, n)), none, none), mu

    def go_back(
        self, trail: list[tuple[_Point, float]], member: FloatArray
    ) -> tuple[_Point, float]:
        """Return the trail's last point, with its mu, that has room for all these sets.

        The room is above mu, so that the added sets' multipliers are below one nat and the point
        stays near the centre. From a point that violates them even slightly, many steps lead back.
        """
        while True:
            point, mu = trail[-1]
            new = _others(member, point.member)
            if len(trail) == 1 or (self._room(point.tau, new) > mu).all():
                trail[-1] = self.join(point, new, mu), mu
                return trail[-1]
            trail.pop()

    def join(self, point: _Point, new: FloatArray, mu: float) -> _Point:
        """Return the point with added sets (m, n)."""
        room = self._room(point.tau, new)
        room = np.where(room > mu, room, ROOM)
        return replace(
            point,
            member=np.concatenate([point.member, new]),
            room=np.concatenate([point.room, room]),
            multipliers=np.concatenate([point.multipliers, mu / room]),
        )

    def _room(self, tau: FloatArray, member: FloatArray) -> FloatArray:
        """Return the room that the pairs inside leave in every set, shape (m,)."""
        return np.asarray((member.sum(axis=1) - 1.0) / 2.0 - _inside(member, tau))

    def judge(
        self,
        point: _Point,
        steps: int,
        exact_up_to: int,
        should_stop: StopCallback,
        wanted: float = np.inf,
    ) -> InteriorSolution:
        """Return the solution that a point proves.

        All odd cuts of many nodes, which take longer than everything else, are examined only if the
        gap is ``wanted`` or nearly so.
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
        """Return the next point and the share of the step taken, None if no step is possible."""
        tau, member, n = point.tau, point.member, len(point.tau)
        safe = np.where(self.allowed, tau, 1.0)
        rest = self._rest(tau)
        curvature = 1.0 / safe - self.counts / rest + point.z / safe
        curvature = np.where(curvature < 0, -1.0, 1.0) * np.maximum(
            np.abs(curvature), TOLERANCES.smallest_curvature
        )
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
            TOLERANCES.to_the_boundary
            * min(
                _largest_step(safe, np.where(self.allowed, move, 0.0)),
                _largest_step(rest, -move),
                _largest_step(np.where(self.allowed, point.z, 1.0), of_z),
                _largest_step(point.room, of_room),
                _largest_step(point.multipliers, of_multipliers),
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
        """Return tau with small entries raised to the values that their duals imply.

        A step that removes most of a small entry removes too much: its logarithm falls by more than
        the linear model predicts. The sum of such entries is negligible, but one pair's gradient
        above 0 costs the bound as much as a likely pair's.
        """
        tau, prices = point.tau, (point.member.T * point.multipliers) @ point.member
        safe = np.where(self.allowed, tau, 1.0)
        excess = self._gradient(safe, self._rest(tau)) - prices - point.nu[:, None] - point.nu
        rises = self.allowed & (tau < RARE) & (excess > 0.0)
        return np.asarray(tau * np.exp(np.where(rises, np.minimum(excess, MOST_RAISED), 0.0)))

    def _gradient(self, safe: FloatArray, rest: FloatArray) -> FloatArray:
        """Return W + grad H at tau = ``safe``, below 1 for every pair, and 1 - tau = ``rest``."""
        return np.asarray(self.scores - self.counts * (1.0 + np.log(rest)) - 1.0 - np.log(safe))

    def _crowding(self, point: _Point) -> FloatArray:
        """Return the difference of the sets' room and the room that their pairs leave."""
        return np.asarray(point.room - self._room(point.tau, point.member))

    def _rest(self, tau: FloatArray) -> FloatArray:
        """Return 1 - tau, for pairs near 1 as the sum of their first node's other entries."""
        spare = np.where(tau > SURE, 0.0, tau).sum(axis=1)
        first = np.minimum(np.arange(len(tau))[:, None], np.arange(len(tau)))
        return np.where(tau > SURE, np.maximum(spare[first], TOLERANCES.smallest_entry), 1.0 - tau)

    def _missing(self, tau: FloatArray) -> FloatArray:
        """Return 1 less the row sums, from the small entries alone beside a pair near 1."""
        likely = tau > SURE
        missing = 1.0 - tau.sum(axis=1)
        spare = np.where(likely, 0.0, tau).sum(axis=1)
        first, second = np.nonzero(np.triu(likely))
        missing[first] = 0.0
        missing[second] = spare[first] - spare[second]
        return np.asarray(missing)

    def _settle(self, tau: FloatArray) -> FloatArray:
        """Set every pair near 1 to the remainder of its first node's sum."""
        tau = np.where(
            self.allowed, np.maximum((tau + tau.T) / 2.0, TOLERANCES.smallest_entry), 0.0
        )
        spare = np.where(tau > SURE, 0.0, tau).sum(axis=1)
        first, second = np.nonzero(np.triu(tau > SURE))
        tau[first, second] = tau[second, first] = 1.0 - spare[first]
        return tau


def _rows(sets: tuple[IntArray, ...], n_nodes: int) -> FloatArray:
    """Return membership of nodes in sets, shape (m, n), 0 or 1."""
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


def _largest_step(value: FloatArray, move: FloatArray) -> float:
    """Return the largest multiple of ``move`` that keeps every value at 0 or above."""
    falls = move < 0.0
    return float((value[falls] / -move[falls]).min(initial=np.inf))


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """Solve a symmetric system, scaled first; use least squares if it is singular."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(matrix).max(axis=1), TOLERANCES.smallest_entry))
    scaled = matrix * scale[:, None] * scale
    wanted = right * scale
    if not np.isfinite(scaled).all() or not np.isfinite(wanted).all():
        return None
    factor, pivots, failure = dgetrf(scaled)
    found, _ = dgetrs(factor, pivots, wanted)
    if failure or not np.isfinite(found).all():
        found = np.linalg.lstsq(scaled, wanted, rcond=1e-14)[0]
    return np.asarray(found * scale)
