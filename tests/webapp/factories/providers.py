"""OpenID Connect providers that really answer on a port."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import flask
import requests
from django.conf import LazySettings
from django.core.cache import caches
from django.http import HttpResponse
from django.test import Client
from oidc_provider_mock import init_app
from oidc_provider_mock._server import _threaded_server

from webapp.accounts.models import User
from webapp.identity.models import IdentityProvider


@dataclass
class OpenIDServer:
    """A running server: its address, and a way to sign in there."""

    url: str
    app: Any

    def knows(self, subject: str, **claims: Any) -> str:
        """Set what the server says of somebody from now on."""
        answer = requests.put(f"{self.url}/users/{subject}", json=claims, timeout=5)
        assert answer.ok, answer.text
        return subject

    def sign_in(self, client: Client, begin: str, subject: str, **more: str) -> HttpResponse:
        """Follow a browser from our page to the server and back to our answer."""
        there = client.get(begin)
        assert there.status_code == 302, there
        form = {"sub": subject} | more
        back = requests.post(there.url, data=form, allow_redirects=False, timeout=5)
        parts = urlsplit(back.headers["Location"])
        return client.get(f"{parts.path}?{parts.query}")

    def signing_key(self) -> Any:
        """The private key with which the server signs its tokens."""
        with self.app.test_request_context("/"):
            self.app.preprocess_request()
            return flask.g.oidc_provider_mock_storage.jwk


@contextmanager
def running_provider() -> Iterator[OpenIDServer]:
    """Run a provider on a free port."""
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # it listens on this machine only
    app = flask.Flask("provider")
    init_app(app)
    app.secret_key = "for tests only"
    with _threaded_server(app) as server:
        yield OpenIDServer(f"http://localhost:{server.server_port}", app)


def make_provider(user: User, openid_server: OpenIDServer) -> IdentityProvider:
    """Make the server the provider of the user's organisation, Northfield."""
    return IdentityProvider.objects.create(
        organisation=user.organisation, name="Northfield", protocol="openid_connect", is_on=True,
        server_url=openid_server.url, client_id="bethe-hall", secret="hush",
        administrators="hall-admins", staff="hall-staff\nhousing", viewers="hall-viewers",
    )  # fmt: skip


def allow_localhost(settings: LazySettings) -> None:
    """Let the product ask a provider on this machine, and forget what it asked before."""
    settings.SIGN_IN_PRIVATE_HOSTS = ["localhost"]
    for cache in caches.all():
        cache.clear()
