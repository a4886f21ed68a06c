"""Requests to a provider's server: over https only, and only to permitted hosts.

An administrator of one organisation types the address, so it must not lead to servers that only
this server can reach: addresses that are not public are refused, unless the installation names the
host in ``SIGN_IN_PRIVATE_HOSTS``. The check is made where a connection is opened, and the
connection goes to the checked address, so that a name that changes its address changes nothing.
"""

import socket
import threading
from contextlib import suppress
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from webapp.common.public_addresses import is_public, read_address

CONNECT_SECONDS = 3.0  # to one address, and again for the handshake of TLS
WHOLE_SECONDS = 10.0  # from the first byte to the last, at any speed
MAX_BYTES = 1_000_000
_opened: ContextVar[list[socket.socket]] = ContextVar("opened")


class OutboundError(requests.RequestException):
    """Refusal to call an address. The message is one sentence."""


def check_address(url: str) -> None:
    """Raise OutboundError for an address that this server must not call."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 443
    except ValueError as error:
        raise OutboundError("This is no address.") from error
    is_named = host in settings.SIGN_IN_PRIVATE_HOSTS and parts.scheme in ("https", "http")
    if not is_named and (parts.scheme != "https" or not host or parts.username):
        raise OutboundError("The address begins with https:// and a host.")
    if not is_named:
        _checked_addresses(host, port)


def _checked_addresses(host: str, port: int) -> list[str]:
    """Return the first address of a host in each family, after all its addresses were checked."""
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OutboundError(f"The host {host[:100]} is not known.") from error
    found = [str(answer[4][0]) for answer in answers]
    if host not in settings.SIGN_IN_PRIVATE_HOSTS and not all(
        is_public(read_address(address)) for address in found
    ):
        raise OutboundError(
            f"{host[:100]} is inside a private network: whoever runs this installation has to name "
            "it in SIGN_IN_PRIVATE_HOSTS."
        )
    return list({answer[0]: str(answer[4][0]) for answer in reversed(answers)}.values())[::-1]


def _connect(connection: HTTPConnection) -> socket.socket:
    """Connect to a checked address; a certificate is verified against the host name."""
    port = connection.port or connection.default_port
    *others, last = _checked_addresses(connection.host, port)
    for address in others:
        with suppress(OSError):
            return socket.create_connection((address, port), CONNECT_SECONDS)
    return socket.create_connection((last, port), CONNECT_SECONDS)


class _Checked(HTTPConnection):
    """Connection to a checked address.

    Its socket is kept for the limit of seconds: a connection drops its own once it has read the
    headers of an answer after which the server hangs up.
    """

    def _new_conn(self) -> socket.socket:
        return _connect(self)

    def connect(self) -> None:
        """Connect, and keep the socket."""
        super().connect()
        _opened.get().append(self.sock)


class _CheckedTls(_Checked, HTTPSConnection):
    pass


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Checked


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _CheckedTls


class _Adapter(HTTPAdapter):
    """Adapter whose connections are opened to checked addresses."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pools of connections."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}


class GuardedSession(requests.Session):
    """HTTP session that calls public hosts only, follows no redirects, and limits time and size."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self._sockets: list[socket.socket] = []
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter())

    def request(
        self, method: str, url: str | bytes, *args: Any, **kwargs: Any
    ) -> requests.Response:
        """Send one request; its options are passed by name."""
        check_address(str(url))
        kwargs |= {"allow_redirects": False, "stream": True}
        kwargs["timeout"] = (CONNECT_SECONDS, WHOLE_SECONDS)
        is_cut = threading.Event()
        watch = threading.Timer(WHOLE_SECONDS, self._cut, [is_cut])
        watch.daemon = True
        token = _opened.set(self._sockets)
        watch.start()
        try:
            response = super().request(method, url, *args, **kwargs)
            body = response.raw.read(MAX_BYTES + 1, decode_content=True)
        except Exception as error:
            if is_cut.is_set():
                raise _too_slow() from error
            raise
        finally:
            watch.cancel()
            _opened.reset(token)
        if is_cut.is_set():  # a body that was cut off can look complete
            raise _too_slow()
        if len(body) > MAX_BYTES:
            raise OutboundError("The provider's answer is too long.")
        response._content = body
        return response

    def _cut(self, is_cut: threading.Event) -> None:
        """Close the connections of a request that takes too long."""
        is_cut.set()
        for opened in self._sockets:
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)


def _too_slow() -> OutboundError:
    return OutboundError(f"The provider did not answer within {WHOLE_SECONDS:.0f} seconds.")
