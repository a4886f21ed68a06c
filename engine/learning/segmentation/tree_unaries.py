"""Unaries from two stages of boosted trees, trained out of fold.

The first trees use the filter bank (and maps given with the picture), the second also the context
of the first prediction (auto-context). Pictures are dealt into folds, and every fold has its own
trees of both stages, learned from the other folds: their errors on a training picture are like
those on a new picture, and so weights learned from their scores are valid for new pictures. On a
new picture the scores of all folds are averaged.

Forests of masks return one number, the log-odds, and those of classes one number per class. All
else is the same.
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
from engine.learning.segmentation.model_parts import whole_number
from engine.learning.segmentation.training_pictures import FOLDS, Folds

Planes = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class TreeUnaries:
    """Trees of both stages, one forest per fold; each picture has ``n_maps`` planes of maps.

    ``n_refits`` counts the refits of the second trees with messages as offsets.
    """

    bank: FilterBank
    n_maps: int
    first: tuple[Forest, ...]
    second: tuple[Forest, ...]
    n_refits: int = 0

    @property
    def n_outputs(self) -> int:
        """Number of scores of a pixel: 1, the log-odds of a mask, or one per class."""
        return self.first[0].n_outputs

    @property
    def is_local(self) -> bool:
        """True if the second trees use only a pixel's surroundings, not its place in the whole.

        The scores of such trees on a window equal those on the whole picture.
        """
        return self.n_context == n_context(self.n_outputs, is_local=True)

    @property
    def n_context(self) -> int:
        """Number of context features of the second trees."""
        return self.second[0].n_features - self.first[0].n_features

    def check(self, n_outputs: int) -> None:
        """Check that the trees have the features and the number of outputs of the model.

        Raises
        ------
        InvalidProblemError
            If features or classes differ.
        """
        plain = self.bank.n_features + self.n_maps
        known = {n_context(n_outputs, is_local=is_local) for is_local in (True, False)}
        if n_outputs == 1:
            known.add(N_PLACED)  # older files, without the context features of colours
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
        """Return the log-odds of a picture, or its log-probabilities with mean 0 at each pixel.

        Parameters
        ----------
        colours : ndarray, shape (rows, columns, 3), uint8, of the size of its model
        maps : ndarray, shape (rows, columns, C), float32, log-odds, if the trees use maps
        frame : position of the picture in a larger one
        folds : fold whose trees score each pixel, shape (rows, columns) or (); None averages over
            all folds.

        Returns
        -------
        ndarray, shape (rows, columns, 1) or (rows, columns, L), float32
        """
        plain = plain_planes(self.bank, colours, maps, frame, is_shared=folds is None)
        return ask(self.second, self.second_planes(plain, folds), folds)

    def second_planes(self, plain: Planes, folds: Folds | None) -> Planes:
        """Return the features of the second trees: those of the first, and context features."""
        guess = ask(self.first, plain, folds)
        return np.concatenate([plain, context_of(guess, plain, self.n_context)])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that ``unaries_from_arrays`` reads, by name."""
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
"""Names of the arrays of trees in a model file."""


def unaries_from_arrays(parts: Mapping[str, NDArray[Any]]) -> TreeUnaries:
    """Build the trees from the arrays of a model file, after checking them.

    Raises
    ------
    InvalidProblemError
        If an array is missing or the arrays do not fit each other.
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
    """Return the features of the first trees, one plane per feature."""
    planes = bank.compute(colours, frame, is_shared=is_shared)
    if maps is None or not maps.shape[2]:
        return planes
    return np.concatenate([planes, np.moveaxis(maps, 2, 0)])


def ask(forests: Sequence[Forest], planes: Planes, folds: Folds | None) -> Planes:
    """Return the scores of planes (K, rows, columns): the mean of forests, or each pixel's own.

    The mean is used for new pictures only, one at a time, so several threads share the pixels.
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
