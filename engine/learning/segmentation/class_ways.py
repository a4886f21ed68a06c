"""Ways to learn the weights of a model of classes, compared on pixels that they never saw.

Half of the pictures teach and the other half judge, then the other way round; of a single picture,
half of its blocks. Trees judge only pictures of folds that they did not learn from, so what is
measured is measured on pictures kept from the whole model.

Strokes are another matter. Painted neighbours are nearly always of one class, so edges learned from
them smooth whole things away, and the pixels of a stroke are nearly one observation. Where little
is known weights are therefore held near those that the painting page answers with, and given free
only where that makes clearly fewer mistakes.
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
from engine.learning.segmentation.folds import BLOCKS, FOLDS, block_folds
from engine.learning.segmentation.held_out_choice import choose_way
from engine.metrics.classes import Confusion
from engine.objectives.class_losses import ClassLoss
from engine.objectives.class_messages import ClassMessages
from engine.solvers.result import LearningResult, unsolved

RIDGE_PER_PIXEL = 1e-3
"""Default lambda over the number of known pixels that the weights are learned from."""

MOST_COMPARED_BY_LIKELIHOOD = 4
"""Of more classes the likelihood is learned by only where it is asked for: fitting the tables of
all edges to their margins for its certificate would take longer than the trees."""

RELATIVE_GAP = 2e-3
"""Certified gap over the size of the log-likelihood at which learning by it stops."""


FIT_SECONDS_A_LABEL = 2.5e-5
"""Core seconds of comparing a univariate way, by pixels times classes of the windows."""

JUDGE_SECONDS_A_LABEL = 1e-6
"""Core seconds of judging the pictures kept from it, by their pixels times classes."""

LIKELIHOOD_COST, HIDDEN_COST, TREES_COST = 6.0, 25.0, 0.05
"""Of comparing other ways, in the univariate one's: the likelihood with every label known, with
hidden ones (which are guessed anew some times), and the trees alone."""

SPARSE = 0.5
"""Below this share of known pixels the labels are taken for strokes."""

FIRM, FREER = 1000.0, 30.0
"""Ridges of weights that are held near those of the painting page, over the usual one."""

COMPARED_SHARE = 1 / 3
"""Share of the time left that learning one half of the pictures in one way may take."""

LEAST_PROBABILITY = np.float32(1e-5)
"""Marginals below count as this in their logarithms."""


class Way(NamedTuple):
    """A way to learn weights: by which loss, whether edges know of agreement only, and how much
    more than usually they are held, near those of the painting page; 0 for as usual."""

    name: str
    loss: str
    is_potts: bool
    held: float = 0.0


TREES_ALONE = Way("trees alone", "trees", is_potts=True)
"""No edges, and what the trees say as it is."""

WAYS = (
    Way("univariate, pairs of classes", "univariate", is_potts=False),
    Way("univariate, agreement", "univariate", is_potts=True),
    Way("likelihood", "likelihood", is_potts=False),
    TREES_ALONE,
)
"""What is compared, on pixels that neither trees nor weights saw."""

WAYS_OF_STROKES = (
    Way("univariate, near the painting page", "univariate", is_potts=True, held=FIRM),
    Way("univariate, farther from it", "univariate", is_potts=True, held=FREER),
    TREES_ALONE,
)
"""The same where little is known; the first is used unless another is clearly better."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparedWays:
    """The best way, its weights from all pictures, and how the ways did on pictures kept from them.

    ``errors`` is the share of wrong known pixels by way; ``kept`` the counts of each picture that
    was judged, by the best way. Both are empty where nothing could be kept.
    """

    way: Way
    result: LearningResult
    errors: Mapping[str, float]
    kept: tuple[Confusion, ...]


def compared_ways(loss: str | None, n_classes: int, *, is_sparse: bool = False) -> list[Way]:
    """Return the ways of a loss, or all that are compared for so many classes."""
    if is_sparse and loss != "likelihood":
        return [way for way in WAYS_OF_STROKES if loss in (None, way.loss)]
    many = n_classes > MOST_COMPARED_BY_LIKELIHOOD
    return [
        way
        for way in WAYS
        if way.loss == loss or (loss is None and not (many and way.loss == "likelihood"))
    ]


def are_strokes(labels: Iterable[ClassLabels], n_classes: int) -> bool:
    """Whether so little is known that it was painted, not marked as a whole."""
    counts = [(int(np.count_nonzero(one < n_classes)), one.size) for one in labels]
    return sum(known for known, _ in counts) < SPARSE * sum(size for _, size in counts)


def way_cost(way: Way, n_labels: int, *, is_whole: bool) -> float:
    """Return core seconds that comparing a way takes, by pixels times classes of the windows."""
    known = LIKELIHOOD_COST if is_whole else HIDDEN_COST
    cost = {"likelihood": known, "trees": TREES_COST}.get(way.loss, 1.0)
    return FIT_SECONDS_A_LABEL * cost * n_labels


@dataclass(slots=True)
class WayLearning:
    """Learns the weights in one way or in the best of several.

    Parameters
    ----------
    examples : windows that the weights are learned from, one a picture
    wholes : the pictures of the first of them as large as they are kept, to be judged
    weights : ndarray, shape (L,), of the pixels of each class
    ridge : float, optional; by default `RIDGE_PER_PIXEL` times the known pixels
    clock, should_stop : see `engine.core`

    ``strength`` is the lambda that is used.
    """

    examples: Sequence[ClassExample]
    wholes: Sequence[ClassExample]
    weights: FloatArray
    ridge: float | None
    clock: Clock
    should_stop: StopCallback
    n_known: int = field(init=False)
    strength: float = field(init=False)
    is_sparse: bool = field(init=False)

    def __post_init__(self) -> None:
        self.n_known = sum(example.n_known for example in self.examples)
        self.is_sparse = are_strokes((one.labels for one in self.wholes), self._layout.n_classes)
        self.strength = self.ridge or RIDGE_PER_PIXEL * self.n_known

    def learn(self, loss: str | None, *, only: Way | None = None) -> ComparedWays:
        """Compare the ways of a loss, or all of them; the best one then learns from all pictures.

        What the trees alone say is used where no way of weights makes fewer mistakes. ``only``
        one way is judged where it is given. Near the limit ways are left out; at it, weights that
        halves of the pictures taught are averaged, and only windows of pictures are judged.
        """
        n_classes = self._layout.n_classes
        ways = compared_ways(loss, n_classes, is_sparse=self.is_sparse) if only is None else [only]
        halves = self._halves()
        if halves is None:
            return ComparedWays(ways[0], self._fit(self.examples, ways[0]), {}, ())
        counts: dict[Way, list[Confusion]] = {}
        taught = {}
        pace = Pace(self.clock, [self._cost(way) for way in ways], self._tail(is_last=bool(only)))
        for way in ways:
            if counts and pace.lacks_time():
                pace.skip()
                continue
            pace.next(f"Comparing ways to learn: {way.name}")
            taught[way] = [self._fit(half, way, COMPARED_SHARE).theta for half in halves]
            counts[way] = self._judged(halves, taught[way])
        best = best_way(counts, are_strokes=self.is_sparse)
        if only is None and TREES_ALONE not in counts:
            plain = trees_alone(self._layout)
            counts[TREES_ALONE] = self._judged(halves, [plain, plain])
        errors = {way.name: added(counts[way], n_classes).error for way in counts}
        is_short = pace.lacks_time(n_tail=1) or self.clock.left == 0.0
        pace.next("Looking at the pictures kept from it")
        kept = tuple(counts[best])
        if not is_short or len(self.examples) == 1:
            kept = self._judge_wholes(halves, taught[best])
        pace.next(f"Learning weights: {best.name}")
        start = np.mean(taught[best], axis=0)
        return ComparedWays(best, self._fit(self.examples, best, start=start), errors, kept)

    def _cost(self, way: Way) -> float:
        """Core seconds that comparing a way is expected to take."""
        n_labels = sum(example.labels.size for example in self.examples) * self._layout.n_classes
        is_whole = all(example.n_known == example.labels.size for example in self.examples)
        return way_cost(way, n_labels, is_whole=is_whole)

    def _tail(self, *, is_last: bool) -> list[float]:
        """Core seconds of what follows the ways: judging pictures, all weights, refitted trees."""
        n_judged = sum(example.labels.size for example in self.wholes) * self._layout.n_classes
        tail = [JUDGE_SECONDS_A_LABEL * n_judged, self._cost(WAYS[0])]
        if not is_last:
            tail.append(sum(tail) + self._cost(WAYS[0]) + self.clock.trees * count_threads())
        return tail

    @property
    def _layout(self) -> ClassLayout:
        return self.examples[0].features.layout

    def _halves(self) -> tuple[list[ClassExample], list[ClassExample]] | None:
        """Two parts that teach and judge in turn; None where one would know nothing."""
        halves = list(self.examples[::2]), list(self.examples[1::2])
        if len(self.examples) == 1:
            first, second = _by_blocks(self.examples[0])
            halves = [first], [second]
        enough = all(sum(one.n_known for one in half) > 0 for half in halves)
        return halves if enough else None

    def _judged(
        self, halves: tuple[list[ClassExample], list[ClassExample]], thetas: Sequence[FloatArray]
    ) -> list[Confusion]:
        """Counts of both halves, each judged by the weights of the other."""
        return [
            one
            for judged, theta in zip(halves[::-1], thetas, strict=True)
            for one in judge_classes(judged, theta, self.should_stop)
        ]

    def _judge_wholes(
        self, halves: tuple[list[ClassExample], list[ClassExample]], thetas: Sequence[FloatArray]
    ) -> tuple[Confusion, ...]:
        """Counts of every whole picture, judged by weights from the other half.

        Of a lone picture the window is judged, each half of its blocks by the weights of the other.
        Classes known in one place only are not judged: half of a stroke would judge the other.
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
        way: Way,
        of_time: float = 1.0,
        start: FloatArray | None = None,
    ) -> LearningResult:
        """Learn in one way, within a share of the time that is left."""
        if way.loss == "trees":
            return unsolved(trees_alone(self._layout))
        share = sum(example.n_known for example in examples) / self.n_known
        ridge = share * self.strength * (way.held or 1.0)
        left = None if self.clock.left is None else of_time * self.clock.left
        if way.loss == "likelihood":
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
            ClassLoss(iterations=SWEEPS, weights=weights, is_potts=way.is_potts),
            ridge=ridge,
            centre=self._layout.smooth() if way.held else None,
            start=start,
            max_seconds=left,
            should_stop=self.should_stop,
        )


def best_way(counts: Mapping[Way, Sequence[Confusion]], *, are_strokes: bool) -> Way:
    """Return the way with the lowest error; of strokes the first unless another is clearly better.

    See `choose_way`.
    """
    wrong = {
        way: np.array([one.n_wrong for one in judged], dtype=np.float64)
        for way, judged in counts.items()
    }
    if are_strokes:
        return choose_way(wrong)
    return min(wrong, key=lambda way: float(wrong[way].sum()))


def added(counts: Iterable[Confusion], n_classes: int) -> Confusion:
    """Return the counts of all pictures together."""
    total = Confusion(np.zeros((n_classes, n_classes), dtype=np.int64))
    for one in counts:
        total = total + one
    return total


def classes_in_one_place(labels: Sequence[ClassLabels], n_classes: int) -> list[int]:
    """Return the classes of few pictures that lie in one of them, within the size of a block.

    Trees are kept from blocks there, and a border between two may part a stroke.
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
    """The example with the labels of some classes hidden."""
    if not classes:
        return example
    hidden = np.isin(example.labels, classes)
    return ClassExample(example.features, np.where(hidden, np.uint8(UNKNOWN), example.labels))


def _by_blocks(example: ClassExample) -> tuple[ClassExample, ClassExample]:
    """The example twice, each time with the labels of half of its blocks hidden."""
    is_first = block_folds(example.labels.shape) % 2 == 0
    hidden = np.uint8(UNKNOWN)
    first = np.where(is_first, example.labels, hidden)
    second = np.where(is_first, hidden, example.labels)
    return ClassExample(example.features, first), ClassExample(example.features, second)


def log_marginals(example: ClassExample, theta: FloatArray) -> NDArray[np.float32]:
    """Return what trees and messages say together of a picture, (rows, columns, L), nats."""
    chains = ClassMessages(example.features, theta)
    rest_messages(chains)
    return np.log(np.maximum(chains.marginals(), LEAST_PROBABILITY))
