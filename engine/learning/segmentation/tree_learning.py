"""Learning the trees of ``tree_unaries``: pictures sampled and forests fitted."""

from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.checkpoint import Checkpoint, OwnCheckpoint, State
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback
from engine.crf.class_features import ClassLabels
from engine.crf.context import context_of, n_context
from engine.crf.filter_bank import FilterBank
from engine.crf.forest import Forest, forest_from_arrays
from engine.kernels.threads import count_threads
from engine.learning.segmentation.boosted_trees import fit_forest
from engine.learning.segmentation.class_trees import fit_class_forest
from engine.learning.segmentation.folds import FOLDS
from engine.learning.segmentation.training_pictures import TrainingPicture
from engine.learning.segmentation.tree_options import FIRST, REFIT, SECOND, TreeOptions
from engine.learning.segmentation.tree_unaries import Planes, TreeUnaries, ask, plain_planes

SAMPLES, SAMPLES_A_PICTURE = 200_000, 4_000
"""Pixels that the trees learn from: of all pictures together, and of one at most."""

FIRST_STRIDE = 2
"""The first trees learn from every so many-th of the sampled pixels."""

MASK_SAMPLES = 75_000
"""Samples that a forest of masks learns from at most: twice as many take twice as long, and it
makes as many mistakes on pictures kept from it."""

MASK_LEAVES = 2
"""Second trees of masks have so many times the leaves of `SECOND`: from 200 pictures they make a
fiftieth fewer mistakes on pictures kept from them, and take a fifth longer."""

LEAVES_A_PICTURE, LEAST_LEAVES = 3, 15
"""Second trees of masks have so many leaves a picture at most, but never fewer than these. From
five pictures they make as few mistakes on others with 15 leaves as with more, in two thirds of the
time; from twenty with 60."""

FILTERED, FIRST_GROWN, LOOKED, SECOND_GROWN, SAID = 0.2, 0.4, 0.55, 0.8, 0.85
"""Shares of a limit after which the pictures that are filtered, the trees that are grown, the
pictures that were looked at again, and those that weights are learned from have to do."""

FEWEST_TREES, FEW_SAMPLES = 12, 20_000
"""From so few samples so many trees are grown before a limit is looked at: they take
less than a second, and fewer mark all as what was painted most."""

REFIT_LOOKED, REFIT_GROWN = 0.9, 0.95
"""The same of a refit."""

Report = Callable[[str, float], None]
"""Receives what is being done, and which share of all is done."""


@dataclass(slots=True)
class TreeLearning:
    """How trees are fitted, what is told on the way, and where fitted forests are left.

    Parameters
    ----------
    n_outputs : int, 1 of masks, else the number of classes
    weights : ndarray, shape (L,), of the pixels of each class; only of classes
    position : bool, whether the place within the picture may speak
    is_local : bool, whether what lies around a pixel is all that speaks, and no place within a
        whole: pictures that are windows do not tell of it
    report, should_stop : see `engine.core.progress`
    checkpoint : where forests are kept as they are done, so that a killed run goes on
    first, second, more : how many trees of how many leaves, of both stages and of a refit
    thinned_from : samples from which the first trees skip some
    most : samples that a forest learns from at most; by default all there are
    passed : which share of the time has passed; near the end there are fewer pictures and trees

    ``is_short`` says whether there were fewer so far.
    """

    n_outputs: int
    weights: FloatArray | None
    position: bool
    report: Report
    should_stop: StopCallback
    checkpoint: Checkpoint | OwnCheckpoint | None = None
    first: TreeOptions | None = None
    second: TreeOptions | None = None
    more: TreeOptions | None = None
    thinned_from: int = 20_000
    most: int | None = None
    passed: Callable[[], float] = lambda: 0.0
    is_local: bool = False
    is_short: bool = field(default=False, init=False)

    def learn(self, pictures: Sequence[TrainingPicture]) -> TreeUnaries:
        """Fit the trees of both stages.

        Where time is short the trees are fewer, and learn from fewer pictures: at the least one
        tree a forest, from one picture a fold.

        Raises
        ------
        StoppedError
            If asked to stop.

        Notes
        -----
        200 pictures of 30,000 pixels: 70 seconds of one core (masks), 250 MB.
        """
        bank = FilterBank(self.position and not self.is_local)
        n_maps = pictures[0].maps.shape[2]
        kept = _KeptForests(self.checkpoint)
        with ThreadPoolExecutor(count_threads()) as pool:
            work = _Work(self, pictures, bank, pool, kept)
            self.report("Filtering the images", 0.0)
            plain = work.sample(lambda _, planes: planes, FILTERED)
            self.report("Growing the first trees", 0.1)
            first = work.fit("first", plain, self.first or FIRST, FIRST_STRIDE, FIRST_GROWN)
            self.report("Looking at what the first trees say", 0.3)
            n_planes = n_context(self.n_outputs, is_local=self.is_local)
            context = work.sample(
                lambda picture, planes: context_of(
                    ask(first, planes, picture.folds), planes, n_planes
                ),
                LOOKED,
                among=plain,
            )
            self.report("Growing the second trees", 0.42)
            both = {k: np.concatenate([plain[k], context[k]]) for k in context}
            options = self.second or self._second(len(pictures))
            second = work.fit("second", both, options, 1, SECOND_GROWN)
        return TreeUnaries(bank, n_maps, first, _grown_enough(second, first))

    def refit(
        self,
        unaries: TreeUnaries,
        pictures: Sequence[TrainingPicture],
        log_marginals: Sequence[Planes],
        slope: float,
    ) -> TreeUnaries:
        """Let the second trees go on from what they and the messages say together.

        Every fold's forest gains `REFIT` trees, fitted to the labels of the other folds' pictures
        with the log-marginals as offsets: they explain what neighbours leave open. Of masks the
        forests of half of the folds are fitted first. Where these do not tell more of the pictures
        kept from them than the messages do, ``unaries`` itself is returned: from pictures as few as
        weights are learned from, most refits have learned these pictures by heart.

        Parameters
        ----------
        unaries : TreeUnaries
        pictures : some of those that it learned from
        log_marginals : of each, (rows, columns, L), from trees that never saw it; L is 2 of masks
        slope : by how much node scores grow with what the trees say; see
            `refits.slope_of`. What is added has to count as much as it was fitted to.

        Raises
        ------
        StoppedError
            If asked to stop.

        References
        ----------
        Domke 2013, "Structured learning via logistic regression".
        """
        with ThreadPoolExecutor(count_threads()) as pool:
            work = _Work(self, pictures, unaries.bank, pool, _KeptForests(None))
            samples = work.sample(
                lambda p, planes: unaries.second_planes(planes, p.folds), REFIT_LOOKED
            )
            start = np.concatenate(
                [
                    log_marginals[k].reshape(-1, log_marginals[k].shape[2])[pictures[k].pixels]
                    for k in samples
                ]
            )
            grow = partial(work.fit, "refit", samples, self.more or REFIT, 1, REFIT_GROWN, start)
            is_tried = self.n_outputs == 1
            more = grow(range(FOLDS // 2 if is_tried else FOLDS))
            if is_tried:
                if not work.explains(more, samples, start):
                    return unaries
                more += grow(range(FOLDS // 2, FOLDS))
        second = tuple(
            one.joined(other.scaled(1 / slope))
            for one, other in zip(unaries.second, more, strict=True)
        )
        return replace(unaries, second=second, n_refits=unaries.n_refits + 1)

    def _second(self, n_pictures: int) -> TreeOptions:
        """How the second trees are grown where nobody says."""
        if self.n_outputs > 1:
            return SECOND
        enough = max(LEAVES_A_PICTURE * n_pictures, LEAST_LEAVES)
        return replace(SECOND, n_leaves=min(MASK_LEAVES * SECOND.n_leaves, enough))

    def is_late(self, until: float) -> bool:
        """Whether more than a share of the time has passed, which makes do with what there is."""
        is_late = self.passed() > until
        self.is_short |= is_late
        return is_late

    def fit(
        self,
        samples: Planes,
        labels: ClassLabels,
        options: TreeOptions,
        fold: int,
        until: float,
        start: Planes | None = None,
    ) -> Forest:
        """Fit one forest to samples (K, n), from scores (n, L) if there are any.

        It ends after the share ``until`` of the time.
        """

        asked = 0

        def should_end() -> bool:
            nonlocal asked
            asked += 1
            may_be_late = len(labels) > FEW_SAMPLES or asked > FEWEST_TREES
            return self.should_stop() or (may_be_late and self.is_late(until))

        is_mask = self.n_outputs == 1
        if is_mask and start is None:  # scikit-learn's know no offsets
            return fit_forest(samples.T, labels == 1, options, seed=fold, should_stop=should_end)
        own = None if self.weights is None else self.weights[labels].astype(np.float32)
        forest = fit_class_forest(
            samples,
            labels,
            2 if is_mask else self.n_outputs,
            options,
            rng=np.random.default_rng(fold),
            weights=own,
            start=start,
            should_stop=should_end,
        )
        return forest.of_log_odds() if is_mask else forest


def _grown_enough(second: tuple[Forest, ...], first: tuple[Forest, ...]) -> tuple[Forest, ...]:
    """The second forests, or the first in their place where time ended before they said as much.

    Features of the first come first among those of the second.
    """
    n_second, n_first = (min(len(one.starts) for one in forests) for forests in (second, first))
    if n_second >= min(FEWEST_TREES, n_first):
        return second
    return tuple(replace(one, n_features=second[0].n_features) for one in first)


def _by_turns(pictures: Sequence[TrainingPicture]) -> list[int]:
    """Places of pictures, one of every fold in turn; of few pictures, which have all, in order."""
    if len(pictures) < FOLDS:
        return list(range(len(pictures)))
    seen = [0] * FOLDS
    turns = []
    for picture in pictures:
        fold = int(picture.folds) if picture.folds.ndim == 0 else 0
        turns.append((seen[fold], fold))
        seen[fold] += 1
    return sorted(range(len(pictures)), key=turns.__getitem__)


def _spread(places: NDArray[np.int64], most: int | None) -> NDArray[np.int64]:
    """So many of the places at most, as evenly as can be."""
    if most is None or len(places) <= most:
        return places
    return places[np.arange(most) * len(places) // most]


class _KeptForests:
    """Forests that are done, by name, in a checkpoint if there is one."""

    def __init__(self, checkpoint: Checkpoint | OwnCheckpoint | None) -> None:
        self._checkpoint = checkpoint
        saved = None if checkpoint is None else checkpoint.load()
        self._state: State = {} if saved is None else {name: saved[name] for name in saved}
        self._state = {k: v for k, v in self._state.items() if k.startswith("forest_")}

    def get(self, name: str) -> Forest | None:
        """A forest that an earlier run left."""
        prefix = f"forest_{name}_"
        own = {k.removeprefix(prefix): v for k, v in self._state.items() if k.startswith(prefix)}
        return forest_from_arrays(own) if own else None

    def put(self, name: str, forest: Forest) -> None:
        """Leave a forest for a later run; not from several threads at once."""
        arrays = forest.arrays().items()
        self._state |= {f"forest_{name}_{part}": values for part, values in arrays}
        if self._checkpoint is not None:
            self._checkpoint.save(self._state)


@dataclass(frozen=True, slots=True)
class _Work:
    """Samples and fits on several threads; the kernels run without the interpreter's lock."""

    how: TreeLearning
    pictures: Sequence[TrainingPicture]
    bank: FilterBank
    pool: ThreadPoolExecutor
    kept: _KeptForests

    def sample(
        self,
        look: Callable[[TrainingPicture, Planes], Planes],
        until: float,
        among: Container[int] | None = None,
    ) -> dict[int, Planes]:
        """Return what ``look`` makes of each picture at its sampled pixels, (K, n), by its place.

        Only of some pictures if ``among`` is given; without those for which the share ``until`` of
        the time does not suffice, but with one of every fold.
        """

        def one(turn: int, picture: TrainingPicture) -> Planes | None:
            self._stop_if_asked()
            if turn >= FOLDS and self.how.is_late(until):
                return None
            plain = plain_planes(self.bank, picture.colours, picture.maps, picture.frame)
            planes = look(picture, plain)
            return planes.reshape(len(planes), -1)[:, picture.pixels]

        order = [k for k in _by_turns(self.pictures) if among is None or k in among]
        looked = self.pool.map(one, range(len(order)), [self.pictures[k] for k in order])
        found = dict(zip(order, looked, strict=True))
        return {k: planes for k in sorted(found) if (planes := found[k]) is not None}

    def fit(
        self,
        stage: str,
        parts: Mapping[int, Planes],
        options: TreeOptions,
        stride: int,
        until: float,
        start: Planes | None = None,
        wanted: Sequence[int] = range(FOLDS),
    ) -> tuple[Forest, ...]:
        """Fit one forest for each ``wanted`` fold, from every ``stride``-th sample of the others.

        Threads take folds one after the other; each of these has an equal part of the time up to
        the share ``until``.
        """
        samples = np.concatenate(list(parts.values()), axis=1)
        labels = np.concatenate([self.pictures[k].sampled_labels for k in parts])
        folds = np.concatenate([self.pictures[k].sampled_folds for k in parts])
        n_threads, begun = count_threads(), self.how.passed()
        each = max(until - begun, 0.0) / -(-len(wanted) // n_threads)
        found = [self.kept.get(f"{stage}_{fold}") for fold in wanted]

        def one(turn: int, fold: int) -> Forest:
            if (earlier := found[turn]) is not None:
                return earlier
            self._stop_if_asked()
            is_thinned = len(labels) > self.how.thinned_from
            others = _spread(np.flatnonzero(folds != fold), self.how.most)
            chosen = others[:: stride if is_thinned else 1]
            own = None if start is None else start[chosen]
            end = min(begun + each * (1 + turn // n_threads), until)
            forest = self.how.fit(samples[:, chosen], labels[chosen], options, fold, end, own)
            self._stop_if_asked()
            return forest

        forests = []
        for turn, forest in enumerate(self.pool.map(one, range(len(wanted)), wanted)):
            if found[turn] is None:
                self.kept.put(f"{stage}_{wanted[turn]}", forest)
            forests.append(forest)
        return tuple(forests)

    def explains(
        self, forests: Sequence[Forest], parts: Mapping[int, Planes], start: Planes
    ) -> bool:
        """Whether forests of the first folds lower the log loss of masks on samples of these folds.

        They add to scores ``start``, (n, 2).
        """
        samples = np.concatenate(list(parts.values()), axis=1)
        labels = np.concatenate([self.pictures[k].sampled_labels for k in parts])
        folds = np.concatenate([self.pictures[k].sampled_folds for k in parts])
        signs = np.where(labels == 1, -1.0, 1.0)
        log_odds = start[:, 1].astype(np.float64) - start[:, 0]
        fall = 0.0
        for fold, forest in enumerate(forests):
            own = np.flatnonzero(folds == fold)
            before = log_odds[own]
            after = before + forest.scores(samples[:, own])[:, 0]
            losses = (np.logaddexp(0.0, signs[own] * odds).sum() for odds in (before, after))
            fall += next(losses) - next(losses)
        return bool(fall > 0.0)

    def _stop_if_asked(self) -> None:
        if self.how.should_stop():
            raise StoppedError("Learning was stopped.")
