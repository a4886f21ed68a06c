"""Requests to a provider's server: over https only, and only to permitted hosts.

An administrator of one organisation types the address, so it must not lead to servers that only
this server can reach: addresses that are not public are refused, unless the installation names the
host in ``SIGN_IN_PRIVATE_HOSTS``.
"""

import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings

SECONDS = 10
MAX_BYTES = 1_000_000


class OutboundError(requests.RequestException):
    """Refusal to call an address. The message is one sentence."""


def check_address(url: str) -> None:
    """Raise OutboundError for an address that this server must not call."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 443
    except ValueError as error:
        raise OutboundError("This is no address.") from error
    if host in settings.SIGN_IN_PRIVATE_HOSTS and parts.scheme in ("https", "http"):
        return
    if parts.scheme != "https" or not host or parts.username:
        raise OutboundError("The address begins with https:// and a host.")
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        raise OutboundError(f"The host {host[:100]} is not known.") from error
    if not all(ipaddress.ip_address(str(address).split("%")[0]).is_global for address in found):
        raise OutboundError(
            f"{host[:100]} is inside a private network: whoever runs this installation has to name "
            "it in SIGN_IN_PRIVATE_HOSTS."
        )


class GuardedSession(requests.Session):
    """HTTP session that calls public hosts only, follows no redirects, and limits time and size."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False

    def request(
        self, method: str, url: str | bytes, *args: Any, **kwargs: Any
    ) -> requests.Response:
        """Send one request; its options are passed by name."""
        check_address(str(url))
        kwargs |= {"allow_redirects": False, "timeout": SECONDS, "stream": True}
        response = super().request(method, url, *args, **kwargs)
        body = response.raw.read(MAX_BYTES + 1, decode_content=True)
        if len(body) > MAX_BYTES:
            raise OutboundError("The provider's answer is too long.")
        response._content = body
        return response
