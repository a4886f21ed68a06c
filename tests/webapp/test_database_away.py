"""While the database is away: a page in words and a problem, both saying when to ask again."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.api.services import token_create


@contextmanager
def database_away(error: type[Exception]) -> Iterator[None]:
    """Let every statement fail as it does when PostgreSQL was stopped."""

    def refuse(*_: object) -> None:
        raise error("connection to server failed: Connection refused")

    with connection.execute_wrapper(refuse):
        yield


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
@pytest.mark.parametrize("address", ["/", "/jobs/", "/cohorts/", "/accounts/settings/"])
def test_a_page_says_so_in_words(bob: User, address: str, error: type[Exception]) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    with database_away(error):
        answer = client.get(address)
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert answer["Cache-Control"] == "no-store"
    page = Page(answer, status=503)
    assert page.has("heading", "The database does not answer")
    assert page.says("Nothing was changed.")
    assert "Connection refused" not in page.source
    assert client.get(address).status_code == 200


def test_a_form_says_so_too(bob: User) -> None:
    client = Client(raise_request_exception=False)
    with database_away(OperationalError):
        answer = client.post("/accounts/sign-in/", {"username": "bob", "password": "x"})
    assert answer.status_code == 503
    assert "Retry-After" in answer.headers


@pytest.mark.parametrize("path", ["/api/v1/me", "/api/v1/cohorts"])
def test_a_program_is_told_when_to_ask_again(bob: User, path: str) -> None:
    _, secret = token_create(user=bob, name="sync", may_change=False, days=1)
    client = Client(headers={"authorization": f"Bearer {secret}"})
    with database_away(OperationalError):
        answer = client.get(path)
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert answer["Content-Type"] == "application/problem+json"
    assert "does not answer" in answer.json()["detail"]
    assert client.get(path).status_code == 200


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("database or disk is full"),  # SQLite
        OperationalError('could not extend file "base/1/2": No space left on device'),
        OSError(errno.ENOSPC, "No space left on device"),
    ],
)
def test_a_full_disk_is_told_in_words(bob: User, error: Exception) -> None:
    _, secret = token_create(user=bob, name="sync", may_change=False, days=1)
    client = Client(raise_request_exception=False)
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    program = Client(headers={"authorization": f"Bearer {secret}"})

    def refuse(*_: object) -> None:
        raise error

    with connection.execute_wrapper(refuse):
        answer, problem = client.get("/jobs/"), program.get("/api/v1/me")
    for status, text in (
        (answer.status_code, Page(answer, status=507).text),
        (problem.status_code, problem.json()["detail"]),
    ):
        assert status == 507
        assert "The server's disk is full" in text
        assert "Nothing was changed." in text
    assert answer["Retry-After"]
    assert client.get("/jobs/").status_code == 200


def test_a_fault_of_ours_is_still_a_fault(bob: User) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    with database_away(RuntimeError):
        assert client.get("/jobs/").status_code == 500
