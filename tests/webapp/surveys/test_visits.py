"""A personal link leaves the address bar at the first visit, and works where nothing is kept."""

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest
from django.conf import LazySettings
from django.core import mail
from django.test import Client

from tests.webapp.factories.questionnaires import Student, enter
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.monitoring import metrics
from webapp.surveys import visits
from webapp.surveys.links import token_of
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.services.invitations import link_renew


class WithoutCookies(Client):
    """A browser that keeps no cookies, with Django's check of forms switched on."""

    def __init__(self) -> None:
        super().__init__(enforce_csrf_checks=True, headers={"Accept-Language": "en"})

    def request(self, **request: object) -> object:
        answer = super().request(**request)
        self.cookies.clear()
        return answer


def browser() -> Client:
    return Client(enforce_csrf_checks=True, headers={"Accept-Language": "en"})


def token_in_page(page: str) -> str:
    return re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]


@pytest.fixture
def anna(opened: Questionnaire) -> Participant:
    return Participant.objects.create(questionnaire=opened, email="anna@x.example")


@pytest.fixture
def link(anna: Participant) -> str:
    return f"/q/{token_of(anna)}/"


def test_the_first_visit_exchanges_the_token_for_a_cookie(anna: Participant, link: str) -> None:
    client = browser()
    here = enter(client, link)
    kept = client.cookies[f"link-{visits.handle_of(anna)}"]
    assert token_of(anna).partition("~")[0] in kept.value
    assert (kept["httponly"], kept["samesite"], kept["path"]) == (True, "Lax", here)
    page = client.get(f"{here}?n=1")
    assert page.status_code == 200
    assert anna.nonce not in here + page.content.decode()
    fields = {"n": 1, "answer": "2", "csrfmiddlewaretoken": token_in_page(page.content.decode())}
    assert client.post(here, fields).url == f"{here}?n=2"
    anna.refresh_from_db()
    assert list(anna.answers.values()) == [2]


def test_the_cookie_is_for_tls_where_the_others_are(settings: LazySettings, link: str) -> None:
    settings.SESSION_COOKIE_SECURE = True
    client = browser()
    client.get(f"{enter(client, link)}?lang=es")
    kept = {name: cookie for name, cookie in client.cookies.items() if name != "csrftoken"}
    assert "q-language" in kept
    assert all(cookie["secure"] and cookie["httponly"] for cookie in kept.values())
    assert {cookie["samesite"] for cookie in kept.values()} == {"Lax"}


def test_a_chosen_language_and_question_survive_the_exchange(link: str) -> None:
    assert enter(browser(), f"{link}?lang=es&n=3").endswith("/?lang=es&n=3")


def test_without_cookies_the_link_itself_is_the_address(
    anna: Participant, link: str, opened: Questionnaire
) -> None:
    client = WithoutCookies()
    page = client.get(f"{link}?n=1", follow=True)
    assert [status for _, status in page.redirect_chain] == [302], "asked once, then shown"
    assert page["Referrer-Policy"] == "no-referrer"
    assert Page(page).says("question 1 of 14")
    here = page.redirect_chain[-1][0]
    saved = client.post(here, {"n": 1, "answer": "2"})
    assert saved.url.endswith("?n=2&cookies=1")
    assert Page(client.get(saved.url)).says("question 2 of 14")
    for number in range(2, 15):
        client.post(here, {"n": number, "action": "skip"})
    client.post(here, {"action": "finish"})
    anna.refresh_from_db()
    assert anna.finished_at
    assert 2 in anna.answers.values()


def test_without_cookies_a_code_is_enough_to_begin(opened: Questionnaire) -> None:
    client = WithoutCookies()
    there = client.post("/q/", {"code": opened.code})
    begun = client.post(there.url, {"identifier": "N1"}, follow=True)
    assert Page(begun).says("question 1 of 14")
    assert Participant.objects.get().identifier == "N1"


def test_a_form_from_elsewhere_changes_nothing_where_a_cookie_would_send_it(
    anna: Participant, link: str
) -> None:
    client = browser()
    here = enter(client, link)
    answer = client.post(here, {"action": "withdraw", "sure": "yes"})
    assert answer.status_code == 403
    assert Participant.objects.filter(pk=anna.pk).exists()


def test_signing_in_still_checks_who_sends_the_form(opened: Questionnaire) -> None:
    Questionnaire.objects.update(asks_sign_in=True)
    assert browser().post(f"/q/code/{opened.code}/").status_code == 403


def test_an_address_without_its_cookie_opens_nothing(
    bob: User, anna: Participant, link: str, opened: Questionnaire
) -> None:
    client, stranger = browser(), browser()
    here = enter(client, link)
    ben = Participant.objects.create(questionnaire=opened, email="ben@x.example")
    enter(stranger, f"/q/{token_of(ben)}/")
    forged = stranger.cookies[f"link-{visits.handle_of(ben)}"].value
    stranger.cookies[f"link-{visits.handle_of(anna)}"] = forged
    for one in (stranger, browser()):
        refused = one.get(here)
        assert refused.status_code == 404
        assert Page(refused, status=404).has("heading", "Open your personal link again")
    link_renew(user=bob, questionnaire=opened, person=anna.pk)
    assert client.get(here).status_code == 404


def test_two_students_share_a_browser(anna: Participant, link: str, opened: Questionnaire) -> None:
    ben = Participant.objects.create(questionnaire=opened, email="ben@x.example")
    client = browser()
    one, other = enter(client, link), enter(client, f"/q/{token_of(ben)}/")
    for here, answer in ((one, "1"), (other, "3")):
        page = Page(client.get(f"{here}?n=1"))
        client.post(
            here, {"n": 1, "answer": answer, "csrfmiddlewaretoken": token_in_page(page.source)}
        )
    anna.refresh_from_db()
    ben.refresh_from_db()
    assert [list(p.answers.values()) for p in (anna, ben)] == [[1], [3]]


def test_the_last_page_shows_the_link_for_another_device(invited: Student) -> None:
    invited.say_all()
    last = Page(invited.client.get(f"{invited.url}?n=15"))
    shown = last.one("link", "http://testserver/q/").address.removeprefix("http://testserver")
    assert enter(browser(), shown) == invited.url


def test_deleting_the_answers_forgets_the_link(anna: Participant, link: str) -> None:
    client = Client()
    here = enter(client, link)
    client.post(here, {"action": "withdraw", "sure": "yes"})
    assert client.cookies[f"link-{visits.handle_of(anna)}"].value == ""


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Everything that the loggers of the product write."""
    stream = io.StringIO()
    handlers = [
        handler
        for name in ("", "bethe_hall.lines")
        for handler in logging.getLogger(name).handlers
        if type(handler) is logging.StreamHandler
    ]
    assert len(handlers) == 2
    before = [handler.setStream(stream) for handler in handlers]
    yield stream
    for handler, old in zip(handlers, before, strict=True):
        handler.setStream(old)


@pytest.mark.parametrize("client", [browser(), WithoutCookies()], ids=["cookies", "no cookies"])
def test_no_log_metric_or_mail_holds_a_link(
    logged: io.StringIO,
    settings: LazySettings,
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
    anna: Participant,
    link: str,
) -> None:
    settings.ADMINS = ["ops@x.example"]
    client.raise_request_exception = False
    referer = {"Referer": f"http://testserver{link}"}
    page = client.get(link, follow=True, headers=referer)
    client.post(link, {"n": 1, "answer": "2"}, headers=referer)
    client.get(link[:-3] + "/")  # a broken copy: 404
    client.get(f"{link}more/")
    client.post(page.request["PATH_INFO"], {"n": 1}, headers=referer)
    monkeypatch.setattr("webapp.surveys.views.walk.questions_of", lambda *_: 1 / 0)
    assert client.get(link, follow=True).status_code == 500
    text = logged.getvalue()
    paths = [json.loads(line)["path"] for line in text.splitlines() if line.startswith("{")]
    assert "/q/[link]/" in paths
    assert "ZeroDivisionError" in text
    assert "Not Found: /q/[link]/more/" in text
    said = text + metrics.exposition().decode()
    assert anna.nonce not in said
    assert token_of(anna).rpartition("~")[2] not in said
    assert not mail.outbox, "an error mail holds the request"
