"""Needs of a cohort's file count in every placement, and a placement without them says so."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from engine.tabular.choices import Choices, Role
from tests.webapp.factories.campus import RULES
from tests.webapp.factories.programs import Program
from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.services.drafts import draft_create, draft_update
from webapp.cohorts.services.imports import draft_import
from webapp.housing.forms import default_rules
from webapp.housing.models import BuildingList, Placement
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.needs import uncounted_needs
from webapp.housing.services.placements import placement_create
from webapp.matching.models import LearnedModel

ClientOf = Callable[[User], Client]
COLUMN = "Accessible room"
BUTTON = "Count them and place again"


@pytest.fixture
def needy(first_years: Cohort, campus: BuildingList) -> Cohort:
    """The first-years, of whom two have needs that one double of women and one of men meet."""
    first_years.constraints = ["Gender", COLUMN]
    first_years.needs = [COLUMN]
    first_years.save()
    for gender in ("F", "M"):
        room = campus.rooms.filter(designation=gender).last()
        room.meets = ["ground floor"]
        room.save()
        student = first_years.students.filter(attributes__Gender=gender).last()
        student.attributes = {**student.attributes, COLUMN: "Ground floor"}
        student.save()
    return first_years


@pytest.fixture
def without_needs(
    bob: User, needy: Cohort, campus: BuildingList, learned: LearnedModel
) -> Placement:
    """A placement under rules that name no column of needs."""
    made = placement_create(
        user=bob, name="P", cohort=needy, buildings=campus, model=learned, rules=RULES
    )
    run_waiting()
    return Placement.objects.get(pk=made.pk)


def test_they_are_ticked_on_place_a_cohort(
    bob: User,
    needy: Cohort,
    campus: BuildingList,
    learned: LearnedModel,
    client_of: ClientOf,
) -> None:
    assert default_rules(needy).needs == (COLUMN,)
    page = Page(client_of(bob).get(f"/placements/new/?cohort={needy.pk}"))
    (need,) = page.every("checkbox", COLUMN)  # roommates need not agree in a need
    assert (need.value, need.is_checked) == (COLUMN, True)
    assert need.element.get("name") == "needs"


def test_the_page_says_which_needs_do_not_count_and_counts_them(
    bob: User, without_needs: Placement, client_of: ClientOf
) -> None:
    client = client_of(bob)
    address = f"/placements/{without_needs.pk}/"
    notice = Page(client.get(address)).one("region", "Needs that do not count")
    assert notice.says("2 students have needs that this placement does not count")
    assert notice.has("button", BUTTON)
    client.post(f"{address}count-needs/")
    assert not Page(client.get(address)).has("button", BUTTON), "it is being computed"
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    placement = Placement.objects.get(pk=without_needs.pk)
    version = placement.versions.order_by("-number").first()
    assert version is not None
    assert version.outcome["needs"] == [2, 2]
    assert not Page(client.get(address)).has("button", BUTTON), "a version that counts them waits"
    client.post(f"{address}versions/{version.number}/discard/")
    assert Page(client.get(address)).has("button", BUTTON), "the rooms of now do not count them"


def test_only_staff_of_the_organisation_count_them(
    alice: User, mallory: User, without_needs: Placement, client_of: ClientOf
) -> None:
    address = f"/placements/{without_needs.pk}/"
    page = Page(client_of(alice).get(address))
    assert page.one("region", "Needs that do not count").says("does not count")
    assert not page.has("button", BUTTON)
    assert client_of(alice).post(f"{address}count-needs/").status_code == 403
    assert client_of(mallory).post(f"{address}count-needs/").status_code == 404


def test_programs_are_told_and_count_them(
    bob: User,
    without_needs: Placement,
    program_of: Callable[..., Program],
) -> None:
    program = program_of(bob)
    path = f"/placements/{without_needs.pk}"
    said: Any = program.get(path).json()
    assert said["uncounted_needs"] == {"columns": [COLUMN], "students": 2}
    answer = program.post(f"{path}/compute", {"count_needs": True})
    assert answer.status_code == 202
    assert answer.json()["uncounted_needs"] is None
    run_waiting()
    version = without_needs.versions.order_by("-number").first()
    assert version is not None
    assert PlacementRules.from_json(version.rules).needs == (COLUMN,)


def test_programs_that_send_rules_without_needs_count_them(
    bob: User,
    needy: Cohort,
    campus: BuildingList,
    learned: LearnedModel,
    program_of: Callable[..., Program],
) -> None:
    body = {"cohort": str(needy.pk), "buildings": str(campus.pk), "model": str(learned.pk)}
    sent = {"designation": "Gender", "same": ["Gender"]}
    made = program_of(bob).post("/placements", {**body, "rules": sent}).json()
    assert made["rules"]["needs"] == [COLUMN]
    left_out = program_of(bob).post("/placements", {**body, "rules": {**sent, "needs": []}}).json()
    assert left_out["rules"]["needs"] == []


def test_needs_that_nobody_has_are_not_spoken_of(without_needs: Placement) -> None:
    cohort = without_needs.cohort
    assert uncounted_needs(without_needs) is not None
    for student in cohort.students.all():
        student.attributes = {**student.attributes, COLUMN: "no"}
        student.save()
    assert uncounted_needs(without_needs) is None


def test_needs_of_two_imported_cohorts_are_ticked_for_each(
    bob: User, campus: BuildingList, learned: LearnedModel, client_of: ClientOf
) -> None:
    """A column of needs keeps its use under a name that staff give it."""
    client = client_of(bob)
    made = {}
    for title, name in (("Wheelchair access", "Step-free"), ("Ground floor needed", "")):
        rows = [f"{name}{k},{('Yes', 'No')[k % 2]},{('Yes', '')[k % 2]}" for k in range(8)]
        data = "\n".join([f"Student ID,Tidy,{title}", *rows]).encode()
        draft = draft_create(
            user=bob, filename="s.csv", size=len(data), read=lambda data=data: data
        )
        choices = Choices.from_json(draft.choices)
        assert choices.columns[2].role is Role.NEED
        if name:
            choices = choices.with_column(2, name=name)
            draft = draft_update(draft=draft, choices=choices.to_json(), version=draft.version)
        cohort = draft_import(user=bob, draft=draft, name=title, version=draft.version)
        made[cohort] = name or title
    for cohort, need in made.items():
        assert default_rules(cohort).needs == (need,)
        page = Page(client.get(f"/placements/new/?cohort={cohort.pk}"))
        (box,) = [one for one in page.every("checkbox") if one.element.get("name") == "needs"]
        assert (box.name, box.value, box.is_checked) == (need, need, True)
