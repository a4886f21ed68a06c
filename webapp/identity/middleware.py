"""Who has to set up a second factor first."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from webapp.identity.second_factor import needs_second_factor

_OPEN = ("/static/", "/q/", "/api/v1/", "/healthz", "/readyz", "/metrics")


class SecondFactorMiddleware:
    """Send local people of an organisation that asks for a second factor to where it is set up."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Let sign-out, the password page and the page itself through."""
        if request.path.startswith(_OPEN) or not request.user.is_authenticated:
            return self.get_response(request)
        names = ("accounts:sign-out", "accounts:password", "identity:second-factor")
        allowed = {reverse(name) for name in names}
        if request.path not in allowed and needs_second_factor(request.user):
            return redirect("identity:second-factor")
        return self.get_response(request)
