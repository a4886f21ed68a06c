"""Who may go on: people who are signed in, with a password of their own."""

from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

_SAFE_METHODS = ("GET", "HEAD")


class SignInMiddleware(LoginRequiredMiddleware):
    """Send a visitor to sign-in, and back to the page on which the form or fragment stood.

    The address of a form takes no GET, so it is no place to come back to when a session ended
    while the form was open; ``lost`` makes the sign-in page say that nothing was saved.
    """

    def handle_no_permission(self, request: HttpRequest, view_func: Callable) -> HttpResponse:
        """Redirect; fragments are redirected as whole pages by FragmentRedirectMiddleware."""
        is_lost = request.method not in _SAFE_METHODS
        asked = request.headers.get("HX-Current-URL") or (
            request.headers.get("Referer", "/") if is_lost else request.get_full_path()
        )
        query = {"next": _path_of(asked)}
        if is_lost:
            query["lost"] = "1"
        return redirect(f"{reverse('accounts:sign-in')}?{urlencode(query)}")


def _path_of(address: str) -> str:
    """Return path and query of an address; "/" for a header that holds none."""
    try:
        page = urlsplit(address)
    except ValueError:
        return "/"
    return page.path + (f"?{page.query}" if page.query else "")


class TimeZoneMiddleware:
    """Show times in the zone of the signed-in person's organisation."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Choose the zone before the view, and leave none behind for the next request."""
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
    """Send a person with a temporary password to the page that changes it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Let sign-out and the password page through."""
        user = request.user
        if user.is_authenticated and user.must_change_password:
            allowed = {reverse("accounts:password"), reverse("accounts:sign-out")}
            if request.path not in allowed:
                return redirect("accounts:password")
        return self.get_response(request)
