"""A checkpoint that another solver or other data left is not gone on from, and harms nobody."""

import numpy as np
import pytest

from engine.core.checkpoint import FileCheckpoint
from engine.crf.survey_features import make_survey_features
from engine.objectives.learning_dual import make_learning_dual
from engine.solvers.block_orders import AllTogether, ShuffledOrder
from engine.solvers.control import Callbacks, Limits
from engine.solvers.frank_wolfe import FrankWolfe
from engine.solvers.theta_ascent import ThetaAscent
from engine.structures.survey import SurveyStructure
from tests.learning.roommates.cohorts import random_cohorts

RIDGE = 4.0
LIMITS = Limits(1e-12, max_iterations=6)
KINDS = ("theta", "batch", "block")


@pytest.fixture(autouse=True)
def _save_every_step(monkeypatch):
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)


def solver(kind, callbacks, cohorts, ridge=RIDGE):
    features = make_survey_features([survey for survey, _ in cohorts])
    structures = [SurveyStructure(s, p, features, 1.0) for s, p in cohorts]
    if kind == "theta":
        return ThetaAscent(structures, ridge, LIMITS, callbacks)
    dual = make_learning_dual([s.observed for s in structures], ridge)
    order = AllTogether() if kind == "batch" else ShuffledOrder()
    return FrankWolfe(structures, dual, order, limits=LIMITS, callbacks=callbacks)


def expect_a_new_start(kind, checkpoint, cohorts):
    fresh = solver(kind, Callbacks(), cohorts).solve()
    after = solver(kind, Callbacks(checkpoint=checkpoint), cohorts).solve()
    assert after.iterations == fresh.iterations
    assert np.array_equal(after.theta, fresh.theta)


@pytest.mark.parametrize(("mine", "theirs"), [(a, b) for a in KINDS for b in KINDS if a != b])
def test_the_checkpoint_of_another_solver_is_left_alone(mine, theirs, tmp_path):
    checkpoint = FileCheckpoint(tmp_path / "state.npz")
    solver(theirs, Callbacks(checkpoint=checkpoint), random_cohorts(10)).solve()
    assert checkpoint.load() is not None
    expect_a_new_start(mine, checkpoint, random_cohorts(10))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "others",
    [random_cohorts(10, 3), random_cohorts(12), random_cohorts(10)[::-1][:1] * 2],
    ids=["more cohorts", "other students", "other pairs"],
)
def test_the_checkpoint_of_other_data_is_left_alone(kind, others, tmp_path):
    checkpoint = FileCheckpoint(tmp_path / "state.npz")
    solver(kind, Callbacks(checkpoint=checkpoint), others).solve()
    assert checkpoint.load() is not None
    expect_a_new_start(kind, checkpoint, random_cohorts(10))


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_something_else_is_left_alone(kind, tmp_path):
    checkpoint = FileCheckpoint(tmp_path / "state.npz")
    checkpoint.save({"theta": np.zeros(3), "statistics": np.zeros((2, 3))})
    expect_a_new_start(kind, checkpoint, random_cohorts(10))


@pytest.mark.parametrize("kind", KINDS)
def test_the_checkpoint_of_another_ridge_is_left_alone(kind, tmp_path):
    checkpoint = FileCheckpoint(tmp_path / "state.npz")
    solver(kind, Callbacks(checkpoint=checkpoint), random_cohorts(10), 2 * RIDGE).solve()
    assert checkpoint.load() is not None
    expect_a_new_start(kind, checkpoint, random_cohorts(10))


@pytest.mark.parametrize("kind", ["batch", "block"])
def test_a_resumed_run_makes_no_starts(kind, tmp_path, monkeypatch):
    """They took the room in memory of the points that it goes on from."""
    checkpoint = FileCheckpoint(tmp_path / "state.npz")
    solver(kind, Callbacks(checkpoint=checkpoint), random_cohorts(10)).solve()
    resumed = solver(kind, Callbacks(checkpoint=checkpoint), random_cohorts(10))
    monkeypatch.setattr(
        type(resumed.structures[0]), "start", property(lambda structure: pytest.fail("a start"))
    )
    assert resumed.solve().iterations >= LIMITS.max_iterations
