"""Error pages: what happened and what to do, nothing of the inside."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.common.full_disk import FULL_DISK, FULL_DISK_ADVICE, is_full_disk
from webapp.files.store import StoreAwayError

RETRY_SECONDS = 10  # after which a page or a program may ask again
AWAY_ERRORS = (OperationalError, InterfaceError, StoreAwayError)
AWAY_ADVICE = "Nothing was changed. Wait a few seconds and try again."

_PAGES = {
    400: ("The request cannot be read", "Go back and send it again. Nothing was changed."),
    403: ("This is not open to you", "Ask an administrator of your organisation for the role."),
    404: ("There is no such page", "The address is wrong, or what stood here was removed."),
    500: ("Something failed on our side", "Nothing was changed. Try again in a moment."),
}


def away_title(error: BaseException) -> str:
    """Return what does not answer, in words."""
    is_store = isinstance(error, StoreAwayError)
    return f"The {'store of files' if is_store else 'database'} does not answer"


def _page(request: HttpRequest, status: int, detail: str = "") -> HttpResponse:
    title, advice = _PAGES[status]
    context = {"title": title, "advice": detail or advice, "status": status}
    return render(request, "common/error.html", context, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400."""
    return _page(request, 400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403; the sentence of our own PermissionDenied is meant for the reader."""
    return _page(request, 403, str(exception))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404, the same for what is absent and what belongs to others."""
    return _page(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500, or 503 while database or store are away, 507 while the disk is full.

    What may have failed is not touched.

    Django calls this while it handles the error.
    """
    error, status = sys.exception(), 500
    title, advice = _PAGES[status]
    if error is not None and is_full_disk(error):
        title, advice, status = FULL_DISK.rstrip("."), FULL_DISK_ADVICE, 507
    elif isinstance(error, AWAY_ERRORS):
        title, advice, status = away_title(error), AWAY_ADVICE, 503
    context = {"title": title, "advice": advice, "status": status}
    response = render(None, "common/error.html", context, status=status)
    if status in (503, 507):
        response["Retry-After"] = str(RETRY_SECONDS)
        response["Cache-Control"] = "no-store"
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form whose token is missing or old."""
    return _page(
        request, 403, "This form was open for too long. Load the page again and resend it."
    )
