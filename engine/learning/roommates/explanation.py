"""Explanation of a pair's score by question, and the learned weights of each question."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_whole
from engine.crf.questionnaire import Question
from engine.crf.rules import Rules
from engine.crf.survey import BLANK, Survey
from engine.crf.survey_features import centre_twice, distance_table
from engine.learning.roommates.model import RoommateModel


@dataclass(frozen=True, slots=True)
class Contribution:
    """Contribution of one question to a pair's score.

    Parameters
    ----------
    question : str
    answers : tuple of two str or None, None for a blank.
    amount : float, nats
        The question's part of the score minus its mean over both students' allowed partners.
    """

    question: str
    answers: tuple[str | None, str | None]
    amount: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Decomposition of a pair's score: average + in_favour - against = score, in nats.

    ``contributions`` are sorted by size, largest first; ``average`` is the mean score over both
    students' allowed partners.
    """

    score: float
    average: float
    contributions: tuple[Contribution, ...]

    @property
    def in_favour(self) -> float:
        """Sum of the contributions above zero."""
        return sum(c.amount for c in self.contributions if c.amount > 0.0)

    @property
    def against(self) -> float:
        """Minus the sum of the contributions below zero."""
        return -sum(c.amount for c in self.contributions if c.amount < 0.0)


def allowed_partners(survey: Survey, student: int, rules: Rules | None = None) -> BoolArray:
    """Return a mask of a student's allowed partners, shape (n,).

    The rules ``same``, ``forbids`` and ``single`` apply; locks of other students do not.
    """
    rules = rules or Rules()
    allowed = np.ones(survey.n_students, dtype=bool)
    allowed[student] = False
    allowed[list(rules.single)] = False
    for name in rules.same:
        column = np.array(survey.attributes[name])
        allowed &= column == column[student]
    for i, j in rules.forbids:
        if student in (i, j):
            allowed[j if student == i else i] = False
    return allowed


def explain_pair(
    model: RoommateModel, survey: Survey, i: int, j: int, rules: Rules | None = None
) -> Explanation:
    """Decompose the score of a pair into the contributions of the questions.

    Parameters
    ----------
    model : RoommateModel
    survey : Survey, n students, the scored survey.
    i, j : int, two different students.
    rules : Rules, optional; decides the allowed partners that each is compared with.

    Returns
    -------
    Explanation
        ``score`` of the pair and ``average`` over allowed partners, in nats, and a contribution for
        each question.

    Raises
    ------
    InvalidProblemError
        If i = j, a student is unknown, or the survey has other questions.

    Examples
    --------
    >>> from engine import simulate_university, train_roommates
    >>> year = simulate_university(30, 1, rng=np.random.default_rng(0)).cohorts[0]
    >>> model = train_roommates([(year.survey, year.pairs)]).model
    >>> found = explain_pair(model, year.survey, 0, 1)
    >>> len(found.contributions) == year.survey.questionnaire.n_questions
    True
    """
    check_whole("i", i)
    check_whole("j", j)
    model.check_survey(survey)
    n = survey.n_students
    if i == j or not (0 <= i < n and 0 <= j < n):
        raise InvalidProblemError(f"A pair needs two different students of 0 to {n - 1}: {i}, {j}.")
    parts = model.features.pair_scores(survey, model.theta, np.array([[i, j]]))[0]
    compared = [
        np.stack([np.full(len(others), student), others], axis=1)
        for student in (i, j)
        for others in [np.flatnonzero(allowed_partners(survey, student, rules))]
    ]
    pairs = np.concatenate(compared).astype(np.int64)
    means = parts
    if len(pairs):
        means = model.features.pair_scores(survey, model.theta, pairs).mean(axis=0)
    rows = [
        Contribution(
            question.name,
            (_answer(survey, question, i, q), _answer(survey, question, j, q)),
            float(parts[q] - means[q]),
        )
        for q, question in enumerate(model.questionnaire.questions)
    ]
    rows.sort(key=lambda row: -abs(row.amount))
    return Explanation(float(parts.sum()), float(means.sum()), tuple(rows))


def _answer(survey: Survey, question: Question, student: int, column: int) -> str | None:
    code = int(survey.answers[student, column])
    return None if code == BLANK else question.levels[code]


@dataclass(frozen=True, slots=True)
class QuestionWeight:
    """Learned weights and effect of one question.

    Parameters
    ----------
    question : Question
    distance_weight : float, nats per step apart; not identified alone (pair weights can absorb it).
    pair_weights : ndarray, shape (L, L), nats, symmetric, theta of each unordered answer pair.
    pair_scores : ndarray, shape (L, L), nats: score of two answers together.
    step_effect : float, nats
        Least-squares slope of the score on the distance between answers, with a free number per
        answer, weighted by how common each pair of answers was in the past cohorts: distance and
        pair weights together. Below zero, students with different answers are kept apart.
    importance : float
        Share, 0..1 over questions, of the interaction variance of scores between random pairs. It
        leaves out parts that depend on one student alone: they change no matching's probability.
    blank_scores : tuple (one blank, both blank) in nats, None if the past years had no blanks.
    """

    question: Question
    distance_weight: float
    pair_weights: FloatArray
    pair_scores: FloatArray
    step_effect: float
    importance: float
    blank_scores: tuple[float, float] | None

    @property
    def odds_factor(self) -> float:
        """Factor on the odds of a pairing per step of distance: exp(step_effect)."""
        return float(np.exp(self.step_effect))


def question_weights(model: RoommateModel) -> tuple[QuestionWeight, ...]:
    """Return the learned weights of every question, in the order of the questionnaire.

    Parameters
    ----------
    model : RoommateModel

    Returns
    -------
    tuple of QuestionWeight, length Q, in the order of the questionnaire; weights in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from engine import simulate_university, train_roommates
    >>> year = simulate_university(30, 1, rng=np.random.default_rng(0)).cohorts[0]
    >>> model = train_roommates([(year.survey, year.pairs)]).model
    >>> len(question_weights(model)) == year.survey.questionnaire.n_questions
    True
    """
    features, theta = model.features, model.theta
    rows = []
    for index, question in enumerate(model.questionnaire.questions):
        levels = question.n_levels
        start = int(features.feature_offsets[index])
        weights = np.zeros((levels, levels))
        upper = np.triu_indices(levels)
        weights[upper] = theta[start + 1 : start + question.n_features]
        weights.T[upper] = weights[upper]
        block = features.question_block(theta, index)
        share = np.asarray(features.frequencies[index])
        scores = block[:levels, :levels]
        slope, variance = _slope_and_variance(question, scores, share)
        blank = None
        if features.has_blanks[index]:
            blank = (float(block[levels, 0]), float(block[levels, levels]))
        rows.append((question, float(theta[start]), weights, scores, slope, variance, blank))
    total = sum(row[5] for row in rows) or 1.0
    return tuple(
        QuestionWeight(
            question, distance, read_only(w), read_only(s.copy()), slope, variance / total, blank
        )
        for question, distance, w, s, slope, variance, blank in rows
    )


def _slope_and_variance(
    question: Question, scores: FloatArray, share: FloatArray
) -> tuple[float, float]:
    """Return the weighted slope of the scores' interactions on distance, and their variance."""
    mass = np.outer(share, share)
    distance = centre_twice(distance_table(question), share)
    interactions = centre_twice(scores, share)
    spread = float((mass * distance * distance).sum())
    slope = float((mass * distance * interactions).sum()) / spread if spread > 1e-12 else 0.0
    return slope, float((mass * interactions * interactions).sum())
