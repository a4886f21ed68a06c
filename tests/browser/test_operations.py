"""An operator looks after the installation: alerts by mail, and a backup with one button."""

from collections.abc import Callable

from playwright.sync_api import Page, expect


def test_an_operator_backs_up_and_is_told(
    page_as: Callable[..., Page],
    screenshot: Callable[..., None],
    assert_accessible: Callable[..., None],
) -> None:
    page = page_as("carol")
    page.goto("/operations/")
    page.get_by_label("E-mail address").fill("carol@north.example")
    page.get_by_role("button", name="Alert me").click()
    expect(page.get_by_text("Mails go to carol@north.example: one when")).to_be_visible()
    page.get_by_role("button", name="Back up now").first.click()
    page.wait_for_url("**/operations/")
    expect(page.get_by_text("There is no backup yet")).to_have_count(0)
    expect(page.get_by_text("The last one is of today")).to_be_visible()
    screenshot(page, "operations")
    assert_accessible(page)
    page.goto("/jobs/")
    expect(page.get_by_text("holds everything").first).to_be_visible()
