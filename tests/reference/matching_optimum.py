"""The largest <W, tau> + H(tau) over tiny matching polytopes, in decimal numbers of 60 digits.

tau is a mixture of all perfect matchings, so that no facet has to be known: Newton's method on the
weights with a barrier, and the tangent at its end, read at every matching, for the bound. Slow and
obvious: nothing here is shared with what it checks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np

DIGITS = 60
LAST = Decimal("1e-22")  # the barrier's share where it ends
SHRINK = Decimal("0.02")
HALF = Decimal("0.5")
MAX_STEPS = 60  # at one share of the barrier


@dataclass(frozen=True)
class Optimum:
    """The maximum lies between ``lower``, of a feasible point, and ``upper``."""

    lower: Decimal
    upper: Decimal
    tau: np.ndarray


def find_optimum(
    scores: Sequence[float], counts: Sequence[float], matchings: np.ndarray
) -> Optimum:
    """Maximise sum_e W t + c (1 - t) log(1 - t) - t log t over mixtures of ``matchings`` (k, e)."""
    with localcontext() as context:
        context.prec = DIGITS
        context.Emin = -999_999
        keep = matchings.any(axis=0)
        w = np.array([Decimal(float(x)) for x in np.asarray(scores)[keep]], dtype=object)
        c = np.array([Decimal(float(x)) for x in np.asarray(counts)[keep]], dtype=object)
        corners = matchings[:, keep]
        best = _climb(w, c, corners)
        tau = np.zeros(matchings.shape[1], dtype=object)
        tau[keep] = best.tau
        return Optimum(best.lower, best.upper, tau)


def _climb(w: np.ndarray, c: np.ndarray, corners: np.ndarray) -> Optimum:
    k = len(corners)
    share = np.array([Decimal(1) / k] * k, dtype=object)
    at_corners = [sum(w[corner == 1], Decimal(0)) for corner in corners]
    barrier = Decimal(1) + max(at_corners) - min(at_corners)
    while True:
        share = _centre(w, c, corners, share, barrier)
        if barrier <= LAST:
            break
        barrier = max(barrier * SHRINK, LAST)
    tau, rest = _point(corners, share)
    gradient = _gradient(w, c, tau, rest)
    value = _value(w, c, tau, rest)
    slopes = [sum(gradient[corner == 1], Decimal(0)) for corner in corners]
    upper = value + max(slopes) - sum(gradient * tau)
    return Optimum(max(value, *at_corners), max(upper, *at_corners), tau)


def _centre(
    w: np.ndarray, c: np.ndarray, corners: np.ndarray, share: np.ndarray, barrier: Decimal
) -> np.ndarray:
    """Maximise the value plus ``barrier`` times the sum of the logarithms of the shares."""
    k = len(share)
    matrix = corners.astype(int)
    for _ in range(MAX_STEPS):
        tau, rest = _point(corners, share)
        slope = matrix.dot(_gradient(w, c, tau, rest)) + barrier / share
        curvature = np.array(
            [c[e] / rest[e] - 1 / tau[e] if rest[e] else Decimal(0) for e in range(len(tau))],
            dtype=object,
        )
        system = np.zeros((k + 1, k + 2), dtype=object)
        system[:k, :k] = (matrix * curvature).dot(matrix.T)
        system[np.arange(k), np.arange(k)] -= barrier / share**2
        system[:k, k], system[k, :k] = Decimal(1), Decimal(1)
        system[k, k] = Decimal(0)
        system[:k, k + 1], system[k, k + 1] = -slope, Decimal(0)
        move = _solve(system)[:k]
        promise = sum(slope * move)
        falls = [-share[a] / move[a] for a in range(k) if move[a] < 0]
        step = min([Decimal(1), *(Decimal("0.9") * way for way in falls)])
        before = _value(w, c, tau, rest) + barrier * sum(s.ln() for s in share)
        while True:
            following = share + step * move
            value = _value(w, c, *_point(corners, following))
            value += barrier * sum(s.ln() for s in following)
            if value >= before + step * promise / 10000 or step < Decimal("1e-30"):
                break
            step *= HALF
        share = following / sum(following)
        if promise < barrier * Decimal("1e-4"):
            break
    return share


def _point(corners: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return tau and 1 - tau, each a sum of shares."""
    edges = range(corners.shape[1])
    tau = [sum(share[corners[:, e] == 1], Decimal(0)) for e in edges]
    rest = [sum(share[corners[:, e] == 0], Decimal(0)) for e in edges]
    return np.array(tau, dtype=object), np.array(rest, dtype=object)


def _value(w: np.ndarray, c: np.ndarray, tau: np.ndarray, rest: np.ndarray) -> Decimal:
    total = sum(w * tau, Decimal(0))
    for e in range(len(tau)):
        total -= tau[e] * tau[e].ln()
        if rest[e]:
            total += c[e] * rest[e] * rest[e].ln()
    return total


def _gradient(w: np.ndarray, c: np.ndarray, tau: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return the gradient; an edge of every matching may have any."""
    slopes = [
        w[e] - c[e] * (1 + rest[e].ln()) - 1 - tau[e].ln() if rest[e] else w[e]
        for e in range(len(tau))
    ]
    return np.array(slopes, dtype=object)


def _solve(system: np.ndarray) -> np.ndarray:
    """Solve a system given with its right side, by elimination with pivots."""
    n = len(system)
    for a in range(n):
        pivot = a + int(np.argmax([abs(x) for x in system[a:, a]]))
        system[[a, pivot]] = system[[pivot, a]]
        system[a, a:] = system[a, a:] / system[a, a]
        for b in range(a + 1, n):
            if system[b, a]:
                system[b, a:] = system[b, a:] - system[b, a] * system[a, a:]
    found = system[:, n].copy()
    for a in range(n - 2, -1, -1):
        found[a] = found[a] - sum(system[a, a + 1 : n] * found[a + 1 :], Decimal(0))
    return found
