"""Tokens with which programs act for a person."""

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.common.models import OrganisationOwned


class ApiToken(OrganisationOwned):
    """A secret with the rights of a person; only its SHA-256 is stored.

    The secret has 256 random bits, so a plain hash is as good as a slow one. ``prefix`` is its
    beginning, by which people recognise it. It never allows more than the person's present role,
    and changes nothing unless ``may_change``.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    may_change = models.BooleanField(default=False)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_usable(self) -> bool:
        """Return True if the token is valid now."""
        expired = self.expires_at is not None and self.expires_at <= timezone.now()
        return self.revoked_at is None and not expired and self.user.is_active
