"""Signing in at a provider that lies: forged tokens, answers of others, addresses of others."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.identity.hostile_provider import CLIENT, SECRET, HostileProvider, Key, running
from tests.webapp.roles import Page
from webapp.accounts.models import Role, User
from webapp.identity.claims import Claims, read_claims, student_number
from webapp.identity.models import IdentityProvider
from webapp.identity.selectors import login_address
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open

DORA = {"sub": "u1", "preferred_username": "dora", "groups": ["hall-staff"]}


@pytest.fixture
def hostile() -> Iterator[HostileProvider]:
    with running() as provider:
        provider.claims = dict(DORA)
        yield provider


@pytest.fixture
def northfields(carol: User, hostile: HostileProvider) -> IdentityProvider:
    return IdentityProvider.objects.create(
        organisation=carol.organisation, name="Northfield", protocol="openid_connect", is_on=True,
        server_url=hostile.url, client_id=CLIENT, secret=SECRET, staff="hall-staff",
        administrators="hall-admins", takes_students=True, student_claim="student_id",
    )  # fmt: skip


def sign_in(
    hostile: HostileProvider, row: IdentityProvider, there: str = "", query: str = ""
) -> tuple[Client, HttpResponse]:
    client = Client()
    begun = client.get(login_address(row, there) + query)
    assert begun.status_code == 302
    return client, client.get(hostile.begin(begun.url))


def is_signed_in(client: Client) -> bool:
    return client.get(reverse("accounts:settings")).status_code == 200


def test_a_token_that_the_provider_signed_lets_in(
    hostile: HostileProvider, northfields: IdentityProvider
) -> None:
    client, answer = sign_in(hostile, northfields)
    assert answer.status_code == 302
    assert is_signed_in(client)
    assert User.objects.get(username="dora").role == Role.STAFF


@pytest.mark.parametrize(
    "signing",
    ["none", "client secret", "public key as a secret", "another key", "changed", "cut off"],
)
def test_a_token_that_the_provider_did_not_sign_lets_nobody_in(
    hostile: HostileProvider, northfields: IdentityProvider, signing: str
) -> None:
    hostile.signing = signing
    client, answer = sign_in(hostile, northfields)
    assert answer.status_code == 401
    assert (
        Page(answer, status=401)
        .section("You are not signed in")
        .says("did not confirm who you are")
    )
    assert not is_signed_in(client)
    assert not User.objects.filter(username="dora").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": None}, {"nonce": "of-somebody-else"}, {"nonce": ["x"]},
        {"aud": "another"}, {"aud": [CLIENT, "another"]}, {"azp": "another"},
        {"iss": "https://evil.example"}, {"exp": 1}, {"exp": None}, {"iat": None}, {"sub": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_token_for_another_sign_in_or_program_lets_nobody_in(
    hostile: HostileProvider, northfields: IdentityProvider, changes: dict[str, Any]
) -> None:
    hostile.changes = changes
    client, answer = sign_in(hostile, northfields)
    assert answer.status_code == 401
    assert not is_signed_in(client)


def test_a_token_for_two_programs_counts_when_it_was_issued_to_us(
    hostile: HostileProvider, northfields: IdentityProvider
) -> None:
    hostile.changes = {"aud": [CLIENT, "another"], "azp": CLIENT}
    assert is_signed_in(sign_in(hostile, northfields)[0])


def test_user_data_without_a_token_let_nobody_in(
    hostile: HostileProvider, northfields: IdentityProvider
) -> None:
    hostile.has_token = False
    client, answer = sign_in(hostile, northfields)
    assert answer.status_code == 401
    assert not is_signed_in(client)


def test_a_token_of_an_earlier_sign_in_is_worth_nothing(
    hostile: HostileProvider, northfields: IdentityProvider
) -> None:
    sign_in(hostile, northfields)
    hostile.changes = {"nonce": hostile.asked_for["nonce"]}
    client, answer = sign_in(hostile, northfields)
    assert answer.status_code == 401
    assert not is_signed_in(client)


def test_every_sign_in_has_a_nonce_of_its_own_and_an_address_changes_nothing(
    hostile: HostileProvider, northfields: IdentityProvider
) -> None:
    added = "?auth_params=nonce%3Dmine%26redirect_uri%3Dhttps%3A%2F%2Fevil.example&scope=admin"
    begun = [Client().get(login_address(northfields) + added).url for _ in range(3)]
    asked = [parse_qs(urlsplit(address).query) for address in begun]
    nonces = {one["nonce"][0] for one in asked}
    assert len(nonces) == 3
    assert min(map(len, nonces)) >= 32
    assert {one["redirect_uri"][0].startswith("http://testserver/") for one in asked} == {True}
    assert not any("admin" in one["scope"][0] for one in asked)


def test_a_new_key_of_the_provider_is_found_at_once_and_an_old_one_ends(
    hostile: HostileProvider, northfields: IdentityProvider
) -> None:
    assert is_signed_in(sign_in(hostile, northfields)[0])
    old, hostile.key = hostile.key, Key("two")
    hostile.published = [hostile.key.public()]
    assert is_signed_in(sign_in(hostile, northfields)[0])
    hostile.key = old
    assert not is_signed_in(sign_in(hostile, northfields)[0])


def test_a_forger_who_names_keys_does_not_make_us_ask_for_them_each_time(
    hostile: HostileProvider, northfields: IdentityProvider
) -> None:
    sign_in(hostile, northfields)
    for k in range(5):
        hostile.key = Key(f"unknown-{k}", hostile.key.private)
        sign_in(hostile, northfields)
    assert hostile.asked.count("/keys") <= 2


@pytest.mark.parametrize(
    "published",
    [[{"use": "enc"}], [{"kty": "oct", "k": "AAAA"}], [], ["x"], [{"kid": "two"}]],
    ids=str,
)
def test_a_key_that_is_not_for_signatures_signs_nobody_in(
    hostile: HostileProvider, northfields: IdentityProvider, published: list[Any]
) -> None:
    hostile.published = [
        hostile.key.public(**key) if isinstance(key, dict) else key for key in published
    ]
    client, answer = sign_in(hostile, northfields)
    assert answer.status_code == 401
    assert not is_signed_in(client)


@pytest.fixture
def asking(bob: User, northfields: IdentityProvider) -> Questionnaire:
    made = questionnaire_create(user=bob, title="Housing 2027", form="housing")
    until = timezone.now() + timedelta(days=9)
    questionnaire_open(user=bob, questionnaire=made, closes_at=until)
    Questionnaire.objects.update(asks_sign_in=True)
    made.refresh_from_db()
    return made


@pytest.mark.parametrize(
    ("said", "always", "takes"),
    [
        (None, False, False),
        (False, False, False),
        ("false", False, False),
        ("yes", False, False),
        (0, True, False),
        (False, True, False),
        (None, True, True),
        (True, False, True),
        ("true", False, True),
    ],
)
def test_an_invited_row_is_found_by_an_address_that_the_provider_checked(
    hostile: HostileProvider,
    northfields: IdentityProvider,
    asking: Questionnaire,
    said: Any,
    always: bool,
    takes: bool,
) -> None:
    """Somebody with the victim's address and another subject must not take the victim's row."""
    victim = Participant.objects.create(questionnaire=asking, email="anna@northfield.example")
    IdentityProvider.objects.update(verifies_emails=always)
    hostile.claims = {"sub": "m", "student_id": "N666", "email": "Anna@northfield.example"}
    if said is not None:
        hostile.claims["email_verified"] = said
    code = reverse("surveys:code", args=[asking.code])
    client, _ = sign_in(hostile, northfields, code)
    assert client.post(code).status_code == 302
    victim.refresh_from_db()
    assert bool(victim.subject) == takes
    assert Participant.objects.filter(identifier="N666").get().pk == victim.pk or not takes


def test_a_student_is_not_known_by_an_address_that_nobody_checked(
    hostile: HostileProvider, northfields: IdentityProvider, asking: Questionnaire
) -> None:
    IdentityProvider.objects.update(student_claim="email")
    hostile.claims = {"sub": "m", "email": "anna@northfield.example"}
    code = reverse("surveys:code", args=[asking.code])
    _, answer = sign_in(hostile, northfields, code)
    assert answer.status_code == 403
    assert (
        Page(answer, status=403)
        .section("You are not signed in")
        .says("does not say that it checked your e-mail address")
    )
    assert not Participant.objects.exists()


def test_without_a_chosen_claim_an_unchecked_address_is_no_student_number() -> None:
    plain = IdentityProvider(protocol="openid_connect")
    claims = Claims(subject="m", values={"email": "anna@x.example"})
    assert student_number(plain, claims) == "m"
    checked = Claims(subject="m", values={"email": "Anna@x.example", "email_verified": True})
    assert student_number(plain, checked) == "anna@x.example"


@pytest.mark.parametrize(("always", "email"), [(False, ""), (True, "anna@x.example")])
def test_saml_knows_no_such_claim_so_the_settings_decide(always: bool, email: str) -> None:
    provider = IdentityProvider(protocol="saml", verifies_emails=always)
    claims = read_claims(provider, "u1", {"urn:oid:0.9.2342.19200300.100.1.3": ["Anna@x.example"]})
    assert claims is not None
    assert claims.email == email
