"""A student's way at 390 pixels: with and without scripts, by keyboard, in both languages, through
faults. With KEEP_SCREENS=1 the screenshots lie in ``results/screens``."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import CHROMIUM_FLAGS, KEEPS_SCREENS, SCREENS, find_chromium, run_axe
from tests.live.product import Product

PHONE = {"width": 390, "height": 844}
WORDS = {
    "en": {"begin": "Begin", "next": "Next", "skip": "Rather not say", "finish": "Finish",
           "review": "Check your answers", "done": "Thank you. Your answers are in.",
           "saved": "Saved", "waiting": "Not saved yet, trying again"},
    "es": {"begin": "Empezar", "next": "Siguiente", "skip": "Prefiero no decirlo",
           "finish": "Terminar", "review": "Revisa tus respuestas",
           "done": "Gracias. Hemos recibido tus respuestas.",
           "saved": "Guardado", "waiting": "Aún sin guardar, se intenta de nuevo"},
}  # fmt: skip
_OPEN = """
import json
from datetime import timedelta
from django.utils import timezone
from webapp.accounts.models import User
from webapp.surveys.links import token_of
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open
bob = User.objects.get(username="bob")
made = Questionnaire.objects.filter(title="Walk").first()
if made is None:
    made = questionnaire_create(user=bob, title="Walk", form="own")
    questionnaire_open(
        user=bob, questionnaire=made, closes_at=timezone.now() + timedelta(days=2)
    )
people = [
    Participant.objects.create(questionnaire=made, email=f"{timezone.now().timestamp()}{k}@x.com")
    for k in range(2)
]
print(json.dumps([[token_of(one), one.code] for one in people]))
"""


@pytest.fixture
def people(product: Product) -> list[tuple[str, str]]:
    """Two students with a personal link each: (path of the link, own code)."""
    found = json.loads(product.run(_OPEN))
    return [(f"/q/{token}/", code) for token, code in found]


@pytest.fixture
def phone(browser: Browser, product: Product) -> Iterator[Callable[..., Page]]:
    """A function that opens a page of a phone, by default with scripts and in English."""
    contexts = []

    def make(language: str = "en", *, scripts: bool = True) -> Page:
        context = browser.new_context(
            viewport=PHONE, base_url=f"http://127.0.0.1:{product.port}", locale=language,
            java_script_enabled=scripts, has_touch=True,
        )  # fmt: skip
        contexts.append(context)
        return context.new_page()

    yield make
    for context in contexts:
        context.close()


def picture(page: Page, name: str) -> None:
    if not KEEPS_SCREENS:
        return
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"student-{name}.png", full_page=True)


def looked_at(page: Page, name: str, *, scripts: bool = True) -> None:
    """Keep a picture; axe finds nothing, and nothing is cut off at the side.

    Colours and parts for scripts are the same in every language, so that English is enough for
    dark pages and for pages without scripts. axe is a script: it runs on a copy of such a page.
    """
    picture(page, name)
    is_english = page.locator("html").get_attribute("lang") == "en"
    if not scripts and not is_english:
        return
    shown = page if scripts else copy_for_axe(page)
    for scheme in ("light", "dark") if is_english else ("light",):
        shown.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found = run_axe(shown, scheme)
        assert not found, (name, scheme, [(one["id"], one["nodes"][0]["html"]) for one in found])
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], name
    picture(shown, f"{name}-{scheme}")
    shown.emulate_media(color_scheme="light", reduced_motion="reduce")
    if shown is not page:
        shown.context.close()


def copy_for_axe(page: Page) -> Page:
    """Open the HTML of a page without scripts in a browser that runs axe."""
    html = re.sub(r"<script\b.*?</script>|</?noscript>", "", page.content(), flags=re.DOTALL)
    copy = page.context.browser.new_context(viewport=PHONE, has_touch=True).new_page()
    copy.route(page.url, lambda route: route.fulfill(body=html, content_type="text/html"))
    copy.goto(page.url)
    return copy


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_student_walks_through_it(
    phone: Callable[..., Page], people: list[tuple[str, str]], language: str, scripts: bool
) -> None:
    words, ((link, _), (_, friend)) = WORDS[language], people
    page = phone(language, scripts=scripts)
    page.goto(link)
    mark = f"{language}-{'scripts' if scripts else 'plain'}"
    expect(page.get_by_role("heading", name="Walk")).to_be_visible()
    looked_at(page, f"{mark}-0-introduction", scripts=scripts)
    page.get_by_role("button", name=words["begin"]).click()
    for number in range(1, 12):
        place = page.locator("input[name=n]").first
        expect(place).to_have_value(str(number))
        if number in (1, 4, 5, 10):
            looked_at(page, f"{mark}-{number}", scripts=scripts)
        if number == 1:
            page.locator("input[type=time]").fill("22:30")
        elif number == 10:
            page.locator("input[name=answer]").fill(friend[:4] + "-" + friend[4:])
        elif number == 11:
            page.locator("textarea").fill("No stairs, please.")
        elif number == 3:
            page.get_by_role("button", name=words["skip"]).click()
            continue
        else:
            page.locator(".option").nth(1).click()
            if scripts and number == 2:
                expect(page.locator(".saved")).to_contain_text(words["saved"])
        page.get_by_role("button", name=words["next"]).click()
    expect(page.get_by_role("heading", name=words["review"])).to_be_visible()
    expect(page.get_by_text("No stairs, please.")).to_be_visible()
    looked_at(page, f"{mark}-review", scripts=scripts)
    page.get_by_role("button", name=words["finish"]).click()
    expect(page.get_by_role("heading", name=words["done"])).to_be_visible()
    looked_at(page, f"{mark}-receipt", scripts=scripts)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_browser_that_takes_no_cookies_gets_through(
    browser: Browser,
    product: Product,
    people: list[tuple[str, str]],
    tmp_path: Path,
    scripts: bool,
) -> None:
    (tmp_path / "Default").mkdir()
    blocked = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    (tmp_path / "Default" / "Preferences").write_text(json.dumps(blocked), encoding="utf-8")
    context = browser.browser_type.launch_persistent_context(
        str(tmp_path), executable_path=find_chromium(), args=CHROMIUM_FLAGS, viewport=PHONE,
        java_script_enabled=scripts, base_url=f"http://127.0.0.1:{product.port}", locale="en",
    )  # fmt: skip
    try:
        page = context.new_page()
        page.goto(people[0][0])
        assert context.cookies() == []
        page.get_by_role("button", name="Begin").click()
        page.locator("input[type=time]").fill("23:10")
        page.get_by_role("button", name="Next").click()
        for number in range(2, 12):
            expect(page.locator("input[name=n]").first).to_have_value(str(number))
            page.get_by_role("button", name="Rather not say").click()
        expect(page.get_by_role("heading", name="Check your answers")).to_be_visible()
        expect(page.get_by_text("23:10")).to_be_visible()
        page.get_by_role("button", name="Finish").click()
        expect(page.get_by_role("heading", name=WORDS["en"]["done"])).to_be_visible()
        assert context.cookies() == []
        picture(page, f"no-cookies-{'scripts' if scripts else 'plain'}")
    finally:
        context.close()


def test_a_keyboard_is_enough(phone: Callable[..., Page], people: list[tuple[str, str]]) -> None:
    page = phone()
    page.goto(f"{people[0][0]}?n=2")
    page.keyboard.press("3")
    expect(page.locator("input[name=answer]").nth(2)).to_be_checked()
    page.locator("input[name=answer]").nth(2).focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator("input[name=answer]").nth(1)).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.locator("input[name=n]").first).to_have_value("3")
    page.goto(f"{people[0][0]}?n=2")
    expect(page.locator("input[name=answer]").nth(1)).to_be_checked()
    reached = set()
    for _ in range(14):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.value ?? ''"))
    assert {"next", "back", "skip"} <= reached


@pytest.mark.parametrize("status", [500, 502, 503, 429, 507])
def test_a_busy_server_never_reads_as_saved_and_the_answer_arrives(
    phone: Callable[..., Page], people: list[tuple[str, str]], status: int
) -> None:
    page = phone()
    page.goto(f"{people[0][0]}?n=11")
    left = {"faults": 2}

    def refuse(route: Route) -> None:
        if route.request.method == "POST" and left["faults"]:
            left["faults"] -= 1
            route.fulfill(status=status, body="<html>busy</html>", content_type="text/html")
        else:
            route.continue_()

    page.route("**/q/**", refuse)
    page.locator("textarea").fill("Every word of it.")
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".saved")).to_have_text("Not saved yet, trying again")
    expect(page.locator("textarea")).to_have_value("Every word of it.")
    expect(page.get_by_role("heading", name="Check your answers")).to_be_visible()
    expect(page.get_by_text("Every word of it.")).to_be_visible()
    assert left["faults"] == 0


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_told_and_what_was_typed_stays(
    phone: Callable[..., Page], people: list[tuple[str, str]], status: int
) -> None:
    page = phone()
    page.goto(f"{people[0][0]}?n=11")
    body = json.dumps({"error": "This questionnaire is closed."})
    page.route(
        "**/q/**",
        lambda route: (
            route.fulfill(status=status, body=body, content_type="application/json")
            if route.request.method == "POST"
            else route.continue_()
        ),
    )
    page.locator("textarea").fill("Do not lose me.")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("alert")).to_have_text("This questionnaire is closed.")
    expect(page.locator(".saved")).to_have_text("Not saved")
    picture(page, f"refused-{status}")
    page.unroute("**/q/**")
    page.goto(f"{people[0][0]}?n=11")
    expect(page.locator("textarea")).to_have_value("Do not lose me.")
    expect(page.locator(".saved")).to_contain_text("✓ Saved")


def test_offline_answers_wait_on_the_phone_and_are_sent(
    phone: Callable[..., Page], people: list[tuple[str, str]]
) -> None:
    page = phone()
    page.goto(f"{people[0][0]}?n=2")
    page.context.set_offline(True)
    page.locator(".option").nth(3).click()
    expect(page.locator(".saved")).to_have_text("Not saved yet, trying again")
    picture(page, "offline")
    context = page.context
    page.close()
    context.set_offline(False)
    other = context.new_page()
    other.goto(f"{people[0][0]}?n=5")  # another question: what was left is sent from here
    other.wait_for_timeout(1500)
    other.goto(f"{people[0][0]}?n=2")
    expect(other.locator("input[name=answer]").nth(3)).to_be_checked()
    kept = other.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('answer:'))")
    assert kept == []


def test_requests_speak_on_the_page(
    phone: Callable[..., Page], people: list[tuple[str, str]]
) -> None:
    (link, own), (other, friend) = people
    page = phone()
    page.goto(f"{link}?n=10")
    field = page.locator("input[name=answer]")
    for code, sentence in (("ABCD2345", "Nobody has the code ABCD2345."), (own, "your own code")):
        field.fill(code)
        expect(page.get_by_role("alert")).to_contain_text(sentence)
        expect(field).to_have_value(code)
    field.fill(friend.lower())
    expect(page.locator("[data-note]")).to_contain_text("has not asked for you yet")
    expect(page.get_by_role("alert")).to_be_hidden()
    field.fill("ABCD2345")
    expect(page.get_by_role("alert")).to_contain_text("Nobody has the code ABCD2345.")
    expect(page.locator("[data-note]")).to_be_hidden()  # it was about the code before
    field.fill(friend)
    expect(page.locator("[data-note]")).to_contain_text("has not asked for you yet")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("input[name=n]").first).to_have_value("11")
    friends = phone()
    friends.goto(f"{other}?n=10")
    asking = friends.get_by_text(re.compile(f"{own} asks to live with you"))
    expect(asking).to_be_visible()
    expect(asking).to_be_in_viewport()
    question = friends.get_by_role("heading", name="Is there somebody you want to live with?")
    assert asking.bounding_box()["y"] < question.bounding_box()["y"]
    looked_at(friends, "asked")
    friends.get_by_role("button", name="Decline").click()
    expect(friends.get_by_text("You declined the request")).to_be_visible()
    friends.get_by_role("button", name="Take that back").click()
    friends.get_by_role("button", name="Yes, ask for them too").click()
    expect(friends.locator("[data-note]")).to_have_text("You asked for each other.")
    looked_at(friends, "mutual")
