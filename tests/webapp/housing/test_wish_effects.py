"""How hard to try for requests: words, estimated effects, and who may see them."""

import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from django.test import Client

from tests.webapp.housing.conftest import reader_of
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import Placement
from webapp.housing.rules import PlacementRules, difference_in_words
from webapp.housing.selectors import wish_effects
from webapp.housing.selectors.wish_effects import estimated_strengths, wish_strengths
from webapp.housing.services.requests import requests_import
from webapp.matching.models import LearnedModel

ClientOf = Callable[[User], Client]
EFFECT = re.compile(r"about (\d+) of (\d+) honoured, costs (?:under )?([\d.]+) %")
CHOICE = re.compile(
    r'name="wish" value="([\d.]+)"( checked)?>\s*<span>([^<]+)(?:<span[^>]*>([^<]+)</span>)?'
)


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
    page = client_of(bob).get(address(asked, model=learned.pk, same="Gender", wish="1.0"))
    choices = CHOICE.findall(page.text)
    assert [value for value, *_ in choices] == ["0.2", "1.0", "3.0", "10.0"]
    assert [value for value, chosen, *_ in choices if chosen] == ["1.0"]
    assert [label for *_, label, _ in choices] == ["A little", "More", "Hard", "Very hard"]
    found = [EFFECT.fullmatch(effect) for *_, effect in choices]
    counts = [int(match[1]) for match in found]
    assert counts == sorted(counts)
    assert counts[-1] > 0
    assert {int(match[2]) for match in found} == {8}
    assert "Estimated for rooms of two." in page.text


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
    page = client_of(bob).get(address(first_years, model=learned.pk))
    assert "Nobody made a one-sided request." in page.text
    assert CHOICE.findall(page.text)[0][2] == "A little"


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
    page = client_of(bob).get(address(asked, model=learned.pk, wish=wish))
    assert page.status_code == 200
    assert "There is no estimate" in page.text


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
    assert "There is no estimate" in client_of(bob).get(address(asked)).text
    for wrong in ({"model": "x"}, {"model": asked.pk}, {"placement": asked.pk}):
        assert client_of(bob).get(address(asked, **wrong)).status_code == 404


def test_pages_ask_for_the_effects_and_keep_the_choice(
    placement: Placement, bob: User, client_of: ClientOf
) -> None:
    client = client_of(bob)
    for page in (
        client.get(f"/placements/{placement.pk}/rules/").text,
        client.get(f"/cohorts/{placement.cohort_id}/requests/").text,
    ):
        query = f"/cohorts/{placement.cohort_id}/wish-effects/?placement={placement.pk}"
        assert query in page
        assert "wish=" not in query
    answer = client.get(address(placement.cohort, placement=placement.pk, wish="3"))
    assert 'value="3.0" checked' in answer.text
    new = client.get(f"/placements/new/?cohort={placement.cohort_id}").text
    assert f'hx-get="/cohorts/{placement.cohort_id}/wish-effects/?"' in new
    client.post(
        f"/placements/{placement.pk}/rules/try/",
        {"mutual": "must", "one_sided": "wish", "wish": "3.0", "preference": "0.5"},
    )
    rules = Placement.objects.order_by("-created_at").first().rules
    assert (rules["wish"], rules["preference"]) == (3.0, 0.5)
