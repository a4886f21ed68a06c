"""Signing in by OpenID Connect at a server that runs beside the tests."""

import json
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import jwt
import pytest
import requests
from allauth.socialaccount.models import SocialAccount
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.conftest import PASSWORD
from tests.webapp.factories.providers import OpenIDServer
from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_outlives_a_session, check_refused
from webapp.accounts.models import Organisation, Role, User
from webapp.accounts.services import AccountError, user_reset_password, user_set_active
from webapp.api.services import token_create, token_find
from webapp.audit.models import AuditLine
from webapp.encryption.fields import unseal
from webapp.identity.back_channel import EVENT
from webapp.identity.models import IdentityProvider, ProviderAccount
from webapp.identity.outbound import OutboundError, check_address
from webapp.identity.selectors import login_address
from webapp.identity.services import people_expire, provider_keep, provider_remove

Enter = Callable[..., Any]
DORA = {"preferred_username": "dora", "email": "dora@northfield.example", "groups": ["hall-staff"]}


def is_signed_in(client: Client) -> bool:
    return client.get(reverse("accounts:settings")).status_code == 200


def test_the_first_sign_in_makes_an_account_with_the_role_of_its_claim(
    client: Client, openid_server: OpenIDServer, openid: IdentityProvider, enter: Enter
) -> None:
    openid_server.knows("u1", **DORA)
    answer = enter(client, "u1", "/jobs/")
    assert (answer.status_code, answer.url) == (302, "/jobs/")
    dora = User.objects.get(username="dora")
    assert (dora.role, dora.organisation) == (Role.STAFF, openid.organisation)
    assert not dora.has_usable_password()
    assert is_signed_in(client)
    made, signed_in = AuditLine.objects.order_by("pk")
    assert (made.verb, made.details["by"], signed_in.verb) == (
        "added user",
        "Northfield",
        "signed in",
    )
    enter(Client(), "u1")
    assert User.objects.filter(provider_account__provider=openid).count() == 1
    assert SocialAccount.objects.get().extra_data == {}, "groups and names are not kept"


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["hall-viewers"], Role.VIEWER),
        (["x", "housing", "hall-viewers"], Role.STAFF),
        ("hall-admins", Role.ADMINISTRATOR),
        (["HALL-ADMINS", "hall-admins-former"], None),
        ([], None),
        (None, None),
        ({"hall-admins": True}, None),
        ([["hall-admins"]], None),
    ],
)
def test_the_role_is_the_highest_that_a_value_gives(
    client: Client, openid_server: OpenIDServer, enter: Enter, groups: Any, role: Role | None
) -> None:
    openid_server.knows("u1", preferred_username="dora", groups=groups)
    answer = enter(client, "u1")
    assert answer.status_code == (302 if role else 403)
    assert [user.role for user in User.objects.filter(username="dora")] == ([role] if role else [])
    if role is None:
        assert (
            Page(answer, status=403)
            .section("You are not signed in")
            .says("says nothing that gives you a role")
        )
        assert not is_signed_in(client)


def test_a_nested_claim_is_read_as_keycloak_writes_it(
    client: Client, openid_server: OpenIDServer, openid: IdentityProvider, enter: Enter
) -> None:
    IdentityProvider.objects.update(role_claim="realm_access.roles")
    openid_server.knows("u1", preferred_username="dora", realm_access={"roles": ["hall-staff"]})
    assert enter(client, "u1").status_code == 302


def test_a_role_follows_its_claim_down_and_out_and_back(
    openid_server: OpenIDServer, enter: Enter
) -> None:
    openid_server.knows("u1", preferred_username="dora", groups=["hall-admins"])
    first = Client()
    enter(first, "u1")
    dora = User.objects.get(username="dora")
    _, secret = token_create(user=dora, name="sync", days=30, may_change=False)
    openid_server.knows("u1", preferred_username="dora", groups=["hall-viewers"])
    enter(Client(), "u1")
    dora.refresh_from_db()
    assert dora.role == Role.VIEWER
    assert first.get(reverse("accounts:people")).status_code == 403
    openid_server.knows("u1", preferred_username="dora", groups=[])
    assert enter(Client(), "u1").status_code == 403
    dora.refresh_from_db()
    assert not dora.is_active
    assert not is_signed_in(first), "sessions end with the claim"
    assert token_find(secret=secret) is None, "and so do API tokens"
    openid_server.knows("u1", preferred_username="dora", groups=["housing"])
    again = Client()
    assert enter(again, "u1").status_code == 302
    assert is_signed_in(again)
    verbs = list(AuditLine.objects.order_by("pk").values_list("verb", flat=True))
    assert [v for v in verbs if v.startswith(("switched", "changed"))] == [
        "changed role", "switched off", "switched on", "changed role"
    ]  # fmt: skip


def test_who_an_administrator_switched_off_stays_off(
    carol: User, openid_server: OpenIDServer, enter: Enter
) -> None:
    openid_server.knows("u1", **DORA)
    enter(Client(), "u1")
    user_set_active(by=carol, user=User.objects.get(username="dora"), active=False)
    answer = enter(Client(), "u1")
    assert Page(answer, status=403).section("You are not signed in").says("switched off")


def test_a_name_that_is_taken_gets_a_number_and_not_the_account(
    bob: User, openid_server: OpenIDServer, enter: Enter
) -> None:
    openid_server.knows("u1", preferred_username="Bob", email="bob@x.example", groups=["housing"])
    client = Client()
    enter(client, "u1")
    assert User.objects.filter(username="Bob-2").exists()
    bob.refresh_from_db()
    assert bob.email == ""
    assert bob.check_password(PASSWORD)


def test_another_organisations_provider_reaches_nobody_of_ours(
    southgate: Organisation, openid_server: OpenIDServer, openid: IdentityProvider, enter: Enter
) -> None:
    """The same person of the same server, let in by Southgate, is somebody else there."""
    openid_server.knows("u1", **DORA)
    enter(Client(), "u1")
    other = IdentityProvider.objects.create(
        organisation=southgate, name="Southgate", protocol="openid_connect", is_on=True,
        server_url=openid.server_url, client_id="other", secret="x", others_role="viewer",
    )  # fmt: skip
    client = Client()
    openid_server.sign_in(client, login_address(other), "u1")
    found = User.objects.get(provider_account__provider=other)
    assert (found.username, found.organisation, found.role) == ("dora-2", southgate, Role.VIEWER)


def test_a_provider_that_is_off_or_removed_lets_nobody_in(
    carol: User, openid_server: OpenIDServer, openid: IdentityProvider, enter: Enter
) -> None:
    openid_server.knows("u1", **DORA)
    client = Client()
    enter(client, "u1")
    openid.is_on = False
    provider_keep(by=carol, provider=openid)
    assert not is_signed_in(client)
    assert Client().get(login_address(openid)).status_code == 404
    openid.is_on = True
    provider_keep(by=carol, provider=openid)
    enter(client, "u1")
    assert provider_remove(by=carol, provider=openid) == 1
    assert not is_signed_in(client)
    assert not User.objects.get(username="dora").is_active


def test_a_stolen_or_forged_answer_signs_nobody_in(
    client: Client, openid_server: OpenIDServer, openid: IdentityProvider
) -> None:
    """An answer belongs to the browser that asked, once."""
    openid_server.knows("u1", **DORA)
    there = client.get(login_address(openid))
    back = requests.post(there.url, data={"sub": "u1"}, allow_redirects=False, timeout=5)
    path = back.headers["Location"].split("testserver", 1)[1]
    thief = Client()
    assert thief.get(path).status_code in (401, 403)
    assert not is_signed_in(thief)
    assert client.get(path).status_code == 302
    for forged in (path, path.replace("code=", "code=x"), path.split("?")[0] + "?error=denied"):
        assert Client().get(forged).status_code in (401, 403)


def test_a_denial_ends_in_a_sentence(
    client: Client, openid_server: OpenIDServer, openid: IdentityProvider
) -> None:
    answer = openid_server.sign_in(client, login_address(openid), "u1", action="deny")
    assert answer.status_code == 401
    assert (
        Page(answer, status=401)
        .section("You are not signed in")
        .says("did not confirm who you are")
    )


def test_two_people_in_one_answer_are_nobody(
    client: Client, openid_server: OpenIDServer, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    openid_server.knows("u1", **DORA)
    monkeypatch.setattr(
        "allauth.socialaccount.providers.openid_connect.views.OpenIDConnectOAuth2Adapter"
        "._fetch_user_info",
        lambda *_: {"sub": "u2", "groups": ["hall-admins"]},
    )
    answer = enter(client, "u1")
    assert Page(answer, status=403).section("You are not signed in").says("two different people")


def test_it_comes_back_only_to_the_product(
    client: Client, openid_server: OpenIDServer, enter: Enter
) -> None:
    openid_server.knows("u1", **DORA)
    assert enter(client, "u1", "https://evil.example/").url == "/"


def test_a_local_account_and_a_token_stay_as_they_are(
    bob: User, openid: IdentityProvider, client: Client
) -> None:
    page = Page(client.get("/accounts/sign-in/"))
    assert page.has("link", "Sign in with Northfield")
    client.post("/accounts/sign-in/", {"username": "bob", "password": PASSWORD})
    assert is_signed_in(client)


def test_accounts_that_the_provider_forgot_end_by_themselves(
    openid_server: OpenIDServer, openid: IdentityProvider, enter: Enter
) -> None:
    openid_server.knows("u1", **DORA)
    client = Client()
    enter(client, "u1")
    assert people_expire() == 0
    ProviderAccount.objects.update(checked_at=timezone.now() - timezone.timedelta(days=31))
    assert people_expire() == 1
    assert not is_signed_in(client)
    assert enter(client, "u1").status_code == 302, "signing in brings it back"
    IdentityProvider.objects.update(trust_days=0)
    ProviderAccount.objects.update(checked_at=timezone.now() - timezone.timedelta(days=999))
    assert people_expire() == 0


def test_a_password_and_a_role_cannot_be_given_to_who_has_a_provider(
    carol: User, openid_server: OpenIDServer, enter: Enter
) -> None:
    openid_server.knows("u1", **DORA)
    enter(Client(), "u1")
    with pytest.raises(AccountError, match="signs in by Northfield"):
        user_reset_password(by=carol, user=User.objects.get(username="dora"))


def logout_token(server: OpenIDServer, provider: IdentityProvider, **changes: Any) -> str:
    key = server.signing_key()
    claims = {
        "iss": server.url, "aud": provider.client_id, "iat": int(time.time()), "jti": str(uuid4()),
        "exp": int(time.time()) + 120, "sub": "u1", "events": {EVENT: {}},
    } | changes  # fmt: skip
    private = jwt.PyJWK.from_dict(key.as_dict(is_private=True)).key
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, private, algorithm="RS256", headers={"kid": key.as_dict()["kid"]})


def tell(provider: IdentityProvider, token: str) -> int:
    url = reverse("identity:back-channel", args=[provider.key])
    return Client(enforce_csrf_checks=True).post(url, {"logout_token": token}).status_code


def test_signing_out_there_ends_the_sessions_here(
    openid_server: OpenIDServer, openid: IdentityProvider, enter: Enter
) -> None:
    openid_server.knows("u1", **DORA)
    openid_server.knows("u2", preferred_username="ed", groups=["housing"])
    phone, desk, other = Client(), Client(), Client()
    for client, who in ((phone, "u1"), (desk, "u1"), (other, "u2")):
        enter(client, who)
    token = logout_token(openid_server, openid)
    assert tell(openid, token) == 200
    assert [is_signed_in(client) for client in (phone, desk, other)] == [False, False, True]
    assert User.objects.get(username="dora").is_active, "signing out is no deprovisioning"
    enter(phone, "u1")
    assert tell(openid, token) == 400, "a token counts once"
    assert is_signed_in(phone)


def test_a_session_id_ends_that_session_only(
    openid_server: OpenIDServer, openid: IdentityProvider, enter: Enter
) -> None:
    phone, desk = Client(), Client()
    for client, sid in ((phone, "s1"), (desk, "s2")):
        openid_server.knows("u1", **DORA, sid=sid)
        enter(client, "u1")
    assert tell(openid, logout_token(openid_server, openid, sub=None, sid="s1")) == 200
    assert [is_signed_in(client) for client in (phone, desk)] == [False, True]


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "another"}, {"iss": "https://evil.example"}, {"events": {}}, {"events": None},
        {"nonce": "n"}, {"jti": None}, {"iat": 1}, {"exp": 1}, {"sub": None},
        {"iat": 9_999_999_999},  # in 2286
    ],
    ids=str,
)  # fmt: skip
def test_a_logout_token_that_is_none_ends_nothing(
    openid_server: OpenIDServer, openid: IdentityProvider, enter: Enter, changes: dict[str, Any]
) -> None:
    openid_server.knows("u1", **DORA)
    client = Client()
    enter(client, "u1")
    assert tell(openid, logout_token(openid_server, openid, **changes)) == 400
    assert is_signed_in(client)


def test_a_logout_token_of_another_key_ends_nothing(
    openid_server: OpenIDServer, openid: IdentityProvider, enter: Enter
) -> None:
    openid_server.knows("u1", **DORA)
    client = Client()
    enter(client, "u1")
    good = logout_token(openid_server, openid)
    claims = jwt.decode(good, options={"verify_signature": False})
    forged = jwt.encode(claims, "x" * 32, algorithm="HS256", headers={"kid": "1"})
    unsigned = jwt.encode(claims, None, algorithm="none")
    for token in (forged, unsigned, good[:-9] + "AAAAAAAAA", "", "a.b.c"):
        assert tell(openid, token) == 400
    assert is_signed_in(client)
    assert Session.objects.exists()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://idp.example/", "https://"),
        ("https://127.0.0.1/", "private network"),
        ("https://169.254.169.254/latest", "private network"),
        ("https://[::1]/", "private network"),
        ("https://[::ffff:10.0.0.1]/", "private network"),
        ("https://[64:ff9b::a00:1]/", "private network"),
        ("https://[2002:a00:1::]/", "private network"),
        ("https://224.0.0.1/", "private network"),
        ("https://user@8.8.8.8/", "https://"),
        ("file:///etc/passwd", "https://"),
        ("https://no-such-host.invalid/", "not known"),
    ],
)
def test_a_provider_does_not_lead_into_the_network(url: str, words: str) -> None:
    with pytest.raises(OutboundError, match=words):
        check_address(url)
    assert check_address("https://8.8.8.8/") is None


def test_a_refused_provider_keeps_what_was_typed_but_not_its_secret(
    carol: User, client_of: Callable, openid_server: OpenIDServer
) -> None:
    client, url = client_of(carol), reverse("identity:provider-new")
    typed = {
        "name": "Campus", "server_url": openid_server.url, "client_id": "hall",
        "role_claim": "groups", "is_on": "on", "trust_days": "30",
    }  # fmt: skip
    page = client.post(url, typed | {"secret": "hush"})
    check_refused(page, typed, field="staff", error="Say which values give a role.")
    assert b"hush" not in page.content
    typed["staff"] = "hall-staff"
    client = check_outlives_a_session(client_of, carol, url, typed | {"secret": ""})
    lost = Client()
    lost.post(url, typed | {"secret": "hush"})
    kept = json.loads(unseal(lost.session["kept_form"]["fields"]))
    assert ["client_id", "hall"] in kept
    assert "secret" not in dict(kept)
    client.post(url, typed | {"secret": "hush"})
    made = IdentityProvider.objects.get()
    assert (made.name, made.secret) == ("Campus", "hush")
    page = client.post(url, typed | {"secret": "hush"})
    check_refused(page, typed, field="name", error="There is already a provider called “Campus”.")
    own = reverse("identity:provider", args=[made.pk])
    check_outlives_a_session(client_of, carol, own, typed | {"name": "Campus login"})
    made.refresh_from_db()
    assert made.name == "Campus"


def test_administrators_add_change_and_remove_one_by_its_pages(
    carol: User, client_of: Callable, openid_server: OpenIDServer, settings: LazySettings
) -> None:
    client = client_of(carol)
    url = reverse("identity:provider-new")
    fields = {
        "name": "Campus", "server_url": openid_server.url, "client_id": "hall", "secret": "hush",
        "role_claim": "groups", "is_on": "on", "trust_days": "30",
    }  # fmt: skip
    refused = client.post(url, fields)
    form = Page(refused, status=422).section("What we have to know")
    assert form.says("which values give a role")
    page = Page(client.post(url, fields | {"staff": "hall-staff"}, follow=True))
    made = IdentityProvider.objects.get()
    assert f"/accounts/oidc/{made.key}/login/callback/" in page.said_of("Redirect address")
    assert "back-channel-logout" in page.said_of("Back-channel logout address")
    assert "hush" not in page.source
    own = reverse("identity:provider", args=[made.pk])
    client.post(own, fields | {"staff": "hall-staff", "name": "Campus login", "secret": ""})
    made.refresh_from_db()
    assert (made.name, made.secret) == ("Campus login", "hush")
    inside = client.post(url, fields | {"name": "X", "server_url": "https://127.0.0.1/"})
    assert Page(inside, status=422).section("What we have to know").says("private network")
    gone = reverse("identity:provider-remove", args=[made.pk])
    client.post(gone, {"name": "Campus"})
    assert IdentityProvider.objects.exists()
    client.post(gone, {"name": "Campus login"})
    assert not IdentityProvider.objects.exists()
