"""Proposal of pairs for a cohort: the best complete set, and the probability of every pair."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import BoolArray, FloatArray, IntArray, read_only
from engine.core.errors import InfeasibleError, StoppedError
from engine.core.options import check_callables, check_seconds
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.crf.rules import Rules, StudentGroup, split_groups
from engine.crf.survey import Survey
from engine.inference.matching.cascade import compute_group_marginals, exclude_pairs, in_order
from engine.inference.matching.impossible_pairs import check_rules
from engine.inference.matching.sampling import LONGEST, sample_marginals
from engine.kernels.threads import one_blas_thread
from engine.learning.roommates.model import RoommateModel
from engine.oracles.perfect_matching import CompleteGraphMatcher

NEXT_BEST = 3
MARKOV_CHAIN = "Markov chain"


@dataclass(frozen=True, slots=True)
class NextBest:
    """Most probable other partners of every student, most probable first.

    Parameters
    ----------
    students : ndarray, shape (n, 3), int64, padded with -1.
    scores, probabilities : ndarray, shape (n, 3), padded with nan.
    """

    students: IntArray
    scores: FloatArray
    probabilities: FloatArray


@dataclass(frozen=True, slots=True)
class Proposal:
    """Proposed complete set of pairs that satisfies the rules.

    Parameters
    ----------
    pairs : ndarray, shape (p, 2), int64, smaller index first, sorted.
    scores, probabilities : ndarray, shape (p,)
        Probabilities are marginals of the joint matching under the rules; 1 for locked pairs.
    weight, upper_bound : float, nats
        Total score, and the certified upper bound on the score of any allowed set.
    doubt : ndarray, shape (n,)
        exp(entropy of the partner), number of equally likely partners; 1 if locked, 0 if single.
    n_allowed : ndarray, shape (n,), number of partners that the rules allow.
    next_best : NextBest
    marginals : ndarray, shape (n, n), float32, symmetric.
    is_exact : ndarray, shape (n,), bool
        True if the student's probabilities are sums over all sets of pairs: in groups of up to 30,
        in larger groups that rules split, and for locked or single students. The other
        probabilities are the Bethe approximation, checked against a Markov chain.
    probability_error : ndarray, shape (n,)
        Largest standard error of a probability in the student's group: 0 if sums are exact, nan if
        no chain was run or the chains did not agree: the approximation's error is then unknown.
    is_calibrated : bool
        True if probabilities were checked on held-out pairs; otherwise they are model confidence.
    methods : tuple of str, methods that computed the probabilities, over all groups.
    """

    pairs: IntArray
    scores: FloatArray
    probabilities: FloatArray
    weight: float
    upper_bound: float
    doubt: FloatArray
    n_allowed: IntArray
    next_best: NextBest
    marginals: NDArray[np.float32]
    is_exact: BoolArray
    probability_error: FloatArray
    is_calibrated: bool
    methods: tuple[str, ...]

    @property
    def gap(self) -> float:
        """Upper bound on the distance of the total score to the best, nats; at rounding level."""
        return max(self.upper_bound - self.weight, 0.0)


def propose_pairs(
    model: RoommateModel,
    survey: Survey,
    rules: Rules | None = None,
    *,
    sampling_seconds: float = LONGEST,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
) -> Proposal:
    """Return the highest-scoring complete set of pairs, with probabilities.

    Parameters
    ----------
    model : RoommateModel
    survey : Survey, n students, with the questions of the model.
    rules : Rules, default none.
    sampling_seconds : float
        Limit of processor time, of each thread, of the Markov chain that estimates probabilities
        with a standard error; it ends when every standard error is 0.003. With 0 no chain runs and
        no error is estimated.
    on_progress : callable taking a Progress, optional
    should_stop : callable returning bool, optional, called before every sweep.

    Returns
    -------
    Proposal
        Pairs with their ``weight`` and ``upper_bound`` (nats), and the probability of every pair.

    Raises
    ------
    InvalidProblemError
        If the survey has other questions.
    InfeasibleError
        If the rules allow no complete set of pairs; with the sentence of the first conflict.
    StoppedError
        If ``should_stop`` returned True.

    Notes
    -----
    Groups that ``same`` rules separate are solved separately. O(n^2) memory: the result takes 4 n^2
    bytes, and work on a group of m at its peak 50 m^2 (measured at 1,200: scores, messages, their
    copies), or 95 m^2 if a pair is more probable than all others together.

    Examples
    --------
    >>> from engine import simulate_university, train_roommates
    >>> year = simulate_university(30, 1, rng=np.random.default_rng(0)).cohorts[0]
    >>> model = train_roommates([(year.survey, year.pairs)]).model
    >>> proposal = propose_pairs(model, year.survey, sampling_seconds=0.0)
    >>> len(proposal.pairs), abs(proposal.upper_bound - proposal.weight) < 1e-6
    (15, True)
    """
    check_seconds("sampling_seconds", sampling_seconds, optional=False)
    check_callables(on_progress=on_progress, should_stop=should_stop)
    rules = rules or Rules()
    model.check_survey(survey)
    conflicts = check_rules(survey, rules)
    if conflicts:
        raise InfeasibleError(conflicts[0].sentence)
    groups = split_groups(survey, rules)
    draft = _Draft(survey.n_students)
    done, total = 0, max(sum(len(g.students) ** 2 for g in groups), 1)
    for group in groups:
        if should_stop():
            raise StoppedError("Cancelled.")
        name = f"group {group.name}" if group.name else f"{len(group.students)} students"
        on_progress(Progress(f"Pairing {name}", fraction=done / total))
        with one_blas_thread():
            seconds = sampling_seconds * len(group.students) ** 2 / total
            _solve_group(model, survey.take(group.students), group, draft, should_stop, seconds)
        done += len(group.students) ** 2
    for i, j in sorted({(min(p), max(p)) for p in rules.locks}):
        draft.lock(i, j, _score_of(model, survey, i, j))
    on_progress(Progress("Pairs proposed", fraction=1.0))
    return draft.finish(model.calibration is not None)


class _Draft:
    """Arrays of a proposal under construction, filled group by group."""

    def __init__(self, n: int) -> None:
        self.marginals = np.zeros((n, n), dtype=np.float32)
        self.is_exact = np.ones(n, dtype=np.bool_)
        self.probability_error = np.zeros(n)
        self.doubt = np.zeros(n)
        self.n_allowed = np.zeros(n, dtype=np.int64)
        self.next_students = np.full((n, NEXT_BEST), -1, dtype=np.int64)
        self.next_scores = np.full((n, NEXT_BEST), np.nan)
        self.next_probabilities = np.full((n, NEXT_BEST), np.nan)
        self.pairs: list[tuple[int, int, float, float]] = []
        self.weight = 0.0
        self.upper_bound = 0.0
        self.methods: set[str] = set()

    def lock(self, i: int, j: int, score: float) -> None:
        """Add a locked pair, with probability 1 and no alternatives."""
        self.marginals[i, j] = self.marginals[j, i] = 1.0
        self.doubt[[i, j]] = 1.0
        self.n_allowed[[i, j]] = 1
        self.pairs.append((i, j, score, 1.0))
        self.weight += score
        self.upper_bound += score

    def finish(self, is_calibrated: bool) -> Proposal:
        rows = sorted(self.pairs)
        return Proposal(
            pairs=read_only(np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2)),
            scores=read_only(np.array([row[2] for row in rows], dtype=np.float64)),
            probabilities=read_only(np.array([row[3] for row in rows], dtype=np.float64)),
            weight=self.weight,
            upper_bound=self.upper_bound,
            doubt=read_only(self.doubt),
            n_allowed=read_only(self.n_allowed),
            next_best=NextBest(
                read_only(self.next_students),
                read_only(self.next_scores),
                read_only(self.next_probabilities),
            ),
            marginals=read_only(self.marginals),
            is_exact=read_only(self.is_exact),
            probability_error=read_only(self.probability_error),
            is_calibrated=is_calibrated,
            methods=(*in_order(self.methods), *sorted(self.methods & {MARKOV_CHAIN})),
        )


def _score_of(model: RoommateModel, survey: Survey, i: int, j: int) -> float:
    return float(model.features.pair_scores(survey, model.theta, np.array([[i, j]])).sum())


def _solve_group(
    model: RoommateModel,
    survey: Survey,
    group: StudentGroup,
    draft: _Draft,
    should_stop: StopCallback,
    sampling_seconds: float,
) -> None:
    """Pair one group and write its part of the proposal."""
    m = survey.n_students
    if m == 0:
        return
    scores = model.features.scores(survey, model.theta)
    allowed = ~np.eye(m, dtype=bool)
    allowed[group.forbidden[:, 0], group.forbidden[:, 1]] = False
    allowed[group.forbidden[:, 1], group.forbidden[:, 0]] = False
    matching = CompleteGraphMatcher().solve(np.where(allowed, scores, -np.inf))
    partner = matching.partner
    tau, is_exact, error, methods = _estimate_marginals(
        scores * (1.0 if model.calibration is None else model.calibration),
        model.rho,
        group.forbidden,
        sampling_seconds,
        should_stop,
    )
    who = group.students
    draft.methods.update(methods)
    draft.weight += matching.weight
    draft.upper_bound += matching.upper_bound
    draft.marginals[np.ix_(who, who)] = tau
    draft.is_exact[who] = is_exact
    draft.probability_error[who] = np.where(is_exact, 0.0, error)
    draft.n_allowed[who] = allowed.sum(axis=1)
    draft.doubt[who] = partner_perplexity(tau)
    for i in range(m):
        j = int(partner[i])
        if i < j:
            row = (int(who[i]), int(who[j]), float(scores[i, j]), float(tau[i, j]))
            draft.pairs.append(row)
    _write_next_best(draft, who, partner, scores, tau, allowed)


def _estimate_marginals(
    scores: FloatArray,
    rho: float,
    forbidden: IntArray,
    sampling_seconds: float,
    should_stop: StopCallback,
) -> tuple[FloatArray, BoolArray, float, tuple[str, ...]]:
    """Return a group's marginals (m, m), a mask of exact rows, the standard error, and methods."""
    is_sampled = sampling_seconds > 0.0
    found = compute_group_marginals(
        scores, rho, forbidden, is_guide=is_sampled, should_stop=should_stop
    )
    if found.accuracy != "exact" and is_sampled:
        sampled = sample_marginals(
            exclude_pairs(scores, forbidden),
            found.tau,
            rng=np.random.default_rng(0),  # the same chain for the same proposal
            max_seconds=sampling_seconds,
            should_stop=should_stop,
        )
        if sampled.has_mixed:  # otherwise its frequencies depend on the starting point
            tau = np.where(found.is_exact[:, None], found.tau, sampled.tau)
            return tau, found.is_exact, sampled.error, (*found.methods, MARKOV_CHAIN)
        found = compute_group_marginals(scores, rho, forbidden, should_stop=should_stop)
    return found.tau, found.is_exact, np.nan, found.methods


def partner_perplexity(tau: FloatArray) -> FloatArray:
    """Return the perplexity exp(-sum_j tau_ij log tau_ij) of every row, shape (n,)."""
    logs = np.log(np.where(tau > 0.0, tau, 1.0))
    return np.asarray(np.exp(-np.einsum("ij,ij->i", tau, logs)), dtype=np.float64)


def _write_next_best(
    draft: _Draft,
    who: IntArray,
    partner: IntArray,
    scores: FloatArray,
    tau: FloatArray,
    allowed: BoolArray,
) -> None:
    m = len(who)
    others = np.where(allowed, tau, -1.0)
    others[np.arange(m), partner] = -1.0
    count = min(NEXT_BEST, m - 1)
    top = np.argpartition(-others, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(others, top, axis=1), axis=1, kind="stable")
    top = np.take_along_axis(top, order, axis=1)
    known = np.take_along_axis(others, top, axis=1) >= 0.0
    rows = np.arange(m)[:, None]
    draft.next_students[who, :count] = np.where(known, who[top], -1)
    draft.next_scores[who, :count] = np.where(known, scores[rows, top], np.nan)
    draft.next_probabilities[who, :count] = np.where(known, tau[rows, top], np.nan)
