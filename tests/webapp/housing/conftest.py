"""The cohort of the simulated university, housed on the small campus."""

import pytest

from tests.webapp.factories.campus import place_in_rooms, reader_of
from tests.webapp.factories.university import Past, cohort_to_house
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import BuildingList, Placement
from webapp.housing.services.requests import requests_import
from webapp.matching.models import LearnedModel


@pytest.fixture
def first_years(bob: User, past: Past) -> Cohort:
    """The cohort to be housed, with ids as a housing system writes them."""
    return cohort_to_house(bob, past)


@pytest.fixture
def placement(
    bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel
) -> Placement:
    """The first-years in rooms, with a must and a wish."""
    requests_import(
        user=bob,
        cohort=first_years,
        **reader_of("student,wants\nN000,N003\nN003,N000\nN001,N002\n"),
    )
    return place_in_rooms(bob, first_years, campus, learned)
