"""Every sentence that a script shows goes through gettext, and its catalogue holds it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from tests.webapp.pseudo_language import bracketed
from tests.webapp.roles import Page
from webapp.accounts.models import User

ROOT = Path(settings.BASE_DIR)
SCRIPTS = sorted(
    path for path in (ROOT / "static").rglob("*.js") if "vendor" not in path.relative_to(ROOT).parts
)
CATALOGUE = ROOT / "webapp" / "locale" / "en" / "LC_MESSAGES" / "djangojs.po"
COMMENT = re.compile(r"/\*.*?\*/|^\s*//.*?$|(?<=[;{},)\s])//\s.*?$", re.S | re.M)
TEXT = r'"(?:[^"\\\n]|\\.)*"'
TRANSLATED = re.compile(rf"\bn?gettext\(\s*({TEXT})(?:,\s*({TEXT}))?")
LITERAL = re.compile(rf"{TEXT}|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`")
VALUE = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}")
# A word with a capital that no header continues, or three words in a row.
WORDS = re.compile(r"(?<![\w.#\[-])[A-Z][a-z]+(?![\w-])|[a-z]{2,} [a-z]{2,} [a-z]")
# Literals that no person reads: keys, headers of requests, a font.
NO_TEXTS = {
    "Accept", "ArrowDown", "ArrowLeft", "ArrowRight", "ArrowUp", "Backspace", "Delete", "Enter",
    "Escape", "600 12px Inter, sans-serif",
}  # fmt: skip


def untranslated(script: str) -> Iterator[str]:
    """Yield the literals with words for people that stand outside of gettext."""
    rest = TRANSLATED.sub("gettext(", COMMENT.sub("", script))
    for literal in LITERAL.findall(rest):
        text = VALUE.sub("1", literal[1:-1])
        if WORDS.search(text) and text not in NO_TEXTS:
            yield text


@pytest.mark.parametrize(
    "script",
    [
        'place.textContent = "Uploading";',
        "place.textContent = `Upload of ${name}`;",
        'throw new Error("the server does not answer");',
        "say(count === 1 ? 'One pair' : 'pairs');",
    ],
)
def test_the_search_finds_texts_outside_of_gettext(script: str) -> None:
    assert len(list(untranslated(script))) == 1


@pytest.mark.parametrize(
    "script",
    [
        'place.textContent = gettext("Uploading");',
        'filled(ngettext("%(count)s pair marked", "%(count)s pairs marked", count), { count });',
        'if (event.key === "Escape") list.className = "button button--quiet";',
        "place.textContent = `${Math.round(share)} px`; // A note for programmers",
    ],
)
def test_the_search_leaves_what_is_translated(script: str) -> None:
    assert not list(untranslated(script))


def test_every_text_of_a_script_can_be_translated() -> None:
    assert len(SCRIPTS) > 30
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in SCRIPTS
        for text in untranslated(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_the_catalogue_of_scripts_holds_every_text() -> None:
    """`manage.py makemessages -d djangojs -l en` was run after the last change of a text."""
    texts = {
        "\0".join(json.loads(text) for text in texts if text)
        for path in SCRIPTS
        for texts in TRANSLATED.findall(path.read_text(encoding="utf-8"))
    }
    assert len(texts) > 100
    assert sorted(texts ^ bracketed(CATALOGUE).keys()) == []


@pytest.mark.usefixtures("pseudo_language")
def test_pages_load_the_texts_of_scripts_in_the_language_of_staff(bob: User) -> None:
    client = Client()
    client.force_login(bob)
    address = reverse("common:words-of-scripts")
    page = Page(client.get(reverse("surveys:list")))
    scripts = page.element.xpath("//script/@src")
    (app,) = (place for place, script in enumerate(scripts) if "js/app.js" in script)
    assert scripts.index(address) < app
    answer = client.get(address)
    assert answer["Content-Type"].startswith("text/javascript")
    catalogue = re.search(r"const newcatalog = (\{.*?\});\n", answer.content.decode(), re.S)
    assert catalogue
    words = json.loads(catalogue[1])
    assert words["The stroke was not kept."] == "⟦The stroke was not kept.⟧"
    assert words["%(count)s stroke"] == ["⟦%(count)s stroke⟧", "⟦%(count)s strokes⟧"]


def test_pages_in_english_load_no_texts(client: Client, bob: User) -> None:
    client.force_login(bob)
    page = Page(client.get(reverse("surveys:list")))
    assert reverse("common:words-of-scripts") not in page.source
