"""A second placement of a cohort is offered a name of its own."""

from collections.abc import Callable

import pytest
from django.test import Client

from tests.webapp.factories.university import Past, cohort_to_house
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.common.free_names import LONGEST_NAME, free_name
from webapp.housing.models import BuildingList
from webapp.housing.pairs.placing import pairs_create
from webapp.housing.rules import PlacementRules
from webapp.housing.services.placements import placement_copy, placement_create
from webapp.matching.models import LearnedModel


@pytest.fixture
def first_years(bob: User, past: Past) -> Cohort:
    """The cohort to be housed, with ids as a housing system writes them."""
    return cohort_to_house(bob, past)


def test_names_go_on_counting_and_fit_their_column(bob: User) -> None:
    def add(name: str) -> None:
        BuildingList.objects.create(organisation=bob.organisation, created_by=bob, name=name)

    names, long = BuildingList.objects.all(), "ä" * LONGEST_NAME
    for free in ("Autumn", "Autumn (2)", "Autumn (3)"):
        assert free_name("Autumn", names) == free
        add(free)
    assert free_name("Autumn (2)", names) == "Autumn (4)"
    assert free_name("autumn", names) == "autumn"
    assert free_name("Hall (2026)", names) == "Hall (2026)"
    add(long)
    assert len(free_name(long, names)) <= LONGEST_NAME


def test_pages_offer_what_is_free(
    client_of: Callable[[User], Client],
    bob: User,
    first_years: Cohort,
    campus: BuildingList,
    learned: LearnedModel,
) -> None:
    client, cohort = client_of(bob), first_years
    rules = PlacementRules(designation="Gender", same=("Gender",))
    made = {"user": bob, "name": " ", "cohort": cohort, "model": learned}
    names = [cohort.name, *(f"{cohort.name} ({k})" for k in range(2, 5))]
    for number, offered in enumerate(names):
        page = Page(client.get("/placements/new/", {"cohort": cohort.pk}))
        assert page.field("Name of the placement").value == offered
        if number % 2:
            placement = pairs_create(**made, same=["Gender"])
        else:
            placement = roomed = placement_create(**made, buildings=campus, rules=rules)
        assert placement.name == offered
    copy = placement_copy(user=bob, placement=roomed, rules=rules)
    assert copy.name == f"{cohort.name} (5)"
