"""Providers that really answer: OpenID Connect on a port, SAML within the process."""

from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client

from tests.webapp.factories.providers import (
    OpenIDServer,
    allow_localhost,
)
from webapp.identity.models import IdentityProvider
from webapp.identity.selectors import login_address


@pytest.fixture(autouse=True)
def may_ask_localhost(settings: LazySettings) -> None:
    allow_localhost(settings)


@pytest.fixture
def enter(openid_server: OpenIDServer, openid: IdentityProvider) -> Callable[..., HttpResponse]:
    """A function that signs somebody in at the provider and returns our last answer."""

    def sign_in(client: Client, subject: str, there: str = "") -> HttpResponse:
        return openid_server.sign_in(client, login_address(openid, there), subject)

    return sign_in
