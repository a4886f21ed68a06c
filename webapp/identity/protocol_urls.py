"""Addresses of the two protocols: allauth's views, whose failures end in a sentence of ours."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import structlog
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.providers.openid_connect import views as openid_connect
from allauth.socialaccount.providers.saml import views as saml
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.cache import never_cache

from webapp.identity.adapters import FAILED, refusal
from webapp.identity.models import IdentityProvider

log = structlog.get_logger(__name__)
View = Callable[..., HttpResponse]


def _guarded(view: View) -> View:
    """Answer what a provider, the network or a forger sent with a refusal, whatever it breaks."""

    @wraps(view)
    def wrapped(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        (key,) = kwargs.values()
        try:
            return view(request, **kwargs)
        except (Http404, ImmediateHttpResponse):
            raise
        except Exception as error:  # parsers of others raise whatever they stumble over
            log.warning("sign-in by a provider failed", provider=key, error=repr(error)[:500])
            provider = IdentityProvider.objects.filter(key=key).first()
            return refusal(request, provider, FAILED, status=401)

    guarded: View = never_cache(wrapped)
    return guarded


def _signed(view: View) -> View:
    """Refuse what carries no signature: the library checks one only where it finds one."""

    @wraps(view)
    def wrapped(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        if not request.GET.get("Signature"):
            return HttpResponse("This is not signed.", status=400, content_type="text/plain")
        return view(request, **kwargs)

    return wrapped


_OPENID = "oidc/<str:provider_id>"
_SAML = "saml/<str:organization_slug>"
urlpatterns = [
    path(f"{_OPENID}/login/", _guarded(openid_connect.login), name="openid_connect_login"),
    path(
        f"{_OPENID}/login/callback/",
        _guarded(openid_connect.callback),
        name="openid_connect_callback",
    ),
    path(f"{_SAML}/login/", _guarded(saml.login), name="saml_login"),
    path(f"{_SAML}/acs/", _guarded(saml.acs), name="saml_acs"),
    path(f"{_SAML}/acs/finish/", _guarded(saml.finish_acs), name="saml_finish_acs"),
    path(f"{_SAML}/sls/", _guarded(_signed(saml.sls)), name="saml_sls"),
    path(f"{_SAML}/metadata/", _guarded(saml.metadata), name="saml_metadata"),
]
