"""HEAD requests: the headers of GET without its writes.

A HEAD request for a file leaves no audit line, since no byte of it is read.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponseBase


@contextmanager
def nothing_written_by_head(request: HttpRequest) -> Iterator[None]:
    """Roll back writes of the block while a HEAD request is answered."""
    if request.method != "HEAD":
        yield
        return
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


class HeadMiddleware:
    """Middleware that lets views of signed-in people answer HEAD as GET; no body is sent."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Continue, so that the view is found first."""
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        """Call the view of a HEAD request; other requests are called as usual."""
        if request.method != "HEAD" or not request.user.is_authenticated:
            return None
        with nothing_written_by_head(request):
            request.method = "GET"  # views distinguish only GET and POST
            try:
                response: HttpResponseBase = view(request, *args, **kwargs)
            finally:
                request.method = "HEAD"
        return response
