"""One's own settings."""

from collections.abc import Callable

from django.test import Client

from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_outlives_a_session, check_refused
from webapp.accounts.models import User


def test_it_stores_theme_and_keys(client_of: Callable[[User], Client], alice: User) -> None:
    client = client_of(alice)
    client.post("/accounts/settings/", {"theme": "dark"})
    page = Page(client.get("/"))
    assert page.element.get("data-theme") == "dark"
    assert page.element.get("data-shortcuts") == "off"


def test_it_cannot_change_the_role(client_of: Callable[[User], Client], alice: User) -> None:
    client_of(alice).post(
        "/accounts/settings/",
        {"theme": "light", "role": "administrator", "organisation": "2", "is_superuser": "1"},
    )
    alice.refresh_from_db()
    assert alice.role == "viewer"
    assert not alice.is_superuser


def test_it_names_the_zone_of_times(
    client_of: Callable[[User], Client], alice: User, settings: object
) -> None:
    """“today 14:12” used to mislead wherever the server kept UTC."""
    settings.TIME_ZONE = "Europe/Oslo"
    page = Page(client_of(alice).get("/accounts/settings/"))
    assert page.section("Times").says("Times on pages are those of Europe/Oslo.")


def test_a_refused_setting_keeps_the_others(
    client_of: Callable[[User], Client], alice: User
) -> None:
    typed = {"keyboard_shortcuts": "on"}
    page = client_of(alice).post("/accounts/settings/", {"theme": "pink", **typed})
    check_refused(page, typed, field="theme", error="pink is not one of the available choices")
    empty = client_of(alice).post("/accounts/settings/", {})
    check_refused(empty, {}, field="theme", error="This field is required.")
    alice.refresh_from_db()
    assert alice.theme != "pink"


def test_settings_outlive_a_session(client_of: Callable[[User], Client], alice: User) -> None:
    typed = {"theme": "dark", "keyboard_shortcuts": "on"}
    client = check_outlives_a_session(client_of, alice, "/accounts/settings/", typed)
    alice.refresh_from_db()
    assert alice.theme != "dark"
    client.post("/accounts/settings/", typed)
    alice.refresh_from_db()
    assert alice.theme == "dark"
