"""OpenID Connect of allauth, with every ID token verified by the provider's own keys.

allauth does not verify the signature of a token that came straight from the provider. An attacker
between the two servers, or in control of the provider's token endpoint, could sign in as anybody.
Here a token must be signed by a key of the provider and hold the nonce of its sign-in.
"""

import secrets
from typing import Any

from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

from webapp.identity.models import IdentityProvider
from webapp.identity.provider_keys import verified_claims
from webapp.identity.services import IdentityError

_NONCE = "nonce"


class VerifyingAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    """OpenID Connect adapter that accepts only tokens signed by the provider."""

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> SocialLogin:
        """Refuse an answer without an ID token: user information alone is bound to no sign-in."""
        if not kwargs["response"].get("id_token"):
            raise OAuth2Error("The provider sent no ID token.")
        return super().complete_login(request, app, token, **kwargs)

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        provider = IdentityProvider.objects.get(key=app.provider_id)
        try:
            return verified_claims(provider, id_token, require=("exp", "sub"))
        except IdentityError as error:
            raise OAuth2Error(str(error)) from error


class VerifyingProvider(OpenIDConnectProvider):  # type: ignore[misc]
    """OpenID Connect provider that sends a nonce and ignores parameters in our URL."""

    oauth2_adapter_class = VerifyingAdapter
    supports_token_authentication = False

    def get_auth_params_from_request(self, request: HttpRequest, action: str) -> dict[str, Any]:
        """Return no parameters from our own URL: another site may have written it."""
        parameters: dict[str, Any] = self.get_auth_params()
        return parameters

    def get_scope_from_request(self, request: HttpRequest) -> list[str]:
        """Return the usual scopes only."""
        scope: list[str] = self.get_scope()
        return scope

    def redirect(
        self,
        request: HttpRequest,
        process: str,
        next_url: str | None = None,
        data: Any = None,
        **kwargs: Any,
    ) -> HttpResponse:
        """Redirect to the provider with a nonce, which the session stores beside the state."""
        nonce = secrets.token_urlsafe(32)
        parameters = kwargs.pop("auth_params", None) or self.get_auth_params()
        kwargs |= {"auth_params": {**parameters, _NONCE: nonce}, _NONCE: nonce}
        response: HttpResponse = super().redirect(request, process, next_url, data, **kwargs)
        return response


def is_answer_to(sociallogin: SocialLogin) -> bool:
    """Return True if the ID token of a sign-in holds the nonce with which it began."""
    token = sociallogin.account.extra_data.get("id_token") or {}
    asked, given = sociallogin.state.get(_NONCE), token.get(_NONCE)
    return bool(asked) and isinstance(given, str) and constant_time_compare(asked, given)


@login_not_required
def login(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Redirect to the provider."""
    return _view(OAuth2LoginView, request, provider_id)


@login_not_required
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Handle the provider's answer."""
    return _view(OAuth2CallbackView, request, provider_id)


def _view(
    kind: type[OAuth2LoginView] | type[OAuth2CallbackView], request: HttpRequest, provider_id: str
) -> HttpResponse:
    try:
        response: HttpResponse = kind.adapter_view(VerifyingAdapter(request, provider_id))(request)
    except SocialApp.DoesNotExist as error:
        raise Http404 from error
    return response
