"""The state between a correct password and a session, while a code is awaited."""

import time

from django.http import HttpRequest

from webapp.accounts.models import User

_KEY = "waiting-for-code"
WAIT = 300  # seconds


def wait_for_code(request: HttpRequest, user: User, there: str) -> None:
    """Record that this visitor gave a person's password; this signs nobody in."""
    request.session.cycle_key()
    # With the hash of the password: a new password ends the waiting as it ends sessions.
    request.session[_KEY] = [user.pk, user.get_session_auth_hash(), there, time.time()]


def awaiting_code(request: HttpRequest) -> tuple[User, str] | None:
    """Return the person who gave a password and the next page; None after five minutes."""
    kept = request.session.get(_KEY)
    if not kept or time.time() - kept[3] > WAIT:
        return None
    user = User.objects.filter(pk=kept[0], is_active=True).first()
    if user is None or user.get_session_auth_hash() != kept[1]:
        return None
    return user, kept[2]


def stop_waiting(request: HttpRequest) -> None:
    """Delete the waiting state."""
    request.session.pop(_KEY, None)
