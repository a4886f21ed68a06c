"""Address of a request's sender: behind a proxy, every request comes from the proxy's address."""

import ipaddress
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse

log = structlog.get_logger(__name__)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST")


def read_networks(text: str) -> list[Network]:
    """Return the networks of a comma-separated list; ValueError names the first bad one."""
    return [
        ipaddress.ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip()
    ]


class ClientAddressMiddleware:
    """Give each request its visitor's own address, if a proxy in ``TRUSTED_PROXIES`` sends it.

    Anybody can write ``X-Forwarded-For``: entries count only as far as trusted proxies wrote them,
    from the right. From a sender that is no trusted proxy all forwarded headers are removed, so
    that no sender can choose an address, and with it the victim of a lock after failed sign-ins.
    With ``TRUST_PROXY`` alone, every sender counts as one proxy that wrote the last entry.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._has_warned = False

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Replace the sender's address before any other code reads it."""
        sender = request.META.get("REMOTE_ADDR", "")
        chain = [part.strip() for part in request.META.get(FORWARDED[0], "").split(",")]
        if _is_trusted(sender):
            request.META["REMOTE_ADDR"] = _first_untrusted(chain, sender)
        elif settings.TRUST_PROXY and not settings.TRUSTED_PROXIES:
            request.META["REMOTE_ADDR"] = _address(chain[-1]) or sender
        else:
            self._warn(request, sender)
            for name in FORWARDED:
                request.META.pop(name, None)
        return self.get_response(request)

    def _warn(self, request: HttpRequest, sender: str) -> None:
        if FORWARDED[0] in request.META and not self._has_warned:
            self._has_warned = True
            log.warning(
                "forwarded headers are ignored: the sender is not in TRUSTED_PROXIES, and all "
                "visitors behind it share one address",
                sender=sender,
            )


def _first_untrusted(chain: list[str], sender: str) -> str:
    """Return the nearest address that is no trusted proxy, or the last one if all are."""
    found = sender
    for part in reversed(chain):
        address = _address(part)
        if not address:
            return found
        found = address
        if not _is_trusted(address):
            return found
    return found


def _address(text: str) -> str:
    """Return the address in an entry, without a port; '' if there is none."""
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        return ""


def _is_trusted(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return any(address in network for network in settings.TRUSTED_PROXIES)
