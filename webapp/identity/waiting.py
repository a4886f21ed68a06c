"""The moment between a right password and a session: who waits for a code, and how long."""

import time

from django.http import HttpRequest

from webapp.accounts.models import User

_KEY = "waiting-for-code"
WAIT = 300  # seconds


def wait_for_code(request: HttpRequest, user: User, there: str) -> None:
    """Remember that this visitor gave the password of somebody; nobody is signed in by that."""
    request.session.cycle_key()
    # With the password that was given: a new one ends the waiting as it ends sessions.
    request.session[_KEY] = [user.pk, user.get_session_auth_hash(), there, time.time()]


def who_waits(request: HttpRequest) -> tuple[User, str] | None:
    """Return who gave a password and where they go then; None after five minutes."""
    kept = request.session.get(_KEY)
    if not kept or time.time() - kept[3] > WAIT:
        return None
    user = User.objects.filter(pk=kept[0], is_active=True).first()
    if user is None or user.get_session_auth_hash() != kept[1]:
        return None
    return user, kept[2]


def stop_waiting(request: HttpRequest) -> None:
    """Forget it."""
    request.session.pop(_KEY, None)
