"""Middleware for signing in, time zones and temporary passwords."""

from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from webapp.common.kept_forms import is_marked, keep

_SAFE_METHODS = ("GET", "HEAD")


class SignInMiddleware(LoginRequiredMiddleware):
    """Redirect to sign-in, and back to the page that showed the form or fragment.

    A form's URL does not take GET, so it cannot be the page after sign-in if the session ended
    while the form was open; ``lost`` makes the sign-in page report that nothing was saved. One that
    keeps its input (:mod:`webapp.common.kept_forms`) has a URL to come back to.
    """

    def handle_no_permission(
        self, request: HttpRequest, view_func: Callable
    ) -> HttpResponseRedirect:
        """Redirect to sign-in; FragmentRedirectMiddleware redirects fragments as whole pages."""
        is_lost = request.method not in _SAFE_METHODS
        if is_lost and is_marked(view_func) and keep(request):
            query = {"next": request.path, "kept": "1"}
            return redirect(f"{reverse('accounts:sign-in')}?{urlencode(query)}")
        asked = request.headers.get("HX-Current-URL") or (
            request.headers.get("Referer", "/") if is_lost else request.get_full_path()
        )
        query = {"next": _path_of(asked)}
        if is_lost:
            query["lost"] = "1"
        return redirect(f"{reverse('accounts:sign-in')}?{urlencode(query)}")


def _path_of(address: str) -> str:
    """Return the path and query of a URL; "/" for a header without a URL."""
    try:
        page = urlsplit(address)
    except ValueError:
        return "/"
    return page.path + (f"?{page.query}" if page.query else "")


class TimeZoneMiddleware:
    """Show times in the time zone of the signed-in person's organisation."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Set the time zone before the view, and reset it for the next request."""
        organisation = request.user.organisation if request.user.is_authenticated else None
        if organisation is None:
            timezone.deactivate()
        else:
            timezone.activate(organisation.zone)
        try:
            return self.get_response(request)
        finally:
            timezone.deactivate()


class PasswordChangeMiddleware:
    """Redirect a person with a temporary password to the page that changes it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Let requests to sign-out and to the password page pass."""
        user = request.user
        if user.is_authenticated and user.must_change_password:
            allowed = {reverse("accounts:password"), reverse("accounts:sign-out")}
            if request.path not in allowed:
                return redirect("accounts:password")
        return self.get_response(request)
