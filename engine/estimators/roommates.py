"""Roommate models with scikit-learn's interface."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from engine.core.arguments import FloatArray, IntArray
from engine.core.errors import InvalidProblemError
from engine.crf.survey import Survey, check_pairs, partners_of
from engine.estimators.base import ObservationEstimator
from engine.learning.roommates.defaults import RELATIVE_GAP, RHO, RIDGE
from engine.learning.roommates.proposal import propose_pairs
from engine.learning.roommates.training import train_roommates
from engine.metrics.matching_error import hamming_error


class Roommates(ObservationEstimator):
    """Estimator that learns from the pairs of past years and proposes pairs for new years.

    ``X`` is a list of surveys, one per year, and ``y`` their pairs, so that cross-validation holds
    out whole years.

    Parameters
    ----------
    ridge : float, lambda > 0.
    rho : float in [0, 1], 1 for Bethe, 1/2 for the reweighted bound.
    solver : str, see `engine.train_roommates`.
    relative_gap : float, stop at this certified gap divided by the size of the log-likelihood.
    max_seconds : float or None

    Attributes
    ----------
    model_ : RoommateModel
    result_ : LearningResult, with both bounds and the status of the solver.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.datasets import simulate_university
    >>> years = simulate_university(30, 2, rng=np.random.default_rng(0)).cohorts
    >>> model = Roommates(ridge=10.0).fit([y.survey for y in years], [y.pairs for y in years])
    >>> model.result_.is_certified, model.predict([years[0].survey])[0].shape
    (True, (15, 2))
    """

    def __init__(
        self,
        *,
        ridge: float = RIDGE,
        rho: float = RHO,
        solver: str = "auto",
        relative_gap: float = RELATIVE_GAP,
        max_seconds: float | None = None,
    ) -> None:
        self.ridge = ridge
        self.rho = rho
        self.solver = solver
        self.relative_gap = relative_gap
        self.max_seconds = max_seconds

    def fit(self, X: Sequence[Survey], y: Sequence[IntArray]) -> Self:
        """Learn the model from surveys and the pairs (p, 2) of each survey.

        Raises
        ------
        InvalidProblemError
            If their numbers differ, a student is paired twice, or an option is out of range.
        """
        if len(X) != len(y):
            raise InvalidProblemError(f"y: expected pairs of {len(X)} surveys, received {len(y)}.")
        trained = train_roommates(list(zip(X, y, strict=True)), **self.get_params())
        self.model_, self.result_ = trained.model, trained.result
        return self

    def predict(self, X: Sequence[Survey]) -> list[IntArray]:
        """Return the best complete set of pairs (p, 2) of every survey, proved optimal."""
        check_is_fitted(self)
        return [propose_pairs(self.model_, survey, sampling_seconds=0.0).pairs for survey in X]

    def predict_proba(self, X: Sequence[Survey]) -> list[FloatArray]:
        """Return the probability of every pair, (n, n) symmetric, of every survey."""
        check_is_fitted(self)
        return [np.asarray(propose_pairs(self.model_, s).marginals, np.float64) for s in X]

    def score(self, X: Sequence[Survey], y: Sequence[IntArray]) -> float:
        """Return the mean share of students whose observed partner is proposed, from 0 to 1."""
        return float(np.mean([self._share(s, p) for s, p in zip(X, y, strict=True)]))

    def _share(self, survey: Survey, pairs: IntArray) -> float:
        check_is_fitted(self)
        pairs = check_pairs(pairs, survey.n_students, survey.ids)
        chosen = np.sort(pairs.ravel())
        found = propose_pairs(self.model_, survey.take(chosen), sampling_seconds=0.0).pairs
        truth = partners_of(np.searchsorted(chosen, pairs), len(chosen))
        return 1.0 - hamming_error(partners_of(found, len(chosen)), truth)
