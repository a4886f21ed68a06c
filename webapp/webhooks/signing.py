"""Signatures as Standard Webhooks (standardwebhooks.com) has them, version 1.

    webhook-id: the delivery, the same at every attempt
    webhook-timestamp: seconds since 1970
    webhook-signature: v1,BASE64(HMAC-SHA256(secret, "id.timestamp.body"))

Libraries of many languages check them; they refuse a timestamp that is more than minutes old.
"""

import base64
import hashlib
import hmac

from django.conf import settings

from webapp.webhooks.models import Webhook

PREFIX = "whsec_"  # what the libraries expect a secret to begin with


def secret_of(webhook: Webhook) -> str:
    """Return the secret of a webhook, as it is shown once."""
    return PREFIX + base64.b64encode(_key(webhook)).decode()


def _key(webhook: Webhook) -> bytes:
    words = f"webhook:{webhook.pk}:{webhook.nonce}"
    return hmac.digest(settings.SECRET_KEY.encode(), words.encode(), hashlib.sha256)


def signed_headers(webhook: Webhook, key: str, timestamp: int, body: str) -> dict[str, str]:
    """Return the three headers of a delivery."""
    content = f"{key}.{timestamp}.{body}".encode()
    signature = base64.b64encode(hmac.digest(_key(webhook), content, hashlib.sha256)).decode()
    return {
        "webhook-id": key,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }
