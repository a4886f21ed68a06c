"""Script in every name, foreign hosts, paths that climb, reading that writes: what strangers bring.

The pages are found by following their own links, so that a new one is tried without being listed.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.apps import apps
from django.db import models
from django.http import HttpResponse
from django.test import Client

from benchmarks.product.web_load import Filler
from tests.webapp.roles import Page
from webapp.accounts.models import Role, User
from webapp.api.registry import endpoints
from webapp.api.services import token_create
from webapp.cohorts.models import Cohort
from webapp.encryption.fields import SealedJSONField
from webapp.housing.models import BuildingList, Placement, Room
from webapp.letters.services.templates import template_save
from webapp.matching.models import LearnedModel
from webapp.reports.services import shape_save
from webapp.surveys.content import Content, plain
from webapp.surveys.services.questionnaires import questionnaire_create
from webapp.webhooks.models import Webhook

FEW = 1e-4
SCRIPT = "<script>alert(1)</script>"
PAYLOAD = f"{SCRIPT}\"'><img src=x onerror=alert(1)>{{{{ 7|add:'7' }}}}"
SCRIPTS = ("<script>alert(", "<img src=x onerror", "77 }}")
# Texts that the product itself writes or that name files and states; nobody can type them.
NOT_TYPED = {
    "digest", "image_digest", "mask_digest", "password", "prefix", "kind", "worker", "media_type",
    "code_version", "weak", "target_id", "decided_by", "username", "solver", "read_as", "theme",
    "state", "event", "nonce", "session_key", "code", "language",
}  # fmt: skip
TYPED_KEYS = {"name", "question", "levels", "cohort_name", "text", "title", "hint", "reason"}
# What reading may write: who came, and what the audit log promises to record.
NOTED = {
    "session", "auditline", "apitoken", "joblistvisit", "logentry", "accesslog", "accessattempt",
    "installation",  # the mark of the store, made when it is first looked at
}  # fmt: skip
CLIMBING = ("../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/settings.py")


@pytest.fixture
def hall(bob: User, carol: User) -> User:
    Filler(bob, FEW).fill(say=lambda text: None)
    fill_the_rest(bob)
    return carol


def fill_the_rest(user: User) -> None:
    """Make what the filling leaves out: buildings, a placement, letters, webhooks, questions."""
    own = {"organisation": user.organisation, "created_by": user}
    buildings = BuildingList.objects.create(**own, name="Campus", filename="rooms.csv")
    Room.objects.create(
        buildings=buildings, hall="Alder", floor="1", name="101", designation="quiet",
        note="by the lift", capacity=2, position=0,
    )  # fmt: skip
    cohort = Cohort.objects.filter(organisation=user.organisation).first()
    model = LearnedModel.objects.filter(organisation=user.organisation).first()
    Placement.objects.create(**own, name="Rooms", cohort=cohort, buildings=buildings, model=model)
    template_save(user=user, template=None, name="Letter", subject="Your room", text="[hall]")
    shape_save(user=user, name="Roster", columns=[("id", ""), ("hall", "")], is_exact=True)
    webhook = Webhook.objects.create(
        organisation=user.organisation, url="https://example.org/", events=["job.failed"], nonce="n"
    )
    webhook.deliveries.create(event="job.failed", body="{}", error="refused")
    questionnaire_create(user=user, title="Habits", form="housing")


# Pictures and masks, which the filling does not draw, and what is static.
FILE = re.compile(r"\.\w{2,4}$|^/static/")


def own_models() -> list[type[models.Model]]:
    return [model for model in apps.get_models() if model.__module__.startswith("webapp.")]


def hang_script_into_every_name() -> int:
    """Write the payload into every text that a person or a file can give; return how many."""
    changed = 0
    for model in own_models():
        for one in model._default_manager.all():
            names = []
            for field in model._meta.concrete_fields:
                if isinstance(field, models.JSONField | SealedJSONField):
                    setattr(one, field.attname, with_script(getattr(one, field.attname)))
                elif not is_typed(field) or not getattr(one, field.attname):
                    continue
                else:
                    text = f"{PAYLOAD}{one.pk}" if is_unique(field) else PAYLOAD
                    setattr(one, field.attname, text[: field.max_length])
                names.append(field.attname)
            if names:
                model._default_manager.filter(pk=one.pk).update(
                    **{name: getattr(one, name) for name in names}
                )
                changed += len(names)
    return changed


def is_typed(field: models.Field) -> bool:
    is_text = isinstance(field, models.CharField | models.TextField)
    return is_text and not field.choices and field.name not in NOT_TYPED


def is_unique(field: models.Field) -> bool:
    return field.unique or any(
        field.name in getattr(constraint, "fields", ())
        for constraint in field.model._meta.constraints
    )


def with_script(value: Any, key: str = "") -> Any:
    if isinstance(value, Content):
        return Content.model_validate(with_script(plain(value)))
    if isinstance(value, dict):
        return {name: with_script(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [with_script(item, key) for item in value]
    return f"{value}{PAYLOAD}" if isinstance(value, str) and key in TYPED_KEYS else value


def crawl(client: Client) -> Iterator[tuple[str, HttpResponse]]:
    """Follow the links of every page, to two objects of every kind."""
    waiting, shapes = ["/"], Counter({"/": 1})
    while waiting:
        address = waiting.pop(0)
        answer = client.get(address)
        yield address, answer
        if not answer.get("Content-Type", "").startswith("text/html"):
            continue
        for link in re.findall(r'(?:href|hx-get)="([^"#]+)', answer.content.decode()):
            target = urljoin(address, unescape(link))
            path = urlsplit(target).path
            shape = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "ID", path)
            is_page = path.startswith("/") and not FILE.search(path)
            if is_page and shapes[shape] < 2:
                shapes[shape] += 1
                waiting.append(target)


def test_no_name_becomes_script(hall: User, client_of: Callable[[User], Client]) -> None:
    assert hang_script_into_every_name() > 100
    reached = set()
    shown = 0
    for address, answer in crawl(client_of(hall)):
        assert answer.status_code < 500, address
        if answer.get("Content-Type", "").startswith("text/html"):
            page = Page(answer, status=answer.status_code)
            shows = page.says("<script>alert(1)")
            shown += shows
            reached |= {address.split("/")[1]} if shows else set()
            for script in SCRIPTS:
                at = page.source.find(script)
                assert at == -1, f"{address}: {page.source[at - 200 :][:400]}"
            assert "script-src 'self'" in answer["Content-Security-Policy"]
    assert shown > 30
    assert {"placements", "buildings", "letters", "webhooks", "questionnaires"} <= reached


def test_reading_changes_nothing(hall: User, client_of: Callable[[User], Client]) -> None:
    client = client_of(hall)
    client.get("/")
    before, pages = fingerprint(), 0
    for address, answer in crawl(client):
        assert answer.status_code < 500, address
        pages += 1
    assert pages > 40
    after = fingerprint()
    assert {name for name in before if before[name] != after[name]} == set()


def fingerprint() -> dict[str, str]:
    """Return a digest of the rows of every table but those that note who read what."""
    return {
        model._meta.label: hashlib.sha256(
            repr(list(model._default_manager.order_by("pk").values_list())).encode()
        ).hexdigest()
        for model in apps.get_models()
        if model._meta.model_name not in NOTED
    }


@pytest.mark.parametrize(
    "host", ["evil.example", "testserver.evil.example", "testserver@evil.example"]
)
def test_a_foreign_host_is_refused(carol: User, client_of: Callable, host: str) -> None:
    assert client_of(carol).get("/", headers={"host": host}).status_code == 400


def test_a_forwarded_host_is_not_believed(carol: User, client_of: Callable) -> None:
    for address in ("/api/", "/api/tokens/", "/"):
        answer = client_of(carol).get(address, headers={"x-forwarded-host": "evil.example"})
        assert "evil.example" not in Page(answer).source


@pytest.mark.any_database
def test_no_address_climbs_out_of_its_folder(
    hall: User, client_of: Callable[[User], Client]
) -> None:
    client = client_of(hall)
    roots = ("/static/", "/media/", "/", "/cohorts/", "/placements/", "/image-sets/", "/api/v1/")
    known = {address for address, _ in crawl(client)}
    parents = {f"{address.partition('?')[0].rstrip('/')}/" for address in known}
    for address in (f"{parent}{climb}" for parent in {*roots, *parents} for climb in CLIMBING):
        answer = client.get(address)
        assert answer.status_code in (302, 400, 404, 405), address
        assert b"root:" not in getattr(answer, "content", b"")


def test_a_viewer_changes_nothing_through_the_interface(alice: User) -> None:
    """Whatever the token says: it never allows more than the person's role."""
    assert alice.role == Role.VIEWER
    _, secret = token_create(user=alice, name="sync", days=1, may_change=True)
    client = Client(headers={"authorization": f"Bearer {secret}"})
    changing = [entry for entry in endpoints() if entry.changes]
    assert len(changing) > 10
    before = fingerprint()
    for entry in changing:
        path = re.sub(r"{\w*id}", "0f8fad5b-d9cb-469f-a165-70867728950e", entry.path)
        path = re.sub(r"{pair_id}", "1", path)
        path = re.sub(r"{\w+}", "csv", path)
        answer = getattr(client, entry.method.lower())(f"/api/v1{path}")
        assert answer.status_code in (403, 404), f"{entry.method} {entry.path}"
    assert all(entry.method == "GET" for entry in endpoints() if not entry.changes)
    assert fingerprint() == before
