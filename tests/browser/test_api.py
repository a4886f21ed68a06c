"""The page of the programs' interface, and a token from its making to its end."""

from playwright.sync_api import expect


def test_tokens_and_the_documentation(page_as, product, assert_accessible, screenshot) -> None:
    page = page_as("bob")
    page.goto("/api/")
    assert_accessible(page)
    page.locator("#list_image_sets summary").click()
    screenshot(page, "api", full=False)
    page.get_by_role("link", name="Tokens").click()
    page.get_by_label("Name").fill("Nightly sync")
    page.get_by_role("button", name="Make a token").click()
    secret = page.locator("[data-secret]").inner_text()
    assert_accessible(page)
    screenshot(page, "api-tokens")
    answer = page.request.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json()["username"] == "bob"
    page.get_by_role("button", name="Revoke Nightly sync").click()
    expect(page.locator(".badge", has_text="Revoked")).to_be_visible()
    answer = page.request.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status == 401
