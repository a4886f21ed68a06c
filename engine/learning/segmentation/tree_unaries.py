"""Unaries from two stages of boosted trees, each guessing only pixels that it never saw.

The first trees look at the filter bank (and at maps that came with the picture), the second also at
the context of the first guess (auto-context). Pictures are dealt into folds, and every fold has its
own trees of both stages, learned from the other folds: what they say of a training picture is as
wrong as what they would say of a new one, and so the weights learned on top of it hold for new
ones. On a new picture what the folds say is averaged.

Of masks the trees are scikit-learn's and say one number, the log-odds; of classes they are our own
and say one for each. All else is the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.crf.class_features import centred
from engine.crf.context import N_PLACED, context_of, n_context
from engine.crf.filter_bank import FilterBank, Frame
from engine.crf.forest import KINDS, Forest, forest_from_arrays
from engine.learning.segmentation.folds import FOLDS, Folds
from engine.learning.segmentation.model_parts import whole_number

Planes = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class TreeUnaries:
    """The trees of both stages, one forest a fold; ``n_maps`` planes come with each picture.

    ``n_refits`` counts how often the second trees went on from messages.
    """

    bank: FilterBank
    n_maps: int
    first: tuple[Forest, ...]
    second: tuple[Forest, ...]
    n_refits: int = 0

    @property
    def n_outputs(self) -> int:
        """Numbers that are said of a pixel: 1, the log-odds of a mask, or one a class."""
        return self.first[0].n_outputs

    @property
    def is_local(self) -> bool:
        """Whether the second trees know a pixel's surroundings alone, not its place in the guess.

        Such trees say of a window what they say of the whole.
        """
        return self.n_context == n_context(self.n_outputs, is_local=True)

    @property
    def n_context(self) -> int:
        """Numbers of the context that the second trees look at."""
        return self.second[0].n_features - self.first[0].n_features

    def check(self, n_outputs: int) -> None:
        """Refuse trees of other features than the filters and the context, or of other classes.

        Raises
        ------
        InvalidProblemError
            Naming what differs.
        """
        plain = self.bank.n_features + self.n_maps
        known = {n_context(n_outputs, is_local=is_local) for is_local in (True, False)}
        if n_outputs == 1:
            known.add(N_PLACED)  # of files from before colours were counted
        own = self.n_context if self.n_context in known else max(known)
        wanted = (plain, plain + own)
        for forests, count in zip((self.first, self.second), wanted, strict=True):
            if any(f.n_features != count or f.n_outputs != n_outputs for f in forests):
                raise InvalidProblemError("the trees are of other features or classes.")

    def scores(
        self,
        colours: NDArray[np.uint8],
        maps: Planes | None = None,
        *,
        frame: Frame | None = None,
        folds: Folds | None = None,
    ) -> Planes:
        """Return the log-odds, or the log-probabilities of mean 0 a pixel, of a picture.

        Parameters
        ----------
        colours : ndarray, shape (rows, columns, 3), uint8, of the size of its model
        maps : ndarray, shape (rows, columns, C), float32, log-odds, where the trees know of any
        frame : where the picture lies in a larger one
        folds : whose trees to ask of which pixel, shape (rows, columns) or (); None asks all and
            averages.

        Returns
        -------
        ndarray, shape (rows, columns, 1) or (rows, columns, L), float32
        """
        plain = plain_planes(self.bank, colours, maps, frame, is_shared=folds is None)
        return ask(self.second, self.second_planes(plain, folds), folds)

    def second_planes(self, plain: Planes, folds: Folds | None) -> Planes:
        """What the second trees look at: what the first do, and the context of their guess."""
        guess = ask(self.first, plain, folds)
        return np.concatenate([plain, context_of(guess, plain, self.n_context)])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what ``unaries_from_arrays`` reads, by name."""
        arrays = {
            "position": np.array(int(self.bank.position)),
            "n_maps": np.array(self.n_maps),
            "n_refits": np.array(self.n_refits),
        }
        for stage, forests in zip(_STAGES, (self.first, self.second), strict=True):
            for fold, forest in enumerate(forests):
                parts = forest.arrays().items()
                arrays |= {f"{stage}_{fold}_{part}": values for part, values in parts}
        return arrays


_STAGES = ("first", "second")
_OF_FOREST = ("n_features", "offset", *KINDS)
PARTS = (
    *("n_maps", "n_refits"),
    *(f"{s}_{fold}_{part}" for s in _STAGES for fold in range(FOLDS) for part in _OF_FOREST),
)
"""The arrays of trees that a model file may hold."""


def unaries_from_arrays(parts: Mapping[str, NDArray[Any]]) -> TreeUnaries:
    """Check the trees of a model file.

    Raises
    ------
    InvalidProblemError
        If an array is missing or they do not fit each other.
    """

    def forest(prefix: str) -> Forest:
        names = [part for part in _OF_FOREST if prefix + part in parts]
        return forest_from_arrays({part: parts[prefix + part] for part in names})

    first, second = (
        tuple(forest(f"{stage}_{fold}_") for fold in range(FOLDS)) for stage in _STAGES
    )
    bank = FilterBank(bool(parts["position"]))
    n_maps, n_refits = (whole_number(parts, name) for name in ("n_maps", "n_refits"))
    return TreeUnaries(bank, n_maps, first, second, n_refits)


def plain_planes(
    bank: FilterBank,
    colours: NDArray[np.uint8],
    maps: Planes | None,
    frame: Frame | None,
    *,
    is_shared: bool = False,
) -> Planes:
    """What the first trees look at, one plane a feature."""
    planes = bank.compute(colours, frame, is_shared=is_shared)
    if maps is None or not maps.shape[2]:
        return planes
    return np.concatenate([planes, np.moveaxis(maps, 2, 0)])


def ask(forests: Sequence[Forest], planes: Planes, folds: Folds | None) -> Planes:
    """Return what is said of planes (K, rows, columns): by all forests, or by each pixel's own.

    All are asked of new pictures only, one at a time: then several threads share the pixels.
    """
    if folds is not None and folds.ndim == 0:
        said = forests[int(folds)].scores(planes)
    elif folds is None:
        said = forests[0].scores(planes, is_shared=True)
        for forest in forests[1:]:
            said += forest.scores(planes, is_shared=True)
        said *= np.float32(1 / len(forests))
    else:
        said = np.empty((*folds.shape, forests[0].n_outputs), dtype=np.float32)
        for fold, forest in enumerate(forests):
            said[folds == fold] = forest.scores(planes[:, folds == fold])
    return said if said.shape[-1] == 1 else centred(said)
