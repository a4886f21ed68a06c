"""Learning of the weights of log-odds and edges of mask models, one kind of `WeightProblem`."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.progress import StopCallback, ignore_progress
from engine.crf.grid_features import DenseNodeFeatures, GridExample, GridFeatures
from engine.kernels.threads import count_threads
from engine.learning.segmentation.grid_readout import predict_marginals
from engine.learning.segmentation.marginal_fitting import (
    ITERATIONS,
    LOGISTIC_LOSSES,
    LOGISTIC_TOLERANCE,
    fit_logistic_loss,
)
from engine.learning.segmentation.mask_progress import SegmentationReporter
from engine.learning.segmentation.mask_solvers import SegmentationTask, solve_in_theta
from engine.learning.segmentation.tree_features import (
    network_alone,
    tree_evidence,
    trees_alone,
)
from engine.learning.segmentation.weight_learning import Candidate, Rules
from engine.learning.segmentation.without_edges import Picture, fit_without_edges
from engine.metrics.classes import Confusion, confusion
from engine.solvers.control import Callbacks, Limits
from engine.solvers.result import LearningResult, unsolved

TREES = Candidate("trees", "trees")

NETWORK = Candidate("network alone", "network")

MEAN = Candidate("mean of trees and network", "mean")

COMPARED = ("trees", "univariate", "likelihood")
"""Compared candidates: the trees alone, and losses that must be clearly better. The clique loss was
worse than the univariate loss in every measurement."""

COMPARED_GAP = 1e-2
"""Relative gap of the likelihood during comparison: below it errors do not change."""

COMPARED_DECREASE = 1e-3
"""Relative decrease of the logistic losses at convergence during comparison."""

SWEEPS = 5
"""Number of sweeps for a logistic loss during comparison: twice as many take twice as long, and the
weights make as many mistakes on held-out pictures."""

RULES = Rules(
    standard_errors=2.0,
    refit_standard_errors=1.0,
    gives_up_early=True,
    refitted_losses=("likelihood",),
)
"""One standard error is exceeded by chance in a sixth of all comparisons, and edges learned from
one kind of pictures do harm on another kind. The optimum of the likelihood on all pictures has a
certificate; the mean of the weights of both halves makes no more mistakes than other optima."""

LEAST_PROBABILITY = 1e-5
"""Smallest marginal in a logarithm; smaller ones are raised to it."""

FIT_SECONDS_A_PIXEL = {
    "trees": 4e-7,
    "network": 6e-7,
    "mean": 6e-7,
    "univariate": 2e-5,
    "clique": 2e-5,
    "likelihood": 3e-5,
}
"""CPU seconds to evaluate a candidate, a pixel."""


@dataclass(frozen=True, slots=True)
class MaskWeights:
    """Learning problem of the weights of a mask model, a `WeightProblem`.

    Parameters
    ----------
    n_maps : int, number of maps given with each picture
    rho, relative_gap : see `train_boosted_segmentation`
    should_stop : see `engine.core`
    rng : numpy.random.Generator, draws the order in which pictures join growing subsets
    """

    n_maps: int
    rho: float
    relative_gap: float
    should_stop: StopCallback
    rng: np.random.Generator
    rules: ClassVar[Rules] = RULES

    @property
    def settings(self) -> tuple[float | FloatArray, ...]:
        """Settings that weights depend on; see `WeightProblem.settings`."""
        return self.rho, self.relative_gap

    def start(self, candidate: Candidate) -> FloatArray:
        """Return the weights that learning starts from: the trees alone."""
        return self.trees_alone()

    def trees_alone(self) -> FloatArray:
        """Return the weights with which scores are the log-odds of the trees, without edges."""
        return trees_alone(self.n_maps)

    def cost(self, candidate: Candidate, examples: Sequence[GridExample]) -> float:
        """Return the estimated CPU time to evaluate a candidate, seconds."""
        return candidate_cost(candidate, sum(example.labels.size for example in examples))

    def judge_cost(self, examples: Sequence[GridExample]) -> float:
        """Return the estimated CPU time to evaluate weights on examples, seconds."""
        return self.cost(TREES, examples)

    def halves(
        self, examples: Sequence[GridExample]
    ) -> tuple[Sequence[GridExample], Sequence[GridExample]]:
        """Return two halves of the pictures, or of a single picture."""
        if len(examples) > 1:
            return examples[::2], examples[1::2]
        first, second = cut_in_two(examples[0])
        return [first], [second]

    def fit(
        self,
        examples: Sequence[GridExample],
        candidate: Candidate,
        ridge: float,
        start: FloatArray,
        max_seconds: float | None,
        *,
        is_compared: bool,
    ) -> LearningResult:
        """Learn the weights by a loss; see `WeightProblem.fit`."""
        if candidate.loss in ("network", "mean"):
            trees, network = trees_alone(self.n_maps), network_alone(self.n_maps)

            def pictures() -> Iterator[Picture]:
                return ((*_scores(one), one.labels.view(np.uint8)) for one in examples)

            return unsolved(fit_without_edges(candidate.loss, trees, network, pictures))
        if candidate.loss in LOGISTIC_LOSSES:
            return fit_logistic_loss(
                examples,
                candidate.loss,
                ridge=ridge,
                rho=self.rho,
                start=start,
                max_seconds=max_seconds,
                should_stop=self.should_stop,
                rng=self.rng,
                sweeps=SWEEPS if is_compared else ITERATIONS,
                tolerance=COMPARED_DECREASE if is_compared else LOGISTIC_TOLERANCE,
            )
        sizes = [example.labels.size for example in examples]
        task = SegmentationTask(examples, sizes, ridge, self.rho)
        reporter = SegmentationReporter([], self.rho, ignore_progress, self.should_stop)
        gap = max(COMPARED_GAP, self.relative_gap) if is_compared else self.relative_gap
        limits = Limits(relative_gap=gap, max_seconds=max_seconds)
        callbacks = Callbacks(reporter, self.should_stop, None)
        return solve_in_theta(task, limits, callbacks, reporter, start)

    def judge(self, examples: Sequence[GridExample], theta: FloatArray) -> list[Confusion]:
        """Return the confusion matrix of every picture, by larger marginals."""

        def one(example: GridExample) -> Confusion:
            if self.should_stop():
                raise StoppedError("Learning was stopped.")
            nodes, _ = predict_marginals(example.features, theta, self.rho)
            return confusion((nodes > 0.5).view(np.uint8), example.labels.view(np.uint8), 2)

        with ThreadPoolExecutor(count_threads()) as pool:
            return list(pool.map(one, examples))

    def judge_wholes(
        self,
        wholes: Sequence[GridExample],
        halves: tuple[Sequence[GridExample], Sequence[GridExample]],
        thetas: Sequence[FloatArray],
    ) -> tuple[Confusion, ...]:
        """Return nothing: masks are compared on whole pictures, or on the cores of windows."""
        return ()

    def log_marginals(self, example: GridExample, theta: FloatArray) -> NDArray[np.float32]:
        """Return the log-marginals of background and foreground, (rows, columns, 2), nats."""
        marked, _ = predict_marginals(example.features, theta, self.rho)
        both = np.stack([1 - marked, marked], axis=2)
        return np.asarray(np.log(np.maximum(both, LEAST_PROBABILITY)), dtype=np.float32)

    def node_scores(self, example: GridExample, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log-odds of the trees and those of the nodes at ``theta``."""
        return tree_evidence(example.features), example.features.scores(theta).node


def mask_candidates(loss: str | None, *, has_network: bool = False) -> list[Candidate]:
    """Return the candidate of a loss, or all candidates that are compared."""
    own = {one.loss: [one] for one in (NETWORK, MEAN)}
    if loss in own:
        return own[loss]
    if loss is not None:
        return [Candidate(loss, loss)]
    compared = [Candidate(name, name) for name in COMPARED]
    return [*compared[:1], NETWORK, MEAN, *compared[1:]] if has_network else compared


def _scores(example: GridExample) -> tuple[FloatArray, FloatArray]:
    """Return the scores of both labels by the trees, and by the network, whose map is the last."""
    nodes = example.features.nodes
    if not isinstance(nodes, DenseNodeFeatures):
        raise InvalidProblemError("example: expected the node features of trees.")
    nothing = np.zeros(example.labels.shape)
    trees, network = tree_evidence(example.features), nodes.values[:, :, -1]
    return np.stack([nothing, trees], axis=2), np.stack([nothing, network], axis=2)


def candidate_cost(candidate: Candidate, n_pixels: int) -> float:
    """Return the CPU seconds to evaluate a candidate on pictures of ``n_pixels`` together."""
    return FIT_SECONDS_A_PIXEL[candidate.loss] * n_pixels


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
