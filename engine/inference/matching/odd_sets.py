"""Proofs that degree-feasible pseudomarginals satisfy every odd-set inequality.

The matching polytope of a graph that is not bipartite requires, besides sum_j tau_ij = 1, that
at least one unit leaves every odd set U of nodes: cut(U) >= 1. Three proofs avoid examining
every U, cheapest first:

- Rows: a member of U keeps at most the |U| - 1 largest entries of its row inside.
- Spectral: cut(U) >= (1 - mu) |U| (n - |U|) / n with mu any bound of the second largest eigenvalue
  of tau (the Laplacian's algebraic connectivity). ||tau||_F^2 - 1 >= mu^2 costs nothing; a Lanczos
  estimate, proved by a Cholesky factor of mu I - tau + 1 1^T / n, is closer.
- Exact: every small set by branch and bound; each part that the entries above a threshold
  connect; the smallest odd cut of all (Padberg and Rao 1982).

Rows prove small sets and the spectrum large ones. The other sets are bounded too, so that a tau
that is not proved can be mixed with an interior point until it is (``share_of_interior``).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from engine.core.arguments import BoolArray, FloatArray, IntArray
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.odd_cuts import find_odd_cuts
from engine.kernels.small_odd_sets import find_small_odd_sets

EXACT_UP_TO = 4_000  # maximum number of nodes whose odd cuts are all examined: 2 s for 1,000
EARLY_EXACT_MAX_NODES = 400  # maximum number of nodes for which that pays before a proof is needed
EXACT_SOON = 300  # maximum number of nodes for which that is faster than other proofs of large sets
TOLERANCE = 1e-9  # a cut this little below one is a rounding error, not a violation
LONGEST_ROW = 63  # number of sorted entries of a row: sets up to one more get a row bound
SMALL_SETS = 25  # maximum number of members of sets that are searched one by one
BUDGET = 100_000  # maximum number of branchings of that search, at most a second
MOST_FOUND = 64  # maximum number of sets returned at once
MARGIN = 0.05  # share of 1 - mu added to a Lanczos estimate before its proof
THRESHOLDS = (0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-10)
"""Thresholds below which entries are ignored when the graph is split into parts."""


@dataclass(frozen=True, slots=True)
class OddSetProof:
    """Lower bounds and violations of the odd cuts of one tau.

    Parameters
    ----------
    size_bounds : ndarray, shape (n // 4,) or so, at most 1
        Proved lower bounds of the cuts of all sets of 3, 5, ... up to n / 2 nodes.
    violated : tuple of ndarray
        Nodes of odd sets that less than one unit leaves, most violated first; empty if no such set
        exists or was found.
    """

    size_bounds: FloatArray
    violated: tuple[IntArray, ...] = ()

    @property
    def least(self) -> float:
        """Lower bound of every odd cut, at most 1."""
        return float(self.size_bounds.min(initial=1.0))

    def with_bounds(self, bounds: FloatArray) -> "OddSetProof":
        """Return the proof with the better of its and these bounds of sets of 3, 5, ... nodes."""
        return replace(self, size_bounds=np.minimum(np.maximum(self.size_bounds, bounds), 1.0))

    @property
    def holds(self) -> bool:
        """True if every odd-set inequality is proved up to ``TOLERANCE``."""
        return self.least >= 1.0 - TOLERANCE

    def share_of_interior(self, n_nodes: int) -> float:
        """Return the share of tau = 1/(n - 1) in a mixture that satisfies every odd set.

        Its cut of U is |U| (n - |U|) / (n - 1), at least 1.8: a share e of it adds e times that.
        """
        sizes = 3.0 + 2.0 * np.arange(len(self.size_bounds))
        missing = 1.0 - self.size_bounds
        uniform = sizes * (n_nodes - sizes) / (n_nodes - 1)
        shares = missing / (uniform - self.size_bounds)
        return float(shares.max(initial=0.0))


def examine_odd_sets(
    tau: FloatArray, *, exact_up_to: int = EXACT_UP_TO, should_stop: StopCallback = never_stop
) -> OddSetProof:
    """Bound every odd cut of degree-feasible marginals (n, n) from below, or find violations.

    Row sums may fall slightly short of 1; the shortfall counts as staying inside a set.

    Parameters
    ----------
    tau : ndarray, shape (n, n), symmetric.
    exact_up_to : int, most nodes for which all odd cuts are examined if nothing else proves them.
    should_stop : called during that search.

    Raises
    ------
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    O(n^2) if marginals are small; O(n^3), for an eigenvalue bound and a Cholesky factor, and a
    search of at most a second, if some are large; a maximum flow a node if that proves too little.
    """
    n, sums = len(tau), tau.sum(axis=1)
    proof = examine_cheaply(
        n, float(np.einsum("ij,ij->", tau, tau)), float(tau.max(initial=0.0)), float(sums.min())
    )
    if proof.holds:
        return proof
    ordered = _largest_first(tau)
    proof = proof.with_bounds(_bound_by_sorted_rows(tau, ordered, sums))
    if not proof.holds and n > EXACT_SOON:
        second = prove_second_eigenvalue(tau)
        proof = proof.with_bounds(bound_by_spectrum(n, second, float(sums.min())))
    if not proof.holds:
        proof = _search_small_sets(tau, ordered, sums, proof)
    if not proof.holds and not proof.violated:
        proof = _take_apart(tau, sums, proof, exact_up_to, should_stop)
    return proof


def examine_cheaply(
    n_nodes: int, sum_of_squares: float, largest: float, least_sum: float = 1.0
) -> OddSetProof:
    """Return the proof by ||tau||_F^2 over the full array and the largest marginal alone."""
    proof = OddSetProof(np.zeros(len(_sizes(n_nodes))))
    proof = proof.with_bounds(bound_by_rows(n_nodes, largest, least_sum))
    return proof.with_bounds(bound_by_spectrum(n_nodes, _frobenius(sum_of_squares), least_sum))


def bound_by_rows(n_nodes: int, largest: float, least_sum: float = 1.0) -> FloatArray:
    """Bound the cuts of sets of 3, 5, ... nodes from below by the largest marginal."""
    sizes = _sizes(n_nodes)
    return np.asarray(sizes * np.maximum(least_sum - (sizes - 1.0) * largest, 0.0))


def bound_by_spectrum(n_nodes: int, second: float, least_sum: float = 1.0) -> FloatArray:
    """Bound the cuts of sets of 3, 5, ... nodes from below by a bound of the second eigenvalue."""
    sizes = _sizes(n_nodes)
    return np.asarray(max(least_sum - second, 0.0) * sizes * (n_nodes - sizes) / n_nodes)


def prove_second_eigenvalue(tau: FloatArray) -> float:
    """Return a proved upper bound of the second largest eigenvalue of tau with row sums 1.

    Lanczos estimates it, and a Cholesky factor of mu I - tau + 1 1^T / n, which exists for no
    smaller mu, proves that no eigenvalue besides that of the constant vector lies above mu.
    """
    n = len(tau)

    def product(vector: FloatArray) -> FloatArray:
        return np.asarray(tau @ vector - vector.mean())

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).normal(size=n)  # a fixed seed gives the same result every time
    try:
        found = eigsh(operator, k=1, which="LA", tol=1e-2, v0=start, return_eigenvectors=False)
    except ArpackError:
        return 1.0
    mu = min(max(float(found[0]), 0.0), 1.0)
    for margin in (MARGIN, 5.0 * MARGIN):
        bound = mu + margin * (1.0 - mu)
        matrix = np.full((n, n), 1.0 / n) - tau
        matrix[np.diag_indices(n)] += bound
        try:
            cho_factor(matrix, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
        return bound
    return 1.0


def _sizes(n_nodes: int) -> FloatArray:
    return np.arange(3, n_nodes // 2 + 1, 2, dtype=np.float64)


def _frobenius(squares: float) -> float:
    """Bound the second eigenvalue by the sum of squares without the first eigenvalue's."""
    return float(np.sqrt(max(squares - 1.0, 0.0)))


def _largest_first(tau: FloatArray) -> IntArray:
    """Return the columns of the largest entries of every row, largest first."""
    count = min(LONGEST_ROW, len(tau) - 1)
    top = np.argpartition(-tau, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(tau, top, axis=1), axis=1, kind="stable")
    return np.ascontiguousarray(np.take_along_axis(top, order, axis=1))


def _bound_by_sorted_rows(tau: FloatArray, ordered: IntArray, sums: FloatArray) -> FloatArray:
    """Bound the cuts of sets of 3, 5, ... nodes by the amounts that cannot stay inside."""
    kept = np.cumsum(np.take_along_axis(tau, ordered, axis=1), axis=1)
    last = np.take_along_axis(tau, ordered[:, -1:], axis=1)[:, 0]
    bounds = np.zeros(len(_sizes(len(tau))))
    for k in range(len(bounds)):
        size = 3 + 2 * k
        beyond = size - 1 - kept.shape[1]
        inside = kept[:, min(size - 2, kept.shape[1] - 1)] + max(beyond, 0) * last
        leaving = np.maximum(sums - inside, 0.0)
        bounds[k] = np.partition(leaving, size - 1)[:size].sum()
        if beyond > LONGEST_ROW:  # larger sets are left to the spectrum
            break
    return bounds


def _search_small_sets(
    tau: FloatArray, ordered: IntArray, sums: FloatArray, proof: OddSetProof
) -> OddSetProof:
    """Search all sets of up to ``SMALL_SETS`` nodes that might be violated."""
    open_sizes = _sizes(len(tau))[proof.size_bounds < 1.0 - TOLERANCE]
    found = np.zeros((MOST_FOUND, len(tau)), dtype=np.bool_)
    partner = _units(tau, ordered)
    budget = BUDGET if len(tau) > EXACT_SOON else BUDGET // 20
    for limit in (5, 11, SMALL_SETS):
        largest = int(min(limit, open_sizes[-1]))
        spare = _spare_of_units(tau, sums, partner, largest)
        count, least, is_finished = find_small_odd_sets(
            tau, sums, partner, spare, largest, 1.0 - TOLERANCE, budget, found
        )
        if count:
            return replace(proof, violated=_most_violated(tau, sums, found[:count]))
        if not is_finished:
            return proof
        proved = np.where(_sizes(len(tau)) <= largest, min(least, 1.0 - TOLERANCE), 0.0)
        proof = proof.with_bounds(proved)
        if largest >= open_sizes[-1]:
            break
    return proof


def _units(tau: FloatArray, ordered: IntArray) -> IntArray:
    """Return each node's partner in a pair above 1/2, -1 without one, shape (n,)."""
    likeliest = ordered[:, 0]
    is_likely = tau[np.arange(len(tau)), likeliest] > 0.5
    partner = np.where(is_likely, likeliest, -1)
    mutual = partner[np.maximum(partner, 0)] == np.arange(len(tau))  # but for row sums of 1 + 1e-10
    return np.where(mutual, partner, -1)


def _spare_of_units(
    tau: FloatArray, sums: FloatArray, partner: IntArray, largest: int
) -> FloatArray:
    """Return the least amount that each unit sends out of any set of at most r nodes with it.

    Shape (largest, n), by r and the unit's first node; entries of other nodes are undefined.
    """
    n = len(tau)
    spare = np.zeros((largest, n))
    second = np.where(partner >= 0, partner, np.arange(n))
    rows = tau + np.where(partner >= 0, 1.0, 0.0)[:, None] * tau[second]
    rows[np.arange(n), second] = 0.0
    rows[np.arange(n), np.arange(n)] = 0.0
    outside = np.where(partner >= 0, sums + sums[second] - 2.0 * tau[np.arange(n), second], sums)
    count = min(largest, n - 1)
    top = -np.sort(-np.partition(rows, n - count, axis=1)[:, n - count :], axis=1)
    kept = np.concatenate([np.zeros((n, 1)), np.cumsum(top, axis=1)], axis=1)
    own = np.where(partner >= 0, 2, 1)
    for r in range(largest):
        spare[r] = np.maximum(outside - kept[np.arange(n), np.clip(r - own, 0, count)], 0.0)
    return spare


def _take_apart(
    tau: FloatArray,
    sums: FloatArray,
    proof: OddSetProof,
    exact_up_to: int,
    should_stop: StopCallback,
) -> OddSetProof:
    """Find violated sets among the parts that large entries connect, and prove each part.

    Ignoring entries only lowers cuts, and an odd set has an odd share of some part, so that bounds
    of the parts hold for the whole.
    """
    n = len(tau)
    for threshold in THRESHOLDS:
        count, parts = connected_components(
            csr_array((tau >= threshold).astype(np.float64)), directed=False
        )
        labels = np.asarray(parts, dtype=np.int64)
        if count == 1:
            continue
        violated = _cuts_between_parts(tau, sums, labels, count, should_stop)
        if violated:
            return replace(proof, violated=violated)
    is_apart = count > 1 and not (np.bincount(labels) % 2 == 1).any()
    if n <= EXACT_SOON or (n <= exact_up_to and not is_apart):
        found, values = _violated_cuts(tau, np.ones(n, dtype=np.bool_), should_stop)
        few = np.minimum(found.sum(axis=1), n - found.sum(axis=1))
        if (few >= 3).any():  # a set of one node only means that its row sum falls short
            return replace(proof, violated=_most_violated(tau, sums, found[few >= 3]))
        least = float(values.min(initial=1.0 - TOLERANCE))  # the search stops at 1
        return proof.with_bounds(np.full(len(proof.size_bounds), least))
    if not is_apart:
        return proof
    least = float(sums.min())
    for label in range(count):
        own = np.flatnonzero(labels == label)
        inside = np.ascontiguousarray(tau[np.ix_(own, own)])
        part = examine_odd_sets(inside, exact_up_to=exact_up_to, should_stop=should_stop)
        if part.violated:
            found = np.zeros((len(part.violated), n), dtype=np.bool_)
            for k, nodes in enumerate(part.violated):
                found[k, own[nodes]] = True
            return replace(proof, violated=_most_violated(tau, sums, found))
        least = min(least, part.least)
    return proof.with_bounds(np.full(len(proof.size_bounds), least))


def _violated_cuts(
    weights: FloatArray, is_odd: BoolArray, should_stop: StopCallback
) -> tuple[BoolArray, FloatArray]:
    """Return sides (m, n) and weights (m,) of odd cuts below 1, including a smallest one."""
    return find_odd_cuts(weights, is_odd, 1.0 - TOLERANCE, MOST_FOUND, should_stop)


def _cuts_between_parts(
    tau: FloatArray, sums: FloatArray, labels: IntArray, count: int, should_stop: StopCallback
) -> tuple[IntArray, ...]:
    """Return violated unions of parts; the tuple is empty if there are too many parts."""
    if count > EARLY_EXACT_MAX_NODES or count < 2:
        return ()
    member = np.zeros((count, len(tau)))
    member[labels, np.arange(len(tau))] = 1.0
    between = member @ tau @ member.T
    np.fill_diagonal(between, 0.0)
    is_odd = member.sum(axis=1) % 2 == 1
    if not is_odd.any():
        return ()
    found, _ = _violated_cuts(between, is_odd, should_stop)
    sides = found[:, labels]
    few = np.minimum(sides.sum(axis=1), len(tau) - sides.sum(axis=1))
    return _most_violated(tau, sums, sides[few >= 3])


def smaller_side(side: BoolArray) -> IntArray:
    """Return the nodes of the smaller side of a cut; of equal sides, the one without node 0."""
    inside, n = int(side.sum()), len(side)
    is_other = 2 * inside > n or (2 * inside == n and bool(side[0]))
    return np.flatnonzero(~side if is_other else side)


def _most_violated(tau: FloatArray, sums: FloatArray, found: BoolArray) -> tuple[IntArray, ...]:
    """Return disjoint violated sets, most violated first, which may repair the others too."""
    sets = found.astype(np.float64)
    cuts = sets @ sums - np.einsum("ki,ki->k", sets @ tau, sets)
    chosen: list[IntArray] = []
    taken = np.zeros(len(tau), dtype=np.bool_)
    for k in np.argsort(cuts, kind="stable"):
        nodes = smaller_side(found[k])
        if cuts[k] < 1.0 - TOLERANCE and not taken[nodes].any():
            taken[nodes] = True
            chosen.append(nodes)
    return tuple(chosen)
