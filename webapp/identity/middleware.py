"""Middleware that requires a second factor."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from webapp.identity.second_factor import needs_second_factor

_OPEN = ("/static/", "/q/", "/api/v1/", "/healthz", "/readyz", "/metrics")


class SecondFactorMiddleware:
    """Redirect local people who must have a second factor to the page that sets it up."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Let requests to sign-out, to the password page and to the page itself pass."""
        if request.path.startswith(_OPEN) or not request.user.is_authenticated:
            return self.get_response(request)
        names = ("accounts:sign-out", "accounts:password", "identity:second-factor")
        allowed = {reverse(name) for name in names}
        if request.path not in allowed and needs_second_factor(request.user):
            return redirect("identity:second-factor")
        return self.get_response(request)
