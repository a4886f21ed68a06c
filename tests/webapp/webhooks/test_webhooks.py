"""Webhooks: signed, tried again, never inside a network, shown with what became of them."""

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.patience import busyness
from tests.webapp.factories.placed import placed_cohort, publish
from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_outlives_a_session, check_refused
from webapp.accounts.models import User
from webapp.common.events import EVENTS, send_event
from webapp.common.limits import TooManyError
from webapp.housing.models import Placement
from webapp.housing.services.decisions import Move, emptying, places_move
from webapp.housing.services.drafts import draft_add, draft_confirm
from webapp.housing.services.publication import placement_publish
from webapp.housing.services.undo import decision_undo
from webapp.housing.services.versions import computed_version, version_store
from webapp.jobs.endings import job_fail
from webapp.jobs.failures import Failure
from webapp.jobs.models import Job, JobState
from webapp.letters.services.letters import letters_queue, letters_send
from webapp.letters.services.templates import template_save
from webapp.webhooks import guard, transport
from webapp.webhooks.errors import WebhookError
from webapp.webhooks.guard import addresses_of, read_url
from webapp.webhooks.models import Delivery, Webhook
from webapp.webhooks.services import (
    deliveries_expire,
    deliveries_send,
    webhook_change,
    webhook_create,
    webhook_new_secret,
    webhook_test,
)

ClientOf = Callable[[User], Client]
RECEIVED: list[tuple[dict[str, str], bytes]] = []


class Program(BaseHTTPRequestHandler):
    """Another program: it answers what its path says, slowly, with a redirect, or not at all."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        RECEIVED.append(({k.lower(): v for k, v in self.headers.items()}, body))
        word = self.path.strip("/").partition("?")[0]
        if word == "cut":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if word.startswith("drip"):  # further headers, or a body after which it hangs up
            self.wfile.write(b"HTTP/1.0 200 OK\r\n" + b"\r\n" * (word == "drip-body"))
            more, times = (b"x", 2000) if word == "drip-body" else (b"X-Slow: 1\r\n", 100)
            with suppress(OSError):  # the other side hangs up
                for _ in range(times):
                    self.wfile.write(more)
                    time.sleep(0.05)
            return
        if word == "slow":
            time.sleep(3)
        self.send_response(int(word) if word.isdecimal() else 200)
        if word == "302":
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/200")
        self.end_headers()
        if word == "endless":
            self.wfile.write(b"x" * 10**6)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def program(settings: LazySettings) -> Iterator[str]:
    """The address of a program on this machine, which the settings allow to be called."""
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    RECEIVED.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Program)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(transport, "WHOLE_SECONDS", 0.8)


def add(user: User, url: str, events: list[str] | None = None) -> tuple[Webhook, str]:
    return webhook_create(user=user, url=url, events=events or list(EVENTS))


def test_a_delivery_is_signed_as_standard_webhooks_are(carol: User, program: str) -> None:
    _, secret = add(carol, f"{program}/200")
    send_event(carol.organisation_id, "placement.published", placement="p", name="Räume")
    assert deliveries_send() == 1
    assert deliveries_send() == 0
    ((headers, body),) = RECEIVED
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    wanted = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{wanted}"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 30
    told = json.loads(body)
    assert (told["type"], told["data"]["name"]) == ("placement.published", "Räume")
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.answer) == (Delivery.SENT, 200)


def test_only_what_was_chosen_is_told_and_only_at_home(
    carol: User, mallory: User, program: str
) -> None:
    add(carol, f"{program}/200", ["job.failed"])
    add(mallory, f"{program}/201")
    send_event(carol.organisation_id, "placement.published", placement="p")
    assert not Delivery.objects.exists()
    send_event(carol.organisation_id, "job.failed", job="j")
    assert Delivery.objects.get().webhook.organisation == carol.organisation


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("500", "Answered 500."),
        ("404", "Answered 404."),
        ("302", "Answered 302; redirects are not followed."),
        ("cut", "No answer: "),
        ("slow", "No answer"),
        ("drip", "No answer within 1 s."),
        ("drip-body", "No answer within 1 s."),
    ],
)
def test_what_fails_is_tried_again_with_growing_pauses(
    carol: User, program: str, quick: None, path: str, error: str
) -> None:
    add(carol, f"{program}/{path}")
    send_event(carol.organisation_id, "job.failed", job="j")
    started = time.monotonic()
    assert deliveries_send() == 0
    assert time.monotonic() - started < 2.5 * busyness(), "nobody holds the sender"
    delivery = Delivery.objects.get()
    assert delivery.error.startswith(error)
    assert delivery.state == Delivery.WAITING
    assert timedelta(seconds=110) < delivery.due_at - timezone.now() < timedelta(seconds=130)
    assert deliveries_send() == 0
    assert len(RECEIVED) == 1, "a redirect is not followed, and no attempt comes early"
    Delivery.objects.update(due_at=timezone.now())
    deliveries_send()
    assert Delivery.objects.get().due_at - timezone.now() > timedelta(seconds=230)


def test_the_same_key_comes_with_every_attempt_and_eight_are_the_most(
    carol: User, program: str
) -> None:
    add(carol, f"{program}/500")
    send_event(carol.organisation_id, "job.failed", job="j")
    for _ in range(10):
        Delivery.objects.update(due_at=timezone.now())
        deliveries_send()
    assert len(RECEIVED) == 8
    assert len({headers["webhook-id"] for headers, _ in RECEIVED}) == 1
    assert Delivery.objects.get().state == Delivery.FAILED


def test_a_program_that_is_away_keeps_nobody_else_waiting(carol: User, program: str) -> None:
    add(carol, f"{program}/500")
    add(carol, f"{program}/200")
    for k in range(3):
        send_event(carol.organisation_id, "job.failed", job=str(k))
    assert deliveries_send() == 3


def test_a_long_answer_is_not_read(carol: User, program: str) -> None:
    add(carol, f"{program}/endless")
    send_event(carol.organisation_id, "job.failed", job="j")
    assert deliveries_send() == 1


def test_who_wants_no_more_is_told_no_more(carol: User, program: str) -> None:
    add(carol, f"{program}/410")
    send_event(carol.organisation_id, "job.failed", job="j")
    deliveries_send()
    assert Webhook.objects.get().is_paused
    send_event(carol.organisation_id, "job.failed", job="k")
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", "An address begins with https://"),
        ("ftp://x.example/", "An address begins with https://"),
        ("https://", "An address begins with https://"),
        ("https://user:secret@x.example/", "Leave name and password out"),
        ("https://x.example/#part", "Leave out what follows"),
        ("https://x.example/ space", "at most 500 plain characters"),
        ("https://x.example/\r\nHost: y", "at most 500 plain characters"),
        ("https://x.example:99999/", "This is no address"),
        ("https://x.example/" + "a" * 500, "at most 500 plain characters"),
        ("https://127.0.0.1/", "inside a network"),
        ("https://localhost/", "inside a network"),
        ("https://10.1.2.3/", "inside a network"),
        ("https://169.254.169.254/latest/meta-data/", "inside a network"),
        ("https://100.64.0.1/", "inside a network"),
        ("https://[::1]/", "inside a network"),
        ("https://[fe80::1]/", "inside a network"),
        ("https://[::ffff:10.0.0.1]/", "inside a network"),
        ("https://[64:ff9b::a00:1]/", "inside a network"),
        ("https://0/", "inside a network"),
        ("https://2130706433/", "inside a network"),
        ("http://8.8.8.8/", "Use https"),
        ("https://nowhere.invalid/", "No address is known for nowhere.invalid"),
    ],
)
def test_bad_and_internal_addresses_get_one_sentence(carol: User, url: str, sentence: str) -> None:
    with pytest.raises(WebhookError, match=sentence):
        add(carol, url)
    assert not Webhook.objects.exists()


def test_a_name_that_moves_inside_after_it_was_added_leads_nowhere(
    carol: User, program: str, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is looked up once for each attempt, and the checked address is what is called."""
    add(carol, f"{program}/200")
    settings.WEBHOOK_NETWORKS = []
    send_event(carol.organisation_id, "job.failed", job="j")
    assert deliveries_send() == 0
    assert not RECEIVED
    assert "inside a network" in Delivery.objects.get().error
    both = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 443)) for ip in ("8.8.8.8", "10.0.0.1")
    ]
    monkeypatch.setattr(guard.socket, "getaddrinfo", lambda *_, **__: both)
    with pytest.raises(WebhookError, match="inside a network"):
        addresses_of(read_url("https://x.example/"))


def test_a_test_tells_what_came_of_it_at_once(carol: User, program: str) -> None:
    good, _ = add(carol, f"{program}/200")
    bad, _ = add(carol, f"{program}/500")
    assert webhook_test(user=carol, webhook=good).answer == 200
    failed = webhook_test(user=carol, webhook=bad)
    assert (failed.state, failed.error) == (Delivery.FAILED, "Answered 500.")
    assert deliveries_send() == 0


def test_tests_are_limited(carol: User, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook, _ = add(carol, f"{program}/200")
    monkeypatch.setattr("webapp.webhooks.services.count_up", lambda *_: 11)
    with pytest.raises(TooManyError):
        webhook_test(user=carol, webhook=webhook)


def test_a_new_secret_signs_from_then_on(carol: User, program: str) -> None:
    webhook, first = add(carol, f"{program}/200")
    assert webhook_new_secret(user=carol, webhook=webhook) != first
    stored = [str(value) for value in Webhook.objects.values().get().values()]
    assert not any(first.removeprefix("whsec_") in value for value in stored)


def test_what_is_paused_gets_nothing_and_old_deliveries_go(carol: User, program: str) -> None:
    webhook, _ = add(carol, f"{program}/200")
    send_event(carol.organisation_id, "job.failed", job="j")
    webhook_change(
        user=carol, webhook=webhook, url=webhook.url, events=["job.failed"], is_paused=True
    )
    send_event(carol.organisation_id, "job.failed", job="k")
    assert deliveries_send() == 0
    assert Delivery.objects.count() == 1
    Delivery.objects.update(state=Delivery.SENT, created_at=timezone.now() - timedelta(days=31))
    assert deliveries_expire() == 1


def events_of(user: User) -> list[tuple[str, dict[str, Any]]]:
    found = Delivery.objects.filter(webhook__organisation=user.organisation).order_by("pk")
    return [(one.event, json.loads(one.body)["data"]) for one in found]


def half(_: object, rooms: list[list[int]]) -> dict[int, float]:
    """Return a score for everybody, where no model was learned."""
    return {number: 0.5 for members in rooms for number in members}


def test_every_event_is_told_by_the_act_itself(
    carol: User, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.housing.scores.Scores.of_rooms", half)
    add(carol, f"{program}/200")
    placement = placed_cohort(carol)
    version_store(
        computed_version(
            placement=placement,
            job=None,
            user=carol,
            rules=placement.rules,
            rooms=dict(placement.places.values_list("student_id", "room_id")),
            doubts={},
            figures={},
            outcomes={},
        )
    )
    placement.refresh_from_db()
    room = placement.buildings.rooms.get(name="104")
    options = {"user": carol, "placement": placement, "sentence": "moved"}
    places_move(moves=[Move(1006, room.pk)], version=placement.version, **options)
    placement.refresh_from_db()
    placement_publish(user=carol, placement=placement, version=placement.version)
    placement.refresh_from_db()
    draft = draft_add(
        user=carol, placement=placement, decision=emptying([1006]), version=placement.version
    )
    event = draft_confirm(user=carol, draft=draft, people=1, version=placement.version)
    decision_undo(user=carol, placement=placement, event=event, confirmed=1)
    placement.refresh_from_db()
    template = template_save(user=carol, template=None, name="L", subject="S", text="[hall]")
    letters_queue(user=carol, placement=placement, template=template, version=placement.version)
    assert letters_send() == 6
    job = Job.objects.create(
        organisation=carol.organisation, kind="housing.place", state=JobState.RUNNING, seed=1
    )
    assert job_fail(job=job, failure=Failure("It broke."))
    told = events_of(carol)
    assert [event for event, _ in told] == [
        "placement.finished",
        "placement.published",
        "student.moved",
        "student.moved",
        "letters.sent",
        "job.failed",
    ]
    assert told[0][1] | {"placement": ""} == {
        "placement": "", "name": "Rooms of First-years", "students": 6, "placed": 5
    }  # fmt: skip
    before = {"room": room.pk, "name": "Alder 104", "bed": 1}
    assert told[2][1]["students"] == [{"student": "S-1006", "before": before, "after": None}]
    assert told[3][1]["students"][0]["after"]["name"] == "Alder 104"
    assert told[4][1]["sent"] == 6
    assert not any(
        "uni.example" in json.dumps(data) or "Anna" in json.dumps(data) for _, data in told
    )


def test_an_act_that_fails_tells_nothing(carol: User, program: str) -> None:
    add(carol, f"{program}/200")
    placement = placed_cohort(carol)
    publish(placement)
    with pytest.raises(ValueError, match="published already"):
        placement_publish(user=carol, placement=placement, version=1)
    assert not Delivery.objects.exists()
    assert Placement.objects.get().is_published


def test_administrators_add_test_and_remove_by_the_pages(
    client_of: ClientOf, carol: User, program: str
) -> None:
    client = client_of(carol)
    assert Page(client.get(reverse("webhooks:list"))).has("paragraph", "No webhooks yet.")
    typed = {"url": "https://10.0.0.1/", "event": ["job.failed"]}
    bad = client.post(reverse("webhooks:list"), typed)
    check_refused(bad, typed, field="url", error="inside a network")
    typed = {"url": f"{program}/200"}
    none = client.post(reverse("webhooks:list"), typed)
    check_refused(none, typed, field="event", error="Choose at least one of the events.")
    check_outlives_a_session(client_of, carol, reverse("webhooks:list"), typed)
    made = client.post(reverse("webhooks:list"), {"url": f"{program}/200", "event": ["job.failed"]})
    secret = secret_of(Page(made))
    assert secret.startswith("whsec_")
    assert made["Cache-Control"] == "no-store"
    webhook = Webhook.objects.get()
    at = reverse("webhooks:webhook", args=[webhook.pk])
    assert secret not in Page(client.get(at)).source
    page = Page(client.post(f"{at}test/", follow=True))
    assert page.has("status", "Arrived: answered 200.")
    assert page.one("row", "test").says("This is a test of a webhook.")
    renewed = Page(client.post(f"{at}act/", {"act": "secret"}, follow=True))
    assert secret_of(renewed).startswith("whsec_")
    assert secret not in renewed.source
    typed = {"url": "ftp://nowhere.example/a", "event": ["job.failed"], "is_paused": "on"}
    check_refused(client.post(at, typed), typed, field="url", error="")
    client.post(at, {"url": f"{program}/500", "event": ["job.failed"]})
    send_event(carol.organisation_id, "job.failed", job="j")
    Delivery.objects.filter(event="job.failed").update(attempts=7)
    deliveries_send()
    page = Page(client.get(at))
    assert page.one("row", "job.failed").has("cell", "Answered 500.")
    failed = Delivery.objects.get(event="job.failed")
    client.post(f"{at}repeat/", {"delivery": failed.pk})
    failed.refresh_from_db()
    assert failed.state == Delivery.WAITING
    assert Page(client.get(at)).has("paragraph", "Receives 1 event")
    client.post(f"{at}remove/")
    assert not Webhook.objects.exists()


def secret_of(page: Page) -> str:
    """Return the secret that a page shows once."""
    notice = page.one("status", "Copy the secret now. It is not shown again.")
    return next(word for word in notice.text.split() if "_" in word)


def test_nobody_else_sees_them(
    client_of: ClientOf, alice: User, bob: User, carol: User, mallory: User, program: str
) -> None:
    webhook, _ = add(carol, f"{program}/200")
    at = reverse("webhooks:webhook", args=[webhook.pk])
    for person in (alice, bob):
        assert client_of(person).get(at).status_code == 403
        assert client_of(person).get(reverse("webhooks:list")).status_code == 403
    mallory.role = "administrator"
    mallory.save()
    assert client_of(mallory).get(at).status_code == 404
    assert program not in Page(client_of(mallory).get(reverse("webhooks:list"))).source
