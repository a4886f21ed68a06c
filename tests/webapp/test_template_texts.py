"""Every sentence of a template can be translated, and the English catalogue holds all of them."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings, settings
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.translation.counting import NOUNS

ROOT = Path(settings.BASE_DIR)
TEMPLATES = ROOT / "templates"
CATALOGUE = ROOT / "webapp" / "locale" / "en" / "LC_MESSAGES" / "django.po"

# The operators' tables are Django's admin, whose own sentences Django translates.
NOT_OURS = {"admin"}
# What stands between tags and is the same in every language, or is no text for people.
ALLOWED = re.compile(
    r"\b(?:Bethe Hall|CSV|XLSX|ZIP|AUC|API|JSON|JSON Schema|OpenAPI|URL|SAML|px|ms"
    r"|Europe/Madrid"  # an example of a name of a time zone
    r"|manage\.py make_operator NAME"  # a command, to be typed as it stands
    r"|publish-form"  # the id of a form
    r")\b"
)
# Parts without text for people, each with the reason.
NO_TEXT = (
    r"{#.*?#}|{% comment.*?endcomment %}|<!--.*?-->",  # notes for those who write templates
    r"<(script|style|pre|kbd)\b.*?</\1>",  # code, examples of commands, names of keys
    r"{% blocktranslate.*?endblocktranslate %}",  # translated
    r"{% block help %}.*?{% endblock %}",  # the name of a section of Help
    r"<!doctype html>",
)
QUERY = "jobs/_card_query.html"  # writes the parameters of an address
TAG = re.compile(r"{%.*?%}|{{.*?}}", re.S)
# Attributes that are shown or read aloud.
ATTRIBUTE = re.compile(
    r"\s(?:title|alt|label|placeholder|aria-label|aria-roledescription|data-label"
    r'|data-shortcut-label)="([^"]*)"'
)
# Arguments of tags and filters that are shown: by their names, or first among those of a tag.
ARGUMENT = re.compile(
    r"\b(?:title|facts|note|aside|sentence|action|yes|no|label|words|caption|hint)="
    r'"([^"]*)"'
    r'|{%\s*(?:badge|stat|empty_state|panel)\s+"([^"]*)"'
    r'|\|default(?:_if_none)?:"([^"]*)"'
    r'|\|by_kind:"([^"]*)"'
)


def untranslated(template: str) -> Iterator[str]:
    """Yield the texts for people that stand outside of translations."""
    for pattern in NO_TEXT:
        template = re.sub(pattern, "\0", template, flags=re.S | re.I)
    for tag in TAG.findall(template):
        for texts in ARGUMENT.findall(tag):
            yield from (text for text in texts if _has_words(text))
    bare = TAG.sub("\0", template)
    yield from (text for text in ATTRIBUTE.findall(bare) if _has_words(text))
    for text in re.split(r"<[^>]*>|\0", bare):
        if _has_words(text):
            yield " ".join(text.split())


def _has_words(text: str) -> bool:
    return bool(re.search(r"[^\W\d_]{2}", ALLOWED.sub("", re.sub(r"&\w+;", "", text))))


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("<p>Two rooms</p>", "Two rooms"),
        ('<p title="{{ name }} lives here">{{ name }}</p>', "\0 lives here"),
        ('{% badge "Locked" "accent" %}', "Locked"),
        ('{% panel title="Rooms" %}', "Rooms"),
        ('{{ room|default:"No room" }}', "No room"),
        ('<td data-label="Role">{% translate "Role" %}</td>', "Role"),
    ],
)
def test_the_search_finds_text_outside_of_translations(template: str, found: str) -> None:
    assert list(untranslated(template)) == [found]


@pytest.mark.parametrize(
    "template",
    [
        '<p class="panel rooms">{% translate "Two rooms" %} · {{ count }}</p>',
        "{% blocktranslate count n=rooms %}{{ n }} room{% plural %}rooms{% endblocktranslate %}",
        '{% badge _("Locked") "accent" "circle-check" %}{{ room|default:_("No room") }}',
        "<td data-label=\"{% translate 'Role' %}\">CSV</td>{# a note #}",
    ],
)
def test_the_search_leaves_what_is_translated(template: str) -> None:
    assert not list(untranslated(template))


def test_every_text_of_a_template_can_be_translated() -> None:
    found = {}
    paths = sorted(TEMPLATES.rglob("*.*"))
    assert len(paths) > 300
    for path in paths:
        name = path.relative_to(TEMPLATES)
        if name.parts[0] in NOT_OURS or name.as_posix() == QUERY:
            continue
        texts = list(untranslated(path.read_text(encoding="utf-8")))
        if texts:
            found[str(name)] = texts
    assert not found, "\n".join(f"{name}: {text}" for name in found for text in found[name])


def test_every_noun_that_a_template_counts_is_in_the_table() -> None:
    counted = re.compile(r"\|counted:['\"]([\w -]+)['\"]")
    files = [path.read_text(encoding="utf-8") for path in TEMPLATES.rglob("*.*")]
    nouns = {noun for text in files for noun in counted.findall(text)}
    assert len(nouns) > 30
    assert sorted(nouns - NOUNS.keys()) == []


def messages(catalogue: str) -> set[str]:
    """Return the originals of a catalogue, with their plurals."""
    found = set()
    for entry in re.split(r"\n\s*\n", catalogue)[1:]:
        lines = [line for line in entry.splitlines() if not line.startswith("#")]
        text = "\n".join(lines)
        found.add(text[: text.find("\nmsgstr")])
    return found


def test_the_english_catalogue_holds_every_sentence(
    tmp_path: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`manage.py makemessages --locale en` was run after the last change of a sentence."""
    if shutil.which("xgettext") is None:
        pytest.skip("xgettext, of the package gettext, is not installed")
    for name, kinds in (("templates", ("html", "txt", "jinja")), ("webapp", ("py",))):
        for path in (one for kind in kinds for one in (ROOT / name).rglob(f"*.{kind}")):
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    (tmp_path / CATALOGUE.relative_to(ROOT)).parent.mkdir(parents=True)
    settings.LOCALE_PATHS = [str(tmp_path / "webapp" / "locale")]
    monkeypatch.chdir(tmp_path)
    call_command("makemessages", locale=["en"], verbosity=0)
    fresh = messages((tmp_path / CATALOGUE.relative_to(ROOT)).read_text(encoding="utf-8"))
    assert len(fresh) > 2_000
    stored = messages(CATALOGUE.read_text(encoding="utf-8"))
    assert sorted(fresh - stored)[:20] == sorted(stored - fresh)[:20] == []


BLOCK_TAG = re.compile(r"{%\s*blocktranslate\b([^}]*?)%}")


def test_no_count_is_of_a_name_that_the_same_tag_gives_away() -> None:
    """Django binds the names of a tag first: the count would be of the text for the page."""
    shadowed = []
    for path in sorted(TEMPLATES.rglob("*.*")):
        for tag in BLOCK_TAG.findall(path.read_text(encoding="utf-8")):
            count = re.search(r"\bcount\s+\w+=(\w+)", tag)
            rest = tag.replace(count[0], "") if count else ""
            if count and re.search(rf"(?<=\s){count[1]}=", rest):
                shadowed.append(f"{path.relative_to(TEMPLATES)}: {tag.strip()}")
    assert shadowed == []


def test_pages_for_staff_stay_english(client_of: Callable[[User], Client], carol: User) -> None:
    """Neither the browser nor the language of a student's page changes them."""
    client = client_of(carol)
    student = Client().get(
        reverse("surveys:code", args=["WRONG"]), headers={"accept-language": "es"}
    )
    client.cookies["q-language"] = "es"
    for name in ("common:home", "common:help", "surveys:list", "accounts:people"):
        address = reverse(name)
        plain = client_of(carol).get(address)
        spanish = client.get(address, headers={"accept-language": "es"})
        assert spanish.status_code == plain.status_code == 200, address
        assert _words(spanish.content.decode()) == _words(plain.content.decode()), address
    assert Page(student, status=student.status_code).has("navigation", "Idioma")


def _words(page: str) -> list[str]:
    without = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)
    return re.sub(r"<[^>]*>", " ", without).split()
