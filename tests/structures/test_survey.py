"""The Hessian estimate shapes steps only, but it should point the right way."""

import numpy as np
import pytest

from engine.crf.questionnaire import Question, Questionnaire
from engine.crf.survey import Survey
from engine.crf.survey_features import make_survey_features
from engine.solvers.control import Limits
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures import survey as survey_structure
from engine.structures.survey import SurveyStructure
from tests.learning.roommate_cohorts import random_cohorts, simulated_years


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


def test_an_answer_outside_the_matching_polytope_is_not_called_feasible():
    """Three and three students of two kinds who avoid each other: degrees alone allow triangles."""
    kinds = Questionnaire((Question("Kind", "binary", ("A", "B")),))
    answers = np.array([[0]] * 3 + [[1]] * 3, dtype=np.int16)
    survey = Survey(tuple("abcdef"), kinds, answers)
    features = make_survey_features([survey])
    problem = SurveyStructure(survey, np.array([(0, 1), (3, 4), (2, 5)]), features, 1.0)
    theta = np.zeros(features.n_features)
    assert problem.maximise(theta, None, 1e-9).is_feasible
    theta[0] = -12.0
    solution = problem.maximise(theta, None, 1e-9)
    assert not solution.is_feasible
    best_with_odd_sets = theta[0] * 1.0  # at least one pair must mix the kinds
    assert solution.log_partition > best_with_odd_sets + 3.0
