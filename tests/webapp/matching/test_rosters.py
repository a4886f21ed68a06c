"""A year that was imported as a roster is learned from with all its rooms, and checked on them."""

import numpy as np
import pytest

from engine import load_roommate_model, train_roommates
from tests.webapp.factories.university import STUDENTS, Past, run_waiting
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.services.cohorts import cohort_set_rooms
from webapp.matching.services.learning import model_learn


def house(cohort: Cohort, size: int) -> np.ndarray:
    """Put students into rooms of one size, in the order of their numbers."""
    rooms = [(f"R{start}", list(range(start, start + size))) for start in range(0, STUDENTS, size)]
    cohort_set_rooms(cohort=cohort, rooms=rooms)
    cohort.refresh_from_db()
    return np.repeat(np.arange(len(rooms)), size)


@pytest.mark.parametrize("size", [2, 4])
def test_rooms_are_learned_from_as_the_engine_learns(
    bob: User, past: Past, returning: Cohort, size: int
) -> None:
    returning.past_pairs.all().delete()
    room = house(returning, size)
    assert returning.n_pairs == STUDENTS // size * size * (size - 1) // 2
    model = model_learn(user=bob, name="By rooms", cohorts=[returning], ridge=10.0)
    (job,) = run_waiting()
    job.refresh_from_db()
    assert job.state == "succeeded", job.error
    survey = past.university.cohorts[0].survey
    alone = train_roommates([(survey, room)], ridge=10.0, relative_gap=1e-4)
    found = load_roommate_model(model.path)
    np.testing.assert_allclose(found.theta, alone.model.theta, atol=2e-3)


def test_a_year_of_rooms_checks_a_model(bob: User, returning: Cohort, later_year: Cohort) -> None:
    later_year.past_pairs.all().delete()
    house(later_year, 4)
    model = model_learn(
        user=bob, name="Checked", cohorts=[returning], check_on=later_year, ridge=10.0
    )
    run_waiting()
    run_waiting()  # its check is a job of its own
    model.refresh_from_db()
    assert 0.0 <= model.findings["auc"] <= 1.0
