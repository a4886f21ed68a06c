"""How hard to try for requests: words, estimated effects, and who may see them."""

import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from django.test import Client

from tests.webapp.factories.campus import reader_of
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import Placement
from webapp.housing.rules import PlacementRules, difference_in_words
from webapp.housing.selectors import wish_effects
from webapp.housing.selectors.wish_effects import estimated_strengths, wish_strengths
from webapp.housing.services.requests import requests_import
from webapp.matching.models import LearnedModel

ClientOf = Callable[[User], Client]
HOW_HARD = "How hard to try for requests that count as wishes"
EFFECT = re.compile(r"about (\d+) of (\d+) honoured, costs (?:under )?([\d.]+) %")


@pytest.fixture
def asked(bob: User, first_years: Cohort) -> Cohort:
    """The first-years; eight of them asked for somebody who did not ask for them."""
    ids = [s.original_id for s in first_years.students.order_by("number")]
    lines = [f"{ids[k]},{ids[k + 8]}" for k in range(8)]
    requests_import(
        user=bob, cohort=first_years, **reader_of("student,wants\n" + "\n".join(lines) + "\n")
    )
    return first_years


def address(cohort: Cohort, **sent: object) -> str:
    return f"/cohorts/{cohort.pk}/wish-effects/?{urlencode(sent, doseq=True)}"


def test_each_strength_says_what_it_would_honour(
    asked: Cohort, learned: LearnedModel, bob: User, client_of: ClientOf
) -> None:
    at = address(asked, model=learned.pk, same="Gender", wish="1.0")
    page = Page(client_of(bob).get(at))
    choices = page.every("radio")
    assert [one.value for one in choices] == ["0.2", "1.0", "3.0", "10.0"]
    assert [one.value for one in choices if one.is_checked] == ["1.0"]
    names = [one.name.partition("about ") for one in choices]
    labels = [label for label, *_ in names]
    assert labels == ["A little", "More", "Hard", "Very hard"]
    found = [EFFECT.fullmatch(about + effect) for _, about, effect in names]
    counts = [int(match[1]) for match in found]
    assert counts == sorted(counts)
    assert counts[-1] > 0
    assert {int(match[2]) for match in found} == {8}
    assert page.says("Estimated for rooms of two.")


def test_a_strength_set_by_a_program_stays_to_choose() -> None:
    strengths = wish_strengths(0.75)
    assert [s.label for s in strengths if s.is_chosen] == ["As set: 0.75"]
    assert len(strengths) == 5
    words = difference_in_words(PlacementRules(wish=0.75, preference=0.5))
    assert words["One-sided requests"] == "Wish: worth 0.75"
    assert words["First choice of hall"] == "More"
    assert difference_in_words(PlacementRules())["One-sided requests"] == "Wish: a little"


def test_without_requests_nothing_is_estimated(
    first_years: Cohort, learned: LearnedModel, bob: User, client_of: ClientOf
) -> None:
    page = Page(client_of(bob).get(address(first_years, model=learned.pk)))
    assert page.says("Nobody made a one-sided request.")
    assert page.every("radio")[0].name == "A little"


def test_a_large_cohort_is_estimated_from_a_part_with_everybody_who_asked(
    asked: Cohort, learned: LearnedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wish_effects, "MOST_STUDENTS", 20)
    strengths, _ = estimated_strengths(asked, learned, PlacementRules())
    assert all(EFFECT.fullmatch(strength.effect)[2] == "8" for strength in strengths)


@pytest.mark.parametrize("wish", ["-1", "many", "1e9", "nan"])
def test_a_senseless_strength_is_no_error_of_the_server(
    asked: Cohort, learned: LearnedModel, bob: User, client_of: ClientOf, wish: str
) -> None:
    page = Page(client_of(bob).get(address(asked, model=learned.pk, wish=wish)))
    assert page.says("There is no estimate")


def test_only_staff_of_the_organisation_see_effects_of_requests(
    asked: Cohort,
    learned: LearnedModel,
    alice: User,
    bob: User,
    mallory: User,
    client_of: ClientOf,
) -> None:
    good = address(asked, model=learned.pk)
    assert client_of(bob).get(good).status_code == 200
    assert client_of(alice).get(good).status_code == 403
    assert client_of(mallory).get(good).status_code == 404
    assert Page(client_of(bob).get(address(asked))).says("There is no estimate")
    for wrong in ({"model": "x"}, {"model": asked.pk}, {"placement": asked.pk}):
        assert client_of(bob).get(address(asked, **wrong)).status_code == 404


def test_pages_ask_for_the_effects_and_keep_the_choice(
    placement: Placement, bob: User, client_of: ClientOf
) -> None:
    client = client_of(bob)
    for page in (
        Page(client.get(f"/placements/{placement.pk}/rules/")),
        Page(client.get(f"/cohorts/{placement.cohort_id}/requests/")),
    ):
        (asks,) = [one.element.get("hx-get") for one in page.every("group", HOW_HARD)]
        wanted = f"/cohorts/{placement.cohort_id}/wish-effects/?placement={placement.pk}"
        assert asks.startswith(wanted)
        assert "wish=" not in asks
    page = Page(client.get(address(placement.cohort, placement=placement.pk, wish="3")))
    assert [one.value for one in page.every("radio") if one.is_checked] == ["3.0"]
    new = Page(client.get(f"/placements/new/?cohort={placement.cohort_id}"))
    (asks,) = [one.element.get("hx-get") for one in new.every("group", HOW_HARD)]
    assert asks == f"/cohorts/{placement.cohort_id}/wish-effects/?"
    client.post(
        f"/placements/{placement.pk}/rules/try/",
        {"mutual": "must", "one_sided": "wish", "wish": "3.0", "preference": "0.5"},
    )
    rules = Placement.objects.order_by("-created_at").first().rules
    assert (rules["wish"], rules["preference"]) == (3.0, 0.5)
