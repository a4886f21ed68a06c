"""Learning of the weights above trees, by the loss with the fewest mistakes on held-out pictures.

Each half of the pictures is used in turn for learning and for evaluation. Scores of the trees come
from folds that the trees did not learn from, so that errors are measured on pictures held out from
the whole model. Masks and label maps differ in their `WeightProblem` alone.

Results depend on the pictures and the seed. A time limit changes them only once it is reached: each
fit may take an equal part of the remaining time, and what was left out is listed with the result.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.core.status import Status
from engine.crf.class_features import ClassExample
from engine.crf.grid_features import GridExample
from engine.learning.segmentation.clock import Clock, Pace
from engine.learning.segmentation.defaults import RIDGE_PER_PIXEL
from engine.learning.segmentation.part_store import PartStore
from engine.metrics.classes import Confusion
from engine.solvers.result import LearningResult, unsolved

LEAST_JUDGED = 20
"""Smallest number of further pictures for evaluation by them. They evaluate the mean of the weights
of both halves; halves evaluate weights from fewer pictures, which may be worse than the trees."""

ALONE = ("trees", "network")
"""Losses of one method alone, without edges."""

CLEARLY = 3.0
"""Standard errors by which trees or network must be better than the other to be used alone; of five
pictures, 2.8 are exceeded by chance in a twentieth of all draws. Of four draws of five horses, the
two differed by 0.3 to 1.4, three times in favour of the one that made more mistakes on 64 others.
The mean made .103 there, trees .117, the network .119, and the better one of the five .124. Of ten
horses they differed by 2.3; trees made .069, the network .074 and the mean .059."""

EDGELESS = (*ALONE, "mean")
"""Losses without edges: the trees alone, the network alone, and the mean of their scores."""


def check_loss(loss: str | None, *, has_network: bool) -> None:
    """Raise InvalidProblemError if a loss needs a network and none is learned."""
    if loss in ("network", "mean") and not has_network:
        raise InvalidProblemError(
            f"loss: {loss} needs a network; give its options, or choose another loss."
        )


Example = TypeVar("Example", GridExample, ClassExample)
Chosen = TypeVar("Chosen")


class Candidate(NamedTuple):
    """Candidate method to learn weights: its loss, True if edges score only agreement, and the
    factor on a ridge towards the weights of the painting page (0 for the usual ridge)."""

    name: str
    loss: str
    is_potts: bool = False
    ridge_factor: float = 0.0


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a comparison.

    With a network, the first candidate is that of `beginning_with_best`, so that edges are used
    only if they are better than the trees, the network and the mean of both.

    Parameters
    ----------
    standard_errors : float
        The first candidate is used unless another makes fewer mistakes by more than this; with 0
        the candidate with the fewest mistakes is used.
    refit_standard_errors : float, the same for a refit of the trees against no refit
    gives_up_early : bool
        Whether a candidate that is clearly worse on half of the pictures is not learned from the
        other half; its error is then that of the first half.
    refitted_losses : tuple of str, or None for all losses
        Losses whose final weights are learned from all pictures. Those of other losses are the mean
        of the weights of both halves, because averaging reduces overfitting to some pictures.
    """

    standard_errors: float = 0.0
    refit_standard_errors: float = 0.0
    gives_up_early: bool = False
    refitted_losses: tuple[str, ...] | None = None


class WeightProblem(Protocol[Example]):
    """Learning problem of the weights of one kind of model."""

    @property
    def rules(self) -> Rules:
        """Rules of the comparison."""

    @property
    def settings(self) -> tuple[float | FloatArray, ...]:
        """Settings that weights depend on, besides examples, ridge and start."""

    @property
    def rng(self) -> np.random.Generator | None:
        """Generator that fits draw from."""

    def start(self, candidate: Candidate) -> FloatArray:
        """Return the weights that learning starts from, shape (K,)."""

    def trees_alone(self) -> FloatArray:
        """Return the weights with which scores are those of the trees, without edges."""

    def cost(self, candidate: Candidate, examples: Sequence[Example]) -> float:
        """Return the estimated CPU time to evaluate a candidate, seconds."""

    def judge_cost(self, examples: Sequence[Example]) -> float:
        """Return the estimated CPU time to evaluate weights on examples, seconds."""

    def halves(self, examples: Sequence[Example]) -> tuple[Sequence[Example], Sequence[Example]]:
        """Return two halves of the examples, or of a single example."""

    def fit(
        self,
        examples: Sequence[Example],
        candidate: Candidate,
        ridge: float,
        start: FloatArray,
        max_seconds: float | None,
        *,
        is_compared: bool,
    ) -> LearningResult:
        """Learn the weights; less accurately if they are only compared."""

    def judge(self, examples: Sequence[Example], theta: FloatArray) -> list[Confusion]:
        """Return the confusion matrix of every example."""

    def judge_wholes(
        self,
        wholes: Sequence[Example],
        halves: tuple[Sequence[Example], Sequence[Example]],
        thetas: Sequence[FloatArray],
    ) -> tuple[Confusion, ...]:
        """Return the confusion matrix of every whole picture, by the weights of the other half."""

    def log_marginals(self, example: Example, theta: FloatArray) -> NDArray[np.float32]:
        """Return the log-marginals of a picture, shape (rows, columns, L), nats."""

    def node_scores(
        self, example: Example, theta: FloatArray
    ) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return the scores of the trees and those of the nodes at ``theta``."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedWeights:
    """Best candidate, its weights from all pictures, and the held-out errors of all candidates.

    ``errors`` is the share of wrong known pixels by candidate; it is empty if nothing was compared.
    ``counts`` has the confusion matrices behind it, for the candidates that all pictures evaluated;
    ``kept`` those of whole pictures for the best candidate. ``left_out`` says what the time limit
    left out.
    """

    candidate: Candidate
    result: LearningResult
    errors: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[Candidate, Sequence[Confusion]] = field(default_factory=dict)
    kept: tuple[Confusion, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """Weights of both halves, or of the first alone, and what they do on held-out pictures."""

    results: list[LearningResult]
    counts: list[Confusion]
    is_whole: bool = True


@dataclass(slots=True)
class WeightLearner(Generic[Example]):
    """Learner of the weights of a model by one candidate method, or by the best of several.

    Parameters
    ----------
    problem : WeightProblem
    examples : pictures, or windows of them, that the weights are learned from
    ridge : float, optional; by default `RIDGE_PER_PIXEL` times the known pixels
    clock : Clock
    wholes : whole pictures of the first examples, for evaluation of the best candidate
    others : further pictures, used for evaluation only, if there are at least `LEAST_JUDGED`
    work : store of finished weights, from which a killed run resumes
    """

    problem: WeightProblem[Example]
    examples: Sequence[Example]
    ridge: float | None
    clock: Clock
    wholes: Sequence[Example] = ()
    others: Sequence[Example] = ()
    work: PartStore = field(default_factory=PartStore)

    @property
    def n_known(self) -> int:
        """Number of pixels with a known label."""
        return sum(example.n_known for example in self.examples)

    @property
    def strength(self) -> float:
        """Lambda that is used."""
        return RIDGE_PER_PIXEL * self.n_known if self.ridge is None else self.ridge

    def learn(
        self,
        candidates: Sequence[Candidate],
        *,
        beside: Sequence[Candidate] = (),
        before: Sequence[Confusion] | None = None,
    ) -> ComparedWeights:
        """Compare candidates, and learn the best one from all pictures.

        Candidates ``beside`` these are evaluated but never chosen. ``before`` is an earlier
        evaluation, against which the rules may give up early.
        """
        halves = self.problem.halves(self.examples)
        if not all(sum(one.n_known for one in half) for half in halves):
            return self.learn_one(candidates[0])
        judged, left_out, pace = self._compare([*candidates, *beside], halves, before)
        whole = {one: judged[one] for one in candidates if one in judged and judged[one].is_whole}
        errors = {candidate.name: added(one.counts).error for candidate, one in judged.items()}
        if not whole:
            found = self.learn_one(candidates[0])
            return replace(found, errors=errors, left_out=tuple(left_out))
        counts = {candidate: one.counts for candidate, one in whole.items()}
        wrong = {candidate: n_wrong(one) for candidate, one in counts.items()}
        ordered = beginning_with_best(wrong)
        best = choose_candidate(ordered, standard_errors=self.problem.rules.standard_errors)
        results, kept = whole[best].results, tuple(counts[best])
        pace.next("Evaluating the held-out pictures")
        if self.wholes and (self.clock.left != 0.0 or len(self.examples) == 1):
            thetas = [one.theta for one in results]
            kept = self.problem.judge_wholes(self.wholes, halves, thetas)
        pace.next(f"Learning weights: {best.name}")
        result = self._finish(best, mean_result(results))
        return ComparedWeights(best, result, errors, counts, kept, tuple(left_out))

    def learn_one(self, candidate: Candidate) -> ComparedWeights:
        """Learn one candidate from all pictures, without any evaluation."""
        return ComparedWeights(candidate, self._fit(self.examples, candidate))

    def _finish(self, candidate: Candidate, mean: LearningResult) -> LearningResult:
        """Return the final weights of a candidate, from the mean of the weights of both halves."""
        refitted = self.problem.rules.refitted_losses
        if refitted is not None and candidate.loss not in refitted:
            return mean
        return self._fit(self.examples, candidate, start=mean.theta)

    def _compare(
        self,
        candidates: Sequence[Candidate],
        halves: tuple[Sequence[Example], Sequence[Example]],
        before: Sequence[Confusion] | None,
    ) -> tuple[dict[Candidate, _Judged], list[str], Pace]:
        """Evaluate all candidates within the time limit; return also what it left out."""
        judged: dict[Candidate, _Judged] = {}
        left_out: list[str] = []
        costs: list[float] = [
            self.problem.cost(candidate, self.examples) for candidate in candidates
        ]
        pace = Pace(self.clock, [*costs, self.problem.judge_cost(self.wholes), max(costs)])
        for place, candidate in enumerate(candidates):
            pace.next(f"Comparing losses: {candidate.name}")
            if candidate.loss not in EDGELESS and self.clock.left == 0.0:
                left_out.append(f"{candidate.name}: no time to learn its weights")
                continue
            n_after = sum(other.loss not in EDGELESS for other in candidates[place:])
            one = self._judge(candidate, halves, n_after, before)
            if any(self._is_idle(result, candidate) for result in one.results):
                left_out.append(f"{candidate.name}: no time to learn its weights")
                continue
            if any(result.status is Status.TIME_LIMIT for result in one.results):
                left_out.append(f"{candidate.name}: stopped before its weights had converged")
            judged[candidate] = one
            if candidate.loss not in EDGELESS and one.is_whole:
                fewest = before is None or added(one.counts).n_wrong < added(before).n_wrong
                before = one.counts if fewest else before
        return judged, left_out, pace

    def _judge(
        self,
        candidate: Candidate,
        halves: tuple[Sequence[Example], Sequence[Example]],
        n_after: int,
        before: Sequence[Confusion] | None,
    ) -> _Judged:
        """Learn from each half and evaluate on the other, or on the further pictures.

        Equal time is left for each of ``n_after`` further steps. If ``before``, the evaluation of
        another candidate, is clearly better on the first half's pictures, that is all, if the rules
        say so.
        """
        parts = 2 * (1 + n_after)
        results: list[LearningResult] = []
        counts: list[Confusion] = []
        for k, half in enumerate(halves):
            results.append(self._fit(half, candidate, 1 / (parts - k), is_compared=True))
            if len(self.others) >= LEAST_JUDGED:
                continue
            counts += self.problem.judge(halves[1 - k], results[-1].theta)
            if k == 0 and before is not None and self.problem.rules.gives_up_early:
                first = before[: len(counts)]
                if is_clearly_less(n_wrong(first), n_wrong(counts)):
                    return _Judged(results, counts, is_whole=False)
        if not counts:
            counts = self.problem.judge(self.others, mean_result(results).theta)
        return _Judged(results, counts)

    def _is_idle(self, result: LearningResult, candidate: Candidate) -> bool:
        """Return True if learning ended at the time limit before its first step."""
        start = self.problem.start(candidate)
        return result.status is Status.TIME_LIMIT and np.array_equal(result.theta, start)

    def _fit(
        self,
        examples: Sequence[Example],
        candidate: Candidate,
        of_time: float = 1.0,
        *,
        is_compared: bool = False,
        start: FloatArray | None = None,
    ) -> LearningResult:
        """Learn one candidate in a share of the remaining time, or return its stored weights."""
        if candidate.loss == "trees":
            return unsolved(self.problem.trees_alone())
        share = sum(example.n_known for example in examples) / self.n_known
        ridge = share * self.strength * (candidate.ridge_factor or 1.0)
        begin = self.problem.start(candidate) if start is None else start

        def fit() -> LearningResult:
            left = None if self.clock.left is None else of_time * self.clock.left
            return self.problem.fit(
                examples, candidate, ridge, begin, left, is_compared=is_compared
            )

        return self.work.weights(
            fit,
            candidate.name,
            examples,
            *(ridge, begin, is_compared, *self.problem.settings),
            rng=self.problem.rng,
        )


def n_wrong(counts: Sequence[Confusion]) -> FloatArray:
    """Return the number of wrong pixels of every picture, shape (M,)."""
    return np.array([one.n_wrong for one in counts], dtype=np.float64)


def added(counts: Iterable[Confusion]) -> Confusion:
    """Return the sum of the confusion matrices of all pictures."""
    first, *more = counts
    return sum(more, first)


def mean_result(results: Sequence[LearningResult]) -> LearningResult:
    """Return the mean of separately learned weights, without a certificate.

    The effort is the sum; the status is that of the first result that did not converge, if any.
    """
    statuses = [one.status for one in results if not one.status.is_converged]
    return replace(
        unsolved(np.mean([one.theta for one in results], axis=0)),
        iterations=sum(one.iterations for one in results),
        oracle_calls=sum(one.oracle_calls for one in results),
        seconds=sum(one.seconds for one in results),
        status=statuses[0] if statuses else results[0].status,
    )


def beginning_with_best(
    mistakes: Mapping[Candidate, FloatArray],
) -> Mapping[Candidate, FloatArray]:
    """Return mistakes of candidates, beginning with the best of the first and those without edges.

    The mean of trees and network counts as the best of those without edges unless one of the two
    is clearly better than the other: few pictures do not show which is better on others, and the
    mean is hardly ever much worse than that. Without a network the mistakes are returned unchanged.
    """
    if not any(candidate.loss == "network" for candidate in mistakes):
        return mistakes

    def total(candidate: Candidate) -> float:
        return float(mistakes[candidate].sum())

    best, *others = sorted((one for one in mistakes if one.loss in ALONE), key=total)
    for mean in (one for one in mistakes if one.loss == "mean"):
        is_clear = all(
            is_clearly_less(mistakes[best], mistakes[one], standard_errors=CLEARLY)
            for one in others
        )
        best = min((best, mean), key=total) if is_clear else mean
    first = next(iter(mistakes))
    if first.loss not in EDGELESS:
        best = min((first, best), key=total)
    return {best: mistakes[best], **mistakes}


def choose_candidate(
    mistakes: Mapping[Chosen, FloatArray], *, standard_errors: float = 1.0
) -> Chosen:
    """Return the candidate with the fewest mistakes if it is clearly better, else the first one.

    Few pictures are a small sample: an improvement smaller than the sampling error is as likely to
    do harm on other pictures.

    Parameters
    ----------
    mistakes : mistakes of every candidate on each of the same pictures, shape (M,), in any unit
    standard_errors : number of standard errors that an improvement must exceed

    Returns
    -------
    Candidate
        The candidate with the fewest mistakes if `is_clearly_less` is True for it, else the first.

    Examples
    --------
    >>> choose_candidate({"plain": np.array([0.2, 0.3, 0.2]), "edges": np.array([0.1, 0.2, 0.1])})
    'edges'
    >>> choose_candidate({"plain": np.array([0.2, 0.2, 0.2]), "edges": np.array([0.1, 0.1, 0.35])})
    'plain'
    """
    first = next(iter(mistakes))
    best = min(mistakes, key=lambda candidate: float(mistakes[candidate].sum()))
    return (
        best
        if is_clearly_less(mistakes[best], mistakes[first], standard_errors=standard_errors)
        else first
    )


def is_clearly_less(these: FloatArray, those: FloatArray, *, standard_errors: float = 1.0) -> bool:
    """Return True if ``these`` mistakes are fewer by more than this many standard errors."""
    spared = np.asarray(those, dtype=np.float64) - these
    deviation = np.sqrt(len(spared)) * spared.std(ddof=1) if len(spared) > 1 else 0.0
    return bool(spared.sum() > standard_errors * deviation)
