"""A placement that the solver made, of the campus and cohort of the housing tests."""

import pytest

from tests.webapp.housing.conftest import (  # noqa: F401 - fixtures used by the tests
    campus,
    first_years,
    learned,
    past,
    returning,
)
from tests.webapp.matching.conftest import run_waiting
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import BuildingList, Placement
from webapp.housing.rules import PlacementRules
from webapp.housing.services.placements import placement_create
from webapp.matching.models import LearnedModel


@pytest.fixture
def placement(
    bob: User,
    first_years: Cohort,  # noqa: F811
    campus: BuildingList,  # noqa: F811
    learned: LearnedModel,  # noqa: F811
) -> Placement:
    rules = PlacementRules(designation="Gender", same=("Gender",))
    made = placement_create(
        user=bob, name="P", cohort=first_years, buildings=campus, model=learned, rules=rules
    )
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    made.refresh_from_db()
    return made
