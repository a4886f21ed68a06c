"""Universities with known truth: answers, weights, and pairs drawn from the model itself.

The questions are those of the published housing survey (Tang 2015, figure 9: two binary and twelve
five-level questions). The true weights are the published distance weights times ``strength``,
except for one: the single-sex floor as first choice has 0.06 instead of the published 0.2277, which
weighs nearly as much as all others together and would hide them. Answer-pair weights are zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.core.errors import InvalidProblemError
from engine.core.options import check_flag, check_generator, check_number, check_whole
from engine.crf.questionnaire import Question, Questionnaire
from engine.crf.survey import BLANK, Survey
from engine.crf.survey_features import SurveyFeatures, make_survey_features
from engine.datasets.matching_sampler import MatchingSample, sample_matching
from engine.kernels.threads import one_blas_thread

_OFTEN = ("Never", "Rarely", "Sometimes", "Often", "Always")
_FIVE = ("1", "2", "3", "4", "5")
_NO_YES = ("No", "Yes")
_BED = ("Before 10 pm", "10-11 pm", "11 pm-12 am", "12-1 am", "After 1 am")
_WAKE = ("Before 6 am", "6-7 am", "7-8 am", "8-9 am", "After 9 am")
_SOCIAL = ("Very quiet", "Quiet", "In between", "Outgoing", "Very outgoing")
_TIDY = ("Very messy", "Messy", "In between", "Tidy", "Very tidy")

FIRST_CHOICE_WEIGHT = 0.06  # 0.2277 in the paper, see above

# name, answers, distance weight (nats per step), default share of every answer in %
_HOUSING_SURVEY: tuple[tuple[str, tuple[str, ...], float, tuple[int, ...]], ...] = (
    ("Bedtime", _BED, -0.0296, (8, 17, 31, 28, 16)),
    ("Wake-up time", _WAKE, -0.0218, (7, 19, 33, 26, 15)),
    ("Rising sophomore", _NO_YES, 0.0, (45, 55)),
    ("Cleanliness", _TIDY, -0.0056, (6, 15, 34, 31, 14)),
    ("Smoking", _OFTEN, -0.0484, (52, 18, 14, 9, 7)),
    ("Sleeping habits", _FIVE, -0.0025, (14, 24, 29, 21, 12)),
    ("Overnight guests", _OFTEN, -0.0097, (18, 29, 30, 15, 8)),
    ("Personality", _SOCIAL, -0.037, (8, 20, 32, 27, 13)),
    ("Usual study hours", _FIVE, 0.0131, (11, 22, 32, 23, 12)),
    ("Study location", _FIVE, -0.0006, (20, 25, 25, 18, 12)),
    ("Study with audio or video", _OFTEN, -0.0133, (16, 22, 28, 22, 12)),
    ("Single-sex floor (first choice)", _FIVE, FIRST_CHOICE_WEIGHT, (44, 21, 17, 10, 8)),
    ("Single-sex floor (second choice)", _FIVE, 0.0518, (36, 23, 20, 12, 9)),
    ("Allow in Brownstone", _NO_YES, 0.0, (35, 65)),
)
DEFAULT_STRENGTH = 8.0  # plain signs stay; pairs become as predictable as in the paper's ROC


@dataclass(frozen=True, slots=True)
class SimulatedCohort:
    """One year: its survey, its pairs and the sampler's evidence.

    If pairs were drawn within groups, the sample combines all groups, with the evidence of the
    worst.

    Parameters
    ----------
    survey : Survey
    pairs : ndarray, shape (p, 2), int64
    sample : MatchingSample
        The sampler's evidence.

    Examples
    --------
    >>> year = simulate_university(6, 1, rng=np.random.default_rng(0)).cohorts[0]
    >>> year.survey.n_students, year.sample.has_mixed
    (6, True)
    """

    survey: Survey
    pairs: IntArray
    sample: MatchingSample


@dataclass(frozen=True, slots=True)
class SimulatedUniversity:
    """Several years with the same true weights.

    Parameters
    ----------
    cohorts : tuple of SimulatedCohort
    theta : ndarray, shape (K,), the true weights in the layout of ``features``.
    features : SurveyFeatures

    Examples
    --------
    >>> drawn = simulate_university(6, 1, rng=np.random.default_rng(0))
    >>> len(drawn.questionnaire.questions), drawn.theta.shape == (drawn.features.n_features,)
    (14, True)
    """

    cohorts: tuple[SimulatedCohort, ...]
    theta: FloatArray
    features: SurveyFeatures

    @property
    def questionnaire(self) -> Questionnaire:
        """Return the questions of the survey."""
        return self.features.questionnaire


def housing_questionnaire() -> Questionnaire:
    """Return the 14 questions of the published survey, K = 200.

    Returns
    -------
    Questionnaire
        Of the published survey.

    Examples
    --------
    >>> len(housing_questionnaire().questions)
    14
    """
    return Questionnaire(
        tuple(
            Question(name, "binary" if len(levels) == 2 else "ordinal", levels)
            for name, levels, _, _ in _HOUSING_SURVEY
        )
    )


def simulate_university(
    students: int,
    cohorts: int,
    *,
    rng: np.random.Generator,
    strength: float = DEFAULT_STRENGTH,
    frequencies: Sequence[Sequence[float]] | None = None,
    blank_share: float = 0.0,
    by_gender: bool = False,
) -> SimulatedUniversity:
    """Draw years of answers, and pairs from the true model.

    Parameters
    ----------
    students, cohorts : int, students per year (even) and number of years.
    rng : Generator
    strength : float, factor on the weights above, default 8.
    frequencies : per question the share of every answer; default shares are built in.
    blank_share : float, share of answers left blank at random after the pairs were drawn.
    by_gender : bool, add a column Gender and draw pairs within each.

    Returns
    -------
    SimulatedUniversity
        Years under one truth.

    Raises
    ------
    InvalidProblemError
        If the number of students is odd or below two, or frequencies do not fit the questions.

    Notes
    -----
    Answers are drawn in fixed proportions (each answer as often as its share says) and shuffled, so
    that small years have every answer too.

    Examples
    --------
    >>> drawn = simulate_university(10, 2, rng=np.random.default_rng(0))
    >>> len(drawn.cohorts), drawn.cohorts[0].pairs.shape
    (2, (5, 2))
    """
    check_whole("students", students, at_least=2)
    check_whole("cohorts", cohorts, at_least=1)
    check_generator("rng", rng, optional=False)
    check_number("strength", strength)
    check_number("blank_share", blank_share, at_least=0.0, below=1.0)
    check_flag("by_gender", by_gender)
    if students < 2 or students % 2 or cohorts < 1:
        raise InvalidProblemError(
            f"Expected an even number of students, at least 2, and a cohort; "
            f"received {students} students and {cohorts} cohorts."
        )
    questionnaire = housing_questionnaire()
    shares = _check_frequencies(frequencies, questionnaire)
    drawn = []
    for year in range(1, cohorts + 1):
        answers = np.stack([_draw_answers(share, students, rng) for share in shares], axis=1)
        ids = tuple(f"S-{year}{k:0{max(len(str(students)), 3)}d}" for k in range(1, students + 1))
        attributes = {"Gender": _draw_genders(students, rng)} if by_gender else {}
        drawn.append(Survey(ids, questionnaire, answers.astype(np.int16), attributes))
    features = make_survey_features(drawn)
    theta = np.zeros(features.n_features)
    theta[features.feature_offsets[:-1]] = [strength * row[2] for row in _HOUSING_SURVEY]
    with one_blas_thread():
        years = tuple(_pair_up(survey, features, theta, blank_share, rng) for survey in drawn)
    return SimulatedUniversity(years, read_only(theta), features)


def _pair_up(
    survey: Survey,
    features: SurveyFeatures,
    theta: FloatArray,
    blank_share: float,
    rng: np.random.Generator,
) -> SimulatedCohort:
    genders = np.array(survey.attributes.get("Gender", ("",) * survey.n_students))
    samples = []
    for gender in np.unique(genders):
        members = np.flatnonzero(genders == gender)
        sample = sample_matching(features.scores(survey.take(members), theta), rng=rng)
        samples.append(replace(sample, pairs=members[sample.pairs]))
    together = _combine(samples)
    answers = survey.answers.copy()
    answers[rng.random(answers.shape) < blank_share] = BLANK
    survey = Survey(survey.ids, survey.questionnaire, answers, survey.attributes)
    return SimulatedCohort(survey, together.pairs, together)


def _combine(samples: Sequence[MatchingSample]) -> MatchingSample:
    """Return the matching of all disjoint groups; it has mixed only if every group has."""
    pairs = np.concatenate([sample.pairs for sample in samples])
    return MatchingSample(
        pairs=read_only(pairs[np.argsort(pairs[:, 0])]),
        sweeps=max(sample.sweeps for sample in samples),
        score_difference=max(sample.score_difference for sample in samples),
        has_mixed=all(sample.has_mixed for sample in samples),
    )


def _check_frequencies(
    frequencies: Sequence[Sequence[float]] | None, questionnaire: Questionnaire
) -> list[FloatArray]:
    given = [row[3] for row in _HOUSING_SURVEY] if frequencies is None else frequencies
    if len(given) != questionnaire.n_questions:
        raise InvalidProblemError(
            f"frequencies: expected {questionnaire.n_questions} questions, received {len(given)}."
        )
    shares = []
    for question, row in zip(questionnaire.questions, given, strict=True):
        share = np.asarray(row, dtype=np.float64)
        if share.shape != (question.n_levels,) or not (share >= 0).all() or share.sum() <= 0:
            raise InvalidProblemError(
                f"{question.name}: expected {question.n_levels} shares of at least 0."
            )
        shares.append(share / share.sum())
    return shares


def _draw_answers(share: FloatArray, students: int, rng: np.random.Generator) -> IntArray:
    """Return answers in fixed proportions (largest remainders), shuffled."""
    exact = share * students
    counts = np.floor(exact).astype(np.int64)
    short = students - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:short]] += 1
    return rng.permutation(np.repeat(np.arange(len(share)), counts))


def _draw_genders(students: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Return about as many F as M, both even in number."""
    women = 2 * ((students + 2) // 4)
    column = np.array(["F"] * women + ["M"] * (students - women))
    return tuple(str(x) for x in rng.permutation(column))
