"""URL patterns of the two protocols: allauth's views, with our pages for failures."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import structlog
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.providers.saml import views as saml
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.cache import never_cache

from webapp.accounts.guesses import remember_browser
from webapp.identity import openid_connect
from webapp.identity.adapters import FAILED, refusal
from webapp.identity.models import IdentityProvider

log = structlog.get_logger(__name__)
View = Callable[..., HttpResponse]


def _guarded(view: View) -> View:
    """Return a view that answers any error caused by a provider or a forger with a refusal."""

    @wraps(view)
    def wrapped(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        (key,) = kwargs.values()
        try:
            response = view(request, **kwargs)
            if request.user.is_authenticated:  # the next sign-in offers this provider
                remember_browser(response, request.user)
            return response
        except (Http404, ImmediateHttpResponse):
            raise
        except Exception as error:  # other libraries' parsers raise errors of many kinds
            log.warning("sign-in by a provider failed", provider=key, error=repr(error)[:500])
            provider = IdentityProvider.objects.filter(key=key).first()
            return refusal(request, provider, FAILED, status=401)

    guarded: View = never_cache(wrapped)
    return guarded


def _signed(view: View) -> View:
    """Refuse an unsigned message: the library verifies a signature only if there is one."""

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
