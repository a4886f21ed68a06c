"""A placement that the solver made, of the campus and cohort of the housing tests."""

import pytest

from tests.webapp.factories.campus import place_in_rooms
from tests.webapp.factories.university import Past, cohort_to_house
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import BuildingList, Placement
from webapp.matching.models import LearnedModel


@pytest.fixture
def first_years(bob: User, past: Past) -> Cohort:
    """The cohort to be housed, with ids as a housing system writes them."""
    return cohort_to_house(bob, past)


@pytest.fixture
def placement(
    bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel
) -> Placement:
    return place_in_rooms(bob, first_years, campus, learned)
