"""Adapters of allauth: the providers of an installation, and the admission of people.

allauth implements the two protocols; its decisions (accounts, roles, refusals) are taken here.
"""

from typing import Any

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base import Provider
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.contrib.auth import login
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.encryption.fields import seal, unseal
from webapp.identity import services, students
from webapp.identity.claims import EMAIL_CLAIMS, Claims, read_claims, student_number
from webapp.identity.models import IdentityProvider, Protocol
from webapp.identity.openid_connect import VerifyingProvider, is_answer_to
from webapp.identity.outbound import GuardedSession
from webapp.translation.lazy import gettext_lazy

log = structlog.get_logger(__name__)

BACKEND = "django.contrib.auth.backends.ModelBackend"  # answers for the sessions of all users
_NO_ROLE = gettext_lazy(
    "{provider} knows you, but says nothing that gives you a role here. Ask the "
    "administrators of {organisation}."
)
_OFF = gettext_lazy("This account is switched off. Ask an administrator of {organisation}.")
_TWO = gettext_lazy(
    "{provider} answered with two different people. Try again, or ask its administrators."
)
_UNCHECKED = gettext_lazy(
    "{provider} does not say that it checked your e-mail address, by which students are "
    "known here. Ask {organisation}."
)
FAILED = gettext_lazy(
    "{provider} did not confirm who you are. Try again; if it goes on, ask {organisation}."
)


class AccountAdapter(DefaultAccountAdapter):
    """Account adapter without sign-up: administrators and providers create accounts."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return False: nobody may sign up."""
        return False

    def login(self, request: HttpRequest, user: User) -> None:
        """Begin a session and record the provider that began it."""
        login(request, user, backend=BACKEND)
        provider, claims = request.vouched  # type: ignore[attr-defined]
        if request.session.session_key is None:
            request.session.save()
        key = request.session.session_key or ""
        services.session_note(provider=provider, session_key=key, claims=claims, user=user)

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Show no message: the next page is answer enough."""

    def send_mail(self, *args: Any, **kwargs: Any) -> None:
        """Send no mail: changes to accounts are in the audit log."""


class SocialAdapter(DefaultSocialAccountAdapter):
    """Social account adapter that reads providers from organisations and admits by claims."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """Return the providers that are enabled."""
        found = IdentityProvider.objects.filter(is_on=True)
        if provider:
            found = found.filter(Q(protocol=provider) | Q(key=provider))
        apps = [row.as_app() for row in found]
        return [app for app in apps if client_id in (None, app.client_id)]

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: str | None = None
    ) -> Provider:
        """Return a provider; for OpenID Connect, the class that verifies its tokens."""
        found = super().get_provider(request, provider, client_id=client_id)
        if isinstance(found, OpenIDConnectProvider):
            return VerifyingProvider(request, app=found.app)
        return found

    def get_requests_session(self) -> GuardedSession:
        """Return the guarded session for calls to a provider's server."""
        return GuardedSession()

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Show one sentence about the failed sign-in."""
        row = IdentityProvider.objects.filter(key=provider.app.provider_id).first()
        error = kwargs.get("exception")
        log.warning(
            "a provider's answer was refused",
            provider=getattr(row, "key", ""),
            why=str(error)[:200],
        )
        raise ImmediateHttpResponse(refusal(request, row, FAILED, status=401))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Admit a person whose claims give a role, or remember a student; refuse everybody else."""
        account = sociallogin.account
        provider = IdentityProvider.objects.select_related("organisation").get(key=account.provider)
        claims = read_claims(provider, account.uid, account.extra_data)
        known = sociallogin.user if sociallogin.is_existing else None
        is_other = provider.protocol == Protocol.OPENID_CONNECT and not is_answer_to(sociallogin)
        _forget_claims(account)
        if is_other:
            log.warning("an ID token with another nonce was refused", provider=provider.key)
            raise ImmediateHttpResponse(refusal(request, provider, FAILED, status=401))
        if claims is None:
            raise ImmediateHttpResponse(refusal(request, provider, _TWO))
        there = str(sociallogin.state.get("next") or "")
        if students.is_for_students(there):
            raise ImmediateHttpResponse(_student(request, provider, claims, there))
        if sociallogin.state.get("process") != "login":
            raise ImmediateHttpResponse(refusal(request, provider, FAILED))
        admitted = services.person_admit(provider=provider, claims=claims, known=known)
        if admitted is None:
            raise ImmediateHttpResponse(refusal(request, provider, _NO_ROLE))
        if not admitted.user.is_active:
            raise ImmediateHttpResponse(refusal(request, provider, _OFF))
        request.vouched = provider, claims  # type: ignore[attr-defined]
        if admitted.is_new:
            account.user = admitted.user
            account.save()
        sociallogin.user = admitted.user
        sociallogin.email_addresses = []


class MFAAdapter(DefaultMFAAdapter):
    """Second-factor adapter that encrypts secrets."""

    def encrypt(self, text: str) -> str:
        """Return the encrypted secret."""
        return seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Return the decrypted secret."""
        return unseal(encrypted_text)

    def get_totp_issuer(self) -> str:
        """Return the name shown above the code in an authenticator."""
        return "Bethe Hall"


def _forget_claims(account: SocialAccount) -> None:
    """Delete a provider's claims beyond those that an account shows: no groups, no names."""
    account.extra_data = {}
    if account.pk:
        SocialAccount.objects.filter(pk=account.pk).update(extra_data={})


def _student(
    request: HttpRequest, provider: IdentityProvider, claims: Claims, there: str
) -> HttpResponse:
    number = student_number(provider, claims)
    if provider.takes_students and not number and provider.student_claim in EMAIL_CLAIMS:
        return refusal(request, provider, _UNCHECKED)
    if not provider.takes_students or not number:
        return refusal(request, provider, FAILED)
    students.remember(request, provider=provider, claims=claims, number=number)
    return redirect(there)


def refusal(
    request: HttpRequest, provider: IdentityProvider | None, sentence: str, *, status: int = 403
) -> HttpResponse:
    """Return the page that explains why nobody was signed in."""
    words = {
        "provider": provider.name if provider else _("The provider"),
        "organisation": provider.organisation if provider else _("your organisation"),
    }
    context = {"sentence": sentence.format(**words), "is_saml": _is_saml(provider)}
    return render(request, "identity/refused.html", context, status=status)


def _is_saml(provider: IdentityProvider | None) -> bool:
    return provider is not None and provider.protocol == Protocol.SAML
