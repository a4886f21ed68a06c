"""Errors of webhooks, each with a message of one sentence."""

from webapp.common.errors import Refusal


class WebhookError(Refusal):
    """Refusal of a webhook's address or settings."""
