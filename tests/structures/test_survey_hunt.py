"""Years that once stayed open: tiny, near-duplicate, clustered; and limits kept within a step."""

import time

import numpy as np
import pytest

from benchmarks.hunts import years
from engine.core.errors import StoppedError
from engine.core.status import Status
from engine.crf.questionnaire import Question, Questionnaire
from engine.crf.survey import Survey
from engine.crf.survey_features import make_survey_features
from engine.datasets.university import simulate_university
from engine.learning.roommates.solvers import solve_roommates
from engine.objectives.learning_dual import make_learning_dual
from engine.solvers.control import Callbacks, Limits
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.survey import SurveyStructure
from tests.patience import busyness

KINDS = ("tiny", "triangles", "cliques", "three and three", "random", "clusters")


def make_answers(kind, levels, questions, rng):
    """Answers (n, questions) of a year of the kind."""
    if kind == "tiny":
        return rng.integers(0, levels, (2 * int(rng.integers(2, 9)), questions))
    if kind == "triangles":
        return np.repeat(rng.integers(0, levels, (2 * int(rng.integers(1, 7)), questions)), 3, 0)
    if kind == "cliques":
        n = 2 * int(rng.integers(3, 12))
        first = np.arange(n) < (int(rng.integers(1, n // 2)) | 1)
        return np.repeat(np.where(first, 0, levels - 1)[:, None], questions, axis=1)
    answers = rng.integers(0, levels, (6 + 2 * int(rng.integers(0, 20)), questions))
    if kind == "three and three":
        answers[:3], answers[3:6] = 0, levels - 1
    if kind == "clusters":
        answers = answers[rng.integers(0, 4, len(answers))]
    return answers


def make_year(seed):
    """A year whose partners are among the most alike."""
    rng = np.random.default_rng(seed)
    levels, questions = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    return pair_up(make_answers(KINDS[seed % 6], levels, questions, rng), levels, rng)


def pair_up(answers, levels, rng):
    """A year of these answers whose partners are among the most alike."""
    names = tuple(str(level) for level in range(levels))
    asked = Questionnaire(
        tuple(Question(f"Q{k}", "ordinal", names) for k in range(answers.shape[1]))
    )
    alone, pairs = list(rng.permutation(len(answers))), []
    while alone:
        own = alone.pop()
        apart = np.abs(answers[alone] - answers[own]).sum(axis=1) + rng.random(len(alone))
        pairs.append(sorted((own, alone.pop(int(np.argmin(apart))))))
    ids = tuple(f"s{k}" for k in range(len(answers)))
    return Survey(ids, asked, answers.astype(np.int16)), np.array(sorted(pairs))


@pytest.mark.parametrize("ridge", [100.0, 1.0, 0.01])
@pytest.mark.parametrize("seed", range(12))
def test_every_year_is_certified(seed, ridge):
    survey, pairs = make_year(seed)
    rho = 0.5 if seed % 4 == 3 else 1.0
    problem = SurveyStructure(survey, pairs, make_survey_features([survey]), rho)
    result = ThetaAscent([problem], ridge, Limits(1e-4, max_iterations=100)).solve()
    assert result.status is Status.CONVERGED
    assert result.is_certified


def test_a_year_of_near_duplicates_is_certified():
    """Dozens of odd sets bind at once: 106 students ended at a gap of 13 after 8 seconds."""
    rng = np.random.default_rng(5)
    answers = rng.integers(0, 5, (20, 5))[rng.integers(20, size=80)]
    where = rng.integers(5, size=80)
    answers[np.arange(80), where] = np.clip(
        answers[np.arange(80), where] + rng.integers(-1, 2, size=80), 0, 4
    )
    survey, pairs = pair_up(answers, 5, rng)
    problem = SurveyStructure(survey, pairs, make_survey_features([survey]), 1.0)
    result = ThetaAscent([problem], 0.1, Limits(1e-4, max_iterations=60)).solve()
    assert result.status is Status.CONVERGED
    assert result.is_certified


@pytest.mark.parametrize(
    ("kind", "seed", "ridge"),
    [("3+3+many", 3, 0.01), ("near-duplicates", 1, 0.1), ("near-duplicates", 2, 10.0)],
)
def test_the_hunt_finds_no_exception_where_it_found_some(kind, seed, ridge):
    """They stood still where odd sets that cross were held together."""
    rng = np.random.default_rng([sorted(years.KINDS).index(kind), seed])
    result = years.learn(years.KINDS[kind](rng), ridge, 1e-4, 600.0)
    assert not years.is_exception(result, 1e-4, 600.0)


def test_odd_sets_that_take_turns_are_let_go_one_at_a_time():
    """Two sets were let go together, one was needed: the same six rounds, again and again.

    Each step then started again from inside the polytope: 9 processor seconds, 760 systems a step.
    """
    rng = np.random.default_rng([sorted(years.KINDS).index("near-duplicates"), 258])
    result = years.learn(years.near_duplicates(rng), 0.01, 1e-4, 600.0)
    assert result.is_certified
    assert result.relative_gap <= 1e-4
    assert result.oracle_calls <= 600


def test_learning_goes_on_from_inside_where_the_way_stood_still():
    """No step was solved but roughly, from inside, and the next one began where this one had.

    The gap was .049 after 18 steps, 56 processor seconds, 7,000 systems.
    """
    rng = np.random.default_rng([sorted(years.KINDS).index("near-duplicates"), 295])
    result = years.learn(years.near_duplicates(rng), 0.01, 1e-4, 600.0)
    assert result.is_certified
    assert result.relative_gap <= 1e-4
    assert result.oracle_calls <= 1_200


def test_a_year_whose_pairs_become_sure_on_the_way_is_certified_in_a_few_steps():
    """Where every pair is sure nothing curves: another point's Hessian gave steps of .5 %."""
    year = years.twenty_four(np.random.default_rng([8, 0]))
    problem = SurveyStructure(*year, make_survey_features([year[0]]), 1.0)
    result = ThetaAscent([problem], 0.01, Limits(1e-4, max_iterations=40)).solve()
    assert result.status is Status.CONVERGED
    assert result.is_certified


def test_a_time_limit_is_kept_within_a_step(monkeypatch):
    """A step of many sweeps once overran its limit by 9 seconds; the weights so far are kept."""
    survey, pairs = make_year(4)
    problem = SurveyStructure(survey, pairs, make_survey_features([survey]), 1.0)
    first = problem.maximise(np.zeros(len(problem.observed)), None, 1e-6)

    def endless(self, theta, state, accuracy):
        if state is None:
            return first
        while not self.should_stop():
            time.sleep(0.01)
        raise StoppedError("Cancelled.")

    monkeypatch.setattr(SurveyStructure, "maximise", endless)
    started = time.perf_counter()
    result = ThetaAscent([problem], 1.0, Limits(1e-9, max_seconds=0.5)).solve()
    assert result.status is Status.TIME_LIMIT
    assert time.perf_counter() - started < 5.0 * busyness()
    assert np.isfinite(result.relative_gap)


@pytest.mark.parametrize("size", [0.1, 3.0])
def test_the_best_vertex_lies_below_the_maximum_with_entropy(size):
    """A step is given up by the vertex alone: a theta that it rules out is never the better one."""
    survey, pairs = make_year(4)
    problem = SurveyStructure(survey, pairs, make_survey_features([survey]), 1.0)
    theta = size * np.random.default_rng(1).normal(size=len(problem.observed))
    best = float(theta @ problem.vertex_statistics(theta))
    solution = problem.maximise(theta, None, 1e-9)
    assert best >= float(theta @ problem.observed) - 1e-9
    assert best <= solution.log_partition + 1e-9
    assert solution.log_partition <= best + solution.entropy + 1e-6 * abs(best)


def test_a_step_that_the_best_vertices_rule_out_is_shortened_unsolved():
    """With little ridge the first steps led to scores of hundreds of nats, for seconds each."""
    survey, pairs = make_year(4)
    problem = SurveyStructure(survey, pairs, make_survey_features([survey]), 1.0)
    ascent, dual = ThetaAscent([problem], 1e-4), make_learning_dual([problem.observed], 1e-4)
    zero, away = np.zeros(len(problem.observed)), 1e3 * problem.observed
    start = problem.maximise(zero, None, 1e-9)
    lower = dual.evaluate(zero, [start]).lower
    assert ascent._gradient_beyond(dual, zero, lower) is None
    beyond = ascent._gradient_beyond(dual, away, lower)
    assert beyond is not None
    assert float(away @ beyond) < 0.0  # back to where the likelihood is larger


def test_a_gap_that_proofs_cannot_close_ends_as_stalled():
    """With theta exact after .3 s, Frank-Wolfe stood still at a gap of 6e-9 until it was killed."""
    drawn = simulate_university(100, 1, rng=np.random.default_rng(0), strength=64.0)
    result = solve_roommates(
        [(drawn.cohorts[0].survey, drawn.cohorts[0].pairs)],
        make_survey_features([drawn.cohorts[0].survey]),
        ridge=1.0,
        rho=1.0,
        solver="auto",
        limits=Limits(1e-9, max_seconds=60.0),
        callbacks=Callbacks(),
        rng=np.random.default_rng(0),
    )
    assert result.status is Status.STALLED
    assert result.is_certified
    assert 1e-9 < result.relative_gap <= 1e-7


def test_kinks_of_many_features_are_found_without_curvature(monkeypatch):
    """Steps across kinks gained a tenth each, and each asked for the curvature: 20 times."""
    calls = []
    of_structure = SurveyStructure.curvature
    monkeypatch.setattr(
        SurveyStructure, "curvature", lambda *parts: calls.append(1) or of_structure(*parts)
    )
    rng = np.random.default_rng(0)
    asked = years.questions((9,) * 12)
    answers = years.random_answers(16, asked, rng)
    year = years.make_year(answers, years.pair_alike(answers, rng, 1.0), asked)
    problem = SurveyStructure(*year, make_survey_features([year[0]]), 1.0)
    result = ThetaAscent([problem], 0.01, Limits(1e-4, max_iterations=60)).solve()
    assert result.status is Status.CONVERGED
    assert result.is_certified
    assert len(calls) <= 10
