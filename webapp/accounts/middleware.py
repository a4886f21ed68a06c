"""A temporary password opens one page only: the one that changes it."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse


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
