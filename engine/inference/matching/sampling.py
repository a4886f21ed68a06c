"""Probabilities of pairs to a stated error: a Markov chain beside approximate marginals.

The chain draws perfect matchings from P ~ exp(total score). It re-pairs along worms: a pair is
opened, and one end takes partner after partner from others until it takes the other end. No step is
refused (``engine.kernels.matching_worms``). Eight chains run apart, from draws that begin at a best
and at random matchings; where they agree, their frequencies f are unbiased with a known error s.
B, the approximate marginals, is what f is held against: among pairs of like B, the variance of
f - B beyond s^2 tells how far B is off, v, and the answer is

    B + mean(f - B) + v / (v + s^2) (f - B - mean(f - B)),     standard error s sqrt(v / (v + s^2))

so that small probabilities, which a chain would take forever to tell apart, keep the order and the
digits of B, and large ones come from the chain: wholly, where they are far from B.

References
----------
Sandvik and Moessner 2006 (worms that are never refused); Gelman and Rubin 1992 (chains apart);
Efron and Morris 1975 (shrinkage); Walker 1977 (drawing by tables).
"""

import time
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.messages import scale_to_rows
from engine.kernels.matching_worms import CellArray, fill_cells, walk_worms
from engine.kernels.threads import count_threads, for_row_ranges
from engine.oracles.perfect_matching import CompleteGraphMatcher

CHAINS = 8
WANTED = 0.003  # standard error of a pair at which sampling ends: .01 is then three of them
LONGEST = 20.0  # seconds of it: with the approximate marginals, 30 for 2,500 students
BATCH = 64  # sweeps of one step a student between two looks at the clock
BURN_IN = 128  # sweeps that are not counted, and as many more as long as chains disagree
LEAST_GROWTH = 1.2  # times as many sweeps from one look at the frequencies to the next, at least
MOST_GROWTH = 4.0  # and at most, as the first looks hardly know the error
STARTS = 4  # matchings that they begin at, which takes longer than to forget them
LARGE = 0.02  # likelier pairs are followed in time, for what their successive matchings share
BATCHES = 16  # means over stretches of a chain, and up to twice as many
MOST_MOVED = 0.5  # standard errors that a likely pair is moved towards B, else not at all
BINS = 24  # of like probability, in which B is compared with the chain


@dataclass(frozen=True, slots=True)
class SampledMarginals:
    """Probabilities of pairs with their error.

    Parameters
    ----------
    tau : ndarray, shape (n, n), symmetric, rows summing to 1, read-only.
    error : float, the largest standard error of a pair's probability.
    n_matchings : int, counted; successive ones are correlated, which the error allows for.
    has_mixed : bool
        Whether the chains agree but for what correlation over a small part of the run explains.
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
    wanted : float, standard error at which to end.
    max_seconds : float, after which to end all the same.
    should_stop : asked about every tenth of a second.

    Raises
    ------
    InfeasibleError
        If the allowed pairs hold no perfect matching.
    StoppedError
        If ``should_stop`` answered True.

    Notes
    -----
    O(1) a step, n steps a sweep; 8 n^2 bytes of tables, 4 ``CHAINS`` n^2 of counts.
    """
    started = time.perf_counter()
    chains = _Chains.start(scores, tau, rng)
    sweeps, look_seconds, look_at = 0, 0.0, 2 * BURN_IN
    while True:
        if should_stop():
            raise StoppedError("Cancelled.")
        chains.run(BATCH)
        sweeps += BATCH
        now = time.perf_counter()
        is_late = now + look_seconds >= started + max_seconds
        if sweeps == BURN_IN:
            chains.begin_to_count(tau)
        if sweeps < look_at and not is_late:
            continue
        found = _combine(chains, tau)
        if sweeps <= BURN_IN:
            found = replace(found, has_mixed=False)  # they know where they began
        if is_late or (found.has_mixed and found.error <= wanted):
            return _balance(found)
        look_seconds = time.perf_counter() - now
        growth = (found.error / wanted) ** 2 if found.has_mixed else 2.0
        look_at = int(sweeps * np.clip(growth, LEAST_GROWTH, MOST_GROWTH))
        if not found.has_mixed and sweeps >= 2 * chains.since:
            chains.begin_to_count(tau)  # the first half may still remember its start
            chains.since = sweeps


@dataclass(slots=True)
class _Followed:
    """How often likely pairs (m,) had been seen from time to time: ``seen`` (c, m) at ``times``."""

    first: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    second: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    times: list[IntArray] = field(default_factory=list)
    seen: list[NDArray[np.int32]] = field(default_factory=list)
    apart: int = 1
    runs: int = 0

    def mark(self, counts: NDArray[np.int32], counted: IntArray) -> None:
        """Note where the counts are, at equal distances that double when there are many."""
        self.runs += 1
        if self.runs % self.apart:
            return
        self.times.append(counted.copy())
        self.seen.append(counts[:, self.first, self.second])
        if len(self.times) == 2 * BATCHES:
            self.times, self.seen, self.apart = self.times[1::2], self.seen[1::2], 2 * self.apart

    def variance(self) -> FloatArray | None:
        """Return the variance of each pair's mean by batches, None of too few or without pairs."""
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
    """Matchings that move, and how often each pair was seen in each chain (c, n, n)."""

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
        """Begin one chain at a best matching and the others at best ones of perturbed scores."""
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
        """Advance every chain by so many steps a student, and count on the way."""
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
        """Count anew from where the chains are, about once a sweep."""
        n, closed = self.partner.shape[1], int(self.worms[:, 2].sum())
        self.stride = max(round(n * closed / self.steps), 1)
        seen = self.counts.sum(axis=0) > LARGE * self.counted.sum()
        first, second = np.nonzero(np.triu((tau > LARGE) | seen, 1))
        self.followed = _Followed(first.astype(np.int64), second.astype(np.int64))
        self.counts[:] = 0
        self.counted[:] = 0


def _fit_potentials(values: FloatArray, tau: FloatArray) -> FloatArray:
    """Return l with tau_ij ~ exp(W_ij + l_i + l_j) for most pairs: worms are then short.

    Medians, for the likeliest pairs follow another law, and the least likely ones are rounded.
    """
    allowed = (values > -np.inf) & (tau > 0.0)
    apart = np.full(values.shape, np.nan)
    apart[allowed] = np.log(tau[allowed]) - values[allowed]
    rows = np.nanmedian(apart, axis=1)
    return np.asarray(rows - np.median(rows) / 2.0)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """What ``SampledMarginals`` says, of pairs above the diagonal (p,), rows not yet balanced."""

    answer: FloatArray
    error: float
    n_matchings: int
    has_mixed: bool


def _combine(chains: _Chains, tau: FloatArray) -> _Estimate:
    """Weigh how often each chain saw each pair against the approximate marginals."""
    n, upper = len(tau), np.triu_indices(len(tau), 1)
    times = np.maximum(chains.counted, 1)
    shares = np.stack([own[upper] / k for own, k in zip(chains.counts, times, strict=True)])
    total = int(chains.counted.sum())
    seen, like = shares.mean(axis=0), np.clip(tau[upper], 0.0, 1.0)
    between = shares.var(axis=0, ddof=1) / CHAINS
    single = np.maximum(seen * (1.0 - seen), 1.0 / max(total, 1)) / max(total, 1)
    large = np.maximum(seen, like) > min(0.01, 2.0 / n)
    # How many times independent draws' variance: pooled over pairs, for few chains say little.
    inflation = max(float(between[large].sum() / single[large].sum()) if large.any() else 1.0, 1.0)
    variance = single * inflation
    by_batches = chains.followed.variance()
    if by_batches is not None:
        first, second = chains.followed.first, chains.followed.second
        place = first * n - first * (first + 1) // 2 + second - first - 1
        # what chains differ by beyond their batches is correlation over longer times
        longer = between[place].sum() / max(float(by_batches.sum()), 1e-300)
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
    # A likely pair that is unlike those of like B would be drawn to them for no reason.
    moved = (1.0 - weight) * np.abs(seen - like - shift)
    weight = np.where(large & (moved > MOST_MOVED * np.sqrt(variance)), 1.0, weight)
    answer = np.clip(like + shift + weight * (seen - like - shift), 0.0, 1.0)
    answer = np.where(like > 0.0, np.maximum(answer, like * 1e-3), 0.0)
    error = float(np.sqrt((weight * variance).max(initial=0.0)))
    # Correlation over a large part of the run is not to be told from chains that never meet.
    has_mixed = total >= 16 * CHAINS and inflation <= total / CHAINS / 8.0 and error <= 0.1
    return _Estimate(answer, error, total, has_mixed)


def _balance(found: _Estimate) -> SampledMarginals:
    """Scale the pairs' answer to row sums of 1."""
    n = (1 + int(np.sqrt(1 + 8 * len(found.answer)))) // 2
    tau = np.zeros((n, n))
    tau[np.triu_indices(n, 1)] = found.answer
    balanced, _ = scale_to_rows(tau + tau.T)
    balanced = (balanced + balanced.T) / 2.0  # products of scalings round either way
    return SampledMarginals(read_only(balanced), found.error, found.n_matchings, found.has_mixed)


def _share_of_own(between: FloatArray, expected: FloatArray) -> FloatArray:
    """Return how far a pair's own variance among the chains is believed: beyond chance, wholly.

    Of eight chains it exceeds five times its expectation in one pair of 100,000.
    """
    return np.asarray((between > 5.0 * expected).astype(np.float64))
