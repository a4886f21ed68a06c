"""Candidate methods to learn the weights of a class model, compared on held-out pixels.

Each half of the pictures is used in turn for learning and for evaluation; of a single picture, half
of its blocks. Scores of the trees come from folds that the trees did not learn from, so errors are
measured on pictures held out from the whole model.

Strokes are treated differently. Painted neighbours are nearly always of one class, so edges learned
from them smooth whole objects away, and the pixels of a stroke are nearly one observation. If few
pixels are known, a strong ridge therefore keeps the weights near those of the painting page; a
weaker ridge is used only if it makes clearly fewer mistakes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.progress import StopCallback
from engine.crf.class_features import UNKNOWN, ClassExample, ClassLabels, ClassLayout
from engine.kernels.threads import count_threads
from engine.learning.segmentation.class_weights import (
    SWEEPS,
    fit_likelihood,
    fit_loss,
    judge_classes,
    rest_messages,
    trees_alone,
)
from engine.learning.segmentation.clock import Clock, Pace
from engine.learning.segmentation.defaults import RIDGE_PER_PIXEL
from engine.learning.segmentation.folds import BLOCKS, FOLDS, block_folds
from engine.learning.segmentation.held_out_choice import choose_candidate
from engine.learning.segmentation.part_store import PartStore
from engine.metrics.classes import Confusion
from engine.objectives.class_losses import ClassLoss
from engine.objectives.class_messages import ClassMessages
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

COMPARED_SHARE = 1 / 3
"""Largest share of the remaining time for learning one candidate from one half of the pictures."""

LEAST_PROBABILITY = np.float32(1e-5)
"""Smallest marginal in a logarithm; smaller ones are raised to it."""


class Candidate(NamedTuple):
    """Candidate method to learn weights: its loss, True if edges score only agreement, and the
    factor on a ridge towards the weights of the painting page (0 for the usual ridge)."""

    name: str
    loss: str
    is_potts: bool
    ridge_factor: float = 0.0


TREES_ALONE = Candidate("trees alone", "trees", is_potts=True)
"""Candidate without edges, which uses the scores of the trees unchanged."""

CANDIDATES = (
    Candidate("univariate, pairs of classes", "univariate", is_potts=False),
    Candidate("univariate, agreement", "univariate", is_potts=True),
    Candidate("likelihood", "likelihood", is_potts=False),
    TREES_ALONE,
)
"""Candidates compared on pixels held out from both trees and weights."""

CANDIDATES_FOR_STROKES = (
    Candidate(
        "univariate, near the painting page",
        "univariate",
        is_potts=True,
        ridge_factor=STRONG_RIDGE_FACTOR,
    ),
    Candidate(
        "univariate, farther from it", "univariate", is_potts=True, ridge_factor=WEAK_RIDGE_FACTOR
    ),
    TREES_ALONE,
)
"""Candidates for strokes; the first is used unless another is clearly better."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedCandidates:
    """Best candidate, its weights from all pictures, and the held-out errors of all candidates.

    ``errors`` is the share of wrong known pixels by candidate; ``kept`` has the confusion matrices
    of the evaluated pictures for the best one. Both are empty if nothing could be held out.
    """

    candidate: Candidate
    result: LearningResult
    errors: Mapping[str, float]
    kept: tuple[Confusion, ...]


def compared_candidates(
    loss: str | None, n_classes: int, *, is_sparse: bool = False
) -> list[Candidate]:
    """Return the candidates of a loss, or all candidates for this number of classes."""
    if is_sparse and loss != "likelihood":
        return [candidate for candidate in CANDIDATES_FOR_STROKES if loss in (None, candidate.loss)]
    many = n_classes > MOST_COMPARED_BY_LIKELIHOOD
    return [
        candidate
        for candidate in CANDIDATES
        if candidate.loss == loss
        or (loss is None and not (many and candidate.loss == "likelihood"))
    ]


def are_strokes(labels: Iterable[ClassLabels], n_classes: int) -> bool:
    """Return True if so few pixels are known that the labels are strokes, not whole label maps."""
    counts = [(int(np.count_nonzero(one < n_classes)), one.size) for one in labels]
    return sum(known for known, _ in counts) < SPARSE * sum(size for _, size in counts)


def candidate_cost(candidate: Candidate, n_labels: int, *, is_whole: bool) -> float:
    """Return the CPU seconds to evaluate a candidate on ``n_labels`` pixels times classes."""
    known = LIKELIHOOD_COST if is_whole else HIDDEN_COST
    cost = {"likelihood": known, "trees": TREES_COST}.get(candidate.loss, 1.0)
    return FIT_SECONDS_A_LABEL * cost * n_labels


@dataclass(slots=True)
class CandidateLearning:
    """Learner of class model weights by one candidate method or by the best of several.

    Parameters
    ----------
    examples : windows that the weights are learned from, one per picture
    wholes : whole pictures of the first examples, for evaluation
    weights : ndarray, shape (L,), weight of the pixels of each class
    ridge : float, optional; by default `RIDGE_PER_PIXEL` times the known pixels
    clock, should_stop : see `engine.core`
    work : store of finished weights, from which a killed run resumes

    ``strength`` is the lambda that is used.
    """

    examples: Sequence[ClassExample]
    wholes: Sequence[ClassExample]
    weights: FloatArray
    ridge: float | None
    clock: Clock
    should_stop: StopCallback
    work: PartStore = field(default_factory=PartStore)
    n_known: int = field(init=False)
    strength: float = field(init=False)
    is_sparse: bool = field(init=False)

    def __post_init__(self) -> None:
        self.n_known = sum(example.n_known for example in self.examples)
        self.is_sparse = are_strokes((one.labels for one in self.wholes), self._layout.n_classes)
        self.strength = RIDGE_PER_PIXEL * self.n_known if self.ridge is None else self.ridge

    def learn(self, loss: str | None, *, only: Candidate | None = None) -> ComparedCandidates:
        """Compare candidates, of one loss or all, and learn the best one from all pictures.

        The trees alone are used if no learned weights make fewer mistakes. If ``only`` is given,
        only that candidate is evaluated. Near the time limit candidates are left out; at the limit
        the weights from both halves are averaged, and only windows of pictures are evaluated.
        """
        n_classes = self._layout.n_classes
        candidates = (
            compared_candidates(loss, n_classes, is_sparse=self.is_sparse)
            if only is None
            else [only]
        )
        halves = self._halves()
        if halves is None:
            return ComparedCandidates(
                candidates[0], self._fit(self.examples, candidates[0]), {}, ()
            )
        counts: dict[Candidate, list[Confusion]] = {}
        trained = {}
        pace = Pace(
            self.clock,
            [self._cost(candidate) for candidate in candidates],
            self._tail(is_last=bool(only)),
        )
        for candidate in candidates:
            if counts and pace.lacks_time():
                pace.skip()
                continue
            pace.next(f"Comparing losses: {candidate.name}")
            trained[candidate] = [
                self._fit(half, candidate, COMPARED_SHARE).theta for half in halves
            ]
            counts[candidate] = self._judged(halves, trained[candidate])
        best = best_candidate(counts, are_strokes=self.is_sparse)
        if only is None and TREES_ALONE not in counts:
            plain = trees_alone(self._layout)
            counts[TREES_ALONE] = self._judged(halves, [plain, plain])
        errors = {candidate.name: added(counts[candidate], n_classes).error for candidate in counts}
        is_short = pace.lacks_time(n_tail=1) or self.clock.left == 0.0
        pace.next("Evaluating the held-out pictures")
        kept = tuple(counts[best])
        if not is_short or len(self.examples) == 1:
            kept = self._judge_wholes(halves, trained[best])
        pace.next(f"Learning weights: {best.name}")
        start = np.mean(trained[best], axis=0)
        return ComparedCandidates(best, self._fit(self.examples, best, start=start), errors, kept)

    def _cost(self, candidate: Candidate) -> float:
        """Return the estimated CPU time to evaluate one candidate, seconds."""
        n_labels = sum(example.labels.size for example in self.examples) * self._layout.n_classes
        is_whole = all(example.n_known == example.labels.size for example in self.examples)
        return candidate_cost(candidate, n_labels, is_whole=is_whole)

    def _tail(self, *, is_last: bool) -> list[float]:
        """Return the CPU seconds of later steps: evaluation, final weights, and refitted trees."""
        n_judged = sum(example.labels.size for example in self.wholes) * self._layout.n_classes
        tail = [JUDGE_SECONDS_A_LABEL * n_judged, self._cost(CANDIDATES[0])]
        if not is_last:
            tail.append(sum(tail) + self._cost(CANDIDATES[0]) + self.clock.trees * count_threads())
        return tail

    @property
    def _layout(self) -> ClassLayout:
        return self.examples[0].features.layout

    def _halves(self) -> tuple[list[ClassExample], list[ClassExample]] | None:
        """Return two halves for learning and evaluation in turn; None if one has no known pixel."""
        halves = list(self.examples[::2]), list(self.examples[1::2])
        if len(self.examples) == 1:
            first, second = _by_blocks(self.examples[0])
            halves = [first], [second]
        enough = all(sum(one.n_known for one in half) > 0 for half in halves)
        return halves if enough else None

    def _judged(
        self, halves: tuple[list[ClassExample], list[ClassExample]], thetas: Sequence[FloatArray]
    ) -> list[Confusion]:
        """Return the confusion matrices of both halves, by the weights of the other half."""
        return [
            one
            for judged, theta in zip(halves[::-1], thetas, strict=True)
            for one in judge_classes(judged, theta, self.should_stop)
        ]

    def _judge_wholes(
        self, halves: tuple[list[ClassExample], list[ClassExample]], thetas: Sequence[FloatArray]
    ) -> tuple[Confusion, ...]:
        """Return the confusion matrix of every whole picture, by weights from the other half.

        Of a single picture, the window is evaluated: each half of its blocks by the other half.
        Classes known in one place only are left out: one stroke would be in both halves.
        """
        lone: list[int] = []
        if len(self.examples) < FOLDS:
            lone = classes_in_one_place([one.labels for one in self.wholes], self._layout.n_classes)
        if len(self.examples) > 1:
            wholes = [_without(one, lone) for one in self.wholes]
            found: dict[int, Confusion] = {}
            for side, theta in enumerate(thetas[::-1]):
                counts = judge_classes(wholes[side::2], theta, self.should_stop)
                found |= {side + 2 * k: one for k, one in enumerate(counts)}
            return tuple(found[k] for k in sorted(found))
        judged = [_without(half[0], lone) for half in halves[::-1]]
        counts = [
            judge_classes([one], theta, self.should_stop)[0]
            for one, theta in zip(judged, thetas, strict=True)
        ]
        return (added(counts, self._layout.n_classes),)

    def _fit(
        self,
        examples: Sequence[ClassExample],
        candidate: Candidate,
        of_time: float = 1.0,
        start: FloatArray | None = None,
    ) -> LearningResult:
        """Learn one candidate in a share of the remaining time, or return its stored weights."""
        if candidate.loss == "trees":
            return unsolved(trees_alone(self._layout))
        share = sum(example.n_known for example in examples) / self.n_known
        ridge = share * self.strength * (candidate.ridge_factor or 1.0)
        return self.work.weights(
            lambda: self._fit_weights(examples, candidate, ridge, of_time, start),
            candidate.name,
            examples,
            *(ridge, self.weights, start),
        )

    def _fit_weights(
        self,
        examples: Sequence[ClassExample],
        candidate: Candidate,
        ridge: float,
        of_time: float,
        start: FloatArray | None,
    ) -> LearningResult:
        left = None if self.clock.left is None else of_time * self.clock.left
        if candidate.loss == "likelihood":
            return fit_likelihood(
                examples,
                ridge=ridge,
                relative_gap=RELATIVE_GAP,
                start=start,
                max_seconds=left,
                should_stop=self.should_stop,
            )
        weights = tuple(self.weights.tolist())
        return fit_loss(
            examples,
            ClassLoss(iterations=SWEEPS, weights=weights, is_potts=candidate.is_potts),
            ridge=ridge,
            centre=self._layout.smooth() if candidate.ridge_factor else None,
            start=start,
            max_seconds=left,
            should_stop=self.should_stop,
        )


def best_candidate(
    counts: Mapping[Candidate, Sequence[Confusion]], *, are_strokes: bool
) -> Candidate:
    """Return the candidate with the lowest error; for strokes, see `choose_candidate`."""
    wrong = {
        candidate: np.array([one.n_wrong for one in judged], dtype=np.float64)
        for candidate, judged in counts.items()
    }
    if are_strokes:
        return choose_candidate(wrong)
    return min(wrong, key=lambda candidate: float(wrong[candidate].sum()))


def added(counts: Iterable[Confusion], n_classes: int) -> Confusion:
    """Return the sum of the confusion matrices of all pictures."""
    total = Confusion(np.zeros((n_classes, n_classes), dtype=np.int64))
    for one in counts:
        total = total + one
    return total


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


def log_marginals(example: ClassExample, theta: FloatArray) -> NDArray[np.float32]:
    """Return the log-marginals of a picture, shape (rows, columns, L), nats."""
    chains = ClassMessages(example.features, theta)
    rest_messages(chains)
    return np.log(np.maximum(chains.marginals(), LEAST_PROBABILITY))
