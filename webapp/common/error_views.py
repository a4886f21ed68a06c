"""Error pages: the error and the next step, without internal details."""

import sys

from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import resolve
from django.utils.translation import gettext as _

from webapp.common.hooks import absent_part, error_page_of
from webapp.common.kept_forms import is_marked, keep
from webapp.database.full_disk import FULL_DISK, FULL_DISK_ADVICE, is_full_disk
from webapp.translation.lazy import gettext_lazy

RETRY_SECONDS = 10  # after which a page or a program may try again
AWAY_ADVICE = gettext_lazy("Nothing was changed. Wait a few seconds and try again.")

UNKNOWN_NAME = gettext_lazy(
    "This server does not answer by the name “{name}”. To allow the name, the operator "
    "adds it to the variable ALLOWED_HOSTS, separated by commas, and starts the server "
    "again."
)

_PAGES = {
    400: (
        gettext_lazy("The request cannot be read"),
        gettext_lazy("Go back and send it again. Nothing was changed."),
    ),
    403: (
        gettext_lazy("This is not open to you"),
        gettext_lazy("Ask an administrator of your organisation for the role."),
    ),
    404: (
        gettext_lazy("There is no such page"),
        gettext_lazy("The address is wrong, or what stood here was removed."),
    ),
    500: (
        gettext_lazy("Something failed on our side"),
        gettext_lazy("Nothing was changed. Try again in a moment."),
    ),
}


def is_away(error: BaseException) -> bool:
    """Return True if an error means that the database or another part cannot be used now."""
    return isinstance(error, OperationalError | InterfaceError) or bool(absent_part(error))


def away_title(error: BaseException) -> str:
    """Return the name of the part that does not answer."""
    part = absent_part(error)
    if not part:
        return _("The database does not answer")
    return _("The %(part)s does not answer") % {"part": part}


def _page(request: HttpRequest, status: int, detail: str = "") -> HttpResponse:
    own = error_page_of(request.path)
    if own is not None:
        return own(request, status)
    title, advice = _PAGES[status]
    context = {"title": title, "advice": detail or advice, "status": status}
    return render(request, "common/error.html", context, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400, and explain how to allow a name that the server does not know."""
    if isinstance(exception, DisallowedHost):
        name = request.META.get("HTTP_HOST", "")[:100]
        return _page(request, 400, UNKNOWN_NAME.format(name=name))
    return _page(request, 400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403; the message of our own PermissionDenied is meant for the reader."""
    return _page(request, 403, str(exception))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404, the same for absent objects and for objects of others."""
    return _page(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500, or 503 while database or store are away, 507 while the disk is full.

    Parts that may have failed are not used. Django calls this while it handles the error.
    """
    error, status = sys.exception(), 500
    title, advice = _PAGES[status]
    if error is not None and is_full_disk(error):
        title, advice, status = FULL_DISK.rstrip("."), FULL_DISK_ADVICE, 507
    elif error is not None and is_away(error):
        title, advice, status = away_title(error), AWAY_ADVICE, 503
    context = {"title": title, "advice": advice, "status": status}
    own = error_page_of(request.path)
    if own is not None:
        return own(request, status)
    response = render(None, "common/error.html", context, status=status)
    if status in (503, 507):
        response["Retry-After"] = str(RETRY_SECONDS)
        response["Cache-Control"] = "no-store"
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form with a missing or old token; lead back to a form that keeps the typed text."""
    if request.method == "POST" and is_marked(resolve(request.path_info).func) and keep(request):
        return redirect(request.path)
    return _page(
        request, 403, _("This form was open for too long. Load the page again and resend it.")
    )
