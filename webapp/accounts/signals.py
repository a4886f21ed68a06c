"""Sign-ins, sign-outs and failures on record."""

from typing import Any

from auditlog.registry import auditlog
from axes.signals import user_locked_out
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest

from webapp.accounts.models import Organisation, User
from webapp.audit.services import audit

# Field by field, for people and organisations: who changed what from which value to which.
auditlog.register(User, exclude_fields=["last_login", "password"])
auditlog.register(Organisation, exclude_fields=["stored_bytes", "stored_at"])


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


@receiver(user_locked_out)
def record_lockout(sender: Any, username: str, **kwargs: Any) -> None:
    """Write one audit line when a name of ours is locked after failed sign-ins."""
    user = User.objects.filter(username=username, organisation__isnull=False).first()
    if user is not None:
        audit(None, "locked out", user, organisation=user.organisation)
