"""Signing in by SAML at a provider made of pysaml2, from its metadata to our session."""

from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import reverse
from lxml import etree

from tests.webapp.identity.saml_provider import SLO, SamlProvider, knowing, start
from tests.webapp.typed_forms import check_outlives_a_session, check_refused, field_values
from webapp.accounts.models import Role, User
from webapp.identity.models import IdentityProvider
from webapp.identity.selectors import login_address

HOST = {"HTTP_HOST": "hall.northfield.example"}
GROUPS = "eduPersonEntitlement"


@pytest.fixture
def saml(carol: User, client_of: Callable, tmp_path: Path, settings: object) -> IdentityProvider:
    """Northfield's provider, added by its page from its metadata."""
    settings.ALLOWED_HOSTS = ["*"]
    _, metadata = start(tmp_path)
    fields = {
        "name": "Northfield", "metadata": metadata, "role_claim": GROUPS, "is_on": "on",
        "staff": "hall-staff", "trust_days": "30",
        "verifies_emails": "on",
    }  # fmt: skip
    answer = client_of(carol).post(reverse("identity:provider-new") + "?protocol=saml", fields)
    assert answer.status_code == 302, answer.content.decode()
    return IdentityProvider.objects.get()


@pytest.fixture
def idp(saml: IdentityProvider, tmp_path: Path) -> SamlProvider:
    """The same provider, which has read our metadata in turn."""
    configuration, _ = _same(tmp_path)
    ours = Client().get(reverse("saml_metadata", args=[saml.key]), **HOST)
    assert ours.status_code == 200
    return knowing(configuration, "", ours.content.decode())


def _same(folder: Path, name: str = "idp") -> tuple[dict, str]:
    """The configuration of a provider that started already, with its key."""
    kept = [(folder / f"{name}.{end}").read_bytes() for end in ("key", "pem")]
    found = start(folder, name)
    for end, data in zip(("key", "pem"), kept, strict=True):
        (folder / f"{name}.{end}").write_bytes(data)
    return found


def sign_in(
    client: Client, saml: IdentityProvider, idp: SamlProvider, subject: str, **attributes: list[str]
) -> object:
    there = client.get(login_address(saml), **HOST)
    assert there.status_code == 302, there.content
    form = idp.answer(there.url, subject, attributes)
    return post(client, saml, form)


def post(client: Client, saml: IdentityProvider, form: dict[str, str]) -> object:
    passed_on = client.post(reverse("saml_acs", args=[saml.key]), form, **HOST)
    assert passed_on.status_code == 302
    return client.get(urlsplit(passed_on.url).path, **HOST)


def test_a_person_comes_in_with_the_role_of_an_attribute(
    client: Client, saml: IdentityProvider, idp: SamlProvider
) -> None:
    given = {GROUPS: ["other", "hall-staff"], "uid": ["dora"], "mail": ["dora@northfield.example"]}
    answer = sign_in(client, saml, idp, "p-1", **given)
    assert (answer.status_code, getattr(answer, "url", "")) == (302, "/"), answer.content.decode()
    dora = User.objects.get(username="dora")
    assert (dora.role, dora.email) == (Role.STAFF, "dora@northfield.example")  # it checks them
    assert client.get(reverse("accounts:settings"), **HOST).status_code == 200
    sign_in(Client(), saml, idp, "p-1", **given)
    assert User.objects.filter(provider_account__provider=saml).count() == 1


def test_without_the_attribute_nobody_comes_in_and_who_was_in_goes(
    client: Client, saml: IdentityProvider, idp: SamlProvider
) -> None:
    assert sign_in(Client(), saml, idp, "p-1", uid=["dora"]).status_code == 403
    assert not User.objects.filter(username="dora").exists()
    sign_in(client, saml, idp, "p-1", uid=["dora"], **{GROUPS: ["hall-staff"]})
    assert sign_in(Client(), saml, idp, "p-1", uid=["dora"], **{GROUPS: ["x"]}).status_code == 403
    assert client.get(reverse("accounts:settings"), **HOST).status_code == 302
    assert not User.objects.get(username="dora").is_active


def test_who_signs_out_at_the_provider_is_signed_out_here(
    client: Client, saml: IdentityProvider, idp: SamlProvider, tmp_path: Path
) -> None:
    sign_in(client, saml, idp, "p-1", uid=["dora"], **{GROUPS: ["hall-staff"]})
    address = f"https://{HOST['HTTP_HOST']}" + reverse("saml_sls", args=[saml.key])

    def ask(provider: SamlProvider, **how: bool) -> object:
        found = urlsplit(provider.log_out(address, "p-1", **how))
        return client.get(f"{found.path}?{found.query}", **HOST, secure=True)

    ours = Client().get(reverse("saml_metadata", args=[saml.key]), **HOST).content.decode()
    (tmp_path / "other").mkdir()
    stranger, _ = start(tmp_path / "other")  # the same name, and another key
    assert ask(idp, is_signed=False).status_code == 400
    assert ask(knowing(stranger, "", ours)).status_code == 400
    assert client.get(reverse("accounts:settings"), **HOST).status_code == 200
    answer = ask(idp)
    assert (answer.status_code, answer.url.startswith(SLO)) == (302, True)
    assert client.get(reverse("accounts:settings"), **HOST).status_code == 302


def test_answers_that_are_changed_unsigned_replayed_or_of_another_sign_nobody_in(
    saml: IdentityProvider, idp: SamlProvider, tmp_path: Path
) -> None:
    client = Client()
    there = client.get(login_address(saml), **HOST)
    form = idp.answer(there.url, "p-1", {GROUPS: ["none"], "uid": ["dora"]})
    text = b64decode(form["SAMLResponse"]).decode()
    assert "none" in text
    changed = text.replace(">none<", ">hall-staff<")
    document = etree.fromstring(changed.encode())
    for signature in list(document.iter("{http://www.w3.org/2000/09/xmldsig#}Signature")):
        signature.getparent().remove(signature)
    for forged in (changed, etree.tostring(document).decode(), text[:500]):
        sent = form | {"SAMLResponse": b64encode(forged.encode()).decode()}
        assert post(client, saml, sent).status_code == 401
    other, _ = start(tmp_path, "other")
    other["entityid"] = "https://idp.northfield.example/metadata"  # calls itself like ours
    ours = Client().get(reverse("saml_metadata", args=[saml.key]), **HOST).content.decode()
    stranger = knowing(other, "", ours)
    again = Client()
    there = again.get(login_address(saml), **HOST)
    forged = stranger.answer(there.url, "p-1", {GROUPS: ["hall-staff"], "uid": ["eve"]})
    assert post(again, saml, forged).status_code == 401
    there = again.get(login_address(saml), **HOST)
    good = idp.answer(there.url, "p-1", {GROUPS: ["hall-staff"], "uid": ["dora"]})
    thief = Client()
    assert post(thief, saml, good).status_code in (401, 403)  # it answers another browser
    assert thief.get(reverse("accounts:settings"), **HOST).status_code == 302
    assert post(again, saml, good).status_code == 302
    assert post(Client(), saml, good).status_code in (401, 403)
    assert not User.objects.filter(username="eve").exists()


@pytest.mark.parametrize(
    "text",
    [
        "", "nothing", "<a/>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        '<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="x"/>',
    ],
)  # fmt: skip
def test_what_is_no_metadata_is_refused_in_a_sentence(
    carol: User, client_of: Callable, text: str
) -> None:
    fields = {"name": "N", "metadata": text, "others_role": "viewer", "trust_days": "1"}
    answer = client_of(carol).post(
        reverse("identity:provider-new") + "?protocol=saml", fields | {"role_claim": "g"}
    )
    assert answer.status_code == 422
    assert not IdentityProvider.objects.exists()


def test_a_provider_by_saml_outlives_a_session(carol: User, client_of: Callable) -> None:
    """The address to come back to has no query: the form itself names its protocol."""
    url = reverse("identity:provider-new")
    page = client_of(carol).get(url + "?protocol=saml")
    assert field_values(page, "protocol") == ["saml"]
    typed = {
        "protocol": "saml", "name": "Northfield", "metadata": "<a/>", "others_role": "viewer",
        "trust_days": "1",
    }  # fmt: skip
    page = client_of(carol).post(url, typed)
    check_refused(page, typed, field="metadata", error="This is no metadata")
    check_outlives_a_session(client_of, carol, url, typed)
    assert not IdentityProvider.objects.exists()
