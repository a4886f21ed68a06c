"""Unaries from two stages of boosted trees, each guessing only pictures that it never saw.

The first trees look at the filter bank alone; the second at the filter bank and at the context of
the first guess (auto-context). Pictures are dealt into folds, and every fold has its own trees of
both stages, learned from the other folds: what they say of a training picture is as wrong as what
they would say of a new one, and so the weights learned on top of it hold for new ones. On a new
picture the folds' log-odds are averaged.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import StoppedError
from engine.core.progress import StopCallback
from engine.crf.context import N_CONTEXT, compute_context
from engine.crf.filter_bank import FilterBank
from engine.crf.forest import Forest
from engine.kernels.threads import count_threads
from engine.learning.boosted_trees import TreeOptions, fit_forest

FOLDS = 4

BLOCKS = 6
"""Blocks a side in which the pixels are dealt into folds, where pictures are fewer than folds."""

FIRST = TreeOptions(n_trees=100, n_leaves=31, rate=0.15)
SECOND = TreeOptions(n_trees=100, n_leaves=63, rate=0.1)

SAMPLES = 200_000
"""Pixels that the second trees learn from; those of the first are every `FIRST_STRIDE`-th."""

FIRST_STRIDE = 2

SAMPLES_A_PICTURE = 4_000
"""At most so many of one picture: more of the same say little."""

Planes = NDArray[np.float32]
Folds = NDArray[np.int64]
Report = Callable[[str, float], None]
"""Receives what is being done, and which share of all is done."""


@dataclass(frozen=True, slots=True, eq=False)
class BoostedUnaries:
    """The trees of both stages, one forest a fold."""

    bank: FilterBank
    first: tuple[Forest, ...]
    second: tuple[Forest, ...]

    def log_odds(self, colours: NDArray[np.uint8], folds: Folds | None = None) -> Planes:
        """Return the log-odds of a picture of its model's size, (rows, columns, 3) uint8.

        ``folds`` tells whose trees to ask of which pixel, shape (rows, columns) or (); None asks
        all and averages.
        """
        planes = self.bank.compute(colours)
        guess = ask(self.first, planes, folds)
        return ask(self.second, np.concatenate([planes, compute_context(guess)]), folds)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingPicture:
    """A picture of its model's size, its labels, the fold of its pixels, and the pixels sampled.

    ``folds`` has shape () where the whole picture is of one fold, else that of the labels.
    """

    colours: NDArray[np.uint8]
    labels: NDArray[np.bool_]
    folds: Folds
    pixels: NDArray[np.int64]

    @property
    def sampled_folds(self) -> Folds:
        """Fold of every sampled pixel."""
        return np.broadcast_to(self.folds, self.labels.shape).ravel()[self.pixels]


def deal_pictures(
    pictures: Sequence[tuple[NDArray[np.uint8], NDArray[np.bool_]]], rng: np.random.Generator
) -> list[TrainingPicture]:
    """Deal pictures (or, of few, blocks of pixels) into folds and draw the pixels to learn from."""
    each = min(SAMPLES // max(len(pictures), 1), SAMPLES_A_PICTURE)
    dealt = []
    all_folds = deal_folds([labels.shape for _, labels in pictures], rng)
    for folds, (colours, labels) in zip(all_folds, pictures, strict=True):
        pixels = np.sort(rng.choice(labels.size, min(max(each, 1), labels.size), replace=False))
        dealt.append(TrainingPicture(colours, labels, folds, pixels))
    return dealt


def deal_folds(shapes: Sequence[tuple[int, ...]], rng: np.random.Generator) -> list[Folds]:
    """Fold of every picture, shape (); of few pictures, of every pixel, in blocks."""
    order = rng.permutation(len(shapes))
    if len(shapes) < FOLDS:
        return [block_folds(shape) for shape in shapes]
    return [np.array(place % FOLDS) for place in order]


def learn_unaries(
    pictures: Sequence[TrainingPicture],
    *,
    position: bool,
    report: Report,
    should_stop: StopCallback,
) -> BoostedUnaries:
    """Fit the trees of both stages.

    Raises
    ------
    StoppedError
        If asked to stop.

    Notes
    -----
    200 pictures of 30,000 pixels: about two minutes of one core, 250 MB.
    """
    bank = FilterBank(position)
    with ThreadPoolExecutor(count_threads()) as pool:
        work = _Work(pictures, bank, pool, should_stop)
        report("Filtering the images", 0.0)
        plain = work.sample(lambda _, planes: planes)
        report("Growing the first trees", 0.08)
        first = work.fit(plain, FIRST, FIRST_STRIDE)
        report("Looking at what the first trees say", 0.3)
        context = work.sample(
            lambda picture, planes: compute_context(ask(first, planes, picture.folds))
        )
        report("Growing the second trees", 0.42)
        second = work.fit(np.concatenate([plain, context]), SECOND, 1)
    return BoostedUnaries(bank, first, second)


def ask(forests: Sequence[Forest], planes: Planes, folds: Folds | None) -> Planes:
    """Return the log-odds of planes (K, rows, columns): of all forests, or of each pixel's own."""
    if folds is not None and folds.ndim == 0:
        return forests[int(folds)].log_odds(planes)
    guesses = [forest.log_odds(planes) for forest in forests]
    if folds is None:
        return np.asarray(np.mean(guesses, axis=0), dtype=np.float32)
    return np.asarray(np.choose(folds, guesses), dtype=np.float32)


def n_second_features(bank: FilterBank) -> int:
    """Numbers a pixel that the second trees look at."""
    return bank.n_features + N_CONTEXT


@dataclass(frozen=True, slots=True)
class _Work:
    """Samples and fits on several threads; the kernels run without the interpreter's lock."""

    pictures: Sequence[TrainingPicture]
    bank: FilterBank
    pool: ThreadPoolExecutor
    should_stop: StopCallback

    def sample(self, look: Callable[[TrainingPicture, Planes], Planes]) -> Planes:
        """Return what ``look`` makes of each picture's filters at its sampled pixels, (K, n)."""

        def one(picture: TrainingPicture) -> Planes:
            self._stop_if_asked()
            planes = look(picture, self.bank.compute(picture.colours))
            return planes.reshape(len(planes), -1)[:, picture.pixels]

        return np.concatenate(list(self.pool.map(one, self.pictures)), axis=1)

    def fit(self, samples: Planes, options: TreeOptions, stride: int) -> tuple[Forest, ...]:
        """Fit one forest a fold, from every ``stride``-th sample of the other folds."""
        labels = np.concatenate([p.labels.ravel()[p.pixels] for p in self.pictures])
        folds = np.concatenate([p.sampled_folds for p in self.pictures])
        rows = samples.T

        def one(fold: int) -> Forest:
            self._stop_if_asked()
            chosen = np.flatnonzero(folds != fold)[::stride]
            return fit_forest(rows[chosen], labels[chosen], options, seed=fold)

        return tuple(self.pool.map(one, range(FOLDS)))

    def _stop_if_asked(self) -> None:
        if self.should_stop():
            raise StoppedError("Learning was stopped.")


def block_folds(shape: tuple[int, ...]) -> Folds:
    """Folds of the pixels of a lone picture: blocks, so that no pixel's neighbour gives it away."""
    rows, columns = (np.arange(side) * BLOCKS // side for side in shape)
    return (rows[:, None] * 3 + columns[None] * 2) % FOLDS
