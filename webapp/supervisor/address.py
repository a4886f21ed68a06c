"""Address of the web server: its socket, and the names by which the server is reached."""

import errno
import ipaddress
import socket
from collections.abc import Iterable

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
            raise AddressError(
                f"HOST: {host} is no address of this machine. Use 0.0.0.0 for all of its addresses."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM):
            raise AddressError(
                f"PORT: this user may not listen at {port}. Choose a port from {_PRIVILEGED}."
            ) from error
        raise
    return listener


def urls(host: str, port: int, names: Iterable[str]) -> list[str]:
    """Return the URLs of the pages: of the host, or of ``names`` if it means all addresses."""
    if host in EVERYWHERE:
        known = [name for name in names if name and not name.startswith((".", "*"))]
        return [f"http://{name}:{port}/" for name in known or [EVERYWHERE[host]]]
    return [f"http://{in_brackets(host)}:{port}/"]


def in_brackets(host: str) -> str:
    """Return a host as written in a URL: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address; names count only if explicit."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
