"""The administrators' pages of sign-in, looked at by axe and at phone width."""

from collections.abc import Callable

from playwright.sync_api import Page


def test_pages_of_sign_in(
    page_as: Callable[..., Page], assert_accessible: Callable[[Page], None]
) -> None:
    page = page_as("carol")
    for address in ("providers/", "providers/new/", "providers/new/?protocol=saml"):
        page.goto(f"/accounts/{address}")
        assert_accessible(page)
    page.goto("/accounts/second-factor/")
    assert_accessible(page)
