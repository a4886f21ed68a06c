"""The pages that belong to no single application, in a real browser."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

PAGES = {
    "home": "/",
    "jobs": "/jobs/",
    "audit": "/audit/",
    "help": "/help/",
    "search": "/search/?q=nobody",
    "settings": "/accounts/settings/",
    "people": "/accounts/people/",
    "not-found": "/no/such/page/",
}


@pytest.mark.parametrize("name", PAGES)
def test_it_is_accessible_and_fits_a_phone(
    name: str,
    page_as: Callable[..., Page],
    assert_accessible: Callable[[Page], None],
    screenshot: Callable[..., None],
) -> None:
    page = page_as("carol")
    answer = page.goto(PAGES[name])
    assert answer is not None
    assert answer.status == (404 if name == "not-found" else 200)
    expect(page.get_by_role("main")).to_be_visible()
    screenshot(page, name)
    assert_accessible(page)


def test_sign_in_is_accessible(
    page_as: Callable[..., Page],
    assert_accessible: Callable[[Page], None],
    screenshot: Callable[..., None],
) -> None:
    page = page_as(None)
    page.goto("/jobs/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    screenshot(page, "sign-in")
    assert_accessible(page)


def test_keys_open_the_search_and_their_own_list(page_as: Callable[..., Page]) -> None:
    page = page_as("bob")
    page.keyboard.press("/")
    expect(page.get_by_label("Find a student, room or picture")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_keys_can_be_switched_off(page_as: Callable[..., Page]) -> None:
    page = page_as("erin")  # nobody else's settings: other tests use keys
    page.goto("/accounts/settings/")
    page.get_by_label("Keyboard shortcuts").uncheck()
    page.get_by_label("Dark").check()
    page.get_by_role("button", name="Save settings").click()
    expect(page.get_by_text("Settings saved.")).to_be_visible()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_the_rail_opens_and_closes_on_a_phone(page_as: Callable[..., Page]) -> None:
    page = page_as("bob", width="phone")
    page.get_by_role("button", name="Menu", exact=True).click()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Jobs").click()
    page.wait_for_url("**/jobs/")
    page.get_by_role("button", name="Menu", exact=True).click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Menu", exact=True)).to_be_focused()


def test_a_person_is_added_and_must_change_the_password(page_as: Callable[..., Page]) -> None:
    page = page_as("carol")
    page.goto("/accounts/people/")
    page.get_by_role("button", name="Add a person").click()
    page.get_by_label("Sign-in name").fill("dave")
    page.get_by_role("dialog").get_by_role("button", name="Add person").click()
    notice = page.get_by_text("It is shown only now")
    expect(notice).to_be_visible()
    password = page.locator(".notice b.id").inner_text()
    other = page_as(None)
    other.goto("/accounts/sign-in/")
    other.get_by_label("Username").fill("dave")
    other.get_by_label("Password").fill(password)
    other.get_by_role("button", name="Sign in").click()
    expect(other.get_by_role("heading", name="Change your password")).to_be_visible()
    other.goto("/jobs/")
    expect(other.get_by_role("heading", name="Change your password")).to_be_visible()
