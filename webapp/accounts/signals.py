"""Audit lines of sign-ins, sign-outs and lockouts."""

from typing import Any

from axes.signals import user_locked_out
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from webapp.accounts.guesses import note_failure
from webapp.accounts.models import User
from webapp.audit.services import audit


@receiver(user_logged_in)
def record_sign_in(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Write one audit line for a sign-in."""
    if user.organisation_id:
        audit(user, "signed in", user)


@receiver(user_logged_out)
def record_sign_out(sender: Any, request: HttpRequest, user: User | None, **kwargs: Any) -> None:
    """Write one audit line for a sign-out."""
    if user is not None and user.organisation_id:
        audit(user, "signed out", user)


@receiver(user_login_failed)
def count_failure(sender: Any, request: HttpRequest | None = None, **kwargs: Any) -> None:
    """Count a failed sign-in for its address and in total."""
    if request is not None:
        note_failure(request)


@receiver(user_locked_out)
def record_lockout(sender: Any, username: str, **kwargs: Any) -> None:
    """Write one audit line when an existing name is locked after failed sign-ins."""
    user = User.objects.filter(organisation__isnull=False).named(username).first()
    if user is not None:
        audit(None, "locked out", user, organisation=user.organisation)
