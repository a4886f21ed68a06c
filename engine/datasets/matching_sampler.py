"""Sampler of perfect matchings from P(Y) ~ exp(total score), with evidence of mixing."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_generator
from engine.kernels.matching_chain import sweep_pairs

WINDOW = 40  # sweeps over which the total scores of two chains are compared
MAX_SWEEPS = 20_000
COLD = 30.0  # factor on the scores that drives the second chain to a near-optimal start
AGREEMENT = 3.0  # standard errors


@dataclass(frozen=True, slots=True)
class MatchingSample:
    """One matching drawn by the chain, and the length of the run.

    Parameters
    ----------
    pairs : ndarray, shape (n / 2, 2), int64.
    sweeps : int, n / 2 re-pairings each, by each of the two chains.
    score_difference : float
        Mean total scores of the two chains over the last window apart, in standard errors.
    has_mixed : bool, True if that is below three.

    Examples
    --------
    >>> MatchingSample(np.array([[0, 1]]), 30, 0.5, True).has_mixed
    True
    """

    pairs: IntArray
    sweeps: int
    score_difference: float
    has_mixed: bool


def sample_matching(scores: FloatArray, *, rng: np.random.Generator) -> MatchingSample:
    """Draw one perfect matching of the complete graph.

    Parameters
    ----------
    scores : ndarray, shape (n, n), symmetric, n even, nats.
    rng : Generator

    Returns
    -------
    MatchingSample
        The pairs, and the evidence that the chains had mixed.

    Raises
    ------
    InvalidProblemError
        If n is odd or zero.

    Notes
    -----
    Choice of the run length. With equal scores a step is close to a random transposition of
    partners, which mixes in about (n / 2) log n steps, that is log n sweeps (Diaconis and
    Shahshahani 1981). Strong scores slow it down by an amount unknown in advance, so two
    chains run: one from a random matching, whose total score must rise, and one from a near-optimal
    matching, whose total score must fall. The run ends when their mean total scores over a window
    agree within three standard errors, after at least 10 log n sweeps, and is doubled until they
    do.

    Examples
    --------
    >>> found = sample_matching(np.zeros((6, 6)), rng=np.random.default_rng(0))
    >>> sorted(found.pairs.ravel().tolist())
    [0, 1, 2, 3, 4, 5]
    """
    check_generator("rng", rng, optional=False)
    n = len(scores)
    if n % 2 or n == 0:
        raise InvalidProblemError(f"{n} students cannot all be paired; expected an even number.")
    if n == 2:
        return MatchingSample(np.array([[0, 1]]), 0, 0.0, True)
    low = rng.permutation(n).reshape(-1, 2).astype(np.int64)
    high = rng.permutation(n).reshape(-1, 2).astype(np.int64)
    _run(scores * COLD, high, WINDOW, rng)
    sweeps, length = 0, max(WINDOW, int(np.ceil(10 * np.log(n))))
    while True:
        _run(scores, low, length, rng)
        _run(scores, high, length, rng)
        low_trace = _run(scores, low, WINDOW, rng)
        high_trace = _run(scores, high, WINDOW, rng)
        sweeps += length + WINDOW
        difference = standard_errors_apart(low_trace, high_trace)
        if difference <= AGREEMENT or sweeps >= MAX_SWEEPS:
            return MatchingSample(np.sort(low, axis=1), sweeps, difference, difference <= AGREEMENT)
        length *= 2


def _run(scores: FloatArray, pairs: IntArray, sweeps: int, rng: np.random.Generator) -> FloatArray:
    """Advance the chain in place; return the total score after every sweep, shape (sweeps,)."""
    count = len(pairs)
    total = float(scores[pairs[:, 0], pairs[:, 1]].sum())
    trace = np.empty(sweeps)
    for sweep in range(sweeps):
        first = rng.integers(count, size=count)
        second = (first + rng.integers(1, count, size=count)) % count
        choices = np.stack([first, second], axis=1)
        total += sweep_pairs(scores, pairs, choices, rng.random(count))
        trace[sweep] = total
    return trace


def standard_errors_apart(first: FloatArray, second: FloatArray) -> float:
    """Compare two traces by batch means of eight batches (successive sweeps are correlated)."""
    batches = [np.array([b.mean() for b in np.array_split(x, 8)]) for x in (first, second)]
    error = np.sqrt(sum(float(b.var(ddof=1)) / len(b) for b in batches))
    apart = abs(float(batches[0].mean() - batches[1].mean()))
    return apart / max(float(error), 1e-12) if apart > 1e-9 else 0.0
