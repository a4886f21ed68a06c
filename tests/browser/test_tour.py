"""The tour of the demonstration, walked in Chromium by keyboard and on a phone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.live.product import PASSWORD, Product
from tests.patience import PATIENCE_SECONDS, wait_for

_PREPARE = f"""
from webapp.accounts.models import Organisation, User
from webapp.common import hooks
organisation = Organisation.objects.create(name="Eastfield University")
for name, role in (("tess", "staff"), ("tora", "administrator")):
    person = User.objects.create_user(
        username=name, password="{PASSWORD}", organisation=organisation, role=role
    )
for load in hooks.demonstrations():
    load(organisation, User.objects.get(username="tess"))
"""
_RESULTS = """
SELECT state, error FROM demonstration_demonstrationresult r
JOIN accounts_organisation o ON o.id = r.organisation_id WHERE o.name = 'Eastfield University'
"""
STEPS = {
    1: ("Ask the students", "Early arrivals 2026 (generated)"),
    2: ("Learn what matters", "Roommates 2024 (generated)"),
    3: ("Propose pairs and rooms", "Pairs of first-years 2026 (generated)"),
    4: ("Publish and write letters", "Early arrivals 2026 (generated)"),
    5: ("From pictures to counts", "Objects of Cells to count (generated)"),
}

pytestmark = pytest.mark.slow  # the product learns, places and counts before the tour begins


@pytest.fixture(scope="module")
def demonstration(product: Product) -> Product:
    """A university of its own in the running product, whose results are planned."""
    product.run(_PREPARE, timeout=600)
    return product


def results_are_ready(product: Product) -> bool:
    rows = [tuple(row) for row in product.rows(_RESULTS)]
    assert [row for row in rows if row[0] == "failed"] == []
    return len(rows) == 7 and {state for state, _ in rows} == {"ready"}


def test_home_tells_of_the_preparation_and_the_tour_leads_through_the_results(
    page_as: Callable[..., Page],
    demonstration: Product,
    screenshot: Callable[..., None],
    assert_accessible: Callable[..., None],
) -> None:
    page = page_as("tess")
    panel = page.get_by_role("region", name="demonstration")
    expect(panel).to_contain_text("of 7 ready")
    assert_accessible(page)
    screenshot(page, "demonstration-preparing")
    wait_for(
        lambda: results_are_ready(demonstration),
        seconds=4 * PATIENCE_SECONDS,
        logs=demonstration.logs,
    )
    # The open page hears of it by itself.
    expect(page.get_by_role("heading", name="The demonstration is ready")).to_be_visible()
    assert_accessible(page)
    screenshot(page, "demonstration-ready")

    page.get_by_role("link", name="Start the tour").press("Enter")
    for number, (title, heading) in STEPS.items():
        step = page.get_by_role("region", name=f"Tour, step {number} of 5: {title}")
        expect(step).to_be_visible()
        expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        expect(step.get_by_role("heading")).to_be_focused()  # a screen reader reads on from here
        expect(step.get_by_role("listitem")).to_have_count(3)
        assert_accessible(page)
        screenshot(page, f"tour-{number}", full=False)
        if number < len(STEPS):
            step.get_by_role("link", name="Next").press("Enter")
    step.get_by_role("link", name="Previous").press("Enter")
    expect(page.get_by_role("region", name="Tour, step 4 of 5")).to_be_visible()
    page.get_by_role("link", name="Open the letters").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(": letters")

    page.get_by_role("button", name="Close the tour").click()
    expect(page.get_by_text("The tour is closed.")).to_be_visible()
    expect(page.get_by_role("region", name="demonstration")).to_have_count(0)
    again = page_as("tess", width="phone")
    expect(again.get_by_role("heading", name="What to do next")).to_be_visible()
    expect(again.get_by_role("link", name="Start the tour")).to_have_count(0)
    again.goto("/help/")
    again.get_by_role("button", name="Show the tour").click()
    expect(again.get_by_role("region", name="Tour, step 1 of 5")).to_be_visible()
    again.goto("/")
    expect(again.get_by_role("link", name="Start the tour")).to_be_visible()
