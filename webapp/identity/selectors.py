"""Queries on providers and second factors for pages."""

from dataclasses import dataclass
from urllib.parse import urlencode

from allauth.mfa.models import Authenticator
from django.db.models import Exists, F, OuterRef, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from webapp.accounts.models import Organisation, User
from webapp.common.selectors import owned_by
from webapp.identity.models import IdentityProvider, Protocol, SecondFactorDuty


@dataclass(frozen=True, slots=True)
class Offer:
    """A provider's entry on a sign-in page."""

    name: str
    url: str


def login_address(provider: IdentityProvider, there: str = "") -> str:
    """Return the URL at which sign-in by a provider begins; ``there`` is the page afterwards."""
    is_saml = provider.protocol == Protocol.SAML
    name = "saml_login" if is_saml else "openid_connect_login"
    return reverse(name, args=[provider.key]) + (f"?{urlencode({'next': there})}" if there else "")


def providers_to_offer(organisation: Organisation | None, there: str) -> list[Offer]:
    """Return the providers to offer on this organisation's sign-in page.

    None: the organisation is unknown, and no provider is offered, since an administrator may give a
    provider the name of another organisation.
    """
    if organisation is None:
        return []
    found = IdentityProvider.objects.filter(is_on=True, organisation=organisation).order_by("name")
    return [Offer(row.name, login_address(row, there)) for row in found]


def is_any_provider_on() -> bool:
    """Return True if any organisation has an enabled provider; the organisation is not revealed."""
    return IdentityProvider.objects.filter(is_on=True).exists()


def people_with_origin(user: User) -> QuerySet[User]:
    """Return the organisation's people with ``origin`` (a provider) and ``has_code``."""
    codes = Authenticator.objects.filter(user=OuterRef("pk"), type=Authenticator.Type.TOTP)
    people = owned_by(User, user).order_by("-is_active", "username")
    return people.annotate(origin=F("provider_account__provider__name"), has_code=Exists(codes))


def is_second_factor_duty(user: User) -> bool:
    """Return True if the organisation requires a second factor of its local people."""
    return SecondFactorDuty.objects.filter(organisation=user.organisation).exists()


def provider_addresses(request: HttpRequest, provider: IdentityProvider) -> list[tuple[str, str]]:
    """Return [(label, URL)] for the settings at the provider."""
    key = provider.key
    if provider.protocol == Protocol.SAML:
        found = [
            (_("Entity id, and metadata"), reverse("saml_metadata", args=[key])),
            (_("Assertion consumer service (HTTP-POST)"), reverse("saml_acs", args=[key])),
            (_("Single logout (HTTP-Redirect)"), reverse("saml_sls", args=[key])),
        ]
    else:
        back = reverse("identity:back-channel", args=[key])
        found = [
            (_("Redirect address"), reverse("openid_connect_callback", args=[key])),
            (_("Back-channel logout address"), back),
        ]
    found.append((_("Where signing in begins"), login_address(provider)))
    return [(words, request.build_absolute_uri(path)) for words, path in found]
