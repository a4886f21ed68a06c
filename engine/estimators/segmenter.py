"""Image segmentation by scikit-learn's habits."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from engine.core.arguments import BoolArray
from engine.learning.segmentation.mask_learning import train_segmentation
from engine.learning.segmentation.mask_prediction import Prediction, predict_segmentation

Image = NDArray[np.uint8]


class Segmenter(BaseEstimator):  # type: ignore[misc]
    """Learn to mark the foreground of pictures from pictures with masks.

    Parameters
    ----------
    ridge : float or None, lambda > 0; by default 0.001 times the number of training pixels.
    rho : float, edge appearance probability in (0, 1/2].
    max_side : int, larger pictures are shrunk to models of this many pixels a side.
    solver : str, see `engine.train_segmentation`.
    relative_gap : float, certified gap over the size of the log-likelihood at which to stop.
    max_seconds : float or None

    Attributes
    ----------
    model_ : SegmentationModel
    result_ : LearningResult, with both bounds and how the solver ended.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.datasets import generate_leaf_images
    >>> leaves = generate_leaf_images(2, rng=np.random.default_rng(0), shape=(16, 20))
    >>> model = Segmenter(solver="theta").fit([x.image for x in leaves], [x.mask for x in leaves])
    >>> model.predict([leaves[0].image])[0].shape
    (16, 20)
    """

    def __init__(
        self,
        *,
        ridge: float | None = None,
        rho: float = 0.5,
        max_side: int = 200,
        solver: str = "auto",
        relative_gap: float = 1e-3,
        max_seconds: float | None = None,
    ) -> None:
        self.ridge = ridge
        self.rho = rho
        self.max_side = max_side
        self.solver = solver
        self.relative_gap = relative_gap
        self.max_seconds = max_seconds

    def fit(self, X: Sequence[Image], y: Sequence[BoolArray]) -> Self:
        """Learn from pictures (H, W, 3) uint8 and masks (H, W) bool.

        Raises
        ------
        InvalidProblemError
            See `engine.train_segmentation`.
        """
        parameters: dict[str, Any] = self.get_params()
        trained = train_segmentation(X, y, **parameters)
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
