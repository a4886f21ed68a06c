"""Limits on failed sign-ins over many names, for each address and for the installation.

Five failures lock one name at one address (django-axes). Trying one password with many names never
reaches that limit, so failures are also counted for each address and in total. A signed cookie
marks a browser in which somebody has signed in before; that person may go on, so that a colleague
on the same network, or a flood of attempts, does not keep people out of their own work.
"""

import ipaddress
from typing import Any

import structlog
from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from webapp.accounts.models import Organisation, User
from webapp.accounts.names import sign_in_key
from webapp.common.limits import count_up, is_first

log = structlog.get_logger(__name__)

WINDOW = 600  # seconds
_COOKIE = "known-browser"
_KNOWN_FOR = 365 * 24 * 3600  # seconds
_SALT = "webapp.accounts.guesses"
_ALL = "all"


def is_over(request: HttpRequest, name: str) -> bool:
    """Return True if an unknown browser's address, or the total, has too many failures."""
    if is_known(request, name):
        return False
    return (
        _count(_source(request), by=0) >= settings.SIGN_IN_FAILURES_OF_ADDRESS
        or _count(_ALL, by=0) >= settings.SIGN_IN_FAILURES_OF_ALL
    )


def locked_name(request: HttpRequest | None, credentials: dict[str, Any] | None) -> str:
    """Return the name under which failures are counted: the same for all spellings of its case."""
    given = credentials.get("username") if credentials else None
    if given is None and request is not None:
        given = request.POST.get("username")
    return sign_in_key(given or "")


def note_failure(request: HttpRequest) -> None:
    """Count a failure, and log once when a limit is reached."""
    source = _source(request)
    for who, most in (
        (source, settings.SIGN_IN_FAILURES_OF_ADDRESS),
        (_ALL, settings.SIGN_IN_FAILURES_OF_ALL),
    ):
        if _count(who) >= most and is_first(f"sign-in:{who}", seconds=WINDOW):
            log.warning("too many failed sign-ins", source=who, most=most, seconds=WINDOW)


def is_known(request: HttpRequest, name: str) -> bool:
    """Return True if the person of this name has signed in with this browser before."""
    key = _remembered(request)
    if key is None:
        return False
    return User.objects.filter(pk=key).named(name).exists()


def organisation_of_browser(request: HttpRequest) -> Organisation | None:
    """Return the organisation of the last person who signed in with this browser, or None."""
    key = _remembered(request)
    people = User.objects.filter(pk=key, is_active=True).select_related("organisation")
    found = people.first() if key is not None else None
    return found.organisation if found else None


def _remembered(request: HttpRequest) -> Any:
    try:
        return signing.loads(request.COOKIES.get(_COOKIE, ""), salt=_SALT, max_age=_KNOWN_FOR)
    except signing.BadSignature:
        return None


def remember_browser(response: HttpResponse, user: User) -> None:
    """Mark the browser as known for this person."""
    response.set_cookie(
        _COOKIE,
        signing.dumps(user.pk, salt=_SALT),
        max_age=_KNOWN_FOR,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
        path="/accounts/",
    )


def _count(who: str, *, by: int = 1) -> int:
    return count_up("sign-in", who, window=WINDOW, by=by)


def _source(request: HttpRequest) -> str:
    """Return the IPv4 address, or the IPv6 network of one household or office."""
    text = request.META.get("REMOTE_ADDR", "")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text[:64]
    if address.version == 6:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return text
