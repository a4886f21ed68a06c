"""The Hessian estimate shapes steps only, but it should point the right way."""

import numpy as np
import pytest

from engine.crf.questionnaire import Question, Questionnaire
from engine.crf.survey import Survey
from engine.crf.survey_features import make_survey_features
from engine.datasets.university import simulate_university
from engine.solvers.control import Limits
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures import survey as survey_structure
from engine.structures.survey import SurveyStructure
from tests.learning.roommates.cohorts import random_cohorts, simulated_years


@pytest.mark.parametrize("largest_sampled", [600, 0])
@pytest.mark.parametrize("blanks", [0.0, 0.1])
def test_curvature_agrees_with_differences_of_the_gradient(monkeypatch, largest_sampled, blanks):
    monkeypatch.setattr(survey_structure, "DENSE_CURVATURE", largest_sampled)
    survey, pairs = random_cohorts(60, 1, blanks=blanks)[0]
    problem = SurveyStructure(survey, pairs, make_survey_features([survey]), 1.0)
    rng = np.random.default_rng(0)
    theta = 0.1 * rng.normal(size=len(problem.observed))
    state = problem.maximise(theta, None, 1e-10).state
    estimate = problem.curvature(theta, state)
    for _ in range(5):
        direction = rng.normal(size=len(theta))
        up = problem.maximise(theta + 1e-4 * direction, None, 1e-10).statistics
        down = problem.maximise(theta - 1e-4 * direction, None, 1e-10).statistics
        exact = (up - down) @ direction / 2e-4
        assert direction @ estimate @ direction == pytest.approx(exact, rel=0.4)


def test_many_questions_learn_in_a_handful_of_steps(monkeypatch):
    """A sample of pairs once stood in for K^2 entries it could not know: hundreds of seconds."""
    monkeypatch.setattr(survey_structure, "DENSE_CURVATURE", 0)
    years, _ = simulated_years(200, 1)
    problem = SurveyStructure(*years[0], make_survey_features([years[0][0]]), 1.0)
    result = ThetaAscent([problem], 100.0, Limits(1e-4)).solve()
    assert result.status.is_converged
    assert result.iterations <= 8


def two_kinds():
    """Three and three students of two kinds who avoid each other: degrees alone allow triangles."""
    kinds = Questionnaire((Question("Kind", "binary", ("A", "B")),))
    answers = np.array([[0]] * 3 + [[1]] * 3, dtype=np.int16)
    survey = Survey(tuple("abcdef"), kinds, answers)
    features = make_survey_features([survey])
    problem = SurveyStructure(survey, np.array([(0, 1), (3, 4), (2, 5)]), features, 1.0)
    theta = np.zeros(features.n_features)
    theta[0] = -12.0
    return problem, theta


@pytest.mark.parametrize("score", [-12.0, -60.0, -1000.0])
def test_the_optimum_over_the_matching_polytope_is_reached_where_an_odd_set_binds(score):
    """At least one of the pairs mixes the kinds, and the nine that may are alike.

    Under the degree constraints alone e^-score leaves the set: from there it is a long way.
    """
    problem, theta = two_kinds()
    theta[0] = score
    solution = problem.maximise(theta, None, 1e-9)
    assert solution.is_feasible
    value = float(theta @ solution.statistics) + solution.entropy
    assert value <= solution.log_partition <= value + 1e-8 * max(1.0, -value)
    within, across = 1.0 / 3.0, 1.0 / 9.0
    entropy = sum(
        count * ((1 - t) * np.log(1 - t) - t * np.log(t)) for count, t in ((6, within), (9, across))
    )
    assert value == pytest.approx(theta[0] + entropy, abs=1e-4)  # 1e-4: across is above its floor


def test_a_tau_that_is_not_proved_is_mixed_until_it_is():
    problem, theta = two_kinds()
    solution = problem.maximise(theta, None, 1.0)  # far off: the violated set is not held
    assert not solution.is_feasible
    assert solution.is_certified
    statistics, entropy = solution.certified_point
    assert -statistics[0] * 12.0 + entropy <= solution.log_partition
    assert statistics[0] >= 1.0 - 1e-6  # one pair in expectation mixes the kinds


def alike_year(n_students, n_alike, seed):
    """Partners are among the most alike: the sharper, the fewer."""
    rng = np.random.default_rng(seed)
    survey = random_cohorts(n_students, 1)[0][0]
    answers, alone, pairs = survey.answers.astype(float), np.arange(n_students), []
    alone = list(rng.permutation(alone))
    while alone:
        own = alone.pop()
        distance = np.abs(answers[alone] - answers[own]).sum(axis=1)
        other = alone.pop(int(rng.choice(np.argsort(distance, kind="stable")[:n_alike])))
        pairs.append((min(own, other), max(own, other)))
    return survey, np.array(sorted(pairs))


@pytest.mark.parametrize("ridge", [100.0, 1.0])
@pytest.mark.parametrize("n_alike", [40, 3])
def test_years_of_friends_who_are_alike_are_certified_in_a_few_steps(n_alike, ridge):
    """They used to end without a proof of the odd sets, or after thousands of message sweeps."""
    survey, pairs = alike_year(200, n_alike, 1)
    problem = SurveyStructure(survey, pairs, make_survey_features([survey]), 1.0)
    result = ThetaAscent([problem], ridge, Limits(1e-6, max_iterations=25)).solve()
    assert result.status.is_converged
    assert result.is_certified


@pytest.mark.parametrize("strength", [32.0, 64.0])
def test_strong_simulated_years_are_certified_in_a_few_steps(strength):
    year = simulate_university(200, 1, rng=np.random.default_rng(1), strength=strength).cohorts[0]
    features = make_survey_features([year.survey])
    problem = SurveyStructure(year.survey, year.pairs, features, 1.0)
    result = ThetaAscent([problem], 10.0, Limits(1e-6, max_iterations=25)).solve()
    assert result.status.is_converged
    assert result.is_certified
