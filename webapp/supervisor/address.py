"""Address of the web server: its socket, and the names by which the server is reached."""

import errno
import ipaddress
import socket

import psutil

# Addresses that mean "every one of this machine", and the loopback address of each.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104
LARGEST_PORT = 65_535
_PRIVILEGED = 1024
_WAITING_CONNECTIONS = 2048  # while the web server starts or is busy


class AddressError(ValueError):
    """Invalid host or port; the message is for the person who starts the server."""


def read_port(text: str) -> int:
    """Return the number of a port; raise AddressError for anything else."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= LARGEST_PORT):
        raise AddressError(
            f"PORT: expected a whole number from 1 to {LARGEST_PORT}, received {text!r}."
        )
    return int(text)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; the web server gets it.

    Raises
    ------
    AddressError
        If the host is unknown or not of this machine, or the port needs rights that are missing.
    OSError
        If another program listens there.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise AddressError(
            f"HOST: {host!r} is not known here. Use 127.0.0.1 for this machine alone, 0.0.0.0 for "
            "all its addresses, or one of them."
        ) from error
    family, kind, protocol, _, place = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(place)
        listener.listen(_WAITING_CONNECTIONS)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            known = ", ".join(own_addresses())
            raise AddressError(
                f"HOST: {host} is no address of this machine. It has {known}."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM):
            raise AddressError(
                f"PORT: this user may not listen at {port}. Choose a port from {_PRIVILEGED}."
            ) from error
        raise
    return listener


def own_addresses() -> list[str]:
    """Return the addresses of all network interfaces of this machine, loopback last."""
    found = {
        address.address.partition("%")[0]  # a link-local address names its interface
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family in (socket.AF_INET, socket.AF_INET6)
    }
    return sorted(found, key=lambda text: (is_loopback(text), ":" in text, text))


def own_names(host: str) -> list[str]:
    """Return the names by which the server may be reached, as ``ALLOWED_HOSTS`` spells them."""
    names = {"localhost", "127.0.0.1", "::1"}
    if host in EVERYWHERE:
        name = socket.gethostname()
        names |= {name, socket.getfqdn(), *own_addresses()}
    else:
        names.add(host)
    return sorted(in_brackets(name) for name in names if name)


def urls(host: str, port: int) -> list[str]:
    """Return the URLs of the pages, first the one that other machines can use."""
    if host not in EVERYWHERE:
        return [f"http://{in_brackets(host)}:{port}/"]
    is_both = ":" in host
    found = [text for text in own_addresses() if is_both or ":" not in text]
    return [f"http://{in_brackets(text)}:{port}/" for text in found if not _is_of_a_link(text)]


def in_brackets(host: str) -> str:
    """Return a host as written in a URL: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address; names count only if explicit."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_of_a_link(text: str) -> bool:
    """Return True if an address means nothing without an interface (link-local)."""
    return ipaddress.ip_address(text).is_link_local
