"""Small cohorts for tests of learning."""

import numpy as np

from engine.crf.questionnaire import Question, Questionnaire
from engine.crf.survey import Survey
from engine.datasets.university import housing_questionnaire, simulate_university

SMALL = Questionnaire(
    (
        Question("Quiet", "binary", ("No", "Yes")),
        Question("Bedtime", "ordinal", ("Early", "Normal", "Late")),
        Question("Music", "nominal", ("Folk", "Jazz", "Rock")),
    )
)


def random_survey(n, seed=0, *, questionnaire=SMALL, blanks=0.0, prefix="S-", **attributes):
    """Answers drawn evenly; some left blank."""
    rng = np.random.default_rng(seed)
    answers = np.stack(
        [rng.integers(q.n_levels, size=n) for q in questionnaire.questions], axis=1
    ).astype(np.int16)
    answers[rng.random(answers.shape) < blanks] = -1
    ids = tuple(f"{prefix}{k:03d}" for k in range(n))
    return Survey(ids, questionnaire, answers, attributes)


def random_pairs(n, seed=0):
    """Everybody in one pair, at random."""
    return np.random.default_rng(seed).permutation(n).reshape(-1, 2)


def random_cohorts(n, count=2, **options):
    """Cohorts with random pairs."""
    return [(random_survey(n, k, **options), random_pairs(n, k)) for k in range(count)]


def simulated_years(students, years, seed=1, **options):
    """Years of a simulated university as (survey, pairs)."""
    university = simulate_university(students, years, rng=np.random.default_rng(seed), **options)
    return [(year.survey, year.pairs) for year in university.cohorts], university


def standard_form():
    """Two binary and twelve five-level questions."""
    return housing_questionnaire()
