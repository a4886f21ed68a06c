"""The list of environment variables is whole, and a proxy without trust can still be used."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from webapp import environment, settings
from webapp.instance import BASE_DIR

READ = re.compile(
    r'(?:environ\.get\(|environ\[|\b(?:text|flag|listed|number|whole_number)\()"([A-Z_]+)"'
)


def test_every_variable_that_is_read_is_listed() -> None:
    names = set(READ.findall(Path(settings.__file__).read_text(encoding="utf-8")))
    names |= set(READ.findall((BASE_DIR / "webapp" / "instance.py").read_text(encoding="utf-8")))
    assert {"SECRET_KEY", "CSRF_TRUSTED_ORIGINS", "BETHE_HALL_INSTANCE"} <= names
    listed = set(re.findall(r"\b[A-Z][A-Z_]+\b", settings.__doc__ or ""))
    assert names <= listed


def answer_behind(folder: Path, **variables: str) -> str:
    """Post the sign-in form as a proxy that ends TLS would pass it on; return the status."""
    script = (
        "import django; django.setup()\n"
        "from django.test import Client\n"
        "from webapp.accounts import views\n"
        "views.only_organisation = lambda: None  # there is no database\n"
        "views.is_any_provider_on = lambda: False\n"
        "views.providers_to_offer = lambda *_: []\n"
        "client = Client(enforce_csrf_checks=True)\n"
        "page = client.get('/accounts/sign-in/', headers={'host': 'hall.example'})\n"
        "token = client.cookies['csrftoken'].value if 'csrftoken' in client.cookies else ''\n"
        "data = {'csrfmiddlewaretoken': token}  # names nobody: no database is asked\n"
        "headers = {'host': 'hall.example', 'origin': 'https://hall.example'}\n"
        "post = client.post('/accounts/sign-in/', data, headers=headers)\n"
        "print(page.status_code, post.status_code)\n"
    )
    environment = {
        **{k: v for k, v in os.environ.items() if k not in {"DEBUG", "DATABASE_URL"}},
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "BETHE_HALL_INSTANCE": str(folder),
        "SECURE_COOKIES": "1",
        "ALLOWED_HOSTS": "hall.example",
        **variables,
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_a_proxy_that_is_not_trusted_needs_both_variables(tmp_path: Path) -> None:
    assert answer_behind(tmp_path) == "301 301"
    assert answer_behind(tmp_path, TLS_REDIRECT_ELSEWHERE="1") == "200 403"
    origin = "https://hall.example"
    both = answer_behind(tmp_path, TLS_REDIRECT_ELSEWHERE="1", CSRF_TRUSTED_ORIGINS=origin)
    assert both == "200 200"


def test_settings_are_imported_without_writing_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "instance"
    script = "from django.conf import settings; settings.DATABASES; print(settings.DEBUG)"
    unset = {"SECRET_KEY", "DATABASE_URL"}
    variables = {name: value for name, value in os.environ.items() if name not in unset}
    variables |= {"DJANGO_SETTINGS_MODULE": "webapp.settings", "BETHE_HALL_INSTANCE": str(folder)}
    command = [sys.executable, "-c", script]
    subprocess.run(command, cwd=BASE_DIR, env=variables, check=True, capture_output=True)
    assert not folder.exists()
    signs = [sys.executable, "-c", "from django.core import signing; print(signing.dumps(1))"]
    subprocess.run(signs, cwd=BASE_DIR, env=variables, check=True, capture_output=True)
    assert len((folder / "secret_key").read_text()) == 96


def test_a_value_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "2e7")
    assert environment.number("X", 1) == 20_000_000
    with pytest.raises(ImproperlyConfigured, match="X: expected a whole number from 0, received"):
        environment.whole_number("X", 1)
    with pytest.raises(ImproperlyConfigured, match="X: expected 1 or 0, received '2e7'"):
        environment.flag("X")
    for text in ("nan", "-1", "much"):
        monkeypatch.setenv("X", text)
        with pytest.raises(ImproperlyConfigured, match="X: expected a number from 0"):
            environment.number("X", 1)
    monkeypatch.setenv("X", "")
    assert environment.flag("X", True)
    assert environment.whole_number("X", 7) == 7
    monkeypatch.setenv("X", " Off ")
    assert not environment.flag("X", True)
    monkeypatch.setenv("X", " a, b,,c ")
    assert environment.listed("X") == ["a", "b", "c"]
