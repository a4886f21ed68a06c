"""Address of the web server: its socket, and the names by which the server is reached."""

import errno
import ipaddress
import socket
from collections.abc import Iterable

from webapp.supervisor import StartError

# Addresses that mean "every one of this machine", and the loopback address of each.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
LARGEST_PORT = 65_535
_WAITING_CONNECTIONS = 2048  # while the web server starts or is busy
_REFUSALS = {
    errno.EADDRINUSE: "{host}:{port} is in use. Choose another port: PORT=8001 bin/start",
    errno.EADDRNOTAVAIL: "HOST: {host} is no address of this machine. Use 0.0.0.0 for all of its "
    "addresses.",
    errno.EACCES: "PORT: this user may not listen at {port}. Choose a port from 1024.",
}


def read_port(text: str) -> int:
    """Return the number of a port; raise StartError for anything else."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= LARGEST_PORT):
        raise StartError(
            f"PORT: expected a whole number from 1 to {LARGEST_PORT}, received {text!r}."
        )
    return int(text)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; raise StartError if that is impossible."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise StartError(
            f"HOST: {host!r} is not known here. Use 127.0.0.1 for this machine alone, 0.0.0.0 for "
            "all its addresses, or one of them."
        ) from error
    family, *_, place = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        return socket.create_server(
            place, family=family, backlog=_WAITING_CONNECTIONS, dualstack_ipv6=both
        )
    except OSError as error:
        refusal = _REFUSALS.get(error.errno or 0, f"{{host}}:{{port}} is refused: {error}.")
        raise StartError(refusal.format(host=host, port=port)) from error


def urls(host: str, port: int, names: Iterable[str]) -> list[str]:
    """Return the URLs of the pages: of the host, or of ``names`` if it means all addresses."""
    if host not in EVERYWHERE:
        return [f"http://{in_brackets(host)}:{port}/"]
    known = [name for name in names if name and not name.startswith((".", "*"))]
    return [f"http://{name}:{port}/" for name in known or [in_brackets(EVERYWHERE[host])]]


def in_brackets(host: str) -> str:
    """Return a host as written in a URL: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address; names count only if explicit."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
