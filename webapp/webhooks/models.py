"""Webhooks of other programs, and the deliveries to them."""

import uuid
from typing import Any

from django.db import models

from webapp.common.models import OrganisationOwned
from webapp.common.outgoing import Outgoing


class Webhook(OrganisationOwned):
    """A URL that receives chosen events.

    The secret that signs deliveries is not stored: it is derived from the installation's secret and
    ``nonce``, so that a copy of the database cannot sign. A new nonce gives a new secret.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    url = models.URLField(max_length=500)
    events: Any = models.JSONField(default=list)
    nonce = models.CharField(max_length=32)
    is_paused = models.BooleanField(default=False)
    pause_reason = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "url"], name="webhook_url_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.url


class Delivery(Outgoing):
    """Delivery of one event to one webhook; ``key`` is the same at every attempt."""

    MAX_ATTEMPTS = 8  # with 2, 4, ... 128 minutes between them: four hours in all

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    key = models.UUIDField(default=uuid.uuid4, editable=False)
    event = models.CharField(max_length=40)
    body = models.TextField()
    answer = models.PositiveSmallIntegerField(null=True)
    milliseconds = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["webhook", "state"], name="deliveries_of")]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook}"
