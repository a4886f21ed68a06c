"""One's own settings."""

from collections.abc import Callable

from django.test import Client

from tests.webapp.roles import Page
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
