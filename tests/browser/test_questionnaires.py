"""A questionnaire from a template by clicks, as staff make it, and a student who answers it."""

import re
import time
from collections.abc import Callable
from datetime import date, timedelta

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import run_axe
from tests.live.product import Product
from tests.live.student_year import wait_for_links

# Seconds of a person who has done it before (the keystroke-level model of Card, Moran and Newell):
# to think of a step and point at it, and for a letter.
SECONDS_A_CLICK = 1.35 + 1.1 + 0.2
SECONDS_A_LETTER = 0.28
TEN_MINUTES = 600


class Staff:
    """A pair of hands that counts its clicks and letters."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.letters = page, 0, 0
        self.began = time.monotonic()

    def press(self, what: Locator) -> None:
        what.click()
        self.clicks += 1

    def type(self, label: str, text: str) -> None:
        within = self.page.locator("details[open], dialog[open]")
        place = within.last if within.count() else self.page
        place.get_by_label(label, exact=True).fill(text)
        self.clicks += 1
        self.letters += len(text)

    def choose(self, label: str, option: str) -> None:
        within = self.page.locator("details[open]")
        place = within.last if within.count() else self.page
        place.get_by_label(label, exact=True).select_option(label=option)
        self.clicks += 2

    def button(self, name: str) -> None:
        self.press(self.page.get_by_role("button", name=name, exact=True))

    def link(self, name: str) -> None:
        self.press(self.page.get_by_role("link", name=name, exact=True).first)

    @property
    def seconds(self) -> float:
        """How long a person takes for these acts, and the machine in between."""
        by_hand = self.clicks * SECONDS_A_CLICK + self.letters * SECONDS_A_LETTER
        return by_hand + time.monotonic() - self.began


def add_question(staff: Staff, kind: str, name: str, text: str, answers: str = "") -> None:
    staff.press(staff.page.locator("summary", has_text="Add a question"))
    staff.choose("Answered by", kind)
    staff.type("Short name", name)
    staff.type("Question", text)
    if answers:
        staff.type("Answers, one a line", answers)
    staff.button("Add it")
    expect(staff.page.get_by_role("link", name=re.compile(re.escape(text)))).to_be_visible()


def translate(staff: Staff, texts: dict[str, str]) -> None:
    staff.press(staff.page.locator(".tabs").get_by_role("link", name="Settings"))
    staff.link("Translate")
    for text, said in texts.items():
        staff.type(f"{text} (es)", said)
    staff.button("Keep")
    staff.page.locator(".breadcrumbs").get_by_role("link").nth(1).click()
    staff.clicks += 1


def test_staff_make_one_from_a_template_and_a_student_answers_it(
    product: Product,
    page_as: Callable[..., Page],
    assert_accessible: Callable[[Page], None],
    screenshot: Callable[..., None],
) -> None:
    staff = Staff(page_as("bob"))
    page = staff.page
    page.goto("/questionnaires/")
    staff.link("New questionnaire")
    staff.type("Title", "Living together 2027")
    staff.button("Make it")
    staff.press(page.get_by_role("link", name=re.compile("Study noise")))
    staff.page.locator("#edit-text").fill("I study with music on.")
    staff.clicks, staff.letters = staff.clicks + 1, staff.letters + 22
    staff.button("Keep")
    expect(page.locator(".phone__question")).to_have_text("I study with music on.")
    add_question(staff, "One of, in order", "Plants", "How many plants do you bring?",
                 "None\nOne or two\nA forest")  # fmt: skip
    add_question(staff, "Consent", "Consent", "I agree that housing staff read my answers.")
    translate(staff, {"How many plants do you bring?": "¿Cuántas plantas traes?",
                      "A forest": "Una selva"})  # fmt: skip
    screenshot(page, "questionnaire-settings")
    assert_accessible(page)
    staff.press(page.locator(".tabs").get_by_role("link", name="Questions"))
    look_on_a_phone(page_as, page.url)
    staff.button("Open")
    staff.type("Last day", (date.today() + timedelta(days=20)).isoformat())
    staff.press(page.locator("#open-dialog").get_by_role("button", name="Open", exact=True))
    expect(page.locator(".badge--accent")).to_contain_text("Open until")
    staff.link("Invite or remind")
    staff.type("Invite people", "Ana Berg <ana@northfield.example>, N1\nbo@northfield.example N2")
    staff.button("Add them")
    staff.link("Write to 2 people not yet invited")
    staff.button("Send to 2 people not yet invited")
    expect(page.get_by_text("2 mails are on their way.")).to_be_visible()
    print(f"{staff.clicks} clicks, {staff.letters} letters, {staff.seconds:.0f} s")
    assert staff.clicks < 60
    assert staff.seconds < TEN_MINUTES / 2
    screenshot(page, "questionnaire-people")
    assert_accessible(page)
    student_answers(product, page_as)


def look_on_a_phone(page_as: Callable[..., Page], address: str) -> None:
    """The preview shows a question as a phone does, and keeps nothing."""
    phone = page_as("bob", width="phone")
    phone.goto(
        re.sub(r"[?#].*", "", address) + "preview/?n=5"
    )  # behind the four of the first section
    expect(phone.get_by_role("heading", name="How many plants do you bring?")).to_be_visible()
    expect(phone.get_by_text("Nothing is saved.")).to_be_visible()
    assert not run_axe(phone)


def student_answers(product: Product, page_as: Callable[..., Page]) -> None:
    link = re.sub(r"^http://[^/]+", "", wait_for_links(product, 1, subject="Living together")[0])
    phone = page_as(None, width="phone")
    phone.goto(f"{link}?n=5&lang=es")
    expect(phone.get_by_role("heading", name="¿Cuántas plantas traes?")).to_be_visible()
    assert not run_axe(phone)
    phone.get_by_text("Una selva").click()
    expect(phone.locator(".saved")).to_contain_text("Guardado")
    phone.get_by_role("button", name="Siguiente").click()
    expect(phone.get_by_role("heading", name="I agree that housing staff")).to_be_visible()
    phone.get_by_text("Estoy de acuerdo").click()
    with phone.expect_navigation():
        phone.get_by_role("button", name="Siguiente").click()
    phone.goto(f"{link}?n=review")
    assert not run_axe(phone)
    phone.get_by_role("button", name="Terminar").click()
    expect(phone.get_by_role("heading", name="Gracias")).to_be_visible()
    assert not run_axe(phone)
