"""Do degree-feasible pseudomarginals satisfy every odd-set inequality?

The matching polytope of a graph that is not bipartite asks, beyond sum_j tau_ij = 1, that at
least one unit leaves every odd set U of nodes: cut(U) >= 1. What proves it without looking at
every U, cheapest first:

- Rows: a member of U keeps at most the |U| - 1 largest entries of its row inside.
- Spectral: cut(U) >= (1 - mu) |U| (n - |U|) / n with mu any bound of the second largest eigenvalue
  of tau (the Laplacian's algebraic connectivity). ||tau||_F^2 - 1 >= mu^2 costs nothing; a Lanczos
  estimate, proved by a Cholesky factor of mu I - tau + 1 1^T / n, is closer.
- Exact: every small set by branch and bound; the parts that all but tiny entries fall into by
  themselves; the smallest odd cut of all (Padberg and Rao 1982).

Rows settle small sets and the spectrum large ones. What is left is bounded all the same, so that a
tau that is not proved can be mixed with an interior point until it is (``share_of_interior``).
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

EXACT_UP_TO = 4_000  # nodes whose odd cuts are all looked at: two seconds for 1,000
EXACT_IN_PASSING = 400  # nodes for which that is worth its while where no proof is needed yet
EXACT_SOON = 300  # nodes up to which that takes less than other proofs of large sets
TOLERANCE = 1e-9  # a cut this little below one is a rounding error, not a violation
LONGEST_ROW = 63  # largest entries of a row that are sorted: sets up to one more get a row bound
SMALL_SETS = 25  # members up to which sets are searched one by one
BUDGET = 100_000  # branchings of that search, a second at most
MOST_FOUND = 64  # sets returned at once
MARGIN = 0.05  # of 1 - mu, added to a Lanczos estimate before it is proved
THRESHOLDS = (0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-10)
"""Entries below are left out when the graph is taken apart."""


@dataclass(frozen=True, slots=True)
class OddSetProof:
    """What is known of the odd cuts of one tau.

    Parameters
    ----------
    size_bounds : ndarray, shape (n // 4,) or so, at most 1
        Proved: at least so much leaves every set of 3, 5, ... up to n / 2 nodes.
    violated : tuple of ndarray
        Nodes of odd sets that less than one unit leaves, most violated first; empty where there is
        none or none was found.
    """

    size_bounds: FloatArray
    violated: tuple[IntArray, ...] = ()

    @property
    def least(self) -> float:
        """What leaves every odd set at least, 1 at most."""
        return float(self.size_bounds.min(initial=1.0))

    def with_bounds(self, bounds: FloatArray) -> "OddSetProof":
        """Return the proof with these bounds of sets of 3, 5, ... nodes where they are better."""
        return replace(self, size_bounds=np.minimum(np.maximum(self.size_bounds, bounds), 1.0))

    @property
    def holds(self) -> bool:
        """Whether every odd-set inequality is proved up to ``TOLERANCE``."""
        return self.least >= 1.0 - TOLERANCE

    def share_of_interior(self, n_nodes: int) -> float:
        """Return how much of tau = 1/(n - 1) makes a mixture satisfy every odd set, at most 1.

        |U| (n - |U|) / (n - 1) of it leave U, at least 1.8: a share e of it adds that much.
        """
        sizes = 3.0 + 2.0 * np.arange(len(self.size_bounds))
        missing = 1.0 - self.size_bounds
        uniform = sizes * (n_nodes - sizes) / (n_nodes - 1)
        shares = missing / (uniform - self.size_bounds)
        return float(shares.max(initial=0.0))


def examine_odd_sets(
    tau: FloatArray, *, exact_up_to: int = EXACT_UP_TO, should_stop: StopCallback = never_stop
) -> OddSetProof:
    """Prove, for degree-feasible marginals (n, n), what leaves every odd set, or find violations.

    Row sums may fall short of 1 by a known little; what is missing counts as staying inside.

    Parameters
    ----------
    tau : ndarray, shape (n, n), symmetric.
    exact_up_to : int, nodes up to which all odd cuts are looked at where nothing else proves them.
    should_stop : asked on the way of that.

    Raises
    ------
    StoppedError
        If ``should_stop`` answered True.

    Notes
    -----
    O(n^2) where marginals are small; O(n^3), as an eigenvalue bound and a Cholesky factor, and a
    search of a second at most, where some are large; a maximum flow a node where that leaves sets
    open.
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
    """Return what ||tau||_F^2 over the full array and the largest marginal prove by themselves."""
    proof = OddSetProof(np.zeros(len(_sizes(n_nodes))))
    proof = proof.with_bounds(bound_by_rows(n_nodes, largest, least_sum))
    return proof.with_bounds(bound_by_spectrum(n_nodes, _frobenius(sum_of_squares), least_sum))


def is_in_matching_polytope(tau: FloatArray, should_stop: StopCallback = never_stop) -> bool:
    """Return whether degree-feasible marginals (n, n) are proved to satisfy every odd set."""
    return examine_odd_sets(tau, should_stop=should_stop).holds


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

    Lanczos says where it is, and a Cholesky factor of mu I - tau + 1 1^T / n that nothing on the
    complement of the constant vector lies above mu: it exists for no smaller mu.
    """
    n = len(tau)

    def product(vector: FloatArray) -> FloatArray:
        return np.asarray(tau @ vector - vector.mean())

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).normal(size=n)  # a fixed one: the same answer every time
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
    """Bound the second eigenvalue by what the first leaves of the sum of squares."""
    return float(np.sqrt(max(squares - 1.0, 0.0)))


def _largest_first(tau: FloatArray) -> IntArray:
    """Return the places of the largest entries of every row, largest first."""
    count = min(LONGEST_ROW, len(tau) - 1)
    top = np.argpartition(-tau, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(tau, top, axis=1), axis=1, kind="stable")
    return np.ascontiguousarray(np.take_along_axis(top, order, axis=1))


def _bound_by_sorted_rows(tau: FloatArray, ordered: IntArray, sums: FloatArray) -> FloatArray:
    """Bound the cuts of sets of 3, 5, ... nodes by what their members cannot keep inside."""
    kept = np.cumsum(np.take_along_axis(tau, ordered, axis=1), axis=1)
    last = np.take_along_axis(tau, ordered[:, -1:], axis=1)[:, 0]
    bounds = np.zeros(len(_sizes(len(tau))))
    for k in range(len(bounds)):
        size = 3 + 2 * k
        beyond = size - 1 - kept.shape[1]
        inside = kept[:, min(size - 2, kept.shape[1] - 1)] + max(beyond, 0) * last
        leaving = np.maximum(sums - inside, 0.0)
        bounds[k] = np.partition(leaving, size - 1)[:size].sum()
        if beyond > LONGEST_ROW:  # hopeless from here on, and the spectrum's part
            break
    return bounds


def _search_small_sets(
    tau: FloatArray, ordered: IntArray, sums: FloatArray, proof: OddSetProof
) -> OddSetProof:
    """Look at every set of up to ``SMALL_SETS`` nodes that might be violated."""
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
    """Return the other node of every pair above 1/2, -1 without one, shape (n,)."""
    likeliest = ordered[:, 0]
    is_likely = tau[np.arange(len(tau)), likeliest] > 0.5
    partner = np.where(is_likely, likeliest, -1)
    mutual = partner[np.maximum(partner, 0)] == np.arange(len(tau))  # row sums of 1 + 1e-10 aside
    return np.where(mutual, partner, -1)


def _spare_of_units(
    tau: FloatArray, sums: FloatArray, partner: IntArray, largest: int
) -> FloatArray:
    """Return what leaves every unit among r nodes at most, its own included, whichever those are.

    Shape (largest, n), by r and the unit's first node; the others' entries mean nothing.
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
    """Find violated sets among the parts that large entries connect, and prove parts by themselves.

    Leaving entries out only lowers cuts, and an odd set has an odd share of some part: what is
    proved of the parts holds for the whole.
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
        if (few >= 3).any():  # one node alone: its row sum falls short, no more
            return replace(proof, violated=_most_violated(tau, sums, found[few >= 3]))
        least = float(values.min(initial=1.0 - TOLERANCE))  # no more was looked for
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
    """Return sides (m, n) of odd cuts below 1 and what they weigh (m,), a smallest among them."""
    return find_odd_cuts(weights, is_odd, 1.0 - TOLERANCE, MOST_FOUND, should_stop)


def _cuts_between_parts(
    tau: FloatArray, sums: FloatArray, labels: IntArray, count: int, should_stop: StopCallback
) -> tuple[IntArray, ...]:
    """Return violated unions of parts; none if there are too many parts."""
    if count > EXACT_IN_PASSING or count < 2:
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
    """Return the nodes of the smaller side of a cut, of equal ones that without node 0."""
    inside, n = int(side.sum()), len(side)
    is_other = 2 * inside > n or (2 * inside == n and bool(side[0]))
    return np.flatnonzero(~side if is_other else side)


def _most_violated(tau: FloatArray, sums: FloatArray, found: BoolArray) -> tuple[IntArray, ...]:
    """Return disjoint sets, most violated first; others may be repaired with them."""
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
