"""A small cohort with names, in rooms of a published placement, without any computation."""

import pytest

from tests.webapp.factories.students import imported, place_students
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import Placement


@pytest.fixture
def cohort(bob: User) -> Cohort:
    return imported(bob, "First-years")


@pytest.fixture
def placement(bob: User, cohort: Cohort) -> Placement:
    """José and Zoë share Baker 12 and asked for each other; Jose lives alone, Ann has no bed."""
    return place_students(bob, cohort)
