"""One's own settings."""

from collections.abc import Callable

from django.test import Client

from webapp.accounts.models import User


def test_it_stores_theme_and_keys(client_of: Callable[[User], Client], alice: User) -> None:
    client = client_of(alice)
    client.post("/accounts/settings/", {"theme": "dark"})
    page = client.get("/").content.decode()
    assert 'data-theme="dark"' in page
    assert 'data-shortcuts="off"' in page


def test_it_cannot_change_the_role(client_of: Callable[[User], Client], alice: User) -> None:
    client_of(alice).post(
        "/accounts/settings/",
        {"theme": "light", "role": "administrator", "organisation": "2", "is_superuser": "1"},
    )
    alice.refresh_from_db()
    assert alice.role == "viewer"
    assert not alice.is_superuser
