"""A job watched in a real browser: it moves by itself, can be read as a table, and stops."""

import json
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.live.product import Product


def enqueue(product: Product, kind: str, **parameters: Any) -> str:
    code = f"""
import json
from webapp.accounts.models import User
from webapp.jobs.services import job_enqueue
bob = User.objects.get(username="bob")
values = json.loads({json.dumps(parameters)!r})
print(job_enqueue(user=bob, kind={kind!r}, parameters=values, title="Returning 2024", seed=1).pk)
"""
    return product.run(code)


def test_it_moves_by_itself_and_ends_without_a_reload(
    product: Product,
    page_as: Callable[..., Page],
    assert_accessible: Callable[[Page], None],
    screenshot: Callable[..., None],
) -> None:
    page = page_as("bob")  # before the job starts: on a busy machine signing in takes a while
    pk = enqueue(product, "counting.sum", steps=90, seconds_a_step=0.15)
    page.goto(f"/jobs/{pk}/")
    expect(page.get_by_text("Narrowing the gap")).to_be_visible()
    expect(page.get_by_role("img", name="Convergence").first).to_be_visible()
    page.get_by_role("button", name="Table").click()
    rows = page.get_by_role("region", name="Convergence as a table").locator("tbody tr")
    before = rows.count()
    expect(rows.nth(before + 3)).to_be_visible()  # polled, and still a table
    page.get_by_role("button", name="Chart").click()
    page.get_by_role("link", name="By step").click()
    expect(page.get_by_text("Steps", exact=True).first).to_be_visible()
    screenshot(page, "job-running")
    assert_accessible(page)
    expect(page.get_by_text("Counted 90 steps")).to_be_visible()
    expect(page.get_by_text("Ran for")).to_be_visible()
    screenshot(page, "job-done")
    assert_accessible(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2500)
    assert asked == []


def test_it_is_cancelled_by_its_button(product: Product, page_as: Callable[..., Page]) -> None:
    page = page_as("bob")
    pk = enqueue(product, "counting.sum", steps=2000, seconds_a_step=0.05)
    page.goto(f"/jobs/{pk}/")
    expect(page.get_by_text("Narrowing the gap")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Nothing was changed.").first).to_be_visible()
    expect(page.get_by_text("Cancelled", exact=True).first).to_be_visible()


def test_a_failed_job_says_why_in_list_and_page(
    product: Product,
    page_as: Callable[..., Page],
    assert_accessible: Callable[[Page], None],
    screenshot: Callable[..., None],
) -> None:
    pk = enqueue(product, "counting.fail", how="input")
    page = page_as("alice")
    page.goto(f"/jobs/{pk}/")
    sentence = "Row 241: S-1187 appears twice, first in row 88."
    expect(page.get_by_text(sentence).first).to_be_visible()
    page.goto("/jobs/?state=failed")
    expect(page.get_by_text(sentence).first).to_be_visible()
    screenshot(page, "jobs-failed")
    assert_accessible(page)
