"""Storage of a student's personal link while they answer: in a cookie, not in addresses.

Anybody with a link can answer for its owner, and addresses end up in logs of proxies, in browser
histories and in Referer headers. So the first visit exchanges the token of the address for a cookie
and redirects to an address without it. A browser without cookies stays at the address of the link;
all our logs mask it (:mod:`webapp.monitoring.masking`).
"""

from datetime import timedelta

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare, salted_hmac

from webapp.surveys.links import VALID_FOR, participant_of, token_of
from webapp.surveys.models import Participant

TRIED = "cookies"  # parameter of a repeated request that checks whether cookies are stored
_PREFIX = "link-"


def handle_of(participant: Participant) -> str:
    """Return the name of a participant in addresses; it opens nothing without the cookie."""
    text = f"{participant.pk}.{participant.nonce}"
    return salted_hmac("webapp.surveys.visits", text).hexdigest()[:16]


def visitor_of(request: HttpRequest, handle: str) -> Participant | None:
    """Return the participant whose link the browser stores for this address; None without one."""
    participant = participant_of(request.COOKIES.get(_PREFIX + handle, ""))
    if participant is None or not constant_time_compare(handle_of(participant), handle):
        return None
    return participant


def enter(request: HttpRequest, participant: Participant, **more: str) -> HttpResponse | None:
    """Redirect to the address without the token; None if the browser takes no cookies.

    ``more`` are parameters added to those of the request.
    """
    query = request.GET.copy()
    query.update(more)
    was_tried = query.pop(TRIED, None) is not None
    if request.COOKIES:
        handle = handle_of(participant)
        there = reverse("surveys:mine", args=[handle])
        response = HttpResponseRedirect(f"{there}?{query.urlencode()}" if query else there)
        _set(response, _PREFIX + handle, token_of(participant), path=there)
        return response
    if was_tried:
        return None
    query[TRIED] = "1"
    there = reverse("surveys:answer", args=[token_of(participant)])
    response = HttpResponseRedirect(f"{there}?{query.urlencode()}")
    _set(response, TRIED, "1", path=reverse("surveys:enter"), max_age=None)
    return response


def leave(response: HttpResponse, participant: Participant) -> None:
    """Remove the link of deleted answers from the browser."""
    handle = handle_of(participant)
    response.delete_cookie(_PREFIX + handle, path=reverse("surveys:mine", args=[handle]))


def _set(
    response: HttpResponse,
    name: str,
    value: str,
    *,
    path: str,
    max_age: timedelta | None = VALID_FOR,
) -> None:
    response.set_cookie(
        name,
        value,
        max_age=max_age,
        path=path,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
