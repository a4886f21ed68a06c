"""What goes wrong with webhooks, in one sentence."""

from webapp.common.errors import Refusal


class WebhookError(Refusal):
    """An address or a choice that cannot be."""
