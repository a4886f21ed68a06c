"""Learning of models of masks and of label maps: trees, weights above them, and a refit of both.

The trees of two stages learn out of fold; the weights of their scores and of edges learn above
them, by the loss with the fewest mistakes on held-out pictures; the second trees are then refitted
with messages as offsets, where that lowers the held-out error.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from engine.core.status import Status
from engine.kernels.threads import count_threads
from engine.learning.segmentation.clock import Clock
from engine.learning.segmentation.training_pictures import TrainingPicture
from engine.learning.segmentation.tree_learning import TreeLearning
from engine.learning.segmentation.tree_unaries import Planes, TreeUnaries
from engine.learning.segmentation.weight_learning import (
    Candidate,
    ComparedWeights,
    Example,
    WeightLearner,
    is_clearly_less,
    n_wrong,
)
from engine.solvers.result import LearningResult

REFIT_PAYS = 0.02
"""Relative decrease of the held-out error that a refit must reach: its trees cost time in every
later prediction."""

LEAST_SLOPE = 0.05
"""Smallest slope of node scores in the scores of the trees; smaller slopes are raised to it."""

REFIT_SHARE = 0.25
"""Estimated time of a refit, as a share of the time before it."""

REFITTED = ("univariate", "clique")
"""Losses after which a refit is tried: the certificate of the likelihood takes longer than all
else, and the trees alone have no messages."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPictures(Generic[Example]):
    """Pictures scored by trees that did not learn from them, and what to do with them.

    Parameters
    ----------
    learner : WeightLearner
    candidates, beside : see `WeightLearner.learn`
    wholes : examples of the first pictures for the offsets of a refit
    places : rows and columns of each of these within its picture
    is_compared : bool, whether candidates are evaluated; otherwise the first one is learned
    is_refit_allowed : bool
    """

    learner: WeightLearner[Example]
    candidates: Sequence[Candidate]
    beside: Sequence[Candidate]
    wholes: Sequence[Example]
    places: Sequence[tuple[slice, slice]]
    is_compared: bool = True
    is_refit_allowed: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class LearnedLabels:
    """Trees and weights, with all errors, and what was left out because of the time limit."""

    unaries: TreeUnaries
    weights: ComparedWeights
    strength: float
    errors: Mapping[str, float]
    left_out: tuple[str, ...]

    def result(self, clock: Clock) -> LearningResult:
        """Return the result of the run, not as converged if anything was left out for time."""
        own = self.weights.result
        is_short = bool(self.left_out) and own.status.is_converged
        status = Status.TIME_LIMIT if is_short else own.status
        return replace(own, seconds=clock.seconds, status=status)


@dataclass(frozen=True, slots=True, eq=False)
class LabelLearning(Generic[Example]):
    """Learner of trees and of the weights above them.

    Parameters
    ----------
    how : TreeLearning
    score : function of trees and of some pictures; None for pictures that time did not allow
    clock : Clock
    """

    how: TreeLearning
    score: Callable[[TreeUnaries, Sequence[TrainingPicture]], ScoredPictures[Example]]
    clock: Clock

    def learn(
        self,
        pictures: Sequence[TrainingPicture],
        chosen: Sequence[TrainingPicture],
        unread: Sequence[str] = (),
    ) -> LearnedLabels:
        """Learn trees from all pictures, and weights from the chosen ones.

        ``unread`` names what the time limit left out before.
        """
        unaries = self.how.learn(pictures)
        self.clock.report("Evaluating the second trees", 0.78)
        scored = self.score(unaries, chosen)
        self.clock.trees = self.clock.seconds - self.clock.read
        if scored.is_compared:
            found = scored.learner.learn(scored.candidates, beside=scored.beside)
        else:
            self.clock.report(f"Learning weights: {scored.candidates[0].name}", 0.84)
            found = scored.learner.learn_one(scored.candidates[0])
        errors: Mapping[str, float] = found.errors
        late: tuple[str, ...] = found.left_out
        if scored.is_refit_allowed and found.counts and found.candidate.loss in REFITTED:
            refitted = None
            if has_time_for_refit(self.clock):
                refitted = self._refit(unaries, chosen, scored, found)
            if refitted is not None:
                unaries, found, errors = refitted
            elif not has_time_for_refit(self.clock):
                late = (*late, "a refit of the trees")
        left_out = (*unread, *self.how.left_out, *late)
        return LearnedLabels(unaries, found, scored.learner.strength, errors, left_out)

    def _refit(
        self,
        unaries: TreeUnaries,
        chosen: Sequence[TrainingPicture],
        scored: ScoredPictures[Example],
        found: ComparedWeights,
    ) -> tuple[TreeUnaries, ComparedWeights, dict[str, float]] | None:
        """Return the better of both trees with its weights, and all errors; None without any."""
        self.clock.foresee("Refitting the trees with their messages", self.clock.trees)
        more = self._refitted_trees(unaries, chosen, scored, found)
        n_examples = len(scored.learner.examples) + len(scored.learner.others)
        if more is unaries:
            return None
        rescored = self.score(more, chosen[:n_examples])
        if len(rescored.learner.examples) + len(rescored.learner.others) < n_examples:
            return None
        candidate, before = found.candidate, found.counts[found.candidate]
        again = rescored.learner.learn([candidate], before=before)
        if candidate.name not in again.errors:
            return None
        errors = {**found.errors, f"{candidate.name}, refitted": again.errors[candidate.name]}
        rules = scored.learner.problem.rules
        is_better = (
            candidate in again.counts
            and has_fallen(found.errors[candidate.name], again.errors[candidate.name])
            and is_clearly_less(
                n_wrong(again.counts[candidate]),
                n_wrong(before),
                standard_errors=rules.refit_standard_errors,
            )
        )
        return (more, again, errors) if is_better else (unaries, found, errors)

    def _refitted_trees(
        self,
        unaries: TreeUnaries,
        chosen: Sequence[TrainingPicture],
        scored: ScoredPictures[Example],
        found: ComparedWeights,
    ) -> TreeUnaries:
        """Refit the second trees, with the messages that result from their scores as offsets.

        The same trees are returned if the first refitted ones explain nothing of other pictures.
        """
        problem, theta = scored.learner.problem, found.result.theta
        own = chosen[: len(scored.wholes)]

        def offsets(
            example: Example, picture: TrainingPicture, place: tuple[slice, slice]
        ) -> Planes:
            said = problem.log_marginals(example, theta)
            whole = np.zeros((*picture.labels.shape, said.shape[2]), dtype=np.float32)
            whole[place] = said
            return whole

        with ThreadPoolExecutor(count_threads()) as pool:
            said = list(pool.map(offsets, scored.wholes, own, scored.places))
        pairs = [problem.node_scores(example, theta) for example in scored.wholes]
        slope = slope_of([trees for trees, _ in pairs], [nodes for _, nodes in pairs])
        return self.how.refit(unaries, own, said, slope)


def has_time_for_refit(clock: Clock) -> bool:
    """Return True if enough of the time limit remains for a refit."""
    return clock.left is None or clock.left > REFIT_SHARE * clock.seconds


def slope_of(said: Sequence[NDArray[np.floating]], scores: Sequence[NDArray[np.floating]]) -> float:
    """Return the least-squares slope of node scores in the scores of the trees."""
    x = np.concatenate([one.ravel() for one in said]).astype(np.float64)
    y = np.concatenate([one.ravel() for one in scores]).astype(np.float64)
    x -= x.mean()
    return max(float(x @ y) / max(float(x @ x), 1e-12), LEAST_SLOPE)


def has_fallen(before: float, after: float) -> bool:
    """Return True if an error fell by enough to accept a refit."""
    return after <= (1 - REFIT_PAYS) * before and after < before
