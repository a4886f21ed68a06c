"""Probabilities of pairs with a known error, by Markov chains and approximate marginals.

The chain draws perfect matchings from P ~ exp(total score). It re-pairs along worms: a pair is
opened, and one end takes partner after partner from others until it takes the other end. No step is
rejected (``engine.kernels.matching_worms``). Eight chains run independently, from a best and from
random matchings; if they agree, their frequencies f are unbiased with a known error s. They are
compared with the approximate marginals B: among pairs of similar B, the variance of f - B beyond
s^2 estimates the error of B, v, and the result is

    B + mean(f - B) + v / (v + s^2) (f - B - mean(f - B)),     standard error s sqrt(v / (v + s^2))

so that small probabilities, which a chain would take very long to distinguish, keep the order and
the digits of B, and large ones come from the chain, entirely so if they are far from B.

References
----------
Sandvik and Moessner 2006 (worms that are never rejected); Gelman and Rubin 1992 (independent
chains); Efron and Morris 1975 (shrinkage); Walker 1977 (drawing by tables).
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.core.tolerances import TOLERANCES
from engine.inference.matching.messages import scale_to_rows
from engine.kernels.matching_worms import CellArray, fill_cells, walk_worms
from engine.kernels.threads import count_threads, for_row_ranges
from engine.kernels.work_time import process_seconds
from engine.oracles.perfect_matching import CompleteGraphMatcher

CHAINS = 8
WANTED = 0.003  # standard error of a pair at which sampling ends: 0.01 is then about three of them
LONGEST = 20.0  # processor seconds of sampling: 30 with approximate marginals of 2,500 students
BATCH = 64  # sweeps of one step a student between two readings of the clock
BURN_IN = 128  # uncounted sweeps, repeated as long as chains disagree
LEAST_GROWTH = 1.2  # least factor of sweeps between two evaluations of the frequencies
MOST_GROWTH = 4.0  # largest factor, since the first evaluations hardly know the error
STARTS = 4  # starting matchings, which take longer to find than to forget
LARGE = 0.02  # likelier pairs are recorded over time, because successive matchings are correlated
BATCHES = 16  # number of batch means of a chain in a long run, up to twice this number
MOST_MOVED = 0.5  # maximum move of a likely pair towards B, standard errors, else none
BINS = 24  # of similar probability, in which B is compared with the chain


@dataclass(frozen=True, slots=True)
class SampledMarginals:
    """Sampled probabilities of pairs with their error.

    Parameters
    ----------
    tau : ndarray, shape (n, n), symmetric, rows summing to 1, read-only.
    error : float, the largest standard error of a pair's probability.
    n_matchings : int, number counted; successive ones are correlated, which the error allows for.
    has_mixed : bool
        Whether chains agree up to differences that short-range correlation explains.
    """

    tau: FloatArray
    error: float
    n_matchings: int
    has_mixed: bool


def sample_marginals(
    scores: FloatArray,
    tau: FloatArray,
    *,
    rng: np.random.Generator,
    wanted: float = WANTED,
    max_seconds: float = LONGEST,
    should_stop: StopCallback = never_stop,
) -> SampledMarginals:
    """Estimate the probability of every pair under P ~ exp(total score) of perfect matchings.

    Parameters
    ----------
    scores : ndarray, shape (n, n), symmetric, nats; -inf excludes a pair.
    tau : ndarray, shape (n, n), symmetric, approximate marginals: any above 0 where scores allow.
    rng : Generator
    wanted : float, standard error at which sampling ends.
    max_seconds : float
        Limit of processor time of each of the threads that share rows: on a busy machine the same
        sampling takes longer and gives the same answer.
    should_stop : called about every tenth of a second.

    Raises
    ------
    InfeasibleError
        If the allowed pairs contain no perfect matching.
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    O(1) a step, n steps a sweep; 8 n^2 bytes of tables, 4 ``CHAINS`` n^2 of counts.
    """
    started = _seconds()
    chains = _Chains.start(scores, tau, rng)
    sweeps, look_seconds, look_at = 0, 0.0, 2 * BURN_IN
    while True:
        if should_stop():
            raise StoppedError("Cancelled.")
        chains.run(BATCH)
        sweeps += BATCH
        now = _seconds()
        is_late = now + look_seconds >= started + max_seconds
        if sweeps == BURN_IN:
            chains.begin_to_count(tau)
        if sweeps < look_at and not is_late:
            continue
        found = _combine(chains, tau)
        if sweeps <= BURN_IN:
            found = replace(found, has_mixed=False)  # the chains still depend on their starts
        if is_late or (found.has_mixed and found.error <= wanted):
            return _balance(found)
        look_seconds = _seconds() - now
        growth = (found.error / wanted) ** 2 if found.has_mixed else 2.0
        look_at = int(sweeps * np.clip(growth, LEAST_GROWTH, MOST_GROWTH))
        if not found.has_mixed and sweeps >= 2 * chains.since:
            chains.begin_to_count(tau)  # the first half may still depend on its start
            chains.since = sweeps


def _seconds() -> float:
    """Return the processor time of this process, divided by its threads."""
    return process_seconds() / count_threads()


@dataclass(slots=True)
class _Followed:
    """Counts of likely pairs (m,) over time: ``seen`` (c, m) at ``times``."""

    first: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    second: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    times: list[IntArray] = field(default_factory=list)
    seen: list[NDArray[np.int32]] = field(default_factory=list)
    apart: int = 1
    runs: int = 0

    def mark(self, counts: NDArray[np.int32], counted: IntArray) -> None:
        """Record the counts at equal distances, which double when there are many records."""
        self.runs += 1
        if self.runs % self.apart:
            return
        self.times.append(counted.copy())
        self.seen.append(counts[:, self.first, self.second])
        if len(self.times) == 2 * BATCHES:
            self.times, self.seen, self.apart = self.times[1::2], self.seen[1::2], 2 * self.apart

    def variance(self) -> FloatArray | None:
        """Return the variance of each pair's batch means, None for too few batches or no pairs."""
        if not len(self.first) or len(self.times) < BATCHES // 2:
            return None
        lengths = np.diff(np.array(self.times), axis=0, prepend=0)
        if not lengths.all():
            return None
        seen = np.diff(np.array(self.seen), axis=0, prepend=0)
        means = (seen / lengths[:, :, None]).reshape(-1, len(self.first))
        return np.asarray(means.var(axis=0, ddof=1) / len(means))


@dataclass(slots=True)
class _Chains:
    """Markov chains of matchings, with the counts of each pair in each chain (c, n, n)."""

    cells: CellArray
    partner: IntArray
    worms: IntArray
    counts: NDArray[np.int32]
    counted: IntArray
    rng: np.random.Generator
    followed: _Followed
    steps: int = 0
    stride: int = 1
    since: int = BURN_IN

    @staticmethod
    def start(scores: FloatArray, tau: FloatArray, rng: np.random.Generator) -> "_Chains":
        """Start one chain at a best matching and the others at those of perturbed scores."""
        n = len(scores)
        values = scores.copy()
        np.fill_diagonal(values, -np.inf)
        starts = []
        for k in range(STARTS):
            noise = rng.gumbel(size=(n, n)) * k
            starts.append(CompleteGraphMatcher().solve(values + np.minimum(noise, noise.T)).partner)
        partner = np.tile(np.array(starts, dtype=np.int64), (CHAINS // STARTS, 1))
        potentials, cells = _fit_potentials(values, tau), np.empty((n, n), dtype=np.uint64)
        for_row_ranges(n, lambda first, last: fill_cells(values, potentials, first, last, cells))
        worms = np.tile(np.array([-1, -1, 0]), (CHAINS, 1))
        counts = np.zeros((CHAINS, n, n), dtype=np.int32)
        return _Chains(
            cells, partner, worms, counts, np.zeros(CHAINS, dtype=np.int64), rng, _Followed()
        )

    def run(self, sweeps: int) -> None:
        """Advance every chain by ``sweeps`` steps a student, and count the pairs."""
        n = self.partner.shape[1]
        parts = max(min(count_threads(), CHAINS), 1)
        bounds = [CHAINS * k // parts for k in range(parts + 1)]
        draws = [
            self.rng.integers(2**64, size=(sweeps * n, last - first), dtype=np.uint64)
            for first, last in pairwise(bounds)
        ]

        def work(first: int, last: int) -> None:
            for part in range(first, last):
                own = slice(bounds[part], bounds[part + 1])
                walk_worms(
                    self.cells,
                    self.partner[own],
                    self.worms[own],
                    draws[part],
                    self.stride,
                    self.counts[own],
                    self.counted[own],
                )

        for_row_ranges(parts, work, small=2)
        self.steps += CHAINS * sweeps * n
        self.followed.mark(self.counts, self.counted)

    def begin_to_count(self, tau: FloatArray) -> None:
        """Restart the counts at the chains' present matchings, about once a sweep."""
        n, closed = self.partner.shape[1], int(self.worms[:, 2].sum())
        self.stride = max(round(n * closed / self.steps), 1)
        seen = self.counts.sum(axis=0) > LARGE * self.counted.sum()
        first, second = np.nonzero(np.triu((tau > LARGE) | seen, 1))
        self.followed = _Followed(first.astype(np.int64), second.astype(np.int64))
        self.counts[:] = 0
        self.counted[:] = 0


def _fit_potentials(values: FloatArray, tau: FloatArray) -> FloatArray:
    """Return l with tau_ij ~ exp(W_ij + l_i + l_j) for most pairs, so that worms are short.

    It uses medians, since the likeliest pairs follow another law, and the least likely are rounded.
    """
    allowed = (values > -np.inf) & (tau > 0.0)
    apart = np.full(values.shape, np.nan)
    apart[allowed] = np.log(tau[allowed]) - values[allowed]
    rows = np.nanmedian(apart, axis=1)
    return np.asarray(rows - np.median(rows) / 2.0)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """Estimates of the pairs above the diagonal (p,), before rows are balanced."""

    answer: FloatArray
    error: float
    n_matchings: int
    has_mixed: bool


def _combine(chains: _Chains, tau: FloatArray) -> _Estimate:
    """Combine the pairs' frequencies in the chains with the approximate marginals."""
    n, upper = len(tau), np.triu_indices(len(tau), 1)
    times = np.maximum(chains.counted, 1)
    shares = np.stack([own[upper] / k for own, k in zip(chains.counts, times, strict=True)])
    total = int(chains.counted.sum())
    seen, like = shares.mean(axis=0), np.clip(tau[upper], 0.0, 1.0)
    between = shares.var(axis=0, ddof=1) / CHAINS
    single = np.maximum(seen * (1.0 - seen), 1.0 / max(total, 1)) / max(total, 1)
    large = np.maximum(seen, like) > min(0.01, 2.0 / n)
    # Variance relative to independent draws, pooled over pairs because the chains are few.
    inflation = max(float(between[large].sum() / single[large].sum()) if large.any() else 1.0, 1.0)
    variance = single * inflation
    by_batches = chains.followed.variance()
    if by_batches is not None:
        first, second = chains.followed.first, chains.followed.second
        place = first * n - first * (first + 1) // 2 + second - first - 1
        # differences of chains beyond their batches are correlation over longer times
        longer = between[place].sum() / max(float(by_batches.sum()), TOLERANCES.tiny)
        variance[place] = np.maximum(by_batches * max(float(longer), 1.0), single[place])
    variance = np.maximum(variance, between * _share_of_own(between, variance))
    edges = np.quantile(like, np.linspace(0.0, 1.0, BINS + 1)[1:-1])
    edges = np.unique(np.concatenate([edges, [0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9]]))
    label = np.searchsorted(edges, like)
    size = np.maximum(np.bincount(label, minlength=len(edges) + 1), 1)
    shift = np.bincount(label, seen - like, len(edges) + 1) / size
    shift = np.where(size >= 8, shift, 0.0)[label]
    apart = np.bincount(label, (seen - like - shift) ** 2 - variance, len(edges) + 1) / size
    own = np.where(size >= 8, np.maximum(apart, 0.0), 1.0)[label]
    weight = own / (own + variance)
    # A likely pair that differs from those of similar B must not be drawn to them.
    moved = (1.0 - weight) * np.abs(seen - like - shift)
    weight = np.where(large & (moved > MOST_MOVED * np.sqrt(variance)), 1.0, weight)
    answer = np.clip(like + shift + weight * (seen - like - shift), 0.0, 1.0)
    answer = np.where(like > 0.0, np.maximum(answer, like * 1e-3), 0.0)
    error = float(np.sqrt((weight * variance).max(initial=0.0)))
    # Correlation over a large part of the run looks like that of chains that never meet.
    has_mixed = total >= 16 * CHAINS and inflation <= total / CHAINS / 8.0 and error <= 0.1
    return _Estimate(answer, error, total, has_mixed)


def _balance(found: _Estimate) -> SampledMarginals:
    """Scale the pairs' probabilities to row sums of 1."""
    n = (1 + int(np.sqrt(1 + 8 * len(found.answer)))) // 2
    tau = np.zeros((n, n))
    tau[np.triu_indices(n, 1)] = found.answer
    balanced, _ = scale_to_rows(tau + tau.T)
    balanced = (balanced + balanced.T) / 2.0  # products of scalings round asymmetrically
    return SampledMarginals(read_only(balanced), found.error, found.n_matchings, found.has_mixed)


def _share_of_own(between: FloatArray, expected: FloatArray) -> FloatArray:
    """Return the weight of a pair's own variance among the chains, 1 if it is beyond chance.

    With eight chains it exceeds five times its expectation in 1 pair of 100,000.
    """
    return np.asarray((between > 5.0 * expected).astype(np.float64))
