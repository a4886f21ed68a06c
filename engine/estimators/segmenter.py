"""Image segmentation with scikit-learn's interface, for masks and for label maps."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from engine.core.errors import InvalidProblemError
from engine.core.options import check_choice, check_number, check_whole
from engine.crf.class_features import UNKNOWN
from engine.estimators.base import ObservationEstimator
from engine.learning.segmentation.boosted_learning import train_boosted_segmentation
from engine.learning.segmentation.class_learning import train_class_segmentation
from engine.learning.segmentation.defaults import CLASS_UNARIES, MAX_SIDE, RELATIVE_GAP, RHO
from engine.learning.segmentation.model import Detail
from engine.learning.segmentation.network.learning import NetworkOptions
from engine.learning.segmentation.prediction import Prediction, predict_segmentation

Image = NDArray[np.uint8]
Labels = NDArray[Any]
"""Masks of booleans, or label maps of bytes."""


class Segmenter(ObservationEstimator):
    """Estimator that learns to label pixels from pictures with masks, label maps or strokes.

    The learner is that of ``segment train``: boosted trees, with edges if these make clearly fewer
    mistakes on held-out pictures. Labels of booleans are masks; labels of bytes are label maps, in
    which 255 is unknown.

    Parameters
    ----------
    classes : sequence of str or None, names of the L labels of label maps, 2 to 32; label 0 is the
        first. None names them by their numbers, from 0 to the largest.
    class_weights : sequence of float or None, weight of a pixel of each label of label maps.
    loss : str or None, see `engine.train_boosted_segmentation`; None compares.
    position : bool, True to use the position within the picture as a feature.
    ridge : float or None, lambda > 0; by default 0.001 times the number of known pixels.
    rho : float, edge appearance probability in (0, 1/2]; label maps have 1/2.
    max_side : int, larger pictures are scaled down to at most this many pixels a side.
    unaries : str, "boosted" trees, or "network": a network beside them, which needs JAX.
    relative_gap : float, stop at this certified gap divided by the size of the log-likelihood.
    max_seconds : float or None
    random_state : int, seed of the folds and of the sampled pixels.

    Attributes
    ----------
    classes_ : tuple of str, names of the labels.
    model_ : SegmentationModel
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
        classes: Sequence[str] | None = None,
        *,
        class_weights: Sequence[float] | None = None,
        loss: str | None = None,
        position: bool = True,
        ridge: float | None = None,
        rho: float = RHO,
        max_side: int = MAX_SIDE,
        unaries: str = "boosted",
        relative_gap: float = RELATIVE_GAP,
        max_seconds: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.classes = classes
        self.class_weights = class_weights
        self.loss = loss
        self.position = position
        self.ridge = ridge
        self.rho = rho
        self.max_side = max_side
        self.unaries = unaries
        self.relative_gap = relative_gap
        self.max_seconds = max_seconds
        self.random_state = random_state

    def fit(self, X: Sequence[Image], y: Sequence[Labels]) -> Self:
        """Learn the model from pictures (H, W, 3) uint8 and labels (H, W): bool, or uint8.

        Raises
        ------
        InvalidProblemError
            If options do not go with the labels, or see `engine.train_boosted_segmentation` for
            masks and `engine.train_class_segmentation` for label maps.
        """
        options: dict[str, Any] = self.get_params()
        check_whole("random_state", options["random_state"])
        check_number("rho", self.rho, above=0.0, at_most=0.5)
        check_number("relative_gap", self.relative_gap, above=0.0)
        check_choice("unaries", options["unaries"], CLASS_UNARIES)
        options["network"] = NetworkOptions() if options.pop("unaries") == "network" else None
        options["rng"] = np.random.default_rng(options.pop("random_state"))
        is_asked = self.classes is not None or self.class_weights is not None
        trained: Any
        if is_asked or _are_label_maps(y):
            trained = self._fit_label_maps(X, y, options)
        else:
            del options["classes"], options["class_weights"]
            trained = train_boosted_segmentation(X, y, **options)
        self.model_, self.result_ = trained.model, trained.result
        self.classes_ = self.model_.classes
        return self

    def predict(self, X: Sequence[Image]) -> list[Labels]:
        """Return the labels (H, W) of every picture: the best mask, or each most probable label."""
        return [self._labels(prediction) for prediction in self._predictions(X)]

    def predict_proba(self, X: Sequence[Image]) -> list[NDArray[np.float32]]:
        """Return the probabilities of the pixels of every picture.

        Of masks that of the foreground, (H, W), of label maps those of every label, (H, W, L).
        """
        return [prediction.marginals for prediction in self._predictions(X)]

    def score(self, X: Sequence[Image], y: Sequence[Labels]) -> float:
        """Return the share of known pixels that ``predict`` labels as ``y`` does, from 0 to 1."""
        found = self.predict(X)
        n_labels = len(self.classes_)
        right = known = 0
        for labels, truth in zip(found, y, strict=True):
            is_known = truth < n_labels
            right += int(((labels == truth) & is_known).sum())
            known += int(is_known.sum())
        return right / known

    def _fit_label_maps(
        self, X: Sequence[Image], y: Sequence[Labels], options: dict[str, Any]
    ) -> Any:
        for name, default in (("rho", RHO), ("relative_gap", RELATIVE_GAP)):
            if (value := options.pop(name)) != default:
                raise InvalidProblemError(
                    f"{name}: expected {default:g} with label maps, received {value:g}."
                )
        detail = Detail(options.pop("max_side"))
        if options["classes"] is None:
            options["classes"] = _numbered(y)
        return train_class_segmentation(X, y, detail=detail, **options)

    def _labels(self, prediction: Prediction) -> Labels:
        return prediction.mask if self.model_.is_mask else prediction.labels

    def _predictions(self, pictures: Sequence[Image]) -> list[Prediction]:
        check_is_fitted(self)
        return [predict_segmentation(self.model_, picture) for picture in pictures]


def _are_label_maps(y: Sequence[Labels]) -> bool:
    """Return True if labels are numbers; False if they are booleans."""
    kinds = {np.asarray(one).dtype.kind for one in y}
    if "b" in kinds and len(kinds) > 1:
        raise InvalidProblemError(
            "y: expected masks of booleans, or label maps of bytes, not both."
        )
    return bool(kinds & {"i", "u"})


def _numbered(y: Sequence[Labels]) -> list[str]:
    """Return the names 0, 1, ... up to the largest known label."""
    known = [one[one < UNKNOWN] for one in map(np.asarray, y) if one.dtype.kind in "iu"]
    largest = max((int(one.max(initial=0)) for one in known), default=0)
    return [str(label) for label in range(max(largest, 1) + 1)]
