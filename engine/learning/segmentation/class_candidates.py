"""Learning of the weights of label-map models, one kind of `WeightProblem`.

Of a single picture, half of its blocks is used in turn for learning and for evaluation.

Strokes are treated differently. Painted neighbours are nearly always of one class, so edges learned
from them smooth whole objects away, and the pixels of a stroke are nearly one observation. If few
pixels are known, a strong ridge therefore keeps the weights near those of the painting page; a
weaker ridge is used only if it makes clearly fewer mistakes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.progress import StopCallback
from engine.crf.class_features import (
    UNKNOWN,
    ClassExample,
    ClassLabels,
    ClassLayout,
    centred,
)
from engine.learning.segmentation.class_weights import (
    SWEEPS,
    fit_likelihood,
    fit_loss,
    judge_classes,
    network_alone,
    network_scores,
    rest_messages,
    trees_alone,
)
from engine.learning.segmentation.training_pictures import BLOCKS, FOLDS, block_folds
from engine.learning.segmentation.weight_learning import EDGELESS, Candidate, Rules, added
from engine.learning.segmentation.without_edges import Picture, fit_without_edges
from engine.metrics.classes import Confusion
from engine.objectives.class_messages import ClassMessages
from engine.objectives.marginal_losses import LossOptions
from engine.solvers.result import LearningResult, unsolved

MOST_COMPARED_BY_LIKELIHOOD = 4
"""Largest number of classes for which the likelihood is compared unless requested: its certificate
fits the tables of all edges to their margins, which would take longer than the trees."""

RELATIVE_GAP = 2e-3
"""Certified gap, divided by the size of the log-likelihood, at which learning by it stops."""


FIT_SECONDS_A_LABEL = 2.5e-5
"""CPU seconds to evaluate a univariate candidate, per pixel and class of the windows."""

JUDGE_SECONDS_A_LABEL = 1e-6
"""CPU seconds to evaluate held-out pictures, per pixel and class."""

LIKELIHOOD_COST, HIDDEN_COST, TREES_COST = 6.0, 25.0, 0.05
"""CPU time of other candidates, relative to the univariate one: the likelihood with all labels
known, the likelihood with hidden labels (estimated again in each round), and the trees alone."""

SPARSE = 0.5
"""Share of known pixels below which the labels are treated as strokes."""

STRONG_RIDGE_FACTOR, WEAK_RIDGE_FACTOR = 1000.0, 30.0
"""Factors on the usual ridge for weights that are kept near those of the painting page."""

LEAST_PROBABILITY = np.float32(1e-5)
"""Smallest marginal in a logarithm; smaller ones are raised to it."""


TREES_ALONE = Candidate("trees alone", "trees", is_potts=True)
"""Candidate without edges, which uses the scores of the trees unchanged."""

NETWORK_ALONE = Candidate("network alone", "network", is_potts=True)
"""Candidate without edges, which uses the scores of the network times one number."""

MEAN_OF_BOTH = Candidate("mean of trees and network", "mean", is_potts=True)
"""Candidate without edges, which uses the mean of both scores, each times one number."""

CANDIDATES = (
    Candidate("univariate, pairs of classes", "univariate", is_potts=False),
    Candidate("univariate, agreement", "univariate", is_potts=True),
    Candidate("likelihood", "likelihood", is_potts=False),
    TREES_ALONE,
)
"""Candidates compared on pixels held out from both trees and weights."""

CANDIDATES_FOR_STROKES = (
    Candidate(
        "univariate, close to the usual weights",
        "univariate",
        is_potts=True,
        ridge_factor=STRONG_RIDGE_FACTOR,
    ),
    Candidate(
        "univariate, farther from them", "univariate", is_potts=True, ridge_factor=WEAK_RIDGE_FACTOR
    ),
    TREES_ALONE,
)
"""Candidates for strokes; the first is used unless another is clearly better."""


def compared_candidates(
    loss: str | None,
    n_classes: int,
    *,
    is_sparse: bool = False,
    has_network: bool = False,
    is_smooth: bool = True,
) -> list[Candidate]:
    """Return the candidates of a loss, or all candidates for this number of classes.

    Without ``is_smooth``, only trees and network alone are compared: with others, it was not
    measured how many objects are separated.
    """
    own = {one.loss: [one] for one in (NETWORK_ALONE, MEAN_OF_BOTH)}
    if loss in own:
        return own[loss]
    beside = [NETWORK_ALONE, MEAN_OF_BOTH] if has_network and loss is None else []
    if loss is None and not is_smooth:
        return [TREES_ALONE, *beside[:1]]
    if is_sparse and loss != "likelihood":
        some = [candidate for candidate in CANDIDATES_FOR_STROKES if loss in (None, candidate.loss)]
        return some + beside
    many = n_classes > MOST_COMPARED_BY_LIKELIHOOD
    some = [
        candidate
        for candidate in CANDIDATES
        if candidate.loss == loss
        or (loss is None and not (many and candidate.loss == "likelihood"))
    ]
    return some + beside


def are_strokes(labels: Iterable[ClassLabels], n_classes: int) -> bool:
    """Return True if so few pixels are known that the labels are strokes, not whole label maps."""
    counts = [(int(np.count_nonzero(one < n_classes)), one.size) for one in labels]
    return sum(known for known, _ in counts) < SPARSE * sum(size for _, size in counts)


def candidate_cost(candidate: Candidate, n_labels: int, *, is_whole: bool) -> float:
    """Return the CPU seconds to evaluate a candidate on ``n_labels`` pixels times classes."""
    known = LIKELIHOOD_COST if is_whole else HIDDEN_COST
    cost = known if candidate.loss == "likelihood" else 1.0
    if candidate.loss in EDGELESS:
        cost = TREES_COST
    return FIT_SECONDS_A_LABEL * cost * n_labels


@dataclass(frozen=True, slots=True)
class ClassWeights:
    """Learning problem of the weights of a label-map model, a `WeightProblem`.

    Parameters
    ----------
    layout : ClassLayout
    weights : ndarray, shape (L,), weight of the pixels of each class
    should_stop : see `engine.core`
    is_sparse : bool, whether the labels are strokes
    """

    layout: ClassLayout
    weights: FloatArray
    should_stop: StopCallback
    is_sparse: bool
    rng: ClassVar[None] = None

    @property
    def rules(self) -> Rules:
        """Rules of the comparison: of strokes another candidate must be clearly better."""
        return Rules(standard_errors=1.0 if self.is_sparse else 0.0)

    @property
    def settings(self) -> tuple[float | FloatArray, ...]:
        """Settings that weights depend on; see `WeightProblem.settings`."""
        return (self.weights,)

    def start(self, candidate: Candidate) -> FloatArray:
        """Return the weights that learning starts from."""
        return self.layout.smooth() if candidate.ridge_factor else self.layout.plain()

    def trees_alone(self) -> FloatArray:
        """Return the weights with which scores are those of the trees, without edges."""
        return trees_alone(self.layout)

    def cost(self, candidate: Candidate, examples: Sequence[ClassExample]) -> float:
        """Return the estimated CPU time to evaluate a candidate, seconds."""
        is_whole = all(example.n_known == example.labels.size for example in examples)
        return candidate_cost(candidate, self._n_labels(examples), is_whole=is_whole)

    def judge_cost(self, examples: Sequence[ClassExample]) -> float:
        """Return the estimated CPU time to evaluate weights on examples, seconds."""
        return JUDGE_SECONDS_A_LABEL * self._n_labels(examples)

    def _n_labels(self, examples: Sequence[ClassExample]) -> int:
        return sum(example.labels.size for example in examples) * self.layout.n_classes

    def halves(
        self, examples: Sequence[ClassExample]
    ) -> tuple[Sequence[ClassExample], Sequence[ClassExample]]:
        """Return two halves of the pictures, or of the known pixels of a single picture."""
        if len(examples) > 1:
            return examples[::2], examples[1::2]
        first, second = _by_blocks(examples[0])
        return [first], [second]

    def fit(
        self,
        examples: Sequence[ClassExample],
        candidate: Candidate,
        ridge: float,
        start: FloatArray,
        max_seconds: float | None,
        *,
        is_compared: bool,
    ) -> LearningResult:
        """Learn the weights by a loss, as accurately if they are only compared."""
        if candidate.loss in ("network", "mean"):
            trees, network = trees_alone(self.layout), network_alone(self.layout)

            def pictures() -> Iterator[Picture]:
                return ((one.features.trees, network_scores(one), one.labels) for one in examples)

            return unsolved(fit_without_edges(candidate.loss, trees, network, pictures))
        if candidate.loss == "likelihood":
            return fit_likelihood(
                examples,
                ridge=ridge,
                relative_gap=RELATIVE_GAP,
                start=start,
                max_seconds=max_seconds,
                should_stop=self.should_stop,
            )
        weights = tuple(self.weights.tolist())
        return fit_loss(
            examples,
            LossOptions(iterations=SWEEPS, weights=weights, is_potts=candidate.is_potts),
            ridge=ridge,
            centre=self.start(candidate),
            start=start,
            max_seconds=max_seconds,
            should_stop=self.should_stop,
        )

    def judge(self, examples: Sequence[ClassExample], theta: FloatArray) -> list[Confusion]:
        """Return the confusion matrix of every picture."""
        return judge_classes(examples, theta, self.should_stop)

    def judge_wholes(
        self,
        wholes: Sequence[ClassExample],
        halves: tuple[Sequence[ClassExample], Sequence[ClassExample]],
        thetas: Sequence[FloatArray],
    ) -> tuple[Confusion, ...]:
        """Return the confusion matrix of every whole picture, by weights from the other half.

        Of a single picture, the window is evaluated: each half of its blocks by the other half.
        Classes known in one place only are left out: one stroke would be in both halves.
        """
        lone: list[int] = []
        n_examples = sum(len(half) for half in halves)
        is_single = halves[0][0].features is halves[1][0].features
        if is_single or n_examples < FOLDS:
            labels = [example.labels for example in wholes]
            lone = classes_in_one_place(labels, self.layout.n_classes)
        if not is_single:
            judged = [_without(one, lone) for one in wholes]
            found: dict[int, Confusion] = {}
            for side, theta in enumerate(thetas[::-1]):
                counts = self.judge(judged[side::2], theta)
                found |= {side + 2 * k: one for k, one in enumerate(counts)}
            return tuple(found[k] for k in sorted(found))
        blocks = [_without(half[0], lone) for half in halves[::-1]]
        return (
            added(
                self.judge([block], theta)[0] for block, theta in zip(blocks, thetas, strict=True)
            ),
        )

    def log_marginals(self, example: ClassExample, theta: FloatArray) -> NDArray[np.float32]:
        """Return the log-marginals of a picture, shape (rows, columns, L), nats."""
        chains = ClassMessages(example.features, theta)
        rest_messages(chains)
        return np.log(np.maximum(chains.marginals(), LEAST_PROBABILITY))

    def node_scores(
        self, example: ClassExample, theta: FloatArray
    ) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return the scores of the trees and those of the nodes at ``theta``."""
        return example.features.trees, centred(example.features.scores(theta).nodes)


def classes_in_one_place(labels: Sequence[ClassLabels], n_classes: int) -> list[int]:
    """Return the classes that are known in only one picture, within the size of a block.

    Few pictures are held out in blocks, and a border between two blocks may split a stroke.
    """
    found = []
    for k in range(n_classes):
        places = [np.nonzero(one == k) for one in labels]
        within = [
            all(np.ptp(at) * BLOCKS < side for at, side in zip(place, one.shape, strict=True))
            for place, one in zip(places, labels, strict=True)
            if len(place[0])
        ]
        if within == [True]:
            found.append(k)
    return found


def _without(example: ClassExample, classes: Sequence[int]) -> ClassExample:
    """Return the example with the labels of some classes hidden."""
    if not classes:
        return example
    hidden = np.isin(example.labels, classes)
    return ClassExample(example.features, np.where(hidden, np.uint8(UNKNOWN), example.labels))


def _by_blocks(example: ClassExample) -> tuple[ClassExample, ClassExample]:
    """Return the example twice, each time with the labels of half of its blocks hidden."""
    is_first = block_folds(example.labels.shape) % 2 == 0
    hidden = np.uint8(UNKNOWN)
    first = np.where(is_first, example.labels, hidden)
    second = np.where(is_first, hidden, example.labels)
    return ClassExample(example.features, first), ClassExample(example.features, second)
