"""Middleware: browser policy headers, zero bytes, redirects of fragments, and toasts."""

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import urlsplit

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from webapp.accounts.requests import HtmxRequest
from webapp.common import toasts

_PERMISSIONS = "camera=(), microphone=(), geolocation=(), payment=(), usb=()"
_WHOLE_PAGES = ("accounts:sign-in", "accounts:password")


class BrowserPolicyMiddleware:
    """Middleware that disables unused browser features, and shared caching of signed-in pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Add the headers, except a Cache-Control that the view set itself."""
        response = self.get_response(request)
        response.setdefault("Permissions-Policy", _PERMISSIONS)
        response.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        user = getattr(request, "user", None)
        if user is not None and user.is_authenticated:
            response.setdefault("Cache-Control", "private, no-store")
        return response


class ZeroByteMiddleware:
    """Middleware that refuses zero bytes in fields: no form sends one, and PostgreSQL accepts none.

    Views behind ``csrf_exempt`` check their input themselves.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Continue, so that the view is found first."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Callable, *others: object) -> None:
        """Raise BadRequest, which answers 400 in words, before the view runs."""
        sent = [request.GET] if getattr(view, "csrf_exempt", False) else [request.GET, request.POST]
        if any("\x00" in text for data in sent for _, texts in data.lists() for text in texts):
            raise BadRequest(_("A field holds a zero byte."))


class FragmentRedirectMiddleware:
    """Middleware that sends the whole page to sign-in if a fragment is requested without a session.

    htmx follows a redirect and would put the sign-in page into the place of a job card.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Turn a redirect of a fragment to a page of accounts into a redirect of the whole page."""
        response = self.get_response(request)
        if "HX-Request" not in request.headers or response.status_code != HTTPStatus.FOUND:
            return response
        if urlsplit(response["Location"]).path in map(reverse, _WHOLE_PAGES):
            return HttpResponseClientRedirect(response["Location"])
        return response


class ToastMiddleware:
    """Middleware that appends waiting toasts to the answer of an htmx request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HtmxRequest) -> HttpResponse:
        """Skip redirects: their toasts wait for the page that follows."""
        response = self.get_response(request)
        is_fragment = (
            request.htmx
            and not request.htmx.boosted
            and not response.streaming
            and response.status_code in (200, 422)
            and not {"HX-Redirect", "HX-Refresh", "HX-Location"} & set(response.headers)
            and response.get("Content-Type", "").startswith("text/html")
        )
        if is_fragment:
            response.content += toasts.render_fragment(request).encode()
            if "Content-Length" in response:
                response["Content-Length"] = str(len(response.content))
        return response
