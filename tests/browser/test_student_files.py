"""The preview of a file about students: a column is corrected, a question answered."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.live.product import Product

pytestmark = pytest.mark.browser

_NAMESAKES = """
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
bob = User.objects.get(username="bob")
tidy = {"name": "Tidy", "kind": "binary", "levels": ["No", "Yes"]}
cohort = Cohort.objects.create(organisation=bob.organisation, created_by=bob, name="Namesakes",
                               questions=[tidy], n_students=3)
for k, name in enumerate(("Avaa Kim", "Avaa Kim", "Ben Lee")):
    Student.objects.create(cohort=cohort, number=1001 + k, original_id=f"N{k}", name=name,
                           answers=[0])
print(cohort.pk)
"""
REQUESTS = b"Remark,Student,Roommate\nlate,Avaa Kim,Ben Lee\n,Ben Leee,N0\n"


def test_a_file_of_requests_is_checked_before_it_is_imported(
    page_as: Callable[..., Page],
    product: Product,
    screenshot: Callable[..., None],
    assert_accessible: Callable[..., None],
) -> None:
    cohort = product.run(_NAMESAKES).split()[-1]
    page = page_as("bob")
    page.goto(f"/cohorts/{cohort}/requests/")
    page.locator("button[data-dialog-open=import]").first.click()
    file = {"name": "requests.csv", "mimeType": "text/csv", "buffer": REQUESTS}
    page.set_input_files("#import input[type=file]", file)
    page.locator("#import").get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="Check the requests")).to_be_visible()
    expect(page.get_by_text("2 students are called Avaa Kim. Which one?")).to_be_visible()
    expect(page.get_by_text("No student has this name; one letter differs.")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Import"))).to_be_disabled()
    assert_accessible(page)
    screenshot(page, "student-file-question")
    page.get_by_label("Use of Remark").select_option(label="The requested roommate")
    expect(page.get_by_label("Use of Remark")).to_have_value("wanted")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Use of Remark")).to_have_value("ignore")
    page.get_by_role("button", name="S-1002, N1").click()
    expect(page.get_by_text("Which one?")).to_have_count(0)
    page.get_by_role("button", name="S-1003, N2").click()
    ready = page.get_by_role("button", name="Import 2 requests")
    expect(ready).to_be_enabled()
    screenshot(page, "student-file-ready")
    ready.click()
    expect(page.locator(".toast")).to_contain_text("2 requests imported")
