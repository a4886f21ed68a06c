"""Years learned by the barrier method, weights and marginals together."""

import numpy as np
import pytest

from benchmarks.hunts.years import make_year, questions, random_answers
from engine.core.errors import StoppedError
from engine.core.progress import never_stop
from engine.crf.survey_features import make_survey_features
from engine.learning.roommates.solvers import may_learn_inside, solve_roommates
from engine.solvers.barrier import solve_by_barrier
from engine.solvers.control import Callbacks, Limits
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.survey import SurveyStructure
from engine.structures.survey_barrier import SurveyPolytope


def year_of(n_students, n_questions, seed):
    """Return a year whose pairs agree on the first three questions, mostly."""
    rng = np.random.default_rng(seed)
    asked = questions((5,) * n_questions)
    answers = random_answers(n_students, asked, rng)
    left, pairs = list(rng.permutation(n_students)), []
    while left:
        i = left.pop()
        apart = np.abs(answers[left, :3] - answers[i, :3]).sum(axis=1) + rng.gumbel(size=len(left))
        pairs.append((i, left.pop(int(apart.argmin()))))
    return make_year(answers, np.array(pairs), asked)


def structures_of(years, rho):
    features = make_survey_features([survey for survey, _ in years])
    return [SurveyStructure(survey, pairs, features, rho) for survey, pairs in years]


def bounds_of(structures, ridge, accuracy):
    """Return the upper and the lower bound, both the best of all examined points."""
    found = []
    polytope = SurveyPolytope(structures, ridge, accuracy, never_stop)
    solve_by_barrier(polytope, on_solution=found.append)
    return min(-one.value for one in found), max(-one.upper_bound for one in found)


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_bounds_agree_with_the_solve_in_theta(rho):
    structures = structures_of([year_of(16, 3, 0), year_of(12, 3, 1)], rho)
    known = ThetaAscent(structures, 0.3, Limits(1e-7)).solve()
    upper, lower = bounds_of(structures, 0.3, 1e-6)
    assert lower <= known.objective + 1e-9
    assert known.lower_bound <= upper + 1e-9
    assert upper - lower <= 1e-6 * max(abs(lower), 1.0)


def test_kinks_at_little_ridge_are_closed():
    """The solve in theta alone ended at 6e-2 of a nat: nearly every pair is certain."""
    structures = structures_of([year_of(60, 12, 0)], 1.0)
    assert may_learn_inside(structures)
    upper, lower = bounds_of(structures, 0.01, 1e-4)
    assert 0.0 <= upper - lower <= 1e-4


def test_training_with_more_weights_than_students_says_that_the_barrier_answered():
    year = year_of(60, 28, 0)
    result = solve_roommates(
        [year],
        make_survey_features([year[0]]),
        ridge=0.01,
        rho=1.0,
        solver="auto",
        limits=Limits(1e-4),
        callbacks=Callbacks(),
        rng=np.random.default_rng(0),
    )
    assert result.is_certified
    assert result.relative_gap <= 1e-4
    assert result.inner_methods == ("barrier",)


def test_a_stop_within_the_barrier_method_is_obeyed():
    polytope = SurveyPolytope(structures_of([year_of(16, 3, 0)], 1.0), 0.3, 1e-6, never_stop)
    with pytest.raises(StoppedError):
        solve_by_barrier(polytope, should_stop=lambda: True)


def test_fewer_weights_than_students_are_left_to_the_solve_in_theta():
    assert not may_learn_inside(structures_of([year_of(100, 3, 0)], 1.0))


def test_odd_sets_join_on_the_way_back_not_at_the_start():
    """The search started again with every odd set and stopped too early: 98 systems."""
    structures = structures_of([year_of(100, 12, 0)], 1.0)
    found = solve_by_barrier(SurveyPolytope(structures, 0.01, 1e-4, never_stop))
    assert len(found.state.member) > 0
    assert found.gap <= 1e-4
    assert found.steps <= 60


def test_a_search_cut_short_has_reported_weights():
    """No odd set is examined until the search is central, which takes a dozen steps."""
    structures = structures_of([year_of(60, 12, 0)], 1.0)
    steps, found = iter(range(100)), []
    polytope = SurveyPolytope(structures, 0.01, 1e-4, never_stop)
    with pytest.raises(StoppedError):
        solve_by_barrier(polytope, (), lambda: next(steps) >= 6, found.append)
    assert [one.steps for one in found] == [5]
    zero = structures[0].maximise(np.zeros(structures[0].features.n_features), None, 1e-3)
    assert found[0].upper_bound < 0.5 * zero.log_partition
