"""Learning of the trees of ``tree_unaries``: sampling of pictures and fitting of forests."""

from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.checkpoint import Checkpoint, OwnCheckpoint
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback
from engine.crf.class_features import ClassLabels
from engine.crf.context import context_of, n_context
from engine.crf.filter_bank import FilterBank
from engine.crf.forest import Forest
from engine.kernels.threads import count_threads
from engine.learning.segmentation.boosted_trees import fit_forest
from engine.learning.segmentation.part_store import PartStore
from engine.learning.segmentation.training_pictures import FOLDS, TrainingPicture
from engine.learning.segmentation.tree_options import FIRST, REFIT, SECOND, TreeOptions
from engine.learning.segmentation.tree_unaries import Planes, TreeUnaries, ask, plain_planes

SAMPLES, SAMPLES_A_PICTURE = 200_000, 4_000
"""Largest number of pixels that the trees learn from: of all pictures together, and of one."""

FIRST_STRIDE = 2
"""Step between the sampled pixels that the first trees learn from."""

MASK_SAMPLES = 75_000
"""Largest number of samples for a forest of masks: twice as many take twice as long, with as many
mistakes on held-out pictures."""

MASK_LEAVES = 2
"""Factor on the leaves of `SECOND` for second trees of masks: learned from 200 pictures, they make
a fiftieth fewer mistakes on held-out pictures, and take a fifth longer."""

MASK_FEATURES = 1_000
"""Largest number of features that a split of second trees of masks considers: with one gradient a
sample, all that the share allows cost no more, and make fewer mistakes on leaves and horses."""

LEAVES_A_PICTURE, LEAST_LEAVES = 3, 15
"""Largest number of leaves per picture, and smallest number of leaves, of second trees of masks.
With five pictures, 15 leaves make as few mistakes on others as more leaves, in two thirds of the
time; with twenty pictures, 60 leaves do."""

FILTERED, FIRST_GROWN, LOOKED, SECOND_GROWN, SAID = 0.2, 0.4, 0.55, 0.8, 0.85
"""Shares of a time limit after which a step ends: filtering pictures, growing the first trees,
applying them, growing the second trees, and scoring pictures for the weights."""

FEWEST_TREES, FEW_SAMPLES = 12, 20_000
"""Number of trees grown before time limits apply, and largest number of samples for that rule:
they take less than a second, and fewer trees label all pixels as the most painted class."""

REFIT_LOOKED, REFIT_GROWN = 0.9, 0.95
"""Shares of a time limit after which a refit stops scoring pictures, and growing trees."""

Report = Callable[[str, float], None]
"""Callback that receives the current step, and the finished share of the work."""


@dataclass(slots=True)
class TreeLearning:
    """Learner of trees, with options, progress reports and a store of finished forests.

    Parameters
    ----------
    n_outputs : int, 1 for masks, else the number of classes
    weights : ndarray, shape (L,), weight of the pixels of each class; only for classes
    position : bool, True to use the position within the picture as a feature
    is_local : bool, True to use only the surroundings of a pixel, and no position in the whole
        picture, which windows do not contain
    report, should_stop : see `engine.core.progress`
    kept : store of finished forests, from which a killed run resumes
    first, second, more : options of the trees of both stages and of a refit
    thinned_from : number of samples from which the first trees skip some
    most : largest number of samples for a forest; by default no limit
    passed : returns the share of the time that has passed; near the end work is reduced
    n_unseen : number of maps, the last ones of every picture, that no tree splits on

    ``left_out`` names the work that was left out so far for lack of time.
    """

    n_outputs: int
    weights: FloatArray | None
    position: bool
    report: Report
    should_stop: StopCallback
    kept: PartStore = field(default_factory=PartStore)
    first: TreeOptions | None = None
    second: TreeOptions | None = None
    more: TreeOptions | None = None
    thinned_from: int = 20_000
    most: int | None = None
    passed: Callable[[], float] = lambda: 0.0
    is_local: bool = False
    n_unseen: int = 0
    left_out: list[str] = field(default_factory=list, init=False)

    def learn(self, pictures: Sequence[TrainingPicture]) -> TreeUnaries:
        """Fit the trees of both stages to pictures, and return them.

        If time is short there are fewer trees, learned from fewer pictures: at least one tree per
        forest, from one picture per fold.

        Raises
        ------
        StoppedError
            If ``should_stop`` returned True.

        Notes
        -----
        200 pictures of 30,000 pixels: 70 seconds of one core (masks), 250 MB.
        """
        bank = FilterBank(self.position and not self.is_local)
        n_maps = pictures[0].maps.shape[2]
        with ThreadPoolExecutor(count_threads()) as pool:
            work = _Work(self, pictures, bank, pool, self.kept)
            self.report("Filtering the images", 0.0)
            plain = work.sample(lambda _, planes: planes, FILTERED, "the first trees")
            self.report("Growing the first trees", 0.1)
            first = work.fit("first", plain, self.first or FIRST, FIRST_STRIDE, FIRST_GROWN)
            self.report("Evaluating the first trees", 0.3)
            n_planes = n_context(self.n_outputs, is_local=self.is_local)
            context = work.sample(
                lambda picture, planes: context_of(
                    ask(first, planes, picture.folds), planes, n_planes
                ),
                LOOKED,
                "the second trees",
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
        """Add trees to the second forests, fitted to the residuals of the log-marginals.

        Every fold's forest gains `REFIT` trees, fitted to the labels of the other folds' pictures
        with the log-marginals as offsets: they explain what messages do not. For masks the forests
        of half of the folds are fitted first. If these do not improve on the messages on held-out
        pictures, ``unaries`` itself is returned: with as few pictures as weights are learned from,
        most refits overfit.

        Parameters
        ----------
        unaries : TreeUnaries
        pictures : some of those that it learned from
        log_marginals : of each, (rows, columns, L), from trees held out from it; L is 2 for masks
        slope : slope of node scores in the scores of the trees; see `label_learning.slope_of`.
            The added trees are divided by it, so that node scores change by the fitted amount.

        Raises
        ------
        StoppedError
            If ``should_stop`` returned True.

        References
        ----------
        Domke 2013, "Structured learning via logistic regression".
        """
        with ThreadPoolExecutor(count_threads()) as pool:
            work = _Work(self, pictures, unaries.bank, pool, PartStore())
            samples = work.sample(
                lambda p, planes: unaries.second_planes(planes, p.folds),
                REFIT_LOOKED,
                "the refitted trees",
            )
            start = np.concatenate(
                [
                    log_marginals[k].reshape(-1, log_marginals[k].shape[2])[pictures[k].pixels]
                    for k in samples
                ]
            )
            grow = partial(work.fit, "refitted", samples, self.more or REFIT, 1, REFIT_GROWN, start)
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
        """Return the default options of the second trees."""
        if self.n_outputs > 1:
            return SECOND
        enough = max(LEAVES_A_PICTURE * n_pictures, LEAST_LEAVES)
        n_leaves = min(MASK_LEAVES * SECOND.n_leaves, enough)
        return replace(SECOND, n_leaves=n_leaves, most_features=MASK_FEATURES)

    def is_late(self, until: float, work: str) -> bool:
        """Return True, and add ``work`` to ``left_out``, if more than that share has passed."""
        is_late = self.passed() > until
        if is_late and work not in self.left_out:
            self.left_out.append(work)
        return is_late

    def fit(
        self,
        samples: Planes,
        labels: ClassLabels,
        options: TreeOptions,
        fold: int,
        until: float,
        start: Planes | None = None,
        work: str = "the trees",
    ) -> Forest:
        """Fit one forest to samples (K, n), with scores (n, L) as offsets if given.

        Fitting ends after the share ``until`` of the time; ``work`` names it.
        """

        asked = 0

        def should_end() -> bool:
            nonlocal asked
            asked += 1
            may_be_late = len(labels) > FEW_SAMPLES or asked > FEWEST_TREES
            return self.should_stop() or (may_be_late and self.is_late(until, f"part of {work}"))

        is_mask = self.n_outputs == 1
        own = None if self.weights is None else self.weights[labels].astype(np.float32)
        forest = fit_forest(
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
    """Return the second forests, or the first ones if the second have too few trees.

    The features of the first forests come first among those of the second.
    """
    n_second, n_first = (min(len(one.starts) for one in forests) for forests in (second, first))
    if n_second >= min(FEWEST_TREES, n_first):
        return second
    return tuple(replace(one, n_features=second[0].n_features) for one in first)


def _by_turns(pictures: Sequence[TrainingPicture]) -> list[int]:
    """Return the indices of pictures, taking folds in turn; few pictures are in all folds."""
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
    """Return at most ``most`` of the places, evenly spaced."""
    if most is None or len(places) <= most:
        return places
    return places[np.arange(most) * len(places) // most]


def own_checkpoint(
    checkpoint: Checkpoint | None,
    pictures: Sequence[TrainingPicture],
    settings: Mapping[str, str | float],
) -> OwnCheckpoint | None:
    """Return a checkpoint bound to the sampled pixels and to the settings of the trees."""
    if checkpoint is None:
        return None
    digest = sha256()
    for picture in pictures:
        for array in (picture.colours, picture.labels, picture.maps, picture.folds, picture.pixels):
            digest.update(np.ascontiguousarray(array).tobytes())
    own = {**settings, "images": len(pictures), "image digest": digest.hexdigest()[:12]}
    return OwnCheckpoint(checkpoint, own)


@dataclass(frozen=True, slots=True)
class _Work:
    """Parallel sampling and fitting on threads; the kernels release the interpreter's lock."""

    how: TreeLearning
    pictures: Sequence[TrainingPicture]
    bank: FilterBank
    pool: ThreadPoolExecutor
    kept: PartStore

    def sample(
        self,
        look: Callable[[TrainingPicture, Planes], Planes],
        until: float,
        work: str,
        among: Container[int] | None = None,
    ) -> dict[int, Planes]:
        """Return the features by ``look`` at the sampled pixels, (K, n), by index of the picture.

        They are for ``work``. ``among`` restricts the pictures. Pictures that are not reached
        within the share ``until`` of the time are left out, except one of every fold.
        """

        def one(turn: int, picture: TrainingPicture) -> Planes | None:
            self._stop_if_asked()
            if turn >= FOLDS and self.how.is_late(until, f"pictures of {work}"):
                return None
            plain = plain_planes(self.bank, picture.colours, picture.maps, picture.frame)
            plain[len(plain) - self.how.n_unseen :] = 0.0  # no tree splits on a constant
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

        Threads process folds one after the other; each fold has an equal part of the time up to
        the share ``until``.
        """
        samples = np.concatenate(list(parts.values()), axis=1)
        labels = np.concatenate([self.pictures[k].sampled_labels for k in parts])
        folds = np.concatenate([self.pictures[k].sampled_folds for k in parts])
        n_threads, begun = count_threads(), self.how.passed()
        each = max(until - begun, 0.0) / -(-len(wanted) // n_threads)
        found = [self.kept.forest(f"{stage}_{fold}") for fold in wanted]

        def one(turn: int, fold: int) -> Forest:
            if (earlier := found[turn]) is not None:
                return earlier
            self._stop_if_asked()
            is_thinned = len(labels) > self.how.thinned_from
            others = _spread(np.flatnonzero(folds != fold), self.how.most)
            chosen = others[:: stride if is_thinned else 1]
            own = None if start is None else start[chosen]
            end = min(begun + each * (1 + turn // n_threads), until)
            work = f"the {stage} trees"
            forest = self.how.fit(samples[:, chosen], labels[chosen], options, fold, end, own, work)
            self._stop_if_asked()
            return forest

        forests = []
        for turn, forest in enumerate(self.pool.map(one, range(len(wanted)), wanted)):
            if found[turn] is None:
                self.kept.keep_forest(f"{stage}_{wanted[turn]}", forest)
            forests.append(forest)
        return tuple(forests)

    def explains(
        self, forests: Sequence[Forest], parts: Mapping[int, Planes], start: Planes
    ) -> bool:
        """Return True if forests lower the log loss of masks on samples of their held-out folds.

        The forests add to scores ``start``, (n, 2).
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
