"""Addresses of the public internet: the only ones that may be called for somebody else.

People type addresses of programs and providers that this server calls. It can reach more than they
can, so every address is checked before a connection to it is opened.
"""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Addresses that wrap another address, which an internal gateway may unwrap.
_WRAPPING = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16")))


def read_address(text: str) -> Address:
    """Return an address as a name server or the system writes it, with or without a zone."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def is_public(address: Address) -> bool:
    """Return True for an address that everybody can reach."""
    wraps = any(address in network for network in _WRAPPING)
    return address.is_global and not address.is_multicast and not wraps
