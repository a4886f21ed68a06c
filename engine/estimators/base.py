"""Base class of the estimators, whose X is a list of observations and not a matrix."""

from typing import Any

from sklearn.base import BaseEstimator


class ObservationEstimator(BaseEstimator):  # type: ignore[misc]
    """Estimator whose X is a list of surveys, pictures or structures."""

    def __sklearn_tags__(self) -> Any:
        """Return tags that keep scikit-learn from passing a matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
