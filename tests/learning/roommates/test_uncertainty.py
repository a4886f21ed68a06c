"""Intervals of weights hold, years by themselves, drift, and what questions tell."""

import numpy as np
import pytest

from engine import InvalidProblemError, StoppedError, question_weights, simulate_university
from engine.crf.survey import Survey
from engine.crf.survey_features import centre_twice, make_survey_features
from engine.datasets import sample_matching
from engine.learning.roommates.model import make_roommate_model
from engine.learning.roommates.question_information import question_information
from engine.learning.roommates.uncertainty import (
    effect_contrast,
    estimate_by_year,
    estimate_weights,
    refit_effects,
)
from engine.structures.survey import SurveyStructure
from tests.learning.roommates.cohorts import SMALL, random_pairs, random_survey, simulated_years


def small_years(theta, count, n=80, seed=0):
    """Years of three questions whose pairs follow theta."""
    rng = np.random.default_rng(seed)
    years = []
    for k in range(count):
        survey = random_survey(n, 100 * seed + k)
        features = make_survey_features([survey])
        years.append((survey, sample_matching(features.scores(survey, theta), rng=rng).pairs))
    return years


def true_theta(*weights):
    """Distance weights of the three questions."""
    features = make_survey_features([random_survey(40)])
    theta = np.zeros(features.n_features)
    theta[features.feature_offsets[:-1]] = weights
    return theta


@pytest.mark.parametrize(("strength", "count"), [(8.0, 8), (24.0, 5)])
def test_intervals_hold_the_truth_as_often_as_they_say(strength, count):
    """Of 95 % intervals of eight simulated universities, 112 in all, 106 +- 2.3 should hold."""
    apart = []
    for seed in range(count):
        data, university = simulated_years(60, 1, seed=seed, strength=strength)
        truth = university.theta[university.features.feature_offsets[:-1]]
        effects = estimate_weights(data).effects()
        apart += [(e.effect - t) / e.standard_error for e, t in zip(effects, truth, strict=True)]
    held = float((np.abs(apart) <= 1.96).mean())
    assert held >= 0.88
    assert 0.75 <= float(np.std(apart)) <= 1.2


def test_the_exact_hessian_is_the_derivative_of_the_statistics():
    for strength, blanks in ((8.0, 0.1), (64.0, 0.0)):
        data, university = simulated_years(40, 1, seed=2, strength=strength, blank_share=blanks)
        features = make_survey_features([data[0][0]])
        structure = SurveyStructure(*data[0], features, 1.0)
        theta = np.zeros(features.n_features)
        theta[features.feature_offsets[:-1]] = university.theta[
            university.features.feature_offsets[:-1]
        ]
        state = structure.maximise(theta, None, 1e-10).state
        hessian = structure.information(theta, state)
        along = np.random.default_rng(0).normal(size=len(theta))
        ends = [structure.maximise(theta + d * along, state, 1e-11) for d in (1e-4, -1e-4)]
        slope = (ends[0].statistics - ends[1].statistics) / 2e-4
        assert hessian @ along == pytest.approx(slope, abs=1e-5 * np.abs(slope).max())


def test_refits_spread_as_the_curvature_says():
    years = small_years(true_theta(-0.8, -0.4, -0.6), 1, n=120, seed=3)
    estimate = estimate_weights(years)
    refits = refit_effects(estimate, years, 12, rng=np.random.default_rng(0))
    ratio = refits.std(axis=0, ddof=1) / [e.standard_error for e in estimate.effects()]
    assert (ratio > 0.5).all()
    assert (ratio < 1.7).all()


def test_refits_draw_rooms_of_the_same_sizes():
    survey = random_survey(30)
    rooms = np.repeat(np.arange(10), 3)
    estimate = estimate_weights([(survey, rooms)])
    assert estimate.n_pairs == 15
    assert refit_effects(estimate, [(survey, rooms)], 2, rng=np.random.default_rng(0)).shape == (
        2,
        3,
    )


def test_a_drift_is_found_and_none_is_not_invented():
    moving = [
        small_years(true_theta(-0.8, -0.3 * k, 0.0), 1, n=200, seed=20 + k)[0] for k in range(4)
    ]
    found = estimate_by_year(moving, at=[2021, 2022, 2023, 2024])
    low, high = found.drift[1].interval
    assert low <= -0.3 <= high < 0.0
    assert found.drift[1].p_value < 0.05
    low, high = found.drift[0].interval
    assert low <= 0.0 <= high
    assert len(found.years) == 4
    assert found.at == (2021.0, 2022.0, 2023.0, 2024.0)


def test_the_effect_does_not_see_what_belongs_to_one_answer_alone():
    """Scores may gain a number per answer without any matching's probability changing."""
    features = make_survey_features([random_survey(40)])
    theta = true_theta(-0.8, -0.4, -0.6)
    share = np.asarray(features.frequencies[1])
    assert effect_contrast(features, 1) @ theta == pytest.approx(-0.4)
    own = np.array([0.3, -1.0, 2.0])
    assert centre_twice(np.add.outer(own, own), share) == pytest.approx(0.0, abs=1e-12)
    shifted = theta.copy()
    start, upper = int(features.feature_offsets[1]), np.triu_indices(3)
    shifted[start + 1 : start + 7] += np.add.outer(own, own)[upper]
    assert effect_contrast(features, 1) @ shifted == pytest.approx(-0.4)
    rows = question_weights(make_roommate_model(shifted, features, 1.0, 1.0))
    plain = question_weights(make_roommate_model(theta, features, 1.0, 1.0))
    assert rows[1].step_effect == pytest.approx(-0.4)
    assert [r.importance for r in rows] == pytest.approx([r.importance for r in plain])


def test_a_question_that_all_answer_alike_cannot_be_told():
    survey = random_survey(40)
    answers = survey.answers.copy()
    answers[:, 1] = 0
    same = Survey(survey.ids, SMALL, answers)
    effect = estimate_weights([(same, random_pairs(40))]).effects()[1]
    assert (effect.effect, effect.standard_error, effect.p_value) == (0.0, np.inf, 1.0)


def test_information_orders_the_questions():
    theta = true_theta(-2.0, -0.2, 0.0)
    survey = random_survey(60)
    model = make_roommate_model(theta, make_survey_features([survey]), 1.0, 1.0)
    told = question_information(model, survey)
    assert [row.rank for row in told] == [1, 2, 3]
    assert told[0].alone == pytest.approx(told[0].added)
    assert told[2].alone == pytest.approx(0.0, abs=1e-9)
    everything = sum(row.added for row in told)
    assert everything <= np.log(59)
    assert everything >= max(row.alone for row in told)
    weaker = question_information(model.with_calibration(0.5), survey)
    assert weaker[0].alone < told[0].alone


def test_bad_input_is_refused_and_stopping_stops():
    survey, pairs = random_survey(20), random_pairs(20)
    with pytest.raises(InvalidProblemError, match="at least one past cohort"):
        estimate_weights([])
    with pytest.raises(InvalidProblemError, match="at least 2 pairs"):
        estimate_weights([(survey, pairs[:1])])
    with pytest.raises(InvalidProblemError, match="two years of different times"):
        estimate_by_year([(survey, pairs)])
    with pytest.raises(InvalidProblemError, match="two years of different times"):
        estimate_by_year([(survey, pairs), (survey, pairs)], at=[1, 1])
    with pytest.raises(StoppedError):
        estimate_weights([(survey, pairs)], should_stop=lambda: True)
    university = simulate_university(20, 1, rng=np.random.default_rng(0))
    with pytest.raises(InvalidProblemError):
        estimate_weights(
            [(university.cohorts[0].survey, university.cohorts[0].pairs), (survey, pairs)]
        )
