"""Services that create, find and revoke tokens."""

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.api.models import ApiToken
from webapp.audit.services import audit
from webapp.database.passing_notes import leave_note

SECRET_PREFIX = "bh_"  # noqa: S105 - the mark by which secret scanners recognise a token
SECRET_BYTES = 32
SHOWN_CHARACTERS = 10
USE_NOTED_EVERY = timedelta(minutes=1)


def secret_digest(secret: str) -> str:
    """Return the SHA-256 of a secret in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()


def token_create(
    *, user: User, name: str, may_change: bool, days: int | None
) -> tuple[ApiToken, str]:
    """Create a token; return it with its secret, which is not stored."""
    secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    with transaction.atomic():
        token = ApiToken.objects.create(
            organisation=user.own_organisation,
            created_by=user,
            user=user,
            name=name.strip(),
            prefix=secret[:SHOWN_CHARACTERS],
            digest=secret_digest(secret),
            may_change=may_change,
            expires_at=timezone.now() + timedelta(days=days) if days else None,
        )
        audit(user, "made a token", token, may_change=may_change, days=days)
    return token, secret


def token_revoke(*, user: User, token: ApiToken) -> None:
    """Revoke a token at once; revoking it again is no error."""
    with transaction.atomic():
        changed = ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(
            revoked_at=timezone.now()
        )
        if changed:
            audit(user, "revoked a token", token)


def token_find(*, secret: str) -> ApiToken | None:
    """Return the valid token of this secret and record its use; None for any other text."""
    if not secret.startswith(SECRET_PREFIX):
        return None
    token = (
        ApiToken.objects.select_related("user__organisation")
        .filter(digest=secret_digest(secret))
        .first()
    )
    if token is None or not token.is_usable:
        return None
    now = timezone.now()
    # Checked first: in SQLite even an update of no row waits for the write lock.
    if token.last_used_at is None or token.last_used_at < now - USE_NOTED_EVERY:
        tokens = ApiToken.objects.filter(pk=token.pk)
        leave_note(lambda: tokens.update(last_used_at=now))
    return token
