"""A language made for tests, in which every translated text stands in brackets ⟦ ⟧.

A page shows data outside of brackets, and nothing else: any other text cannot be translated.
"""

import re
import struct
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import models
from django.test import Client

from webapp.audit.models import AuditLine
from webapp.housing.exports import COLUMNS, SYSTEMS
from webapp.jobs.models import Job
from webapp.surveys.models import Questionnaire
from webapp.surveys.questions import questions_of
from webapp.surveys.services.translations import LANGUAGES, all_texts

CODE = "qps"  # Django has no language of this code
HEADER = "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n != 1);\n"
# Attributes that are shown or read aloud.
SHOWN = {
    "alt", "aria-description", "aria-label", "aria-roledescription", "aria-valuetext",
    "data-label", "data-shortcut-label", "label", "placeholder", "title",
}  # fmt: skip
# Elements whose text is no sentence for people: code, examples of commands, names of keys.
SILENT = {"script", "style", "pre", "code", "kbd", "textarea"}
# Elements within a sentence; a sentence ends at the edges of all others.
INLINE = {
    "a", "abbr", "b", "br", "data", "em", "i", "img", "mark", "small", "span", "strong", "sub",
    "sup", "time", "tspan", "u", "var", "wbr",
}  # fmt: skip
EMPTY = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
}  # fmt: skip


def write_catalogue(folder: Path, texts: dict[str, str], domain: str = "django") -> None:
    """Write a compiled catalogue, in the format of msgfmt, so that no program is needed."""
    pairs = sorted((key.encode(), text.encode()) for key, text in ({"": HEADER} | texts).items())
    places: list[list[int]] = [[], []]
    strings = b""
    start = 28 + 16 * len(pairs)
    for k in (0, 1):
        for pair in pairs:
            places[k] += [len(pair[k]), start + len(strings)]
            strings += pair[k] + b"\0"
    count = len(pairs)
    head = struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0)
    tables = struct.pack(f"<{4 * count}I", *places[0], *places[1])
    (folder / "LC_MESSAGES").mkdir(parents=True, exist_ok=True)
    (folder / "LC_MESSAGES" / f"{domain}.mo").write_bytes(head + tables + strings)


def bracketed(catalogue: Path) -> dict[str, str]:
    """Return every entry of a file of sentences with its translation in brackets."""
    texts = {}
    for entry in re.split(r"\n\s*\n", catalogue.read_text(encoding="utf-8")):
        parts: dict[str, str] = {}
        for name, lines in re.findall(
            r'^(msgctxt|msgid_plural|msgid) ((?:"(?:[^"\\]|\\.)*"\s*)+)', entry, re.M
        ):
            joined = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', lines))
            parts[name] = re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), joined)
        if not parts.get("msgid"):
            continue
        key = parts["msgid"]
        forms = [key]
        if "msgid_plural" in parts:
            key, forms = f"{key}\0{parts['msgid_plural']}", [key, parts["msgid_plural"]]
        if "msgctxt" in parts:
            key = f"{parts['msgctxt']}\x04{key}"
        texts[key] = "\0".join(f"⟦{form}⟧" for form in forms)
    return texts


ESCAPES = {"n": "\n", "t": "\t"}


class Page(HTMLParser):
    """Reader of a page that collects what is shown outside of brackets."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.bare: list[str] = []
        self.text = ""
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read the attributes that are shown, and end the sentence before a block."""
        if tag in SILENT:
            self.silent += 1
        self.text += " "
        if tag not in INLINE:
            self.end()
        given = dict(attrs)
        for name, value in attrs:
            is_button = tag == "input" and given.get("type") in ("submit", "button", "reset")
            if value and (name in SHOWN or (name == "value" and is_button)):
                self.bare.append(outside(value))

    def handle_endtag(self, tag: str) -> None:
        """End the sentence with its block."""
        if tag in SILENT:
            self.silent -= 1
        self.text += " "
        if tag not in INLINE:
            self.end()

    def handle_data(self, data: str) -> None:
        """Add to the sentence."""
        if not self.silent:
            self.text += data

    def end(self) -> None:
        """Keep what stands outside of brackets in the sentence."""
        if self.text.strip():
            self.bare.append(outside(self.text))
        self.text = ""


def outside(text: str) -> str:
    """Return a text without its parts in brackets; one that is cut short ends in its brackets."""
    depth, kept = 0, ""
    for letter in text:
        depth += (letter == "⟦") - (letter == "⟧")
        if depth < 0:  # the sentence began before what is shown
            depth, kept = 0, ""
        elif depth == 0:
            kept += " " if letter == "⟧" else letter
    return " ".join(kept.split())


def bare_texts(page: str) -> Iterator[str]:
    """Yield what a page shows outside of brackets and holds letters."""
    reader = Page()
    reader.feed(page)
    reader.close()
    reader.end()
    yield from filter(_has_words, reader.bare)


# Texts that stay as they are in every language, each with the reason.
KEPT = re.compile(
    r"https?://\S+|[\w.+-]+@[\w.-]+|[0-9a-f]{16,}|\b[A-Z2-7]{4}(?: [A-Z2-7]{4})+\b"  # by programs
    r"|\b(?:px|kB|MB|GB|UTC|nats|AUC|ROC|API|URL|CSV|XLSX|ZIP|JSON|SAML|OpenID Connect)\b"
    r"|\bBethe Hall\b|\bBethe\b"  # names: the product, a method
    r"|\b(?:Banner|Housing\.Cloud|Jenzabar|StarRez|eRezLife)\b"  # names of other systems
    r"|Europe/Madrid"  # a zone of time
    r"|Anna Berg <anna@northfield\.example>, N00123"  # an example of a line
)
# Jobs store these in the language of staff at that time; a test that makes jobs makes them so.
_SENTENCES_OF_JOBS = {"title", "sentence", "error", "result", "cancel_reason"}
_COLUMNS_OF_TEXT = (models.CharField, models.TextField, models.JSONField)


def typed_texts() -> list[str]:
    """Return the texts that people typed or files hold, longest first.

    Words in small letters that JSON holds are left out: a page could hold them untranslated.
    """
    texts = {column.heading for column in COLUMNS.values()}
    texts |= {heading for system in SYSTEMS.values() for _, heading in system.columns}
    texts |= set(LANGUAGES.values())
    for line in AuditLine.objects.all():  # the audit log is in English
        texts |= {line.verb, f"{line.username} {line.verb} {line.target_name}"}
    for questionnaire in Questionnaire.objects.all():
        texts |= {*all_texts(questionnaire), *_strings(questionnaire.content.translations)}
        texts |= {question.name for question in questions_of(questionnaire.content)}
    for model in apps.get_models():
        if model.__module__.startswith("webapp.") and model is not AuditLine:
            texts |= set(_stored(model))
    lines = {" ".join(line.split()) for text in texts for line in text.splitlines()}
    return sorted((x for x in lines if len(x) > 1 and "⟦" not in x), key=len, reverse=True)


def _stored(model: type[models.Model]) -> Iterator[str]:
    names = [
        field.name
        for field in model._meta.concrete_fields
        if isinstance(field, _COLUMNS_OF_TEXT) and not field.choices
        if not (model is Job and field.name in _SENTENCES_OF_JOBS)
    ]
    for row in model._default_manager.all()[:400]:
        for value in (getattr(row, name) for name in names):
            if isinstance(value, str):
                yield value
            else:
                yield from (text for text in _strings(value) if not re.fullmatch("[a-z ]+", text))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _strings(one)


def untranslated(
    client: Client, addresses: dict[str, str], allowed: dict[str, re.Pattern]
) -> tuple[int, list[str]]:
    """Return the number of pages, and every text of them that is neither translated nor data."""
    count, found = 0, []
    for name, url in addresses.items():
        answer = client.get(url)
        if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
            continue
        count += 1
        for text in bare_texts(answer.content.decode()):
            rest = KEPT.sub(" ", text)
            if name in allowed:
                rest = allowed[name].sub(" ", rest)
            if _has_words(rest):
                found.append((name, text, rest))
    # Only texts that may be data are compared with it: that takes long.
    data = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in typed_texts()))
    return count, sorted(
        {f"{name}: {text}" for name, text, rest in found if _has_words(data.sub(" ", rest))}
    )


def _has_words(text: str) -> bool:
    return bool(re.search(r"[^\W\d_]{2}", text))
