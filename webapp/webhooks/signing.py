"""Signatures of deliveries after Standard Webhooks (standardwebhooks.com), version 1.

    webhook-id: the key of the delivery, the same at every attempt
    webhook-timestamp: seconds since 1970
    webhook-signature: v1,BASE64(HMAC-SHA256(secret, "id.timestamp.body"))

Libraries in many languages verify them; they reject a timestamp more than minutes old.
"""

import base64
import hashlib
import hmac

from django.conf import settings

from webapp.webhooks.models import Webhook

PREFIX = "whsec_"  # start of a secret, as the libraries expect it


def secret_of(webhook: Webhook) -> str:
    """Return the secret of a webhook as text; the page shows it once."""
    return PREFIX + base64.b64encode(_key(webhook)).decode()


def _key(webhook: Webhook) -> bytes:
    words = f"webhook:{webhook.pk}:{webhook.nonce}"
    return hmac.digest(settings.SECRET_KEY.encode(), words.encode(), hashlib.sha256)


def signed_headers(webhook: Webhook, key: str, timestamp: int, body: str) -> dict[str, str]:
    """Return the three signature headers of a delivery."""
    content = f"{key}.{timestamp}.{body}".encode()
    signature = base64.b64encode(hmac.digest(_key(webhook), content, hashlib.sha256)).decode()
    return {
        "webhook-id": key,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }
