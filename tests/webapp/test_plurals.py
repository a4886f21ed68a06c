"""Every page with no thing, one thing and two things of a kind: counts agree with their nouns."""

import re
import uuid
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pytest
from django.apps import apps
from django.db import IntegrityError, models, transaction
from django.test import Client
from django.urls import reverse

from tests.webapp.conftest import make_user
from tests.webapp.factories.page_addresses import ADDRESSES
from webapp.accounts.models import Organisation, Role, User
from webapp.common.formats import counted
from webapp.translation.counting import NOUNS

ROOT = Path(__file__).resolve().parents[2]
# The words by which pages count; their singulars are searched for on all pages.
COUNTED = re.compile(r"counted(?:\(.*?, |:)\"([a-z]+)\"")
NOT_NOUNS = {"blank", "matched", "moved", "people", "removed"}
TEXT = re.compile(r"<(script|style|textarea|svg|pre)\b.*?</\1>|<[^>]+>", re.S)
INLINE = re.compile(r"</?(?:b|i|em|strong|small|span|a|sup|sub|abbr|data|time)\b[^>]*>")


def nouns() -> set[str]:
    """Return the nouns that pages count, in the singular."""
    files = [*(ROOT / "webapp").rglob("*.py"), *(ROOT / "templates").rglob("*.*")]
    words = {word for path in files for word in COUNTED.findall(path.read_text(encoding="utf-8"))}
    words |= {word for word in NOUNS if " " not in word}
    return {word for word in words - NOT_NOUNS if not word.endswith("s")}


def disagreements(page: str, words: set[str]) -> list[str]:
    """Return what a page says with a count and a noun that do not agree."""
    text = unescape(TEXT.sub(" | ", INLINE.sub("", page)))
    text = re.sub(r"\s+", " ", text)
    plural = "|".join(sorted({counted(2, word).split(" ", 1)[1] for word in words}))
    single = "|".join(sorted(words, key=len, reverse=True))
    wrong = re.compile(
        rf"(?<![\w.,:/-])(?:1 (?:{plural})|(?:0|[2-9]|[1-9][\d,]*\d) (?:{single}))(?![\w-])"
    )
    return [text[max(0, found.start() - 40) : found.end() + 40] for found in wrong.finditer(text)]


@pytest.mark.parametrize("text", ["1 pairs", "0 pair", "2 student", "1,204 room is", "21 image"])
def test_the_search_finds_what_does_not_agree(text: str) -> None:
    assert disagreements(f"<p>{text}</p>", {"pair", "student", "room", "image"})


@pytest.mark.parametrize("text", ["1 pair", "0 pairs", "B-1 pairs", "2 room-mates", "3.1 pairs"])
def test_the_search_leaves_what_agrees(text: str) -> None:
    assert not disagreements(f"<p>{text}</p>", {"pair", "student", "room", "image"})


def pages(client: Client, addresses: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every page that answers."""
    for name, url in addresses.items():
        answer = client.get(url)
        if answer.status_code == 200 and answer.get("Content-Type", "").startswith("text/html"):
            yield name, answer.content.decode()


def check(client: Client, addresses: dict[str, str]) -> int:
    """Fail with every disagreement on any page; return the number of pages."""
    words, wrong, count = nouns(), {}, 0
    for name, page in pages(client, addresses):
        count += 1
        found = disagreements(page, words)
        if found:
            wrong[name] = found
    assert not wrong, "\n".join(
        f"{name}: {line}" for name, lines in wrong.items() for line in lines
    )
    return count


def double(*left_out: type[models.Model]) -> int:
    """Add a copy of every row that can be there twice; return the number of copies."""
    copies = 0
    for model in apps.get_models():
        is_ours = model.__module__.startswith("webapp.")
        if not is_ours or model in (Organisation, User, *left_out):
            continue
        for row in list(model._default_manager.all()[:50]):
            try:
                with transaction.atomic():
                    copies += _copied(row)
            except (IntegrityError, ValueError, TypeError):
                continue
    return copies


def _copied(row: models.Model) -> bool:
    row.pk = uuid.uuid4() if isinstance(row._meta.pk, models.UUIDField) else None
    row._state.adding = True
    for field in row._meta.concrete_fields:
        if field.name in ("name", "title") and isinstance(field, models.CharField):
            setattr(row, field.name, f"{getattr(row, field.name)} again"[: field.max_length])
    row.save(force_insert=True)
    return True


@pytest.mark.django_db
def test_counts_agree_with_no_thing(client_of: Callable[[User], Client]) -> None:
    empty = Organisation.objects.create(name="Empty College")
    user = make_user("erin", empty, Role.ADMINISTRATOR)
    bare = {name: reverse(name) for name, parameters in ADDRESSES.items() if not parameters}
    assert check(client_of(user), bare) > 15


def test_counts_agree_with_one_thing_and_with_two(
    client_of: Callable[[User], Client],
    carol: User,
    urls: dict[str, str],
) -> None:
    client = client_of(carol)
    assert check(client, urls) > 60
    assert double() > 20
    assert check(client, urls) > 60
