"""A server of the S3 kind, and a bad road to it: cuts, delays, errors, and nobody at home."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer

ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_NO = b"<Error><Code>NotImplemented</Code><Message>No.</Message></Error>"
UNABLE = (
    b"HTTP/1.1 501 Not Implemented\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_NO), _NO)
)
_ANSWERS = {"500": ERROR, "501": UNABLE}


class Road:
    """Passes connections on to a server; ``next`` says what happens to the coming ones.

    Each entry is for one connection: "pass", "500", "501" (the store cannot do that),
    "cut" (after the first bytes of the answer), "slow" (a second late) or "away"
    (closed at once). When none is left, all pass, unless ``is_away``; but what is asked about an
    object whose name holds ``damaged`` is answered by a 500 each time.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.next: list[str] = []
        self.damaged = b""
        self.is_closed = self.is_away = False
        self.seen = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.is_closed = True
        self._listener.close()

    def _accept(self) -> None:
        while not self.is_closed:
            with contextlib.suppress(OSError):
                connection, _ = self._listener.accept()
                self.seen += 1
                how = self.next.pop(0) if self.next else ("away" if self.is_away else "pass")
                threading.Thread(target=self._serve, args=(connection, how), daemon=True).start()

    def _serve(self, connection: socket.socket, how: str) -> None:
        with connection, contextlib.suppress(OSError):
            if how == "away":
                return
            if how in _ANSWERS:
                connection.recv(65536)
                connection.sendall(_ANSWERS[how])
                return
            if how == "slow":
                time.sleep(1)
            with socket.create_connection(("127.0.0.1", self._target)) as server:
                back = threading.Thread(target=_copy, args=(server, connection, how == "cut"))
                back.start()
                _copy(connection, server, False, self.damaged)
                back.join()


def _copy(source: socket.socket, target: socket.socket, is_cut: bool, damaged: bytes = b"") -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if damaged and damaged in data:
                source.sendall(ERROR)
                source.shutdown(socket.SHUT_RDWR)
                target.shutdown(socket.SHUT_RDWR)
                return
            if is_cut:
                target.sendall(data[: len(data) // 2])
                target.shutdown(socket.SHUT_RDWR)
                source.shutdown(socket.SHUT_RDWR)
                return
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def object_store() -> Iterator[tuple[str, Road]]:
    """Start a server with an empty bucket; yields its address as STORE_URL has it, and the road."""
    import boto3

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket="hall")
    road = Road(port)
    try:
        yield f"s3://hall/files?endpoint=http://127.0.0.1:{road.port}", road
    finally:
        road.close()
        objects = client.list_objects_v2(Bucket="hall").get("Contents", [])
        for entry in objects:
            client.delete_object(Bucket="hall", Key=entry["Key"])
        client.delete_bucket(Bucket="hall")
        server.stop()
