"""Weights of log-odds and of edges for masks, by the loss that does best on pictures it never saw.

Half of the pictures teach and the other half judge, then the other way round; of a lone picture,
the halves of it. Of many pictures others judge what both halves taught. What the trees alone say is
used unless learned weights are clearly better.
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
from engine.learning.segmentation.edge_learning import (
    ITERATIONS,
    LOGISTIC_LOSSES,
    TOLERANCE,
    fit_marginal_loss,
    held_out_errors,
)
from engine.learning.segmentation.held_out_choice import choose_way, is_clearly_less
from engine.learning.segmentation.mask_progress import SegmentationReporter
from engine.learning.segmentation.mask_solvers import SegmentationTask, solve_in_theta
from engine.solvers.control import Callbacks, Limits
from engine.solvers.result import LearningResult, unsolved

RIDGE_PER_PIXEL = 1e-3
"""Default lambda over the number of pixels that the weights are learned from. A tenth of it takes a
third longer, and makes no fewer mistakes on pictures kept from the weights."""

COMPARED = ("trees", "univariate", "likelihood")
"""What the trees alone say, and losses that have to do clearly better; the clique loss did worse
than the univariate one wherever it was measured."""

COMPARED_GAP = 1e-2
"""Relative gap of the likelihood while it is compared: errors move no more below it."""

COMPARED_DECREASE = 1e-3
"""The same of the logistic losses: decrease over their size that counts as converged."""

CLEAR = 2.0
"""Standard errors by which a loss has to spare mistakes: one is passed by chance in a sixth of all
comparisons, and edges learned from pictures of one kind do harm on those of another."""

LEAST_JUDGED = 20
"""Pictures besides those that teach, from which on they judge: they judge the very weights that are
used, where halves judge weights of fewer pictures, which may do worse than trees alone."""

SWEEPS = 5
"""Sweeps behind a logistic loss while it is compared: twice as many take twice as long, and weights
make as many mistakes on pictures kept from them."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedLosses:
    """The loss that is used, its weights from all pictures, and the errors that told.

    ``errors`` has the share of wrong pixels of every picture, (M,), for every loss compared, on
    pictures kept from its weights; it is empty where the caller chose.
    """

    loss: str
    result: LearningResult
    errors: Mapping[str, FloatArray]


@dataclass(slots=True)
class MaskWeights:
    """Learns the weights of log-odds and edges, by one loss or by the best of several.

    Parameters
    ----------
    examples : pictures whose log-odds come from trees that never saw them
    given_ridge : float, optional; by default `RIDGE_PER_PIXEL` times the pixels
    ridge_factor, rho, relative_gap : see `train_boosted_segmentation`
    clock, should_stop : see `engine.core`
    others : pictures like ``examples`` that judge and do not teach, if there are enough of them

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
    n_pixels: int = field(init=False)
    ridge: float = field(init=False)

    def __post_init__(self) -> None:
        self.n_pixels = sum(example.labels.size for example in self.examples)
        self.ridge = self.given_ridge or self.ridge_factor * RIDGE_PER_PIXEL * self.n_pixels

    def learn(self, loss: str | None, rng: np.random.Generator) -> ComparedLosses:
        """Learn by a loss, or by the best of `COMPARED`, from all pictures.

        Each of these has an equal part of the time that is left, and so has what is learned last.
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
        best = choose_way(errors, doubts=CLEAR)
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
        """Return the mean of what the halves learn by a loss, and the errors, (M,).

        Every picture is judged by what the other half learned, or the `others` by the mean of both;
        as much time as is taken here is left for each of ``n_after`` further steps. If there were
        errors ``before``, (M,), and the first half taught clearly worse than that, nothing is
        learned from the second: of pictures that this would have judged, errors are taken to be as
        much above those before.
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
        """Return what is used of a loss, from the mean of what the halves learned.

        By the likelihood its optimum of all pictures, for the sake of the certificate. By other
        losses the mean itself: on pictures kept from either it makes no more mistakes than the
        optimum, for in a mean less remains of what is peculiar to some pictures.
        """
        if loss != "likelihood":
            return taught
        return self._fit(self.examples, loss, rng, start=taught.theta)

    def _halves(self) -> tuple[Sequence[GridExample], Sequence[GridExample]]:
        """Two parts that teach and judge in turn."""
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
        """Learn by a loss, within a share of the time that is left; roughly for comparison."""
        if loss == "trees":
            n_node = examples[0].features.nodes.n_features
            return unsolved(trees_alone(n_node - N_NODE_FEATURES))
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
    """Return the mean of weights learned apart: nothing is certified of it.

    The effort is that of all; the status says so if one of them ended at a limit.
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
    """Return the halves of a picture across its longer side, without the edges between them."""
    rows, columns = example.labels.shape
    if rows > columns:
        cuts = ((0, rows // 2, 0, columns), (rows // 2, rows, 0, columns))
    else:
        cuts = ((0, rows, 0, columns // 2), (0, rows, columns // 2, columns))
    first, second = (_window(example, *cut) for cut in cuts)
    return first, second


def _window(example: GridExample, top: int, bottom: int, left: int, right: int) -> GridExample:
    """The pixels of rows from ``top`` up to ``bottom`` and of columns alike, and their edges."""
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
