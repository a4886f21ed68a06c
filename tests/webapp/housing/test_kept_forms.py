"""Refused forms of models, cohorts, rosters, people and late changes keep what was typed."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_outlives_a_session, check_refused
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import Placement
from webapp.matching.models import LearnedModel
from webapp.reports.models import RosterShape

ClientOf = Callable[[User], Client]
FORMS: list[tuple[str, dict[str, Any], str, str]] = [
    ("matching:model-new", {"name": "Third", "seed": "x", "ridge": "10.0"}, "seed", "whole number"),
    ("matching:model-new", {"name": "Third", "gap": "1e-06", "seed": "7"}, "cohort", "Choose at"),
    ("matching:model-new", {"name": "Third", "ridge": "50.0", "rho": "7"}, "rho", ""),
    ("matching:model-new", {"name": "x" * 121}, "name", "at most 120 characters"),
    ("accounts:people", {"username": "Bob", "role": "viewer"}, "username", "is taken"),
    (
        "accounts:rename-organisation",
        {"name": "Northfield", "department": "Residential Life", "time_zone": "Mars/Base"},
        "time_zone",
        "Choose a time zone of the list",
    ),
]


@pytest.mark.parametrize(("name", "typed", "field", "error"), FORMS)
def test_a_refused_form_keeps_what_was_typed(
    client_of: ClientOf, carol: User, bob: User, learned: LearnedModel,
    name: str, typed: dict[str, Any], field: str, error: str,
) -> None:  # fmt: skip
    url = reverse(name)
    check_refused(client_of(carol).post(url, typed), typed, field=field, error=error)
    check_outlives_a_session(client_of, carol, url, typed)


def test_a_setting_of_a_program_is_offered_as_it_is(
    client_of: ClientOf,
    bob: User,
    learned: LearnedModel,
) -> None:
    page = Page(client_of(bob).get(reverse("matching:model-new") + "?ridge=50.0"))
    option = page.one("option", "As set: 50.0", exactly=True)
    assert option.element.get("value") == "50.0"
    assert "selected" in option.element.attrib


def test_weights_set_by_hand_outlive_a_refusal_and_a_session(
    client_of: ClientOf,
    bob: User,
    learned: LearnedModel,
) -> None:
    returning = Cohort.objects.filter(n_pairs__gt=0)[0]
    n = len(returning.questions)
    typed = {"cohort": str(returning.pk), "name": "By hand"}
    typed |= {f"importance-{k}": "2.0" for k in range(n)}
    client, url = client_of(bob), reverse("matching:model-set")
    wrong = typed | {"importance-0": "7"}
    page = client.post(url, wrong)
    kept = {name: value for name, value in typed.items() if name != "importance-0"}
    check_refused(page, kept, field="importance-0", error="Choose one of the offered settings.")
    nothing = typed | {f"importance-{k}": "0.0" for k in range(n)}
    error = "Set an importance for at least one question."
    check_refused(client.post(url, nothing), nothing, field="", error=error)
    client = check_outlives_a_session(client_of, bob, url, typed)
    assert client.post(url, typed).status_code == 302
    made = LearnedModel.objects.get(name="By hand")
    assert set(made.options["importance"].values()) == {2.0}


def test_a_late_arrival_by_hand_outlives_a_refusal_and_a_session(
    client_of: ClientOf,
    bob: User,
    first_years: Cohort,
) -> None:
    url, client = reverse("cohorts:latecomers", args=[first_years.pk]), client_of(bob)
    level = first_years.questions[0]["levels"][0]
    typed = {"id": "N001", "email": "ann@uni.example", "name": "Ann", "r0": "F", "q0": level}
    check_refused(client.post(url, typed), typed, field="id", error="already. Leave it out.")
    long = typed | {"id": "X1", "r0": "F" * 300}
    check_refused(client.post(url, long), long, field="r0", error="longer than 200 characters")
    check_outlives_a_session(client_of, bob, url, typed | {"id": "X1"})
    assert client.post(url, typed | {"id": "X1"}).status_code == 302
    made = first_years.students.get(original_id="X1")
    assert (made.name, made.email, made.answers[0]) == ("Ann", "ann@uni.example", 0)


@pytest.mark.parametrize("name", ["split", "simulate"])
def test_a_seed_that_is_none_is_not_replaced_without_a_word(
    client_of: ClientOf,
    bob: User,
    first_years: Cohort,
    name: str,
) -> None:
    url = reverse(f"cohorts:{name}", args=[first_years.pk])
    for seed in ("seven", "-1", "9" * 20):
        page = client_of(bob).post(url, {"seed": seed})
        check_refused(page, {"seed": seed}, field="seed", error="")
    assert not first_years.halves.exists()


def test_a_refused_roster_keeps_places_headings_and_the_choice_of_values(
    client_of: ClientOf,
    bob: User,
    placement: Placement,
) -> None:
    url, client = reverse("reports:rosters", args=[placement.pk]), client_of(bob)
    typed = {
        "name": "StarRez", "place-id": "1", "heading-id": "Student", "place-room": "two",
        "heading-room": "Room", "ids": "exact",
    }  # fmt: skip
    check_refused(client.post(url, typed), typed, field="place-room", error="whole number")
    same = typed | {"place-room": "2", "heading-room": "Student"}
    check_refused(client.post(url, same), same, field="", error="Two columns have the same heading")
    check_outlives_a_session(client_of, bob, url, typed)
    assert client.post(url, typed | {"place-room": "2"}).status_code == 302
    assert RosterShape.objects.get().columns == [["id", "Student"], ["room", "Room"]]


def test_late_changes_keep_the_list_and_the_price(
    client_of: ClientOf,
    bob: User,
    placement: Placement,
) -> None:
    client = client_of(bob)
    url = reverse("housing:changes-withdraw", args=[placement.pk])
    typed = {"students": "S-1001\nMax Nobody", "version": placement.version}
    check_refused(client.post(url, typed), typed, field="students", error="is nobody in")
    check_outlives_a_session(client_of, bob, url, typed)
    url = reverse("housing:changes-propose", args=[placement.pk])
    for price, error in (("cheap", "is no price of a move"), ("-1", "A move costs more than 0"),
                         ("nan", "A move costs more than 0")):  # fmt: skip
        typed = {"price": price, "pinned": "S-1001"}
        check_refused(client.post(url, typed), typed, field="price", error=error)
    page = Page(client.post(url, {"price": "1", "pinned": "everybody"}), status=422)
    assert page.has("alert", "is not an id on screen")
    assert not placement.places.filter(has_left=True).exists()
