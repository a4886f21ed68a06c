"""Learning of the weights of log-odds and edges for masks, by the loss with least held-out error.

Each half of the pictures (of a single picture, each half of it) is used in turn for learning and
for evaluation. If there are many pictures, further ones evaluate the mean of both halves' weights.
The trees alone are used unless learned weights are clearly better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError
from engine.core.progress import StopCallback, ignore_progress
from engine.crf.grid_features import DenseNodeFeatures, GridExample, GridFeatures
from engine.learning.segmentation.boosted_model import N_NODE_FEATURES, trees_alone
from engine.learning.segmentation.clock import Clock
from engine.learning.segmentation.defaults import RIDGE_PER_PIXEL
from engine.learning.segmentation.edge_learning import (
    ITERATIONS,
    LOGISTIC_LOSSES,
    TOLERANCE,
    fit_marginal_loss,
    held_out_errors,
)
from engine.learning.segmentation.held_out_choice import choose_candidate, is_clearly_less
from engine.learning.segmentation.mask_progress import SegmentationReporter
from engine.learning.segmentation.mask_solvers import SegmentationTask, solve_in_theta
from engine.learning.segmentation.part_store import PartStore
from engine.solvers.control import Callbacks, Limits
from engine.solvers.result import LearningResult, unsolved

COMPARED = ("trees", "univariate", "likelihood")
"""Compared candidates: the trees alone, and losses that must be clearly better. The clique loss was
worse than the univariate loss in every measurement."""

COMPARED_GAP = 1e-2
"""Relative gap of the likelihood during comparison: below it errors do not change."""

COMPARED_DECREASE = 1e-3
"""Relative decrease of the logistic losses at convergence during comparison."""

MIN_STANDARD_ERRORS = 2.0
"""Number of standard errors by which a loss must reduce mistakes: one is exceeded by chance in a
sixth of all comparisons, and edges learned from one kind of pictures do harm on another kind."""

LEAST_JUDGED = 20
"""Smallest number of further pictures for evaluation by them. They evaluate the final weights; the
halves evaluate weights from fewer pictures, which may be worse than the trees alone."""

SWEEPS = 5
"""Number of sweeps for a logistic loss during comparison: twice as many take twice as long, and the
weights make as many mistakes on held-out pictures."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedLosses:
    """Chosen loss, its weights from all pictures, and the held-out errors of all losses.

    ``errors`` has the share of wrong pixels of every held-out picture, (M,), for every loss
    compared; it is empty if the caller chose the loss.
    """

    loss: str
    result: LearningResult
    errors: Mapping[str, FloatArray]


@dataclass(slots=True)
class MaskWeights:
    """Learner of mask weights (of log-odds and edges), by one loss or by the best of several.

    Parameters
    ----------
    examples : pictures with log-odds from trees that did not learn from them
    given_ridge : float, optional; by default `RIDGE_PER_PIXEL` times the pixels
    ridge_factor, rho, relative_gap : see `train_boosted_segmentation`
    clock, should_stop : see `engine.core`
    others : further such pictures, used for evaluation only, if there are enough
    work : store of finished weights, from which a killed run resumes

    ``ridge`` is the lambda that is used.
    """

    examples: Sequence[GridExample]
    given_ridge: float | None
    ridge_factor: float
    rho: float
    relative_gap: float
    clock: Clock
    should_stop: StopCallback
    others: Sequence[GridExample] = ()
    work: PartStore = field(default_factory=PartStore)
    n_pixels: int = field(init=False)
    ridge: float = field(init=False)

    def __post_init__(self) -> None:
        self.n_pixels = sum(example.labels.size for example in self.examples)
        usual = self.ridge_factor * RIDGE_PER_PIXEL * self.n_pixels
        self.ridge = usual if self.given_ridge is None else self.given_ridge

    def learn(self, loss: str | None, rng: np.random.Generator) -> ComparedLosses:
        """Learn by the given loss, or by the best of `COMPARED`, from all pictures.

        Each candidate and the final learning have an equal part of the remaining time.
        """
        if loss is not None:
            return ComparedLosses(loss, self._fit(self.examples, loss, rng), {})
        taught: dict[str, LearningResult] = {}
        errors: dict[str, FloatArray] = {}
        for place, name in enumerate(COMPARED):
            if self.clock.left == 0.0 and errors:
                break
            self.clock.report(f"Learning weights, compared: {name}", 0.84 + 0.03 * place)
            learned = [errors[other] for other in errors if other != "trees"]
            least = min(learned, key=np.sum, default=None)
            n_after = len(COMPARED) - place
            taught[name], errors[name] = self.judge(name, rng, n_after=n_after, before=least)
        best = choose_candidate(errors, standard_errors=MIN_STANDARD_ERRORS)
        self.clock.report(f"Learning weights: {best}", 0.93)
        return ComparedLosses(best, self.finish(best, taught[best], rng), errors)

    def judge(
        self,
        loss: str,
        rng: np.random.Generator,
        *,
        n_after: int = 1,
        before: FloatArray | None = None,
    ) -> tuple[LearningResult, FloatArray]:
        """Return the mean of the weights learned from both halves, and held-out errors, (M,).

        Every picture is evaluated with the weights of the other half, or the `others` with the mean
        of both; equal time is left for each of ``n_after`` further steps. If errors ``before``,
        (M,), are given and those of the first half's weights are clearly worse, the second half is
        skipped: the errors of its pictures are taken to be worse by the same mean difference.
        """
        halves = self._halves()
        parts = 2 * (1 + n_after)
        taught: list[LearningResult] = []
        errors: list[FloatArray] = []
        for k, (half, judged) in enumerate(zip(halves, halves[::-1], strict=True)):
            taught.append(self._fit(half, loss, rng, 1 / (parts - k), is_compared=True))
            if len(self.others) >= LEAST_JUDGED:
                continue
            errors.append(held_out_errors(judged, taught[-1].theta, self.rho, self.should_stop))
            so_far = np.concatenate(errors)
            if before is None or len(so_far) == len(before):
                continue
            if is_clearly_less(before[: len(so_far)], so_far):
                worse = float(np.mean(so_far - before[: len(so_far)]))
                errors.append(before[len(so_far) :] + worse)
                break
        mean = mean_result(taught)
        if not errors:
            errors.append(held_out_errors(self.others, mean.theta, self.rho, self.should_stop))
        return mean, np.concatenate(errors)

    def finish(self, loss: str, taught: LearningResult, rng: np.random.Generator) -> LearningResult:
        """Return the final weights of a loss, from the mean of the weights of both halves.

        For the likelihood they are the optimum on all pictures, which has a certificate. For other
        losses they are the mean itself: on held-out pictures it makes no more mistakes than the
        optimum, because averaging reduces overfitting to some pictures.
        """
        if loss != "likelihood":
            return taught
        return self._fit(self.examples, loss, rng, start=taught.theta)

    def _halves(self) -> tuple[Sequence[GridExample], Sequence[GridExample]]:
        """Return two halves of the pictures for learning and evaluation in turn."""
        if len(self.examples) > 1:
            return self.examples[::2], self.examples[1::2]
        first, second = cut_in_two(self.examples[0])
        return [first], [second]

    def _fit(
        self,
        examples: Sequence[GridExample],
        loss: str,
        rng: np.random.Generator,
        of_time: float = 1.0,
        *,
        is_compared: bool = False,
        start: FloatArray | None = None,
    ) -> LearningResult:
        """Learn by a loss in a share of the remaining time; less accurately for comparison.

        Weights that an earlier run stored for the same examples and settings are reused.
        """
        if loss == "trees":
            n_node = examples[0].features.nodes.n_features
            return unsolved(trees_alone(n_node - N_NODE_FEATURES))
        return self.work.weights(
            lambda: self._fit_weights(examples, loss, rng, of_time, is_compared, start),
            loss,
            examples,
            *(self.ridge, self.rho, self.relative_gap, is_compared, start),
            rng=rng,
        )

    def _fit_weights(
        self,
        examples: Sequence[GridExample],
        loss: str,
        rng: np.random.Generator,
        of_time: float,
        is_compared: bool,
        start: FloatArray | None,
    ) -> LearningResult:
        left = None if self.clock.left is None else of_time * self.clock.left
        sizes = [example.labels.size for example in examples]
        ridge = sum(sizes) / self.n_pixels * self.ridge
        if loss in LOGISTIC_LOSSES:
            return fit_marginal_loss(
                examples,
                loss,
                ridge=ridge,
                rho=self.rho,
                start=start,
                max_seconds=left,
                should_stop=self.should_stop,
                rng=rng,
                sweeps=SWEEPS if is_compared else ITERATIONS,
                tolerance=COMPARED_DECREASE if is_compared else TOLERANCE,
            )
        task = SegmentationTask(examples, sizes, ridge, self.rho)
        reporter = SegmentationReporter([], self.rho, ignore_progress, self.should_stop)
        gap = max(COMPARED_GAP, self.relative_gap) if is_compared else self.relative_gap
        limits = Limits(relative_gap=gap, max_seconds=left)
        callbacks = Callbacks(reporter, self.should_stop, None)
        return solve_in_theta(task, limits, callbacks, reporter, start)


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


def cut_in_two(example: GridExample) -> tuple[GridExample, GridExample]:
    """Return the halves of a picture, cut across its longer side, without edges between them."""
    rows, columns = example.labels.shape
    if rows > columns:
        cuts = ((0, rows // 2, 0, columns), (rows // 2, rows, 0, columns))
    else:
        cuts = ((0, rows, 0, columns // 2), (0, rows, columns // 2, columns))
    first, second = (_window(example, *cut) for cut in cuts)
    return first, second


def _window(example: GridExample, top: int, bottom: int, left: int, right: int) -> GridExample:
    """Return the example of rows ``top`` to ``bottom`` and columns ``left`` to ``right``."""
    rows, columns, edges = slice(top, bottom), slice(left, right), example.features.edges
    nodes = example.features.nodes
    if not isinstance(nodes, DenseNodeFeatures):
        raise InvalidProblemError("example: expected the node features of trees.")
    within = replace(
        edges,
        horizontal=np.ascontiguousarray(edges.horizontal[rows, left : right - 1]),
        vertical=np.ascontiguousarray(edges.vertical[top : bottom - 1, columns]),
    )
    values = np.ascontiguousarray(nodes.values[rows, columns])
    labels = np.ascontiguousarray(example.labels[rows, columns])
    return GridExample(GridFeatures(DenseNodeFeatures(values), within), labels)
