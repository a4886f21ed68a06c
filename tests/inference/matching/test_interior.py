"""The matching polytope from its inside, where ways between solutions end."""

from dataclasses import replace

import numpy as np
import pytest

from engine.crf.survey_features import make_survey_features
from engine.datasets.university import simulate_university
from engine.inference.matching import interior, polytope
from engine.inference.matching.cascade import BarrierPoint
from engine.inference.matching.interior import solve_from_inside
from engine.inference.matching.newton import uniform_point
from engine.inference.matching.odd_sets import EXACT_UP_TO
from engine.structures.survey import SurveyStructure


def make_scores(n_triangles, liking, noise, rng):
    """Nodes in threes that like their own kind: an odd set binds at every three."""
    kind = np.repeat(np.arange(n_triangles), 3)
    drawn = noise * rng.normal(size=(len(kind), len(kind)))
    scores = liking * (kind[:, None] == kind) + (drawn + drawn.T) / 2.0
    np.fill_diagonal(scores, 0.0)
    return scores


def end_ways(monkeypatch):
    """Let no way between solutions arrive."""
    legs = polytope._follow_legs
    monkeypatch.setattr(
        polytope, "_follow_legs", lambda *args: replace(legs(*args), is_solved=False)
    )


def test_the_bound_closes_where_entries_vanish():
    """Entries that vanish left reduced gradients above 0, of which one is enough: 6e-7 stood."""
    scores = make_scores(6, 40.0, 10.0, np.random.default_rng(1))
    found = solve_from_inside(scores, np.ones(18), 1e-9, exact_up_to=EXACT_UP_TO)
    assert found.proof.holds
    assert found.upper_bound >= found.value
    assert found.gap <= 1e-9


def test_sets_known_from_before_save_the_way_to_them():
    scores = make_scores(10, 10.0, 10.0, np.random.default_rng(0))
    cold = solve_from_inside(scores, np.ones(30), 1e-9, exact_up_to=EXACT_UP_TO)
    sets = cold.point.sets
    warm = solve_from_inside(scores, np.ones(30), 1e-9, exact_up_to=EXACT_UP_TO, known=sets)
    assert warm.steps <= 0.6 * cold.steps
    assert warm.value == pytest.approx(cold.value, abs=1e-6)


def test_inside_is_the_optimum_that_the_way_leads_to(monkeypatch):
    scores, rho = make_scores(4, 6.0, 1.0, np.random.default_rng(5)), np.ones(12)
    wanted = polytope.solve_over_polytope(uniform_point(12, rho), scores, rho)
    assert not wanted.is_from_inside
    end_ways(monkeypatch)
    found = polytope.solve_over_polytope(uniform_point(12, rho), scores, rho)
    assert found.is_from_inside
    assert found.proof.holds
    assert found.upper_bound >= wanted.value
    assert found.upper_bound - found.value < 1e-7
    assert np.abs(found.tau - wanted.tau).max() < 1e-5
    assert {tuple(s) for s in found.point.sets} == {tuple(s) for s in wanted.point.sets}


def test_curvature_from_inside_knows_the_sets_that_bind(monkeypatch):
    """Without them steps were a fraction of what they could be, and there were many."""
    drawn = simulate_university(12, 1, rng=np.random.default_rng(2))
    year, rng = drawn.cohorts[0], np.random.default_rng(0)
    answers = np.repeat(year.survey.answers[:4], 3, axis=0)
    survey = replace(year.survey, answers=answers)
    problem = SurveyStructure(survey, year.pairs, make_survey_features([survey]), 1.0)
    theta = 20.0 * drawn.theta
    way = problem.maximise(theta, None, 1e-9)
    assert way.state.solution.sets
    end_ways(monkeypatch)
    inside = problem.maximise(theta, None, 1e-9)
    assert isinstance(inside.state.solution, BarrierPoint)
    direction = rng.normal(size=len(theta)) * 1e-4
    ahead = problem.maximise(theta + direction, inside.state, 1e-9)
    back = problem.maximise(theta - direction, inside.state, 1e-9)
    change = (ahead.statistics - back.statistics) / 2.0
    expected = problem.information(theta, inside.state) @ direction
    assert np.abs(expected - change).max() <= 1e-3 * np.abs(change).max()


def test_all_odd_cuts_wait_until_the_gap_is_nearly_closed(monkeypatch):
    """With 900 students two thirds of the time went into cuts of points still far off."""
    asked, examine = [], interior.examine_odd_sets

    def listen(tau, *, exact_up_to, should_stop):
        asked.append(exact_up_to)
        return examine(tau, exact_up_to=exact_up_to, should_stop=should_stop)

    monkeypatch.setattr(interior, "examine_odd_sets", listen)
    monkeypatch.setattr(interior, "EXACT_SOON", 4)
    scores = make_scores(6, 10.0, 10.0, np.random.default_rng(1))
    found = solve_from_inside(scores, np.ones(18), 1e-7, exact_up_to=EXACT_UP_TO)
    assert found.proof.holds
    assert found.gap <= 1e-7
    assert asked[-1] == EXACT_UP_TO
    assert asked.count(EXACT_UP_TO) < 0.5 * len(asked)
