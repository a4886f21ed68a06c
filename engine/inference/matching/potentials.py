"""Pseudomarginals of perfect matchings on dense graphs from one potential per node.

The maximum of <W, tau> + H_rho(tau) under the degree constraints satisfies, for every pair,

    tau (1 - tau)^c = exp(W_ij - u_i - u_j),      c = rho_i + rho_j - 1,      sum_j tau_ij = 1

so n potentials u determine n (n - 1) / 2 pseudomarginals, and a sweep is one pass over the pairs
that sums the rows. It moves u by the logarithm of the row sums (its mean halved: all rows share
that direction twice), with Anderson mixing; the state is u, so a nearby theta starts warm.

This is valid while every tau stays on the branch below 1 / (1 + c); above it, see ``messages``.

Certificates. At such a tau the gradient of the objective is nu_i + nu_j on every pair, with
nu = u - (1 + c) / 2, for any row sums. The objective is concave over the degree polytope
(Tang 2015, theorem 1), hence for every feasible tau' there: value(tau') <= value(tau) up to the row
error, and log Z <= value + sum_i |nu_i| |1 - r_i|: that slack is added to the bound, twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.core.tolerances import TOLERANCES
from engine.kernels.matching_potentials import (
    sum_rows_bethe,
    sum_rows_general,
    write_marginals,
)
from engine.kernels.threads import for_row_ranges

PANEL = 256  # rows of marginals written at a time: 5 MB at n = 2,500
MEMORY = 6  # earlier sweeps that Anderson mixing uses
MAX_SWEEPS = 500
PATIENCE = 25  # sweeps after which a pair without a marginal below 1/2 stops the solve
LARGEST_EXPONENT = 700.0  # exp of larger numbers overflows
BRANCH_LIMIT = 0.25  # x above this has no marginal below 1/2 (c = 1)


class PairScores(Protocol):
    """Scores of all pairs that are written a panel of rows at a time."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes n."""

    def write_rows(self, first: int, last: int, out: FloatArray) -> None:
        """Write W[first:last] into ``out`` (last - first, n); -inf excludes a pair."""

    def dense(self) -> FloatArray:
        """Return W, shape (n, n), symmetric to the last bit."""


@dataclass(frozen=True, slots=True)
class DenseScores:
    """Scores in one symmetric array (n, n); -inf excludes a pair."""

    values: FloatArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes n."""
        return len(self.values)

    def write_rows(self, first: int, last: int, out: FloatArray) -> None:
        """Copy W[first:last] into ``out``."""
        out[:] = self.values[first:last]

    def dense(self) -> FloatArray:
        """Return W itself."""
        return self.values


@dataclass(slots=True)
class PotentialSolution:
    """Potentials at the end of a solve, from which marginals can be written.

    Parameters
    ----------
    potentials : ndarray, shape (n,), u, nats.
    residual : float, largest |row sum - 1|.
    sweeps : int
    is_on_branch : bool, whether the rows sum to 1 with every marginal on the lower branch.
    """

    potentials: FloatArray
    row_sums: FloatArray
    residual: float
    sweeps: int
    is_on_branch: bool
    _x: FloatArray
    _scale: FloatArray
    _rho: FloatArray

    def marginals(self) -> FloatArray:
        """Return tau, shape (n, n), symmetric with zero diagonal."""
        out = np.empty_like(self._x)
        self.summarise(lambda first, last, panel: out.__setitem__(slice(first, last), panel))
        return out

    def summarise(
        self, take_panel: Callable[[int, int, FloatArray], None]
    ) -> tuple[float, float, float]:
        """Write the marginals panel by panel and pass each to ``take_panel(first, last, tau)``.

        Returns
        -------
        tuple of float
            sum over pairs of c log(1 - tau); sum over ordered pairs of tau^2; the largest tau.
        """
        n = len(self._x)
        logs, squares, tops = np.empty(n), np.empty(n), np.empty(n)

        def work(first: int, last: int) -> None:
            buffer = np.empty((min(PANEL, last - first), n))
            for start in range(first, last, PANEL):
                stop = min(start + PANEL, last)
                panel = buffer[: stop - start]
                write_marginals(
                    self._x, self._scale, self._rho, start, stop, panel, logs, squares, tops
                )
                take_panel(start, stop, panel)

        for_row_ranges(n, work)
        return float(logs.sum()) / 2, float(squares.sum()), float(tops.max())


def solve_potentials(
    scores: PairScores,
    rho: FloatArray,
    potentials: FloatArray | None,
    tolerance: float,
    buffer: FloatArray | None = None,
    *,
    should_stop: StopCallback = never_stop,
) -> PotentialSolution:
    """Find the potentials whose row sums are all within ``tolerance`` of 1.

    Parameters
    ----------
    scores : PairScores
    rho : ndarray, shape (n,), reweighting per node in [0, 1].
    potentials : ndarray, shape (n,) or None, a warm start.
    tolerance : float
    buffer : ndarray, shape (n, n), optional work space; the solution keeps it.
    should_stop : called before every sweep.

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    O(n^2) a sweep; one (n, n) array of memory. It stops early, with ``is_on_branch`` False or the
    residual above the tolerance, if the fixed point leaves the lower branch.
    """
    n = scores.n_nodes
    x = np.empty((n, n)) if buffer is None else buffer
    u = _cold_start(scores) if potentials is None else potentials.copy()
    _fill(scores, u, x)
    is_bethe = bool(np.all(rho == 1.0))
    limit = BRANCH_LIMIT if is_bethe else 0.5
    sums, tops = np.empty(n), np.empty(n)
    mixer = _Mixer()
    shift = np.zeros(n)
    residual, sweeps = np.inf, 0
    while True:
        if should_stop():
            raise StoppedError("Cancelled.")
        scale = np.exp(np.minimum(-shift, LARGEST_EXPONENT))

        def work(first: int, last: int, scale: FloatArray = scale) -> None:
            if is_bethe:
                sum_rows_bethe(x, scale, first, last, sums, tops)
            else:
                sum_rows_general(x, scale, rho, first, last, sums, tops)

        for_row_ranges(n, work)
        sweeps += 1
        residual = float(np.abs(sums - 1.0).max())
        is_off_branch = sweeps >= PATIENCE and tops.max() >= limit
        # Sums overflow, or then become NaN, if pairs are far above the lower branch.
        is_lost = not np.isfinite(residual)
        if residual <= tolerance or sweeps >= MAX_SWEEPS or is_off_branch or is_lost:
            break
        shift = mixer.step(shift, np.log(np.maximum(sums, TOLERANCES.tiny)))
    on_branch = residual <= tolerance and float(tops.max()) < limit
    return PotentialSolution(u + shift, sums, residual, sweeps, on_branch, x, scale, rho)


def _cold_start(scores: PairScores) -> FloatArray:
    """Return half the logarithm of the row sums of exp(W), exact if all students are alike.

    It is at least half the row's largest score, so that no exp(W - u - u) is above 1.
    """
    n = scores.n_nodes
    start, tops = np.empty(n), np.empty(n)

    def work(first: int, last: int) -> None:
        panel = np.empty((min(PANEL, last - first), n))
        for a in range(first, last, PANEL):
            b = min(a + PANEL, last)
            rows = panel[: b - a]
            scores.write_rows(a, b, rows)
            rows[np.arange(b - a), np.arange(a, b)] = -np.inf
            top = tops[a:b] = rows.max(axis=1)
            start[a:b] = top + np.log(np.exp(rows - top[:, None]).sum(axis=1))

    for_row_ranges(n, work)
    return np.maximum(start - 0.5 * float(start.mean()), 0.5 * tops)


def _fill(scores: PairScores, u: FloatArray, x: FloatArray) -> None:
    """Write exp(W_ij - u_i - u_j) into x, zero on the diagonal."""

    def work(first: int, last: int) -> None:
        for a in range(first, last, PANEL):
            b = min(a + PANEL, last)
            rows = x[a:b]
            scores.write_rows(a, b, rows)
            rows -= u[a:b, None]
            rows -= u
            np.exp(rows, out=rows)
            rows[np.arange(b - a), np.arange(a, b)] = 0.0

    for_row_ranges(len(x), work)


class _Mixer:
    """Anderson mixing (Walker and Ni 2011, type II) of the map u -> u + log r - mean(log r) / 2."""

    def __init__(self) -> None:
        self._points: list[FloatArray] = []
        self._residuals: list[FloatArray] = []
        self._best = np.inf

    def step(self, point: FloatArray, log_sums: FloatArray) -> FloatArray:
        """Return the next point; restart with half a plain step if the residual grew."""
        move = log_sums - 0.5 * float(log_sums.mean())
        size = float(np.abs(log_sums).max())
        if size > 2.0 * self._best or size > 1.0:
            self._points.clear()
            self._residuals.clear()
            self._best = size
            return point + 0.5 * log_sums
        self._best = min(self._best, size)
        self._points.append(point)
        self._residuals.append(move)
        if len(self._points) > MEMORY:
            self._points.pop(0)
            self._residuals.pop(0)
        if len(self._points) == 1:
            return point + move
        last = self._residuals[-1]
        differences = np.stack([last - r for r in self._residuals[:-1]], axis=1)
        moves = np.stack([point - p for p in self._points[:-1]], axis=1)
        weights, *_ = np.linalg.lstsq(differences, last, rcond=1e-10)
        return np.asarray(point + move - (moves + differences) @ weights)
