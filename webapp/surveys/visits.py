"""Storage of a student's personal link while they answer: in a cookie, not in addresses."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.crypto import constant_time_compare, salted_hmac

from webapp.identity.link_cookies import PersonalLink
from webapp.surveys.links import VALID_FOR, participant_of, token_of
from webapp.surveys.models import Participant

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
    handle, token = handle_of(participant), token_of(participant)
    link = PersonalLink(
        cookie=_PREFIX + handle,
        token=token,
        address=reverse("surveys:answer", args=[token]),
        there=reverse("surveys:mine", args=[handle]),
        site=reverse("surveys:enter"),
        valid_for=VALID_FOR,
    )
    return link.enter(request, **more)


def leave(response: HttpResponse, participant: Participant) -> None:
    """Remove the link of deleted answers from the browser."""
    handle = handle_of(participant)
    response.delete_cookie(_PREFIX + handle, path=reverse("surveys:mine", args=[handle]))
