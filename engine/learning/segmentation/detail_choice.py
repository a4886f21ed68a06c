"""Choice of the size of models, tried from coarse to fine by held-out errors of the trees.

Trees of two stages learn from windows of some pictures at each size, fold by fold, and are
evaluated at full resolution, all on the same region: the finest window. A finer size is chosen only
if it makes clearly fewer mistakes, because time grows with the square of the side. Of large
pictures the finest size is always tried: objects two pixels wide are visible at no other size.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from engine.crf.class_features import ClassLabels
from engine.crf.filter_bank import Frame
from engine.crf.image_grid import enlarge, shrink_image, shrink_labels
from engine.crf.picture_windows import ArrayMaps, ShrunkMaps
from engine.kernels.threads import one_blas_thread
from engine.learning.segmentation.class_pictures import ReadPicture, best_window
from engine.learning.segmentation.clock import Clock
from engine.learning.segmentation.given_maps import Maps, MapsInStep
from engine.learning.segmentation.model import Detail
from engine.learning.segmentation.picture_window import WindowDraw, is_cut
from engine.learning.segmentation.training_pictures import deal_pictures
from engine.learning.segmentation.tree_learning import TreeLearning
from engine.learning.segmentation.tree_options import FIRST, SECOND

FIRST_SIDE = 100
"""Longest side in pixels of the coarsest models that are tried."""

MOST_SIDE = 20_000
"""Longest side in pixels of models with trees that are tried: above nearly any picture's size."""

MOST_LINEAR_SIDE = 1000
"""Longest side in pixels of models with linear weights: these learn from whole pictures."""

MOST_PICTURES = 16
"""Largest number of pictures that sizes are tried on."""

WINDOW = 224
"""Side in pixels of the windows that are learned from."""

SAMPLES = 40_000
"""Number of pixels of all pictures together that the trees of a trial learn from."""

TREES = 40

TRIED = 0.95
"""Share of its time after which a trial evaluates no more pictures."""

PAYS, LEAST_FALL = 0.03, 0.002
"""Smallest fall of the error for a finer size, as a share of the error and of all pixels."""


@dataclass(frozen=True, slots=True)
class DetailChoice:
    """Chosen size of models, and the share of wrong pixels of each size tried, coarse to fine.

    No size after the first without improvement was tried, except the finest of large pictures.
    """

    detail: Detail
    tried: tuple[Detail, ...]
    errors: tuple[float, ...]

    @property
    def by_side(self) -> dict[int, float]:
        """Share of wrong pixels by the longest side of the models."""
        sides = (detail.max_side for detail in self.tried)
        return dict(zip(sides, self.errors, strict=True))


def choose_detail(
    images: Iterable[NDArray[np.uint8]],
    labels: Iterable[ClassLabels],
    n_classes: int,
    details: Sequence[Detail],
    *,
    maps: Maps | None = None,
    position: bool = True,
    max_seconds: float | None = None,
    on_progress: ProgressCallback = ignore_progress,
    should_stop: StopCallback = never_stop,
    rng: np.random.Generator | None = None,
) -> DetailChoice:
    """Choose the size of models: try sizes from coarse to fine until the error stops falling.

    Parameters
    ----------
    images, labels : pictures (H, W, 3) uint8 and their labels (H, W) uint8, unknown from
        ``n_classes`` on; of masks 0 and 1. The first `MOST_PICTURES` are used.
    n_classes : int
    details : the sizes, coarse to fine; at least one
    maps : maps of each picture, as in learning, iterated in parallel
    position : True to use the position within the picture as a feature
    max_seconds : float, optional
        Limit of the whole run, reading included; a size whose trial does not finish is not chosen.
    on_progress, should_stop : see `engine.core`
    rng : numpy.random.Generator, optional; a fixed seed by default

    Raises
    ------
    InvalidProblemError
        If there is no size to try, the pictures have fewer than two known classes, or maps do not
        fit the pictures.
    StoppedError
        If ``should_stop`` returned True.
    """
    if not details:
        raise InvalidProblemError("details: expected at least one size of models.")
    order = np.random.default_rng(0) if rng is None else rng
    clock = Clock(on_progress, max_seconds)
    draw, beside = WindowDraw(order), MapsInStep(maps)
    tried: list[_Tried] = []
    known: set[int] = set()
    for image, label in islice(zip(images, labels, strict=False), MOST_PICTURES):
        planes = beside.next(f"image {len(tried) + 1}", image.shape[:2])
        tried.append(_tried(image, label, planes, n_classes, details, draw))
        known |= {value for value in tried[-1].known if value < n_classes}
        if len(known) > 1 and clock.is_reading_over():
            break
    if len(known) < 2:
        raise InvalidProblemError("There are no pictures with two known classes to try sizes on.")
    errors: dict[int, float] = {}
    chosen = place = 0
    while place < len(details):
        on_progress(Progress(f"Trying models of {_words(details[place])}", place / len(details)))
        if should_stop():
            raise StoppedError("Learning was stopped.")
        own = Clock(ignore_progress, clock.left)
        with one_blas_thread():
            error, is_short = _trial(tried, place, n_classes, position, own, should_stop, order)
        if place and is_short:
            break
        best = min(errors.values(), default=1.0)
        errors[place] = error
        if place == 0 or best - error >= max(PAYS * best, LEAST_FALL):
            chosen = place
            place += 1
        elif place + 1 < len(details) and any(one.is_cut(-1) for one in tried):
            place = len(details) - 1
        else:
            break
    done = tuple(details[place] for place in errors)
    return DetailChoice(details[chosen], done, tuple(errors.values()))


def sides_to_try(shapes: Sequence[tuple[int, int]], *, most: int) -> list[int]:
    """Return the longest sides of models to try: doubled from 100 up to the pictures' median.

    No side is above ``most``; half of the pictures are at least as large as the last side.
    """
    own = int(np.median([max(shape) for shape in shapes])) if shapes else most
    finest = min(own, most)
    sides = [side for side in (FIRST_SIDE * 2**k for k in range(6)) if side < 0.8 * finest]
    return [*sides, max(finest, 16)]


Region = tuple[int, int, int, int]
"""Rectangle in the picture's pixels: first row, first column, number of rows and of columns."""


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """Stored parts of a picture: its windows at every size, and the true labels of its region."""

    shape: tuple[int, int]
    known: frozenset[int]
    region: Region
    truth: ClassLabels
    windows: tuple[ReadPicture, ...]

    def is_cut(self, place: int) -> bool:
        """Return True if a model of this size is learned from windows."""
        frame = self.windows[place].frame
        return is_cut((frame.rows, frame.columns))


def _tried(
    image: NDArray[np.uint8],
    label: ClassLabels,
    planes: NDArray[np.float32],
    n_classes: int,
    details: Sequence[Detail],
    draw: WindowDraw,
) -> _Tried:
    """Return the stored parts of a picture; all large pictures whole would not fit in memory."""
    region = _region(label, n_classes, details[-1], draw)
    top, left, rows, columns = region
    return _Tried(
        (int(label.shape[0]), int(label.shape[1])),
        frozenset(np.unique(label).tolist()),
        region,
        label[top : top + rows, left : left + columns].copy(),
        tuple(_window(image, label, planes, region, n_classes, detail) for detail in details),
    )


def _words(detail: Detail) -> str:
    return f"{detail.scale:.0%} of the size" if detail.scale else f"{detail.max_side} pixels a side"


def _region(label: ClassLabels, n_classes: int, finest: Detail, draw: WindowDraw) -> Region:
    """Return the region of the finest window: most known labels, or drawn if all are known."""
    height, width = label.shape
    rows, columns = finest.shape(height, width)
    down, across = height / rows, width / columns
    small = shrink_labels(label, (rows, columns), n_classes) < n_classes
    if is_cut((rows, columns)) and small.all():
        top, left = draw.corner(label, round(WINDOW * max(down, across)))
        top, left = int(top / down), int(left / across)
    else:
        top, left = best_window(small, WINDOW)
    first, begin = int(top * down), int(left * across)
    last = min(int(np.ceil((top + WINDOW) * down)), height)
    end = min(int(np.ceil((left + WINDOW) * across)), width)
    return first, begin, last - first, end - begin


def _trial(
    tried: Sequence[_Tried],
    place: int,
    n_classes: int,
    position: bool,
    clock: Clock,
    should_stop: StopCallback,
    rng: np.random.Generator,
) -> tuple[float, bool]:
    """Return the share of wrong known pixels in the regions, held out from the trees.

    The second value is True if there was too little time for the trial.
    """
    read = [one.windows[place] for one in tried]
    pictures = deal_pictures(read, n_classes, SAMPLES // len(read), rng)
    how = TreeLearning(
        n_classes,
        np.ones(n_classes),
        position and not any(one.is_cut(place) for one in tried),
        lambda sentence, share: None,
        should_stop,
        first=replace(FIRST, n_trees=TREES),
        second=replace(SECOND, n_trees=TREES),
        passed=clock.passed,
    )
    unaries = how.learn(pictures)
    wrong = total = 0
    for picture, one in zip(pictures, tried, strict=True):
        if total and how.is_late(TRIED, "pictures of the evaluation"):
            break
        scores = unaries.scores(
            picture.colours, picture.maps, frame=picture.frame, folds=picture.folds
        )
        guess, truth = _at_region(scores, picture.frame, one)
        is_known = truth < n_classes
        wrong += int(np.count_nonzero((guess != truth) & is_known))
        total += int(np.count_nonzero(is_known))
    return wrong / max(total, 1), bool(how.left_out)


def _window(
    image: NDArray[np.uint8],
    label: ClassLabels,
    planes: NDArray[np.float32],
    region: Region,
    n_classes: int,
    detail: Detail,
) -> ReadPicture:
    """Return the window of a size around the middle of the region, which contains the region."""
    height, width = label.shape
    rows, columns = detail.shape(height, width)
    colours, small = (
        shrink_image(image, (rows, columns)),
        shrink_labels(label, (rows, columns), n_classes),
    )
    middle = (
        (region[0] + region[2] / 2) * rows / height,
        (region[1] + region[3] / 2) * columns / width,
    )
    top = int(np.clip(round(middle[0] - WINDOW / 2), 0, max(rows - WINDOW, 0)))
    left = int(np.clip(round(middle[1] - WINDOW / 2), 0, max(columns - WINDOW, 0)))
    place = slice(top, top + WINDOW), slice(left, left + WINDOW)
    window = (top, left, *small[place].shape)
    return ReadPicture(
        np.ascontiguousarray(colours[place]),
        ShrunkMaps(ArrayMaps(planes), (rows, columns)).window(*window),
        np.ascontiguousarray(small[place]),
        Frame(top, left, rows, columns),
    )


def _at_region(
    scores: NDArray[np.float32], frame: Frame, picture: _Tried
) -> tuple[ClassLabels, ClassLabels]:
    """Return the predicted and the true labels of the region, at the picture's own pixels."""
    (height, width), region = picture.shape, picture.region
    down, across = height / frame.rows, width / frame.columns
    shape = round(scores.shape[0] * down), round(scores.shape[1] * across)
    planes = [enlarge(scores[:, :, k].astype(np.float64), shape) for k in range(scores.shape[2])]
    guess = np.argmax(planes, axis=0).astype(np.uint8)
    top, left = region[0] - round(frame.top * down), region[1] - round(frame.left * across)
    top, left = max(top, 0), max(left, 0)
    found = guess[top : top + region[2], left : left + region[3]]
    rows, columns = min(len(found), len(picture.truth)), min(found.shape[1], picture.truth.shape[1])
    return found[:rows, :columns], picture.truth[:rows, :columns]
