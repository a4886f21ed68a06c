"""Log lines: one line of JSON per request and per job, joined by an id.

A request gets an id, which its answer carries as ``X-Request-ID``. All log lines of the request
carry it, and so does every job that it starts, with every line of the worker and the engine while
that job runs.
"""

import secrets
import time
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse

from webapp.monitoring import metrics

lines = structlog.get_logger("bethe_hall.lines")


def current_request_id() -> str:
    """Return the id of the current request; '' outside of one."""
    return str(structlog.contextvars.get_contextvars().get("request", ""))


class RequestLineMiddleware:
    """Middleware that logs one line per request, without its query, which may hold a search."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Bind a new id while the request is served, then log and count it."""
        started, processor_started = time.perf_counter(), time.thread_time()
        identifier = secrets.token_hex(8)
        with structlog.contextvars.bound_contextvars(request=identifier):
            response = self.get_response(request)
            seconds = time.perf_counter() - started
            user = getattr(request, "_cached_user", None)  # another access might query the database
            lines.info(
                "request",
                method=request.method,
                path=request.path,
                status=response.status_code,
                milliseconds=round(1000 * seconds, 1),
                processor_milliseconds=round(1000 * (time.thread_time() - processor_started), 1),
                user=getattr(user, "pk", None),
                organisation=getattr(user, "organisation_id", None),
                address=request.META.get("REMOTE_ADDR", ""),
            )
        response["X-Request-ID"] = identifier
        match = request.resolver_match
        metrics.count_request(match.view_name if match else "", response.status_code, seconds)
        return response
