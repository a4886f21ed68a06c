"""Observed matchings as examples for the methods that only decode."""

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.crf.bipartite import BipartiteItems, check_assignment
from engine.crf.survey import Survey, check_pairs, partners_of
from engine.crf.survey_features import SurveyFeatures
from engine.kernels.threads import one_blas_thread
from engine.learning.structured_example import Decoding
from engine.oracles.assignment import assign
from engine.oracles.one_hot_scores import OneHotScores
from engine.oracles.perfect_matching import CompleteGraphMatcher


class BipartiteExample:
    """Rows matched to columns, decoded by linear assignment.

    Parameters
    ----------
    items : BipartiteItems
    columns : ndarray, shape (n,), int, the observed column of every row, a permutation

    Raises
    ------
    InvalidProblemError
        If ``columns`` is no permutation.
    """

    def __init__(self, items: BipartiteItems, columns: IntArray) -> None:
        self._items = items
        self._columns = check_assignment(columns, items.n_items)
        self._rows = np.arange(items.n_items)
        self.observed = read_only(items.assignment_statistics(self._columns))

    def decode(self, theta: FloatArray, loss_weight: float = 0.0) -> Decoding:
        """Return the best assignment for the scores, the loss of each wrong row added."""
        scores = self._items.scores(theta)
        scores[self._rows, self._columns] -= loss_weight / self._items.n_items
        answer = assign(scores)
        loss = float(np.mean(answer.columns != self._columns))
        return Decoding(self._items.assignment_statistics(answer.columns), loss, answer.gap)


class SurveyExample:
    """The pairs of one cohort, decoded by maximum-weight perfect matching.

    Parameters
    ----------
    features : SurveyFeatures
    survey : Survey, n students, all of them paired
    pairs : ndarray, shape (n / 2, 2), int

    Raises
    ------
    InvalidProblemError
        If somebody is paired twice or not at all.
    """

    def __init__(self, features: SurveyFeatures, survey: Survey, pairs: IntArray) -> None:
        pairs = check_pairs(pairs, survey.n_students, survey.ids)
        if 2 * len(pairs) != survey.n_students:
            raise InvalidProblemError(
                f"Expected all {survey.n_students} students in a pair, received {len(pairs)} pairs."
            )
        self._features, self._survey = features, survey
        self._partner = partners_of(pairs, survey.n_students)
        self._codes = features.codes(survey)
        self._matcher = CompleteGraphMatcher()
        self.observed = read_only(features.pair_statistics(survey, pairs))

    def decode(self, theta: FloatArray, loss_weight: float = 0.0) -> Decoding:
        """Return the best perfect matching for the scores, the loss of each wrong pair added."""
        with one_blas_thread():
            matching = self._matcher.solve(self._scores(theta, loss_weight))
        loss = float(np.mean(matching.partner != self._partner))
        statistics = self._features.pair_statistics(self._survey, matching.pairs)
        return Decoding(statistics, loss, matching.gap)

    def _scores(self, theta: FloatArray, loss_weight: float) -> FloatArray | OneHotScores:
        if loss_weight == 0.0:
            return OneHotScores(self._codes, self._features.block_matrix(theta))
        scores = self._features.scores(self._survey, theta)
        n = self._survey.n_students
        scores[np.arange(n), self._partner] -= 2.0 * loss_weight / n  # a pair is two students
        return scores
