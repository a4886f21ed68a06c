"""One password tried with many names, and passwords that somebody would guess."""

from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from tests.webapp.conftest import PASSWORD
from tests.webapp.factories.tries import forget_tries
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.accounts.services import temporary_password

SIGN_IN = "/accounts/sign-in/"


@pytest.fixture(autouse=True)
def no_tries_before() -> None:
    forget_tries()


def attempt(name: str, password: str, *, address: str = "192.0.2.1", client: Client | None = None):
    client = client or Client()
    return client.post(SIGN_IN, {"username": name, "password": password}, REMOTE_ADDR=address)


def test_many_names_from_one_address_end(bob: User) -> None:
    answers = [attempt(f"name-{k}", "Winter2026!").status_code for k in range(40)]
    assert answers == [200] * 30 + [429] * 10
    refused = attempt("bob", PASSWORD)
    assert refused.status_code == 429, "also with the right password"
    assert Page(refused, status=429).has("heading", "Too many failed attempts")
    assert attempt("bob", PASSWORD, address="192.0.2.2").status_code == 302


def test_an_address_of_ipv6_is_a_network(bob: User) -> None:
    for k in range(30):
        attempt(f"name-{k}", "x", address=f"2001:db8:0:1::{k + 1:x}")
    assert attempt("bob", PASSWORD, address="2001:db8:0:1:ffff::1").status_code == 429
    assert attempt("bob", PASSWORD, address="2001:db8:0:2::1").status_code == 302


def test_many_addresses_together_end(bob: User, settings: LazySettings) -> None:
    settings.SIGN_IN_FAILURES_OF_ALL = 12
    answers = [
        attempt(f"name-{k}", "x", address=f"198.51.100.{k + 1}").status_code for k in range(14)
    ]
    assert answers == [200] * 12 + [429] * 2
    assert attempt("bob", PASSWORD, address="203.0.113.9").status_code == 429


def test_people_go_on_in_a_browser_that_knows_them(bob: User, alice: User) -> None:
    """A colleague, or an attacker, behind the same address keeps nobody out of their own work."""
    own = Client()
    assert attempt("bob", PASSWORD, client=own).status_code == 302
    own.post(reverse("accounts:sign-out"))
    for k in range(35):
        attempt(f"name-{k}", "x")
    assert attempt("alice", PASSWORD, client=own).status_code == 429, "as themselves alone"
    assert attempt("bob", PASSWORD, client=own).status_code == 302
    kept = own.cookies["known-browser"]
    assert (kept["httponly"], kept["samesite"], kept["path"]) == (True, "Lax", "/accounts/")
    forged = Client()
    forged.cookies["known-browser"] = kept.value[:-2] + "xx"
    assert attempt("bob", PASSWORD, client=forged).status_code == 429


def test_a_known_browser_is_still_locked_after_five_failures(bob: User) -> None:
    own = Client()
    attempt("bob", PASSWORD, client=own)
    own.post(reverse("accounts:sign-out"))
    answers = [attempt("bob", "wrong", client=own).status_code for _ in range(6)]
    assert answers[-1] == 429


def test_right_passwords_are_not_counted(bob: User) -> None:
    assert {attempt("bob", PASSWORD).status_code for _ in range(35)} == {302}


@pytest.mark.parametrize(
    "password",
    [
        "password1234", "P@ssw0rd2024", "qwertyuiop12", "letmein12345", "iloveyou2020",
        "1q2w3e4r5t6y", "trustno1trustno1", "Michael1985!", "Summer2024!!", "abcdefghijkl",
        "aaaaaaaaaaaaaaaa", "Northfield2026", "Northfield2026!", "bethehall2026", "x" * 4_000,
    ],
)  # fmt: skip
def test_a_password_that_leaked_or_is_quick_to_guess_is_refused(bob: User, password: str) -> None:
    with pytest.raises(ValidationError) as refused:
        validate_password(password, bob)
    assert "password_guessable" in {problem.code for problem in refused.value.error_list}


@pytest.mark.parametrize(
    "password", [PASSWORD, "violet tractor plays chess", "m7#Tq9!vRz2k", "correcthorsebattery"]
)
def test_a_password_that_is_hard_to_guess_is_taken(bob: User, password: str) -> None:
    validate_password(password, bob)


def test_passwords_that_the_product_makes_are_hard_to_guess(bob: User) -> None:
    for _ in range(20):
        validate_password(temporary_password(), bob)


def test_the_page_says_why_a_password_is_refused(
    bob: User, client_of: Callable[[User], Client]
) -> None:
    fields = {"old_password": PASSWORD, "new_password1": "Summer2024!!"}
    page = client_of(bob).post(
        reverse("accounts:password"), fields | {"new_password2": "Summer2024!!"}
    )
    assert Page(page).says("is on a list of passwords that leaked, or it is quick to guess")
