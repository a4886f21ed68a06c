"""A second placement of a cohort is offered a name of its own."""

from collections.abc import Callable

from django.test import Client

from tests.webapp.housing.conftest import campus, first_years  # noqa: F401 - fixtures
from tests.webapp.matching.conftest import learned, past, returning  # noqa: F401 - fixtures
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.common.free_names import LONGEST_NAME, free_name
from webapp.housing.models import BuildingList
from webapp.housing.pairs.placing import pairs_create
from webapp.housing.rules import PlacementRules
from webapp.housing.services.placements import placement_copy, placement_create
from webapp.matching.models import LearnedModel


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
    first_years: Cohort,  # noqa: F811
    campus: BuildingList,  # noqa: F811
    learned: LearnedModel,  # noqa: F811
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
