"""One-time codes for people with a password: set up, signed in with, lost, required."""

from collections.abc import Callable

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core.cache import caches
from django.test import Client
from django.urls import reverse

from tests.webapp.conftest import PASSWORD
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.identity.second_factor import second_factor_begin
from webapp.identity.services import second_factor_require

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
NOW = 1_800_000_000
PAGE, CODE = "/accounts/second-factor/", "/accounts/second-factor/code/"


@pytest.fixture(autouse=True)
def standing_clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    clock = {"now": NOW}
    for cache in caches.all():
        cache.clear()
    monkeypatch.setattr(
        "allauth.mfa.totp.internal.auth.time.time", lambda: clock["now"], raising=True
    )
    return clock


def code_at(seconds: int, secret: str = SECRET) -> str:
    return format_hotp_value(hotp_value(secret, seconds // 30))


@pytest.fixture
def codes(bob: User, standing_clock: dict[str, int]) -> list[str]:
    """Bob's recovery codes; his first code was that of a minute ago."""
    return second_factor_begin(user=bob, secret=SECRET, code=code_at(NOW))


def password(client: Client, name: str = "bob") -> object:
    fields = {"username": name, "password": PASSWORD}
    return client.post("/accounts/sign-in/?next=/jobs/", fields)


def is_signed_in(client: Client) -> bool:
    return client.get(reverse("accounts:settings")).status_code == 200


def test_the_password_alone_opens_nothing(
    client: Client, codes: list[str], standing_clock: dict[str, int]
) -> None:
    standing_clock["now"] += 60
    assert password(client).url == CODE
    assert not is_signed_in(client)
    assert client.get(CODE).status_code == 200
    answer = client.post(CODE, {"code": code_at(NOW + 60)})
    assert (answer.status_code, answer.url) == (302, "/jobs/")
    assert is_signed_in(client)


def test_a_code_opens_one_session(
    client: Client, codes: list[str], standing_clock: dict[str, int]
) -> None:
    password(client)
    assert client.post(CODE, {"code": code_at(NOW)}).status_code == 422, "it was used to set up"
    standing_clock["now"] += 60
    other = Client()
    password(other)
    assert other.post(CODE, {"code": code_at(NOW + 60)}).status_code == 302
    assert client.post(CODE, {"code": code_at(NOW + 60)}).status_code == 422


def test_without_the_password_no_code_is_asked_for(client: Client, codes: list[str]) -> None:
    assert client.get(CODE).url == "/accounts/sign-in/"
    assert client.post(CODE, {"code": codes[0]}).url == "/accounts/sign-in/"
    assert not is_signed_in(client)


def test_recovery_codes_count_once(client: Client, codes: list[str]) -> None:
    assert len(set(codes)) == 10
    password(client)
    assert client.post(CODE, {"code": codes[3]}).status_code == 302
    again = Client()
    password(again)
    assert again.post(CODE, {"code": codes[3]}).status_code == 422
    assert again.post(CODE, {"code": codes[4]}).status_code == 302
    assert AuditLine.objects.filter(verb="used a recovery code").count() == 2


def test_five_wrong_codes_lock_like_wrong_passwords(client: Client, codes: list[str]) -> None:
    password(client)
    for _ in range(4):
        assert client.post(CODE, {"code": "000000"}).status_code == 422
        password(client)  # a right password does not begin the count anew
    assert client.post(CODE, {"code": "000000"}).status_code == 429
    assert client.post(CODE, {"code": codes[0]}).url == "/accounts/sign-in/"
    assert password(client).status_code == 429


@pytest.mark.parametrize("code", ["", "²²²²²²", "9" * 5000, "abc", "-1", "12 34 56"])
def test_what_is_no_code_is_refused(client: Client, codes: list[str], code: str) -> None:
    password(client)
    assert client.post(CODE, {"code": code}).status_code in (422, 400)


def test_a_new_password_ends_the_waiting(client: Client, bob: User, codes: list[str]) -> None:
    password(client)
    bob.set_password("another-lamp-orbit-43")
    bob.save()
    assert client.post(CODE, {"code": codes[0]}).url == "/accounts/sign-in/"


def test_it_is_set_up_and_turned_off_by_its_page(
    client_of: Callable, bob: User, standing_clock: dict[str, int]
) -> None:
    client = client_of(bob)
    page = Page(client.get(PAGE))
    secret = client.session["second-factor-secret"]
    assert page.has("listitem", secret[:4])
    wrong = client.post(PAGE, {"action": "begin", "code": "000000"})
    assert Page(wrong, status=422).has("alert", "not right")
    done = Page(client.post(PAGE, {"action": "begin", "code": code_at(NOW, secret)}))
    assert done.has("heading", "Recovery codes")
    assert client.post(PAGE, {"action": "off", "password": "wrong"}).status_code == 422
    assert Authenticator.objects.filter(user=bob).count() == 2
    renewed = client.post(PAGE, {"action": "renew", "password": PASSWORD})
    assert Page(renewed).has("heading", "Recovery codes")
    client.post(PAGE, {"action": "off", "password": PASSWORD})
    assert not Authenticator.objects.exists()


def test_an_organisation_can_ask_everybody(
    client_of: Callable, bob: User, carol: User, mallory: User
) -> None:
    second_factor_require(by=carol, is_duty=True)
    client = client_of(bob)
    assert client.get("/").url == PAGE
    assert client.get("/api/tokens/").url == PAGE, "a token would be a way around it"
    assert client.get(PAGE).status_code == 200
    assert client_of(mallory).get("/").status_code == 200, "another organisation decides itself"
    second_factor_begin(user=bob, secret=SECRET, code=code_at(NOW))
    assert client.get("/").status_code == 200


def test_an_administrator_helps_who_lost_phone_and_codes(
    client_of: Callable, bob: User, carol: User, mallory: User, codes: list[str]
) -> None:
    url = reverse("identity:remove-second-factor", args=[bob.pk])
    assert client_of(mallory).post(url).status_code == 403
    client_of(carol).post(url)
    assert not Authenticator.objects.exists()
    assert AuditLine.objects.filter(username="carol", verb="turned off a second factor").exists()
