"""Image segmentation with scikit-learn's interface, for masks and for label maps."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from engine.core.arguments import BoolArray
from engine.core.options import check_whole
from engine.estimators.base import ObservationEstimator
from engine.learning.segmentation.boosted_learning import train_boosted_segmentation
from engine.learning.segmentation.class_learning import train_class_segmentation
from engine.learning.segmentation.class_model import Detail
from engine.learning.segmentation.class_prediction import predict_classes
from engine.learning.segmentation.defaults import MAX_SIDE, RELATIVE_GAP, RHO
from engine.learning.segmentation.mask_prediction import Prediction, predict_segmentation

Image = NDArray[np.uint8]
LabelMap = NDArray[np.uint8]


class Segmenter(ObservationEstimator):
    """Estimator that learns to mark the foreground of pictures from pictures with masks.

    The learner is that of ``segment train``: boosted trees, with edges if these make clearly fewer
    mistakes on held-out pictures.

    Parameters
    ----------
    loss : str or None, see `engine.train_boosted_segmentation`; None compares.
    position : bool, True to use the position within the picture as a feature.
    ridge : float or None, lambda > 0; by default 0.001 times the number of training pixels.
    rho : float, edge appearance probability in (0, 1/2].
    max_side : int, larger pictures are scaled down to at most this many pixels a side.
    relative_gap : float, stop at this certified gap divided by the size of the log-likelihood.
    max_seconds : float or None
    random_state : int, seed of the folds and of the sampled pixels.

    Attributes
    ----------
    model_ : BoostedSegmentationModel
    result_ : LearningResult of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.datasets import generate_leaf_images
    >>> leaves = generate_leaf_images(2, rng=np.random.default_rng(0), shape=(16, 20))
    >>> model = Segmenter(loss="trees").fit([x.image for x in leaves], [x.mask for x in leaves])
    >>> model.predict([leaves[0].image])[0].shape
    (16, 20)
    """

    def __init__(
        self,
        *,
        loss: str | None = None,
        position: bool = True,
        ridge: float | None = None,
        rho: float = RHO,
        max_side: int = MAX_SIDE,
        relative_gap: float = RELATIVE_GAP,
        max_seconds: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.position = position
        self.ridge = ridge
        self.rho = rho
        self.max_side = max_side
        self.relative_gap = relative_gap
        self.max_seconds = max_seconds
        self.random_state = random_state

    def fit(self, X: Sequence[Image], y: Sequence[BoolArray]) -> Self:
        """Learn the model from pictures (H, W, 3) uint8 and masks (H, W) bool.

        Raises
        ------
        InvalidProblemError
            See `engine.train_boosted_segmentation`.
        """
        options: dict[str, Any] = self.get_params()
        trained = train_boosted_segmentation(X, y, rng=_generator(options), **options)
        self.model_, self.result_ = trained.model, trained.result
        return self

    def predict(self, X: Sequence[Image]) -> list[BoolArray]:
        """Return the best mask (H, W) of every picture."""
        return [prediction.mask for prediction in self._predictions(X)]

    def predict_proba(self, X: Sequence[Image]) -> list[NDArray[np.float32]]:
        """Return each pixel's probability of being foreground, (H, W), of every picture."""
        return [prediction.marginals for prediction in self._predictions(X)]

    def score(self, X: Sequence[Image], y: Sequence[BoolArray]) -> float:
        """Return the share of all pixels that ``predict`` labels as the masks do, from 0 to 1."""
        found = self.predict(X)
        right = sum(int((mask == truth).sum()) for mask, truth in zip(found, y, strict=True))
        return right / sum(mask.size for mask in found)

    def _predictions(self, pictures: Sequence[Image]) -> list[Prediction]:
        check_is_fitted(self)
        return [predict_segmentation(self.model_, picture) for picture in pictures]


class ClassSegmenter(ObservationEstimator):
    """Estimator that learns to label pixels from pictures with label maps or strokes.

    Parameters
    ----------
    classes : sequence of str, names of the L classes, 2 to 32; label 0 is the first.
    class_weights : sequence of float or None, weight of a pixel of each class.
    loss : str or None, see `engine.train_class_segmentation`; None compares.
    position : bool, True to use the position within the picture as a feature.
    ridge : float or None, lambda > 0; by default 0.001 times the number of known pixels.
    max_side : int, larger pictures are scaled down to at most this many pixels a side.
    max_seconds : float or None
    random_state : int, seed of the folds and of the sampled pixels.

    Attributes
    ----------
    model_ : ClassSegmentationModel
    result_ : LearningResult of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.datasets import generate_leaf_images
    >>> (leaf,) = generate_leaf_images(1, rng=np.random.default_rng(0), shape=(24, 32))
    >>> model = ClassSegmenter(("ground", "leaf"), loss="trees")
    >>> model.fit([leaf.image], [leaf.mask.astype(np.uint8)]).predict_proba([leaf.image])[0].shape
    (24, 32, 2)
    """

    def __init__(
        self,
        classes: Sequence[str] = ("background", "foreground"),
        *,
        class_weights: Sequence[float] | None = None,
        loss: str | None = None,
        position: bool = True,
        ridge: float | None = None,
        max_side: int = MAX_SIDE,
        max_seconds: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.classes = classes
        self.class_weights = class_weights
        self.loss = loss
        self.position = position
        self.ridge = ridge
        self.max_side = max_side
        self.max_seconds = max_seconds
        self.random_state = random_state

    def fit(self, X: Sequence[Image], y: Sequence[LabelMap]) -> Self:
        """Learn the model from pictures (H, W, 3) and labels (H, W), uint8, 255 where unknown.

        Raises
        ------
        InvalidProblemError
            See `engine.train_class_segmentation`.
        """
        options: dict[str, Any] = self.get_params()
        detail, rng = Detail(options.pop("max_side")), _generator(options)
        trained = train_class_segmentation(X, y, detail=detail, rng=rng, **options)
        self.model_, self.result_ = trained.model, trained.result
        return self

    def predict(self, X: Sequence[Image]) -> list[LabelMap]:
        """Return the labels (H, W) of every picture."""
        check_is_fitted(self)
        return [predict_classes(self.model_, picture).labels for picture in X]

    def predict_proba(self, X: Sequence[Image]) -> list[NDArray[np.float32]]:
        """Return each pixel's probability of every class, (H, W, L), of every picture."""
        check_is_fitted(self)
        return [predict_classes(self.model_, picture).probabilities for picture in X]

    def score(self, X: Sequence[Image], y: Sequence[LabelMap]) -> float:
        """Return the share of known pixels that ``predict`` labels as the maps do, from 0 to 1."""
        n_classes = len(self.classes)
        pairs = list(zip(self.predict(X), y, strict=True))
        right = sum(int(((found == truth) & (truth < n_classes)).sum()) for found, truth in pairs)
        return right / sum(int((truth < n_classes).sum()) for _, truth in pairs)


def _generator(options: dict[str, Any]) -> np.random.Generator:
    """Remove the seed from an estimator's options and return a generator with that seed."""
    seed = options.pop("random_state")
    check_whole("random_state", seed)
    return np.random.default_rng(seed)
