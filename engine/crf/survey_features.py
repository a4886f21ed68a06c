"""Features of pairs of students, kept factored: W = Z S Z^T.

Z is the one-hot matrix of answers, shape (n, D) with D = sum_q (L_q + 1): the last column of every
question is its blank. S is block-diagonal and symmetric, one block per question:

    S_q[u, v] = theta_dist_q * distance(u, v) + theta_pair_q{u, v}          u, v answers

and the statistics phi(tau) are computed from the blocks of Z^T tau Z. A (pairs x features) matrix
is never formed (it would take 5 GB at n = 2,500).

Blanks. A question with blanks in the training cohorts gets two more features, "one of the two left
it blank" and "both did", so K = sum_q (1 + L_q (L_q + 1) / 2) + 2 (questions with blanks); 200 for
two binary and twelve five-level questions without blanks. A question that has blanks only now has
no learned weights for them: a pair with one gets the average of S_q over the answers of the past
cohorts, so that the blank neither helps nor hurts. A blank is never treated as an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.crf.questionnaire import Question, Questionnaire
from engine.crf.survey import BLANK, Survey


@dataclass(frozen=True)
class SurveyFeatures:
    """Layout of theta, and the two linear maps theta -> S and Z^T tau Z -> phi.

    Parameters
    ----------
    questionnaire : Questionnaire
    has_blanks : tuple of bool, one per question
        Whether the question has features for blanks.
    frequencies : tuple of tuples of float
        Share of each answer among those given in the past cohorts, per question; sums to 1.
    """

    questionnaire: Questionnaire
    has_blanks: tuple[bool, ...]
    frequencies: tuple[tuple[float, ...], ...]

    @property
    def n_features(self) -> int:
        """Number of features K."""
        return self.questionnaire.n_features + 2 * sum(self.has_blanks)

    @property
    def n_columns(self) -> int:
        """Number D of columns of Z: answers and one blank per question."""
        return sum(q.n_levels + 1 for q in self.questionnaire.questions)

    @cached_property
    def column_offsets(self) -> IntArray:
        """First column of every question in Z, and D at the end; shape (Q + 1,)."""
        sizes = [q.n_levels + 1 for q in self.questionnaire.questions]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def feature_offsets(self) -> IntArray:
        """First feature of every question in theta, and K at the end; shape (Q + 1,).

        Within a question: the distance; the pairs {u, v}, u <= v, row by row; then, if the question
        has them, "one blank" and "both blank".
        """
        questions = self.questionnaire.questions
        sizes = [q.n_features + 2 * b for q, b in zip(questions, self.has_blanks, strict=True)]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def codes(self, survey: Survey) -> IntArray:
        """Return the column of Z for every answer, shape (n, Q)."""
        answers = survey.answers.astype(np.int64)
        levels = np.array([q.n_levels for q in self.questionnaire.questions], dtype=np.int64)
        return np.where(answers == BLANK, levels, answers) + self.column_offsets[:-1]

    def one_hot(self, survey: Survey) -> FloatArray:
        """Return Z, shape (n, D)."""
        codes = self.codes(survey)
        matrix = np.zeros((survey.n_students, self.n_columns))
        np.put_along_axis(matrix, codes, 1.0, axis=1)
        return matrix

    def question_block(self, theta: FloatArray, question: int) -> FloatArray:
        """Return S_q with its blank row and column, shape (L + 1, L + 1), nats."""
        asked = self.questionnaire.questions[question]
        levels = asked.n_levels
        weights = theta[self.feature_offsets[question] : self.feature_offsets[question + 1]]
        block = np.zeros((levels + 1, levels + 1))
        rows, columns = upper_triangle(levels)
        block[rows, columns] = weights[1 : asked.n_features]
        block[columns, rows] = weights[1 : asked.n_features]
        block[:levels, :levels] += weights[0] * distance_table(asked)
        if self.has_blanks[question]:
            block[levels, :levels] = block[:levels, levels] = weights[-2]
            block[levels, levels] = weights[-1]
        else:
            share = np.asarray(self.frequencies[question])
            average = block[:levels, :levels] @ share
            block[levels, :levels] = block[:levels, levels] = average
            block[levels, levels] = share @ average
        return block

    def block_matrix(self, theta: FloatArray) -> FloatArray:
        """Return S, shape (D, D), symmetric, zero outside the blocks of questions."""
        matrix = np.zeros((self.n_columns, self.n_columns))
        for question in range(self.questionnaire.n_questions):
            a, b = self.column_offsets[question : question + 2]
            matrix[a:b, a:b] = self.question_block(theta, question)
        return matrix

    def scores(self, survey: Survey, theta: FloatArray) -> FloatArray:
        """Return W = Z S Z^T, shape (n, n), symmetric; the diagonal has no meaning."""
        one_hot = self.one_hot(survey)
        scores = (one_hot @ self.block_matrix(theta)) @ one_hot.T
        return np.asarray((scores + scores.T) / 2)

    def pair_scores(self, survey: Survey, theta: FloatArray, pairs: IntArray) -> FloatArray:
        """Return W_ij of the given pairs (p, 2), split by question: shape (p, Q), nats."""
        codes = self.codes(survey)
        matrix = self.block_matrix(theta)
        scores: FloatArray = matrix[codes[pairs[:, 0]], codes[pairs[:, 1]]]
        return scores

    def statistics(self, co_occurrence: FloatArray) -> FloatArray:
        """Return phi, shape (K,), from C = sum over ordered pairs tau_ij z_i z_j^T, shape (D, D).

        C = Z^T tau Z of a symmetric tau counts every pair twice; phi counts it once.
        """
        result = np.empty(self.n_features)
        for index, question in enumerate(self.questionnaire.questions):
            a, b = self.column_offsets[index : index + 2]
            first, last = self.feature_offsets[index : index + 2]
            levels = question.n_levels
            block = (co_occurrence[a:b, a:b] + co_occurrence[a:b, a:b].T) / 2
            answered = block[:levels, :levels]
            rows, columns = upper_triangle(levels)
            result[first] = (answered * distance_table(question)).sum() / 2
            result[first + 1 : first + question.n_features] = np.where(
                rows == columns, answered[rows, columns] / 2, answered[rows, columns]
            )
            if self.has_blanks[index]:
                result[last - 2] = block[levels, :levels].sum()
                result[last - 1] = block[levels, levels] / 2
        return result

    def pair_statistics(
        self, survey: Survey, pairs: IntArray, shares: FloatArray | None = None
    ) -> FloatArray:
        """Return phi(Y) of pairs (p, 2) counted as 1 or by their shares (p,); shape (K,)."""
        codes = self.codes(survey)
        counts = np.zeros((self.n_columns, self.n_columns))
        first, second = codes[pairs[:, 0]], codes[pairs[:, 1]]
        count = 1.0 if shares is None else shares[:, np.newaxis]
        np.add.at(counts, (first, second), count)
        np.add.at(counts, (second, first), count)
        return self.statistics(counts)

    def constant_baseline(self) -> FloatArray:
        """Return the paper's baseline: -1 for every distance, 0 for everything else."""
        theta = np.zeros(self.n_features)
        theta[self.feature_offsets[:-1]] = -1.0
        return theta


def distance_table(question: Question) -> FloatArray:
    """Return the distance between answers, (L, L): |u - v|, for nominal questions 1 if u != v."""
    return _distances(question.n_levels, question.kind == "nominal")


@cache
def _distances(n_levels: int, is_nominal: bool) -> FloatArray:
    levels = np.arange(n_levels)
    table: FloatArray = np.abs(levels[:, None] - levels[None, :]).astype(np.float64)
    return read_only(np.minimum(table, 1.0) if is_nominal else table)


@cache
def upper_triangle(size: int) -> tuple[IntArray, IntArray]:
    """Return rows and columns of the unordered pairs {u, v}, u <= v, row by row."""
    rows, columns = np.triu_indices(size)
    return read_only(rows), read_only(columns)


def centre_twice(table: FloatArray, share: FloatArray) -> FloatArray:
    """Return a table of answers, (L, L), without the effects of one of the two answers alone."""
    rows = table @ share
    return np.asarray(table - rows[:, None] - rows + share @ rows)


def make_survey_features(surveys: Sequence[Survey]) -> SurveyFeatures:
    """Define the features for the cohorts to learn from.

    Raises
    ------
    InvalidProblemError
        If there is no cohort, or the cohorts have different questions.
    """
    if not surveys:
        raise InvalidProblemError("Learning needs at least one past cohort, received none.")
    questionnaire = surveys[0].questionnaire
    for survey in surveys[1:]:
        questionnaire.check_same_as(survey.questionnaire, "One of the cohorts")
    answers = np.concatenate([survey.answers for survey in surveys])
    frequencies = []
    for index, question in enumerate(questionnaire.questions):
        given = answers[:, index][answers[:, index] != BLANK]
        counts = np.bincount(given, minlength=question.n_levels) + 0.0
        share = counts / counts.sum() if len(given) else np.full(question.n_levels, 1.0)
        frequencies.append(tuple(float(x) for x in share / share.sum()))
    blanks = tuple(bool(x) for x in (answers == BLANK).any(axis=0))
    return SurveyFeatures(questionnaire, blanks, tuple(frequencies))


def expected_pair_features(
    features: SurveyFeatures, codes: IntArray, expected: FloatArray, only: int | None = None
) -> FloatArray:
    """Return M, shape (n, K): the expected features of each student's pair.

    ``codes`` (n, Q); ``expected`` (n, D) = tau Z, the expected answers of the partner; ``only``
    limits the result to one question.
    """
    out = np.zeros((len(codes), features.n_features))
    rows = np.arange(len(codes))
    for q in range(features.questionnaire.n_questions) if only is None else (only,):
        start, stop = features.column_offsets[q : q + 2]
        for column in range(start, stop):
            other = np.full(len(codes), column)
            places, values = question_features(features, q, codes[:, q], other)
            for k in range(2):
                out[rows, places[:, k]] += values[:, k] * expected[:, column]
    return out


def pair_features(
    features: SurveyFeatures, first: IntArray, second: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return the features of some pairs from their columns of Z: indices and values, (p, 2 Q)."""
    parts = [
        question_features(features, q, first[:, q], second[:, q])
        for q in range(features.questionnaire.n_questions)
    ]
    places = np.concatenate([part[0] for part in parts], axis=1)
    return places, np.concatenate([part[1] for part in parts], axis=1)


def question_features(
    features: SurveyFeatures, question: int, first: IntArray, second: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return the two features of some pairs for one question: indices and values, (p, 2).

    The distance, and the indicator of the two answers. ``first``, ``second`` (p,): columns of Z.
    """
    asked = features.questionnaire.questions[question]
    levels, base = asked.n_levels, int(features.feature_offsets[question])
    a = first - features.column_offsets[question]
    b = second - features.column_offsets[question]
    low, high = np.minimum(a, b), np.maximum(a, b)
    table = np.zeros((levels + 1, levels + 1))
    table[:levels, :levels] = distance_table(asked)
    places, values = np.full((len(low), 2), base), np.ones((len(low), 2))
    places[:, 1] += 1 + low * levels - low * (low - 1) // 2 + high - low
    values[:, 0] = table[low, high]
    blank = high == levels
    if features.has_blanks[question]:
        end = int(features.feature_offsets[question + 1])
        places[blank, 1] = np.where(low[blank] == levels, end - 1, end - 2)
    else:
        places[blank, 1] = base
        values[blank, 1] = 0.0
    return places, values
