"""Invent pairs for a real survey without any, so that everything else can be tried on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.progress import StopCallback, never_stop
from engine.crf.rules import Rules, split_groups
from engine.crf.survey import Survey
from engine.crf.survey_features import SurveyFeatures, make_survey_features
from engine.datasets.matching_sampler import sample_matching

SCORE_SPREAD = 1.2  # nats; pairs drawn so are ranked right about four times in five
ATTRACT_SHARE = 0.15  # of the questions on which opposites are made to attract


@dataclass(frozen=True, slots=True)
class PracticePairs:
    """Pairs drawn from the model itself under invented weights.

    Parameters
    ----------
    pairs : ndarray, shape (p, 2), int64, smaller index first, sorted.
    single : ndarray, int64, students whom an odd group left over.
    distance_weights : ndarray, shape (Q,), nats per step, the invented truth.
    """

    pairs: IntArray
    single: IntArray
    distance_weights: FloatArray


def simulate_pairs(
    survey: Survey,
    *,
    rng: np.random.Generator,
    same: Sequence[str] = (),
    should_stop: StopCallback = never_stop,
) -> PracticePairs:
    """Draw pairs for the students of a survey from P(Y) ~ exp(total score).

    Parameters
    ----------
    survey : Survey, at least two students.
    rng : Generator, of the weights, of who stays single, and of the pairs.
    same : names of attribute columns in which partners agree; a blank is a group of its own.
    should_stop : asked before every group.

    Raises
    ------
    InvalidProblemError
        If there are fewer than two students, or a column is unknown.

    Notes
    -----
    Weights differ in size from question to question, most keep different answers apart, and the
    scores of random pairs spread by ``SCORE_SPREAD`` nats. Sampling is that of ``sample_matching``.
    """
    if survey.n_students < 2:
        raise InvalidProblemError(f"Pairs need two students, received {survey.n_students}.")
    features = make_survey_features([survey])
    theta, weights = _invent_weights(survey, features, rng)
    pairs: list[IntArray] = []
    single: list[int] = []
    for group in split_groups(survey, Rules(same=tuple(same))):
        if should_stop():
            break
        members = group.students
        if len(members) % 2:
            out = int(rng.integers(len(members)))
            single.append(int(members[out]))
            members = np.delete(members, out)
        if len(members):
            scores = features.scores(survey.take(members), theta)
            pairs.append(np.sort(members[sample_matching(scores, rng=rng).pairs], axis=1))
    together = np.concatenate(pairs) if pairs else np.empty((0, 2), dtype=np.int64)
    return PracticePairs(
        pairs=read_only(together[np.argsort(together[:, 0], kind="stable")]),
        single=read_only(np.array(sorted(single), dtype=np.int64)),
        distance_weights=read_only(weights),
    )


def _invent_weights(
    survey: Survey, features: SurveyFeatures, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return theta and its distance weights, scaled by the spread of scores of random pairs."""
    n_questions = survey.questionnaire.n_questions
    weights = -rng.exponential(size=n_questions)
    weights[rng.random(n_questions) < ATTRACT_SHARE] *= -0.5
    theta = np.zeros(features.n_features)
    theta[features.feature_offsets[:-1]] = weights
    some = rng.integers(survey.n_students, size=(4000, 2))
    some = some[some[:, 0] != some[:, 1]]
    spread = float(features.pair_scores(survey, theta, some).sum(axis=1).std())
    factor = SCORE_SPREAD / spread if spread > 0 else 0.0
    return theta * factor, weights * factor
