"""Every perfect matching of a small complete graph, one by one: slow and obvious."""

from collections.abc import Iterator

import numpy as np
from scipy.optimize import minimize


def enumerate_pairs(students: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield every way to split the students into pairs."""
    if not students:
        yield ()
        return
    first, rest = students[0], students[1:]
    for k, other in enumerate(rest):
        for others in enumerate_pairs(rest[:k] + rest[k + 1 :]):
            yield ((first, other), *others)


def all_matchings(n: int) -> np.ndarray:
    """Return the symmetric 0-1 matrices of all perfect matchings, shape (count, n, n)."""
    matrices = []
    for pairs in enumerate_pairs(tuple(range(n))):
        matrix = np.zeros((n, n))
        for i, j in pairs:
            matrix[i, j] = matrix[j, i] = 1.0
        matrices.append(matrix)
    return np.array(matrices)


def log_partition(scores: np.ndarray) -> float:
    """Return the exact log Z over perfect matchings."""
    totals = np.einsum("kij,ij->k", all_matchings(len(scores)), scores) / 2
    top = totals.max()
    return float(top + np.log(np.exp(totals - top).sum()))


def entropy(tau: np.ndarray, rho: np.ndarray) -> float:
    """Return H_rho of perfect matchings, pair by pair, as the formula is written."""
    total = 0.0
    for i in range(len(tau)):
        for j in range(i):
            t = tau[i, j]
            if t > 0:
                total -= t * np.log(t)
            if 0 < t < 1:
                total += (rho[i] + rho[j] - 1) * (1 - t) * np.log(1 - t)
    return total


def minimise_over_hull(objective, n: int, *, rng: np.random.Generator) -> float:
    """Return the minimum of a convex function of tau over the hull of all perfect matchings."""
    matchings = all_matchings(n)

    def of_logits(logits: np.ndarray) -> float:
        share = np.exp(logits - logits.max())
        return objective(np.einsum("k,kij->ij", share / share.sum(), matchings))

    starts = [np.zeros(len(matchings)), rng.normal(size=len(matchings))]
    options = {"maxiter": 3000, "ftol": 1e-15, "gtol": 1e-10, "maxfun": 10**6}
    found = [minimize(of_logits, s, method="L-BFGS-B", options=options).fun for s in starts]
    return float(min(found))
