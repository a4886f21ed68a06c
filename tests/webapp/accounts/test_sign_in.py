"""Signing in and out; locking after failures."""

from datetime import timedelta
from uuid import uuid4

import pytest
from axes.models import AccessAttempt
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.conftest import PASSWORD
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.accounts.services import user_reset_password
from webapp.audit.models import AuditLine

SIGN_IN = "/accounts/sign-in/"


def attempt(client: Client, name: str, password: str):
    return client.post(SIGN_IN, {"username": name, "password": password})


def test_every_page_asks_for_a_sign_in(client: Client, db: None) -> None:
    for url in ("/", "/jobs/", "/audit/", "/help/", "/search/?q=S-1", "/accounts/settings/"):
        response = client.get(url)
        assert response.status_code == 302, url
        assert response.url.startswith(SIGN_IN)


def test_it_signs_in_and_leaves_an_audit_line(client: Client, bob: User) -> None:
    response = attempt(client, "bob", PASSWORD)
    assert response.status_code == 302
    assert response.url == "/"
    line = AuditLine.objects.get()
    assert (line.username, line.verb, line.organisation) == ("bob", "signed in", bob.organisation)


def test_it_follows_next_only_inside_the_product(client: Client, bob: User) -> None:
    inside = client.post(f"{SIGN_IN}?next=/jobs/", {"username": "bob", "password": PASSWORD})
    assert inside.url == "/jobs/"
    client.logout()
    outside = client.post(
        f"{SIGN_IN}?next=https://evil.example/", {"username": "bob", "password": PASSWORD}
    )
    assert outside.url == "/"


def test_a_wrong_password_says_so_without_telling_which_part(client: Client, bob: User) -> None:
    for name in ("bob", "nobody"):
        response = attempt(client, name, "wrong")
        assert response.status_code == 200
        assert Page(response).one("alert").says("do not belong together")


def test_five_failures_lock_the_name_even_for_the_right_password(client: Client, bob: User) -> None:
    for _ in range(5):
        attempt(client, "bob", "wrong")
    response = attempt(client, "bob", PASSWORD)
    assert response.status_code == 429
    assert Page(response, status=429).has("heading", "Locked for 15 minutes")
    assert "_auth_user_id" not in client.session
    assert AuditLine.objects.filter(verb="locked out", target_name="bob").exists()


def test_a_try_while_locked_starts_the_time_again(client: Client, bob: User) -> None:
    for _ in range(5):
        attempt(client, "bob", "wrong")
    ten_minutes_ago = timezone.now() - timedelta(minutes=10)
    AccessAttempt.objects.update(attempt_time=ten_minutes_ago)
    page = Page(attempt(client, "bob", PASSWORD), status=429)
    assert page.section("Locked for 15 minutes").says("Wait 15 minutes without trying")
    assert AccessAttempt.objects.get().attempt_time > ten_minutes_ago + timedelta(minutes=9)


def test_a_new_password_lifts_the_lock_of_that_name_only(
    client: Client, alice: User, bob: User, carol: User
) -> None:
    for name in ("alice", "bob"):
        for _ in range(5):
            attempt(client, name, "wrong")
    password = user_reset_password(by=carol, user=bob)
    assert attempt(client, "alice", PASSWORD).status_code == 429
    assert attempt(client, "bob", password).status_code == 302


def test_the_lock_holds_at_the_address_of_the_failures(client: Client, bob: User) -> None:
    for _ in range(5):
        attempt(client, "bob", "wrong")
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert attempt(elsewhere, "bob", PASSWORD).status_code == 302
    assert Page(client.get(SIGN_IN)).says("at the network address that they came from")


def test_others_can_sign_in_while_a_name_is_locked(client: Client, bob: User, alice: User) -> None:
    for _ in range(5):
        attempt(client, "bob", "wrong")
    assert attempt(client, "alice", PASSWORD).status_code == 302


def test_a_deactivated_person_cannot_sign_in_and_loses_the_session(
    client: Client, bob: User
) -> None:
    attempt(client, "bob", PASSWORD)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert client.get("/").status_code == 302
    assert attempt(client, "bob", PASSWORD).status_code == 200


def test_sign_out_needs_a_post(client: Client, bob: User) -> None:
    attempt(client, "bob", PASSWORD)
    assert client.get(reverse("accounts:sign-out")).status_code == 405
    assert client.post(reverse("accounts:sign-out")).status_code == 302
    assert client.get("/").status_code == 302


@pytest.mark.parametrize("password", ["short", "1234567890123", "password1234"])
def test_weak_passwords_are_refused(client: Client, bob: User, password: str) -> None:
    attempt(client, "bob", PASSWORD)
    response = client.post(
        reverse("accounts:password"),
        {"old_password": PASSWORD, "new_password1": password, "new_password2": password},
    )
    assert response.status_code == 200
    bob.refresh_from_db()
    assert bob.check_password(PASSWORD)


def a_button() -> str:
    """Address of a form in which nobody types."""
    return reverse("jobs:cancel", args=[uuid4()])


def test_a_button_pressed_after_the_session_ended_leads_back_to_its_page(
    client: Client, bob: User
) -> None:
    sent = client.post(a_button(), headers={"referer": "http://testserver/jobs/?state=running"})
    assert sent.url == f"{SIGN_IN}?next=%2Fjobs%2F%3Fstate%3Drunning&lost=1"
    page = client.get(sent.url)
    assert Page(page).one("status").says("Your last form was not saved")
    back = client.post(sent.url, {"username": "bob", "password": PASSWORD})
    assert back.url == "/jobs/?state=running"


@pytest.mark.parametrize("page", ["https://evil.example//evil.example/", "http://[no address"])
def test_a_forged_page_to_come_back_to_stays_inside(client: Client, bob: User, page: str) -> None:
    sent = client.post(a_button(), headers={"referer": page})
    back = client.post(sent.url, {"username": "bob", "password": PASSWORD})
    assert back.url == "/"
