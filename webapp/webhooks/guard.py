"""Check of addresses to call: public https only, unless the installation allows others.

A name is resolved once, each of its addresses is checked, and the connection goes to the checked
address itself, so that a name that resolves differently a moment later changes nothing.
"""

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from webapp.common.public_addresses import Address, is_public, read_address
from webapp.translation.lazy import gettext_lazy
from webapp.webhooks.errors import WebhookError

MAX_URL = 500
INTERNAL = gettext_lazy(
    "%(host)s leads to an address inside a network, which is not called from here."
)


@dataclass(frozen=True, slots=True)
class Target:
    """Destination of a delivery."""

    is_https: bool
    host: str
    port: int
    path: str


def read_url(url: str) -> Target:
    """Return the parts of a URL; raise WebhookError in one sentence if it is not allowed."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise WebhookError(_("This is no address of a program.")) from error
    if len(url) > MAX_URL or any(c.isspace() or ord(c) < 33 or ord(c) > 126 for c in url):
        raise WebhookError(
            _("An address has at most %(max_url)s plain characters; write others as %%41 or xn--.")
            % {"max_url": MAX_URL}
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WebhookError(_("An address begins with https:// and names a host."))
    if parts.username is not None or parts.password is not None:
        raise WebhookError(_("Leave name and password out of the address; deliveries are signed."))
    if parts.fragment:
        raise WebhookError(_("Leave out what follows “#”; it is not sent to anybody."))
    is_https = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(is_https, parts.hostname, port or (443 if is_https else 80), path)


def addresses_of(target: Target) -> list[Address]:
    """Return the IP addresses of a target's host, all of them allowed.

    Raises
    ------
    WebhookError
        If an address is inside a private network, or would be called without encryption.
    OSError
        If the host is unknown.
    """
    answers = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    found = list(dict.fromkeys(read_address(str(answer[4][0])) for answer in answers))
    for address in found:
        if _is_allowed_inside(address):
            continue
        if not is_public(address):
            raise WebhookError(INTERNAL % {"host": target.host})
        if not target.is_https:
            raise WebhookError(_("Use https: what is sent over http can be read on its way."))
    return found


def _is_allowed_inside(address: Address) -> bool:
    """Return True if the installation allows this address although it is not public."""
    networks = (ipaddress.ip_network(text) for text in settings.WEBHOOK_NETWORKS)
    return any(address in network for network in networks)
