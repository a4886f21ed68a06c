"""The sign-in page offers the providers of an organisation that is known, and nobody else's."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.conftest import PASSWORD, make_user
from tests.webapp.factories.providers import OpenIDServer
from tests.webapp.roles import Page
from webapp.accounts.models import Organisation, Role, User
from webapp.identity.models import IdentityProvider
from webapp.identity.selectors import login_address

ClientOf = Callable[[User], Client]
SIGN_IN = "/accounts/sign-in/"
HOSTILE = "Northfield University"


@pytest.fixture
def hostile(mallory: User) -> IdentityProvider:
    """A provider of Southgate that bears the name of Northfield."""
    return IdentityProvider.objects.create(
        organisation=mallory.organisation, name=HOSTILE, protocol="openid_connect", is_on=True,
        server_url="https://evil.example", client_id="x", others_role="staff",
    )  # fmt: skip


def at(organisation: Organisation) -> str:
    return reverse("accounts:sign-in-at", args=[organisation.sign_in_code])


def text(client: Client, address: str) -> Page:
    answer = client.get(address)
    assert answer.status_code == 200
    return Page(answer)


def test_a_provider_named_like_another_organisation_meets_no_visitor_of_that(
    client: Client, openid: IdentityProvider, hostile: IdentityProvider
) -> None:
    assert not text(client, SIGN_IN).has("link", "Sign in with")
    assert hostile.key not in text(client, SIGN_IN).source
    assert text(client, SIGN_IN).says("Sign-in link of your organisation")
    own = text(client, at(openid.organisation))
    assert own.has("link", "Sign in with Northfield", exactly=True)
    assert hostile.key not in own.source
    assert HOSTILE not in own.source


def test_the_page_of_a_link_says_whose_it_is(
    client: Client, openid: IdentityProvider, hostile: IdentityProvider
) -> None:
    page = text(client, at(hostile.organisation))
    assert page.has("heading", "Sign in to Southgate")
    assert page.one("navigation", "Other ways to sign in").says("With your account at Southgate:")
    assert openid.key not in page.source
    # A link that somebody else sent changes nothing of what this browser is offered later.
    assert not text(client, SIGN_IN).has("link", "Sign in with")


def test_a_link_may_be_pasted_and_leads_back(client: Client, openid: IdentityProvider) -> None:
    make_user("eve", Organisation.objects.create(name="Other"), Role.VIEWER)
    link = f"https://hall.example{at(openid.organisation)}?next=/x/"
    for typed in (link, openid.organisation.sign_in_code.upper()):
        answer = client.get(SIGN_IN, {"organisation": typed, "next": "/jobs/"})
        assert answer.url == f"{at(openid.organisation)}?next=%2Fjobs%2F"
        assert (
            "next=%2Fjobs%2F"
            in text(client, answer.url).one("link", "Sign in with Northfield").address
        )
    outside = client.get(SIGN_IN, {"organisation": link, "next": "https://evil.example/"})
    assert outside.url == at(openid.organisation)


@pytest.mark.parametrize("typed", ["Northfield", "north.edu", "aaaaaaaaaaaa", "1", "%", "a" * 999])
def test_nothing_tells_which_organisations_there_are(
    client: Client, openid: IdentityProvider, hostile: IdentityProvider, typed: str
) -> None:
    page = text(client, f"{SIGN_IN}?organisation={typed[:300].replace('%', '%25')}")
    assert page.one("status").says("belongs to no organisation")
    assert "Northfield" not in page.source
    if typed.isalnum():
        page = text(client, f"{SIGN_IN}{typed}/")
        assert page.one("status").says("belongs to no organisation")
        assert "Southgate" not in page.source


def test_the_browser_remembers_who_signed_in(
    client: Client, bob: User, openid: IdentityProvider, hostile: IdentityProvider
) -> None:
    client.post(SIGN_IN, {"username": "bob", "password": PASSWORD})
    client.post("/accounts/sign-out/")
    page = text(client, SIGN_IN)
    assert page.has("link", "Sign in with Northfield", exactly=True)
    assert HOSTILE not in page.source
    client.cookies["known-browser"] = client.cookies["known-browser"].value + "x"
    assert not text(client, SIGN_IN).has("link", "Sign in with")


def test_who_came_by_a_provider_is_offered_it_again(
    client: Client,
    openid: IdentityProvider,
    hostile: IdentityProvider,
    openid_server: OpenIDServer,
) -> None:
    subject = openid_server.knows("s-1", groups=["hall-staff"], preferred_username="sue")
    answer = openid_server.sign_in(client, login_address(openid), subject)
    assert answer.status_code == 302
    client.post("/accounts/sign-out/")
    assert text(client, SIGN_IN).has("link", "Sign in with Northfield", exactly=True)


def test_an_installation_of_one_organisation_needs_no_link(
    client: Client, openid: IdentityProvider
) -> None:
    Organisation.objects.create(name="Nobody yet")
    assert text(client, SIGN_IN).has("link", "Sign in with Northfield", exactly=True)


def test_without_providers_the_page_asks_for_no_link(
    client: Client, bob: User, mallory: User
) -> None:
    assert not text(client, SIGN_IN).says("Sign-in link")


def test_a_wrong_password_on_the_page_of_a_link_stays_there(
    client: Client, bob: User, openid: IdentityProvider, hostile: IdentityProvider
) -> None:
    address = at(openid.organisation)
    answer = client.post(address, {"username": "bob", "password": "wrong"})
    assert Page(answer).one("alert").says("do not belong together")
    assert Page(answer).has("link", "Sign in with Northfield", exactly=True)
    assert client.post(address, {"username": "bob", "password": PASSWORD}).url == "/"


def test_administrators_find_the_link_of_their_own_organisation(
    carol: User, southgate: Organisation, client_of: ClientOf
) -> None:
    page = Page(client_of(carol).get(reverse("identity:providers")))
    assert page.section("Sign-in link of Northfield").says(at(carol.organisation))
    assert southgate.sign_in_code not in page.source


def test_a_provider_brings_no_look_alike_name(
    client: Client, openid: IdentityProvider, openid_server: OpenIDServer
) -> None:
    subject = openid_server.knows("s-2", groups=["hall-staff"], preferred_username="c\u0430rol")
    openid_server.sign_in(client, login_address(openid), subject)
    made = User.objects.get(provider_account__provider=openid)
    assert made.username == f"person-{openid.key}"
