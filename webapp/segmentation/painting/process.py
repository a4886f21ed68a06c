"""Warm process of one image set, which caches image features and answers after each stroke.

``python -m webapp.segmentation.painting.process FOLDER NAME`` listens on ``NAME.sock`` in a folder
that only this user may enter. It uses no database: every request contains the strokes, so that
a new process replaces a killed one without loss. It ends when it has been idle for a while, or when
the web server whose process group it is in was killed. It takes one of a few places; if all are
taken it reports that and ends at once.
"""

import fcntl
import json
import os
import resource
import socket
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

IDLE_SECONDS = 600
LOOK_SECONDS = 5.0  # between two looks at the web server while nothing is asked
PLACES = int(os.environ.get("PAINTING_PROCESSES", "3"))
MOST_BYTES = int(os.environ.get("PAINTING_MEGABYTES", "2500")) * 10**6
LONGEST_QUESTION = 64 * 10**6
NO_PLACE = 75  # exit code if no place is free
HEAD = 8


def socket_address(folder: Path, name: str) -> tuple[int, str]:
    """Return an open folder and a path to the socket through it, as such a path is always short."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return handle, f"/proc/self/fd/{handle}/{name}.sock"


def send_block(connection: socket.socket, header: dict[str, Any], body: bytes = b"") -> None:
    """Send a JSON object, followed by bytes."""
    head = json.dumps(header).encode()
    lengths = len(head).to_bytes(HEAD, "big") + len(body).to_bytes(HEAD, "big")
    connection.sendall(lengths + head)
    if body:
        connection.sendall(body)


def receive_block(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Receive a block sent by ``send_block``; EOFError if the other side closed the connection."""
    lengths = _receive(connection, 2 * HEAD)
    n_head, n_body = (int.from_bytes(lengths[k : k + HEAD], "big") for k in (0, HEAD))
    if n_head > LONGEST_QUESTION:
        raise EOFError("too long")
    return json.loads(_receive(connection, n_head)), _receive(connection, n_body)


def _receive(connection: socket.socket, count: int) -> bytes:
    parts, left = [], count
    while left:
        part = connection.recv(min(left, 1 << 20))
        if not part:
            raise EOFError("the other side went away")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _take_place(folder: Path) -> Any:
    """Hold one of the places until the process ends; return None if all are taken."""
    for number in range(PLACES):
        file = (folder / f"place-{number}.lock").open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        return file
    return None


def main() -> int:
    """Listen until the process is idle; return the exit code."""
    folder, name = Path(sys.argv[1]), sys.argv[2]
    own = (folder / f"{name}.lock").open("a")
    try:
        fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0  # another process of this set was quicker
    place = _take_place(folder)
    if place is None:
        return NO_PLACE
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    path = folder / f"{name}.sock"
    path.unlink(missing_ok=True)
    handle, address = socket_address(folder, name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        os.close(handle)
        listener.listen(16)
        listener.settimeout(LOOK_SECONDS)
        from webapp.segmentation.painting.warm import Warm

        try:
            _serve(listener, Warm(), path)
        finally:
            path.unlink(missing_ok=True)
    return 0


def _has_group_leader() -> bool:
    """Return True while the first process of this process group, the web server, exists."""
    try:
        os.getsid(os.getpgrp())
    except ProcessLookupError:
        return False
    return True


def _serve(listener: socket.socket, warm: Any, path: Path) -> None:
    """Answer one request after the other; a bad request does not end the process."""
    answered = time.monotonic()
    while time.monotonic() - answered < IDLE_SECONDS:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            if not _has_group_leader():
                return
            continue
        answered = time.monotonic()
        with connection, suppress(OSError, EOFError, ValueError):
            connection.settimeout(30)
            question, _body = receive_block(connection)
            os.utime(path)
            if question.get("do") == "end":
                return
            started = time.monotonic()
            try:
                header, body = warm.answer(question)
            except MemoryError:
                send_block(connection, {"refused": "There is not enough memory for this picture."})
                return
            except Exception as error:
                traceback.print_exc()
                send_block(connection, {"refused": str(error)[:300] or type(error).__name__})
                continue
            header["seconds"] = round(time.monotonic() - started, 3)
            send_block(connection, header, body)


if __name__ == "__main__":
    sys.exit(main())
