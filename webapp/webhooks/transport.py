"""One POST to a checked address: no redirect, a short answer, and a limit of seconds."""

import http.client
import socket
import ssl
import threading
from contextlib import suppress

from webapp.common.outgoing import UnreachableError
from webapp.webhooks.errors import WebhookError
from webapp.webhooks.guard import Target, addresses_of, read_url

CONNECT_SECONDS = 4.0
WHOLE_SECONDS = 10.0  # from the first byte to the last, at any speed
READ_BYTES = 1024


class _Connection(http.client.HTTPConnection):
    """HTTP connection to a checked address, under the requested host name."""

    def __init__(self, target: Target, address: str) -> None:
        super().__init__(target.host, target.port, timeout=CONNECT_SECONDS)
        self._target, self._address = target, address
        self.is_cut = False
        self.opened: socket.socket | None = None  # stays when the headers of an answer drop `sock`

    def connect(self) -> None:
        """Connect to the checked address; the certificate is verified against the host name."""
        self.sock = socket.create_connection((self._address, self.port), self.timeout)
        if self._target.is_https:
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self._target.host)
        self.opened = self.sock


def post(url: str, body: str, headers: dict[str, str]) -> int:
    """Send a body and return the status code of the answer.

    Raises
    ------
    WebhookError
        If the URL is invalid, or leads inside a private network.
    UnreachableError
        If no valid answer comes in time.
    """
    target = read_url(url)
    try:
        address = str(addresses_of(target)[0])
    except OSError as error:
        raise UnreachableError(f"{target.host} is not known: {error}") from error
    connection = _Connection(target, address)
    watch = threading.Timer(WHOLE_SECONDS, _cut, [connection])
    watch.daemon = True
    watch.start()
    try:
        connection.request("POST", target.path, body.encode(), headers)
        answer = connection.getresponse()
        answer.read(READ_BYTES)
        status = answer.status
    except (OSError, http.client.HTTPException) as error:
        if not connection.is_cut:
            reason = str(error) or type(error).__name__
            raise UnreachableError(f"No answer: {reason}") from error
    finally:
        watch.cancel()
        connection.close()
    if connection.is_cut:  # headers cut off by the limit can look complete
        raise UnreachableError(f"No answer within {WHOLE_SECONDS:.0f} s.")
    return status


def _cut(connection: _Connection) -> None:
    """Close a connection that takes too long."""
    connection.is_cut = True
    if connection.opened is not None:
        with suppress(OSError):
            connection.opened.shutdown(socket.SHUT_RDWR)


def check_url(url: str) -> str:
    """Return a URL that may be called now; raise WebhookError in one sentence otherwise."""
    url = url.strip()
    target = read_url(url)
    try:
        addresses_of(target)
    except OSError as error:
        raise WebhookError(f"No address is known for {target.host}. Is it spelt right?") from error
    return url
