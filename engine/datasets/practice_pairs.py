"""Invented pairs for a real survey without any, so that all other functions can be tried on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.options import check_callables, check_generator
from engine.core.progress import StopCallback, never_stop
from engine.crf.rules import Rules, split_groups
from engine.crf.survey import Survey
from engine.crf.survey_features import SurveyFeatures, make_survey_features
from engine.datasets.matching_sampler import sample_matching

SCORE_SPREAD = 1.2  # nats; such pairs are ranked right about four times in five
ATTRACT_SHARE = 0.15  # share of the questions on which opposites are made to attract


@dataclass(frozen=True, slots=True)
class PracticeWeights:
    """Invented true weights, from which pairs of one or several years are drawn.

    Parameters
    ----------
    features : SurveyFeatures
    theta : ndarray, shape (K,), nats, in the layout of ``features``, zero but for the distances.

    Examples
    --------
    >>> from engine.datasets.university import simulate_university
    >>> rng = np.random.default_rng(0)
    >>> year = simulate_university(10, 1, rng=rng).cohorts[0].survey
    >>> invent_weights(year, rng=rng).theta.ndim
    1
    """

    features: SurveyFeatures
    theta: FloatArray

    @property
    def distance_weights(self) -> FloatArray:
        """Return the distance weights, shape (Q,), nats per step."""
        return read_only(self.theta[self.features.feature_offsets[:-1]])


@dataclass(frozen=True, slots=True)
class PracticePairs:
    """Pairs drawn from the model itself under invented weights.

    Parameters
    ----------
    pairs : ndarray, shape (p, 2), int64, smaller index first, sorted.
    single : ndarray, int64, students left over by odd groups.
    distance_weights : ndarray, shape (Q,), nats per step, the invented truth.

    Examples
    --------
    >>> drawn = PracticePairs(np.array([[0, 1]]), np.array([2]), np.zeros(14))
    >>> drawn.single.tolist()
    [2]
    """

    pairs: IntArray
    single: IntArray
    distance_weights: FloatArray


def simulate_pairs(
    survey: Survey,
    *,
    rng: np.random.Generator,
    same: Sequence[str] = (),
    weights: PracticeWeights | None = None,
    should_stop: StopCallback = never_stop,
) -> PracticePairs:
    """Draw pairs for the students of a survey from P(Y) ~ exp(total score).

    Parameters
    ----------
    survey : Survey, at least two students.
    rng : Generator, for the weights, the choice of single students, and the pairs.
    same : names of attribute columns in which partners agree; a blank is a group of its own.
    weights : PracticeWeights, by default those that ``invent_weights`` makes for this survey.
    should_stop : called before every group.

    Returns
    -------
    PracticePairs
        With the true weights of the draw.

    Raises
    ------
    InvalidProblemError
        If there are fewer than two students, a column is unknown, or the weights are those of other
        questions.
    StoppedError
        If ``should_stop`` answered True.

    Notes
    -----
    Sampling is that of ``sample_matching``.

    Examples
    --------
    >>> from engine.datasets.university import simulate_university
    >>> rng = np.random.default_rng(0)
    >>> year = simulate_university(10, 1, rng=rng).cohorts[0].survey
    >>> simulate_pairs(year, rng=rng).pairs.shape
    (5, 2)
    """
    check_generator("rng", rng, optional=False)
    check_callables(should_stop=should_stop)
    if survey.n_students < 2:
        raise InvalidProblemError(f"Pairs need two students, received {survey.n_students}.")
    if weights is None:
        weights = invent_weights(survey, rng=rng)
    weights.features.questionnaire.check_same_as(survey.questionnaire)
    pairs: list[IntArray] = []
    single: list[int] = []
    for group in split_groups(survey, Rules(same=tuple(same))):
        if should_stop():
            raise StoppedError("Drawing pairs was cancelled.")
        members = group.students
        if len(members) % 2:
            out = int(rng.integers(len(members)))
            single.append(int(members[out]))
            members = np.delete(members, out)
        if len(members):
            scores = weights.features.scores(survey.take(members), weights.theta)
            pairs.append(np.sort(members[sample_matching(scores, rng=rng).pairs], axis=1))
    together = np.concatenate(pairs) if pairs else np.empty((0, 2), dtype=np.int64)
    return PracticePairs(
        pairs=read_only(together[np.argsort(together[:, 0], kind="stable")]),
        single=read_only(np.array(sorted(single), dtype=np.int64)),
        distance_weights=weights.distance_weights,
    )


def invent_weights(survey: Survey, *, rng: np.random.Generator) -> PracticeWeights:
    """Invent weights of distances that make the pairs of a survey neither random nor certain.

    They differ in size from question to question, most keep different answers apart, and the scores
    of random pairs of the survey spread by ``SCORE_SPREAD`` nats. For years that share one truth,
    invent it on all students together: each year alone would scale it differently.

    Parameters
    ----------
    survey : Survey, at least two students.
    rng : Generator

    Returns
    -------
    PracticeWeights
        The true weights, nats per step.

    Examples
    --------
    >>> from engine.datasets.university import simulate_university
    >>> rng = np.random.default_rng(0)
    >>> year = simulate_university(10, 1, rng=rng).cohorts[0].survey
    >>> invent_weights(year, rng=rng).distance_weights.shape
    (14,)
    """
    check_generator("rng", rng, optional=False)
    features = make_survey_features([survey])
    n_questions = survey.questionnaire.n_questions
    weights = -rng.exponential(size=n_questions)
    weights[rng.random(n_questions) < ATTRACT_SHARE] *= -0.5
    theta = np.zeros(features.n_features)
    theta[features.feature_offsets[:-1]] = weights
    some = rng.integers(survey.n_students, size=(4000, 2))
    some = some[some[:, 0] != some[:, 1]]
    spread = float(features.pair_scores(survey, theta, some).sum(axis=1).std())
    return PracticeWeights(features, read_only(theta * (SCORE_SPREAD / spread if spread else 0.0)))
