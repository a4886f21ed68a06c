"""Trees of several classes in two stages, each guessing only pixels that it never saw.

As `engine.learning.boosted_unaries` does for two: the first trees look at the filter bank (and at
maps that came with the picture), the second also at what the first say around a pixel; every fold
has its own trees of both stages, learned from the other folds.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.core.checkpoint import Checkpoint, OwnCheckpoint, State
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback
from engine.crf.class_context import compute_class_context, n_class_context
from engine.crf.class_features import ClassLabels, centred
from engine.crf.class_forest import ClassForest, class_forest_from_arrays
from engine.crf.filter_bank import FilterBank, Frame
from engine.kernels.threads import count_threads
from engine.learning.boosted_unaries import FOLDS
from engine.learning.class_trees import ClassTreeOptions, fit_class_forest

FIRST = ClassTreeOptions(n_trees=100, n_leaves=31, rate=0.15)
SECOND = ClassTreeOptions(n_trees=100, n_leaves=63, rate=0.1)

FIRST_STRIDE = 2
"""The first trees learn from every so many-th of the sampled pixels."""

Planes = NDArray[np.float32]
Folds = NDArray[np.int64]
Report = Callable[[str, float], None]


@dataclass(frozen=True, slots=True, eq=False)
class ClassUnaries:
    """The trees of both stages, one forest a fold; ``n_maps`` planes come with each picture."""

    bank: FilterBank
    n_maps: int
    first: tuple[ClassForest, ...]
    second: tuple[ClassForest, ...]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.first[0].n_classes

    @property
    def n_features(self) -> tuple[int, int]:
        """Numbers a pixel that the first and the second trees look at."""
        plain = self.bank.n_features + self.n_maps
        return plain, plain + n_class_context(self.n_classes)

    def scores(
        self,
        colours: NDArray[np.uint8],
        maps: Planes,
        *,
        frame: Frame | None = None,
        folds: Folds | None = None,
    ) -> Planes:
        """Return the log-probabilities of a picture of its model's size, of mean 0 a pixel.

        Parameters
        ----------
        colours : ndarray, shape (rows, columns, 3), uint8
        maps : ndarray, shape (rows, columns, C), float32, log-odds
        frame : where the picture lies in a larger one
        folds : whose trees to ask of which pixel, shape (rows, columns) or (); None asks all and
            averages.

        Returns
        -------
        ndarray, shape (rows, columns, L), float32
        """
        plain = plain_planes(self.bank, colours, maps, frame)
        context = compute_class_context(ask_classes(self.first, plain, folds))
        return ask_classes(self.second, np.concatenate([plain, context]), folds)


def plain_planes(
    bank: FilterBank, colours: NDArray[np.uint8], maps: Planes, frame: Frame | None
) -> Planes:
    """What the first trees look at, one plane a feature."""
    planes = bank.compute(colours, frame)
    return np.concatenate([planes, np.moveaxis(maps, 2, 0)]) if maps.shape[2] else planes


@dataclass(frozen=True, slots=True, eq=False)
class ClassPicture:
    """A picture (or a window of one) to learn from, at the size of its model.

    Parameters
    ----------
    colours : ndarray, shape (rows, columns, 3), uint8
    maps : ndarray, shape (rows, columns, C), float32, log-odds
    labels : ndarray, shape (rows, columns), uint8; unknown from the number of classes on
    frame : Frame, where it lies in the whole
    folds : ndarray, shape () where the whole picture is of one fold, else that of the labels
    pixels : ndarray of the flat places of known pixels that trees learn from
    """

    colours: NDArray[np.uint8]
    maps: Planes
    labels: ClassLabels
    frame: Frame
    folds: Folds
    pixels: NDArray[np.int64]

    @property
    def sampled_labels(self) -> ClassLabels:
        """Label of every sampled pixel."""
        return self.labels.ravel()[self.pixels]

    @property
    def sampled_folds(self) -> Folds:
        """Fold of every sampled pixel."""
        return np.broadcast_to(self.folds, self.labels.shape).ravel()[self.pixels]


@dataclass(slots=True)
class TreeLearning:
    """How trees are fitted, what is told on the way, and where fitted forests are left.

    Parameters
    ----------
    n_classes : int
    weights : ndarray, shape (L,), of the pixels of each class
    position : bool, whether the place within the picture may speak
    report, should_stop : see `engine.core.progress`
    checkpoint : where forests are kept as they are done, so that a killed run goes on
    first, second : how many trees of how many leaves
    """

    n_classes: int
    weights: NDArray[np.float64]
    position: bool
    report: Report
    should_stop: StopCallback
    checkpoint: Checkpoint | OwnCheckpoint | None = None
    first: ClassTreeOptions = field(default_factory=lambda: FIRST)
    second: ClassTreeOptions = field(default_factory=lambda: SECOND)

    def learn(self, pictures: Sequence[ClassPicture]) -> ClassUnaries:
        """Fit the trees of both stages.

        Raises
        ------
        StoppedError
            If asked to stop.
        """
        bank = FilterBank(self.position)
        n_maps = pictures[0].maps.shape[2]
        kept = _KeptForests(self.checkpoint)
        with ThreadPoolExecutor(count_threads()) as pool:
            work = _Work(self, pictures, bank, pool, kept)
            self.report("Filtering the images", 0.0)
            plain = work.sample(lambda _, planes: planes)
            self.report("Growing the first trees", 0.1)
            first = work.fit("first", plain, self.first, FIRST_STRIDE)
            self.report("Looking at what the first trees say", 0.3)
            context = work.sample(
                lambda picture, planes: compute_class_context(
                    ask_classes(first, planes, picture.folds)
                )
            )
            self.report("Growing the second trees", 0.42)
            second = work.fit("second", np.concatenate([plain, context]), self.second, 1)
        return ClassUnaries(bank, n_maps, first, second)


def ask_classes(forests: Sequence[ClassForest], planes: Planes, folds: Folds | None) -> Planes:
    """Return centred scores (rows, columns, L): of all forests, or of each pixel's own."""
    if folds is not None and folds.ndim == 0:
        return centred(forests[int(folds)].scores(planes))
    if folds is None:
        total = forests[0].scores(planes)
        for forest in forests[1:]:
            total += forest.scores(planes)
        return centred(total * np.float32(1 / len(forests)))
    chosen = np.empty((*folds.shape, forests[0].n_classes), dtype=np.float32)
    for fold, forest in enumerate(forests):
        chosen[folds == fold] = forest.scores(planes[:, folds == fold])
    return centred(chosen)


class _KeptForests:
    """Forests that are done, by name, in a checkpoint if there is one."""

    def __init__(self, checkpoint: Checkpoint | OwnCheckpoint | None) -> None:
        self._checkpoint = checkpoint
        saved = None if checkpoint is None else checkpoint.load()
        self._state: State = {} if saved is None else {name: saved[name] for name in saved}
        self._state = {k: v for k, v in self._state.items() if k.startswith("forest_")}

    def get(self, name: str) -> ClassForest | None:
        """A forest that an earlier run left."""
        prefix = f"forest_{name}_"
        own = {k.removeprefix(prefix): v for k, v in self._state.items() if k.startswith(prefix)}
        return class_forest_from_arrays(own) if own else None

    def put(self, name: str, forest: ClassForest) -> None:
        """Leave a forest for a later run; not from several threads at once."""
        arrays = forest.arrays().items()
        self._state |= {f"forest_{name}_{part}": values for part, values in arrays}
        if self._checkpoint is not None:
            self._checkpoint.save(self._state)


@dataclass(frozen=True, slots=True)
class _Work:
    """Samples and fits on several threads; the kernels run without the interpreter's lock."""

    how: TreeLearning
    pictures: Sequence[ClassPicture]
    bank: FilterBank
    pool: ThreadPoolExecutor
    kept: _KeptForests

    def sample(self, look: Callable[[ClassPicture, Planes], Planes]) -> Planes:
        """Return what ``look`` makes of each picture at its sampled pixels, (K, n)."""

        def one(picture: ClassPicture) -> Planes:
            self._stop_if_asked()
            plain = plain_planes(self.bank, picture.colours, picture.maps, picture.frame)
            planes = look(picture, plain)
            return planes.reshape(len(planes), -1)[:, picture.pixels]

        return np.concatenate(list(self.pool.map(one, self.pictures)), axis=1)

    def fit(
        self, stage: str, samples: Planes, options: ClassTreeOptions, stride: int
    ) -> tuple[ClassForest, ...]:
        """Fit one forest a fold, from every ``stride``-th sample of the other folds."""
        labels = np.concatenate([picture.sampled_labels for picture in self.pictures])
        folds = np.concatenate([picture.sampled_folds for picture in self.pictures])
        found = [self.kept.get(f"{stage}_{fold}") for fold in range(FOLDS)]

        def one(fold: int) -> ClassForest:
            if (earlier := found[fold]) is not None:
                return earlier
            self._stop_if_asked()
            chosen = np.flatnonzero(folds != fold)[:: stride if len(labels) > 20_000 else 1]
            forest = fit_class_forest(
                samples[:, chosen],
                labels[chosen],
                self.how.n_classes,
                options,
                rng=np.random.default_rng(fold),
                weights=self.how.weights[labels[chosen]].astype(np.float32),
                should_stop=self.how.should_stop,
            )
            self._stop_if_asked()
            return forest

        forests = []
        for fold, forest in enumerate(self.pool.map(one, range(FOLDS))):
            if found[fold] is None:
                self.kept.put(f"{stage}_{fold}", forest)
            forests.append(forest)
        return tuple(forests)

    def _stop_if_asked(self) -> None:
        if self.how.should_stop():
            raise StoppedError("Learning was stopped.")
