"""Probabilities of pairs to a stated error: a Markov chain beside approximate marginals.

The chain draws perfect matchings from P ~ exp(total score). Exchanges of two pairs are proposed by
the approximate marginals B and accepted so that P stays as it is (Metropolis and Hastings). Four
chains run apart, from draws that begin at a best and at random matchings; where they agree, their
frequencies f are unbiased with a known error s. B is what f is held against: among pairs of like B,
the variance of f - B beyond s^2 tells how far B is off, v, and the answer is

    B + mean(f - B) + v / (v + s^2) (f - B - mean(f - B)),     standard error s sqrt(v / (v + s^2))

so that small probabilities, which a chain would take forever to tell apart, keep the order and the
digits of B, and large ones come from the chain.

References
----------
Hastings 1970; Gelman and Rubin 1992 (chains apart); Efron and Morris 1975 (shrinkage).
"""

import time
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.inference.matching.messages import scale_to_rows
from engine.kernels.matching_chain import run_chain
from engine.kernels.threads import for_row_ranges
from engine.oracles.perfect_matching import CompleteGraphMatcher

CHAINS = 4
WANTED = 0.003  # standard error of a pair at which sampling ends: .01 is then three of them
LONGEST = 25.0  # seconds of it
LOOK_SHARE = 4.0  # times as long as a look at the frequencies took, chains run before the next
BATCH = 64  # sweeps between two looks at the clock
BURN_IN = 128  # sweeps that are not counted, and as many more as long as chains disagree
SMALLEST_SHARE = 1e-7  # every allowed pair is proposed at least with this share of an even draw
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
    O(log n) a step, n steps a sweep; 8 (2 + ``CHAINS``) n^2 bytes.
    """
    started = time.perf_counter()
    chains = _Chains.start(scores, tau, rng)
    sweeps, look_seconds, next_look = 0, 0.0, started
    while True:
        if should_stop():
            raise StoppedError("Cancelled.")
        chains.run(BATCH)
        sweeps += BATCH
        now = time.perf_counter()
        is_late = now + look_seconds >= started + max_seconds
        if sweeps <= BURN_IN:
            chains.forget()
            if not is_late:
                continue
            chains.run(2)
        is_time = not sweeps & (sweeps - 1) or not sweeps % (16 * BATCH)
        if not is_late and (now < next_look or not is_time):
            continue
        found = _combine(chains.counts / max(chains.counted, 1), tau, chains.counted)
        looked = time.perf_counter()
        look_seconds, next_look = looked - now, looked + LOOK_SHARE * (looked - now)
        if not found.has_mixed and not is_late and sweeps >= 2 * chains.since:
            chains.forget()  # the first half may still remember its start
            chains.since = sweeps
            continue
        if is_late or (found.has_mixed and found.error <= wanted):
            return found


@dataclass(slots=True)
class _Chains:
    """Matchings that move, and how often each pair was seen in each chain (c, n, n)."""

    scores: FloatArray
    proposal: FloatArray
    levels: FloatArray
    partner: IntArray
    counts: FloatArray
    rng: np.random.Generator
    counted: int = 0
    since: int = BURN_IN

    @staticmethod
    def start(scores: FloatArray, tau: FloatArray, rng: np.random.Generator) -> "_Chains":
        """Begin one chain at a best matching and the others at best ones of perturbed scores."""
        n = len(scores)
        allowed = scores > -np.inf
        np.fill_diagonal(allowed, val=False)
        proposal = np.where(allowed, np.maximum(tau, SMALLEST_SHARE / n), 0.0)
        partner = np.empty((CHAINS, n), dtype=np.int64)
        for k in range(CHAINS):
            noise = rng.gumbel(size=(n, n)) * k
            dense = np.where(allowed, scores + np.minimum(noise, noise.T), -np.inf)
            partner[k] = CompleteGraphMatcher().solve(dense).partner
        counts = np.zeros((CHAINS, n, n))
        return _Chains(scores, proposal, np.cumsum(proposal, axis=1), partner, counts, rng)

    def run(self, sweeps: int) -> None:
        """Advance every chain and count its matching after every sweep."""
        n = self.partner.shape[1]
        students = self.rng.integers(n, size=(CHAINS, sweeps * n))
        uniforms = self.rng.random((CHAINS, sweeps * n, 2))

        def work(first: int, last: int) -> None:
            for k in range(first, last):
                run_chain(
                    self.scores,
                    self.proposal,
                    self.levels,
                    self.partner[k],
                    students[k],
                    uniforms[k],
                    n,
                    self.counts[k],
                )

        for_row_ranges(CHAINS, work, small=2)
        self.counted += sweeps

    def forget(self) -> None:
        """Start to count anew from where the chains are."""
        self.counts[:] = 0.0
        self.counted = 0


def _combine(frequency: FloatArray, tau: FloatArray, counted: int) -> SampledMarginals:
    """Weigh the chains' frequencies (c, n, n) against the approximate marginals."""
    chains, n, _ = frequency.shape
    mean = frequency.mean(axis=0)
    upper = np.triu_indices(n, 1)
    seen, like = mean[upper], np.clip(tau[upper], 0.0, 1.0)
    between = frequency.var(axis=0, ddof=1)[upper] / chains
    single = np.maximum(seen * (1.0 - seen), 1.0 / (chains * counted)) / (chains * counted)
    large = np.maximum(seen, like) > min(0.01, 2.0 / n)
    # How many times independent draws' variance: pooled over pairs, for four chains say little.
    inflation = max(float(between[large].sum() / single[large].sum()) if large.any() else 1.0, 1.0)
    variance = np.maximum(single * inflation, between * _share_of_own(between, single * inflation))
    edges = np.quantile(like, np.linspace(0.0, 1.0, BINS + 1)[1:-1])
    edges = np.unique(np.concatenate([edges, [0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9]]))
    label = np.searchsorted(edges, like)
    size = np.maximum(np.bincount(label, minlength=len(edges) + 1), 1)
    shift = np.bincount(label, seen - like, len(edges) + 1) / size
    shift = np.where(size >= 8, shift, 0.0)[label]
    apart = np.bincount(label, (seen - like - shift) ** 2 - variance, len(edges) + 1) / size
    own = np.where(size >= 8, np.maximum(apart, 0.0), 1.0)[label]
    weight = own / (own + variance)
    answer = np.zeros((n, n))
    answer[upper] = np.clip(like + shift + weight * (seen - like - shift), 0.0, 1.0)
    answer[upper] = np.where(like > 0.0, np.maximum(answer[upper], like * 1e-3), 0.0)
    balanced, _ = scale_to_rows(answer + answer.T)
    balanced = (balanced + balanced.T) / 2.0  # products of scalings round either way
    error = float(np.sqrt((weight * variance).max(initial=0.0)))
    # Correlation over a large part of the run is not to be told from chains that never meet.
    has_mixed = counted >= 16 and inflation <= counted / 8.0 and error <= 0.1
    return SampledMarginals(read_only(balanced), error, chains * counted, has_mixed)


def _share_of_own(between: FloatArray, pooled: FloatArray) -> FloatArray:
    """Return how far a pair's own variance among the chains is believed: beyond chance, wholly.

    Of four chains it exceeds five times its expectation in one pair of 500.
    """
    return np.asarray((between > 5.0 * pooled).astype(np.float64))
