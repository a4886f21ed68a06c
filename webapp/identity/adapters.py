"""What allauth asks of the installation: which providers there are, and who may come in.

allauth speaks the two protocols; everything that it would decide (who has an account, which role,
what a refusal looks like) is decided here.
"""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from django.contrib.auth import login
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from webapp.accounts.models import User
from webapp.common.encryption import seal, unseal
from webapp.identity import services, students
from webapp.identity.claims import Claims, read_claims, student_number
from webapp.identity.models import IdentityProvider, Protocol
from webapp.identity.outbound import GuardedSession

BACKEND = "django.contrib.auth.backends.ModelBackend"  # that answers for everybody's session
_NO_ROLE = (
    "{provider} knows you, but says nothing that gives you a role here. Ask the administrators of "
    "{organisation}."
)
_OFF = "This account is switched off. Ask an administrator of {organisation}."
_TWO = "{provider} answered with two different people. Try again, or ask its administrators."
FAILED = "{provider} did not confirm who you are. Try again; if it goes on, ask {organisation}."


class AccountAdapter(DefaultAccountAdapter):
    """Accounts are made by administrators and providers; nobody signs up by themselves."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Nobody."""
        return False

    def login(self, request: HttpRequest, user: User) -> None:
        """Begin a session and note which provider began it."""
        login(request, user, backend=BACKEND)
        provider, claims = request.vouched  # type: ignore[attr-defined]
        if request.session.session_key is None:
            request.session.save()
        key = request.session.session_key
        services.session_note(provider=provider, session_key=key, claims=claims, user=user)

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Say nothing: the page that follows is answer enough."""

    def send_mail(self, *args: Any, **kwargs: Any) -> None:
        """Send nothing: what happens to accounts stands in the audit log."""


class SocialAdapter(DefaultSocialAccountAdapter):
    """Providers are rows of organisations; claims decide who comes in."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """Return the providers that are on."""
        found = IdentityProvider.objects.filter(is_on=True)
        if provider:
            found = found.filter(Q(protocol=provider) | Q(key=provider))
        apps = [row.as_app() for row in found]
        return [app for app in apps if client_id in (None, app.client_id)]

    def get_requests_session(self) -> GuardedSession:
        """Return what asks a provider's server."""
        return GuardedSession()

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Say in one sentence that it did not work."""
        row = IdentityProvider.objects.filter(key=provider.app.provider_id).first()
        raise ImmediateHttpResponse(refusal(request, row, FAILED, status=401))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Let in whom the claims give a role, or remember a student; refuse everybody else."""
        account = sociallogin.account
        provider = IdentityProvider.objects.select_related("organisation").get(key=account.provider)
        claims = read_claims(provider.protocol, account.uid, account.extra_data)
        known = sociallogin.user if sociallogin.is_existing else None
        _forget_claims(account)
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
    """Secrets of second factors are encrypted like all that is."""

    def encrypt(self, text: str) -> str:
        """Return what is kept."""
        return seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Return the secret."""
        return unseal(encrypted_text)

    def get_totp_issuer(self) -> str:
        """The name above the code in an authenticator."""
        return "Bethe Hall"


def _forget_claims(account: SocialAccount) -> None:
    """Keep nothing of what a provider said beyond what an account shows: no groups, no names."""
    account.extra_data = {}
    if account.pk:
        SocialAccount.objects.filter(pk=account.pk).update(extra_data={})


def _student(
    request: HttpRequest, provider: IdentityProvider, claims: Claims, there: str
) -> HttpResponse:
    number = student_number(provider, claims)
    if not provider.takes_students or not number:
        return refusal(request, provider, FAILED)
    students.remember(request, provider=provider, claims=claims, number=number)
    return redirect(there)


def refusal(
    request: HttpRequest, provider: IdentityProvider | None, sentence: str, *, status: int = 403
) -> HttpResponse:
    """Return the page that says why nobody was signed in."""
    words = {
        "provider": provider.name if provider else "The provider",
        "organisation": provider.organisation if provider else "your organisation",
    }
    context = {"sentence": sentence.format(**words), "is_saml": _is_saml(provider)}
    return render(request, "identity/refused.html", context, status=status)


def _is_saml(provider: IdentityProvider | None) -> bool:
    return provider is not None and provider.protocol == Protocol.SAML
