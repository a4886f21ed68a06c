"""Headers, error pages, health check, settings that are refused."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.checks import run_checks
from django.test import Client, override_settings
from django.urls import reverse

from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.checks import _WEAK_SECRETS
from webapp.instance import BASE_DIR, read_or_create_secret

ClientOf = Callable[[User], Client]


@pytest.mark.parametrize("url", ["/", "/accounts/sign-in/", "/jobs/", "/no/such/page/", "/healthz"])
def test_the_policy_is_strict_everywhere(client_of: ClientOf, bob: User, url: str) -> None:
    headers = client_of(bob).get(url).headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"


def test_signed_in_pages_are_not_stored(client_of: ClientOf, bob: User) -> None:
    assert client_of(bob).get("/").headers["Cache-Control"] == "private, no-store"


def template_files() -> list[Path]:
    """Templates of pages: mails are read where no policy holds, and no style sheet is loaded."""
    mails = {"mail.html"}
    found = (BASE_DIR / "templates").rglob("*.html")
    return sorted(path for path in found if path.name not in mails)


@pytest.mark.parametrize("path", template_files(), ids=lambda p: p.name)
def test_templates_have_no_inline_script_or_style(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"\son[a-z]+=|\shx-on|javascript:|<style|\sstyle=", text)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text)


def test_errors_show_nothing_of_the_inside(
    client_of: ClientOf, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr("webapp.common.hooks.next_steps", fail)
    client = client_of(bob)
    client.raise_request_exception = False
    response = client.get("/")
    page = Page(response, status=500)
    assert response.status_code == 500
    assert page.has("heading", "Something failed on our side")
    assert "secret" not in page.source
    assert "Traceback" not in page.source


def test_a_form_without_token_is_refused_in_words(bob: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    response = client.post(reverse("jobs:cancel", args=[uuid4()]))  # a button, nothing typed
    assert response.status_code == 403
    assert Page(response, status=403).section("This is not open to you").says("open for too long")


def test_a_wrong_host_is_refused(client: Client) -> None:
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 400


def test_healthz_needs_no_sign_in_and_tells_nothing(client: Client, db: None) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize(
    "key", ["short", "x" * 60, "django-insecure-" + "ab3" * 20, "changeme" * 9, "abc"]
)
def test_a_weak_secret_is_refused_outside_debug(key: str) -> None:
    with override_settings(SECRET_KEY=key, DEBUG=False):
        assert "bethe_hall.E001" in {message.id for message in run_checks()}


def test_no_secret_that_an_installation_makes_spells_a_refused_word(tmp_path: Path) -> None:
    """One installation in 30,000 made a key that began with "dev", and never started."""
    keys = ""
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        keys += read_or_create_secret(folder)
    assert not [word for word in _WEAK_SECRETS if set(word) <= set(keys.lower())]


def test_a_visibility_timeout_below_the_time_limit_is_refused() -> None:
    with override_settings(CELERY_BROKER_TRANSPORT_OPTIONS={"visibility_timeout": 60}):
        assert "bethe_hall.E002" in {message.id for message in run_checks()}


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in {"DEBUG", "SECURE_COOKIES"}}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=BASE_DIR,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_check_deploy_finds_nothing_with_production_settings(tmp_path: Path) -> None:
    done = manage("check", "--deploy", "--fail-level", "WARNING", BETHE_HALL_INSTANCE=str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_it_does_not_start_with_a_default_secret(tmp_path: Path) -> None:
    done = manage("check", BETHE_HALL_INSTANCE=str(tmp_path), SECRET_KEY="django-insecure-default")
    assert done.returncode != 0
    assert "SECRET_KEY is a default or too short" in done.stderr
    web = subprocess.run(
        [sys.executable, "-c", "import webapp.wsgi"],
        cwd=BASE_DIR,
        env=os.environ | {"BETHE_HALL_INSTANCE": str(tmp_path), "SECRET_KEY": "django-insecure-x"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert web.returncode != 0
    assert "SECRET_KEY is a default or too short" in web.stderr


def test_a_fragment_without_session_sends_the_whole_page_to_sign_in(
    client: Client, db: None
) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/jobs/?state=running"}
    response = client.get("/jobs/", headers=headers)
    assert response.status_code == 200
    assert response.headers["HX-Redirect"] == (
        "/accounts/sign-in/?next=%2Fjobs%2F%3Fstate%3Drunning"
    )


def test_a_zero_byte_is_refused_before_anything_is_done(client_of: ClientOf, bob: User) -> None:
    client = client_of(bob)
    for answer in (
        client.get("/search/", {"q": "a\x00b"}),
        client.post("/accounts/settings/", {"theme": "dark", "keyboard_shortcuts": "\x00"}),
    ):
        assert answer.status_code == 400
        page = Page(answer, status=400)
        assert page.section("The request cannot be read").says("Nothing was changed.")
    bob.refresh_from_db()
    assert bob.theme == "auto"
