"""Do degree-feasible pseudomarginals satisfy every odd-set inequality?

The matching polytope of a graph that is not bipartite asks, beyond sum_j tau_ij = 1, that at
least one unit leaves every odd set U of nodes. They are exponentially many; two tests settle
them at once.

- Spectral: tau is symmetric with row sums 1, so its largest eigenvalue is 1 with the constant
  vector, and cut(U) >= (1 - mu) |U| (n - |U|) / n with mu any upper bound of the second largest
  (the Laplacian's algebraic connectivity). ||tau||_F^2 - 1 >= mu^2 costs nothing extra.
- Local: cut(U) >= |U| (1 - (|U| - 1) max tau), strong for small sets.
"""

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.kernels.odd_cuts import smallest_odd_cut

EXACT_UP_TO = 128  # nodes for which n - 1 maximum flows take a fraction of a second
TOLERANCE = 1e-9  # a cut this little below one is a rounding error, not a violation


def odd_sets_hold(n_nodes: int, sum_of_squares: float, largest: float) -> bool:
    """Return whether the two cheap tests prove every odd-set inequality.

    Parameters
    ----------
    n_nodes : int
    sum_of_squares : float, ||tau||_F^2 over the full symmetric array.
    largest : float, the largest marginal.
    """
    return spectral_bound_holds(n_nodes, float(np.sqrt(max(sum_of_squares - 1.0, 0.0))), largest)


def spectral_bound_holds(n_nodes: int, second_eigenvalue: float, largest: float) -> bool:
    """Return whether a bound of the second eigenvalue and the largest marginal prove all cuts."""
    sizes = np.arange(3, n_nodes // 2 + 1, 2, dtype=np.float64)
    spectral = (1.0 - second_eigenvalue) * sizes * (n_nodes - sizes) / n_nodes
    local = sizes * (1.0 - (sizes - 1.0) * largest)
    return bool(np.all(np.maximum(spectral, local) >= 1.0 - TOLERANCE))


def bound_second_eigenvalue(
    gram: FloatArray, inner: FloatArray, image: FloatArray, sum_of_squares: float
) -> float:
    """Return an upper bound of the second largest eigenvalue from the action of tau on a subspace.

    Parameters
    ----------
    gram : ndarray, shape (D, D), Z^T Z for any Z (n, D) whose span holds the constant vector.
    inner : ndarray, shape (D, D), Z^T tau Z.
    image : ndarray, shape (n, D), tau Z.
    sum_of_squares : float, ||tau||_F^2.

    Notes
    -----
    With V an orthonormal basis of the span, A = V^T tau V and B = tau V - V A, the rest C of tau
    has ||C||_F^2 = ||tau||_F^2 - ||A||_F^2 - 2 ||B||_F^2, and without the constant vector every
    eigenvalue of tau is at most max(lambda_2(A), ||C||_F) + ||B||_2.
    """
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-9 * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept])
    inside = basis.T @ inner @ basis
    mapped = image @ basis
    outside = mapped.T @ mapped - inside @ inside
    leak = np.linalg.eigvalsh((outside + outside.T) / 2)
    rest = sum_of_squares - float((inside**2).sum()) - 2.0 * float(np.maximum(leak, 0.0).sum())
    eigenvalues = np.linalg.eigvalsh((inside + inside.T) / 2)
    second = float(eigenvalues[-2]) if len(eigenvalues) > 1 else 0.0
    rounding = 1e-7  # square roots of differences of numbers of order one
    return (
        max(second, float(np.sqrt(max(rest, 0.0))))
        + float(np.sqrt(max(float(leak[-1]), 0.0)))
        + rounding
    )


def find_violated_odd_set(tau: FloatArray) -> IntArray | None:
    """Return the nodes of an odd set that less than one unit leaves, None if there is none.

    Exact (Padberg and Rao 1982): n - 1 maximum flows. Meant for a few hundred nodes at most.
    """
    side = np.zeros(len(tau), dtype=np.bool_)
    if smallest_odd_cut(np.ascontiguousarray(tau), side) >= 1.0 - TOLERANCE:
        return None
    return np.flatnonzero(side).astype(np.int64)


def is_in_matching_polytope(tau: FloatArray) -> bool:
    """Return whether degree-feasible marginals (n, n) are proved to satisfy every odd set.

    The cheap tests first; up to 128 nodes the exact one; above that ||tau^2||_F^2 - 1 >= mu^4, one
    product of matrices, and the eigenvalues, three times its cost, where that is too coarse.
    """
    n, squares, largest = len(tau), float((tau**2).sum()), float(tau.max(initial=0.0))
    if odd_sets_hold(n, squares, largest):
        return True
    if n <= EXACT_UP_TO:
        return find_violated_odd_set(tau) is None
    # Row sums 1 up to the tolerance leave the largest eigenvalue's fourth power 1 up to four of it.
    fourth = max(float(((tau @ tau) ** 2).sum()) - 1.0, 0.0) + 4.0 * TOLERANCE
    if spectral_bound_holds(n, fourth**0.25, largest):
        return True
    second = float(np.linalg.eigvalsh(tau)[-2])
    return spectral_bound_holds(n, second + 1e-9, largest)
