"""Client of the warm process of an image set, which starts the process if necessary."""

import fcntl
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.utils.translation import ngettext

from webapp.instance import BASE_DIR, instance_folder
from webapp.segmentation.errors import PaintingBusyError, SegmentationError
from webapp.segmentation.painting.process import (
    NO_PLACE,
    PLACES,
    receive_block,
    send_block,
    socket_address,
)
from webapp.translation.lazy import gettext_lazy

START_SECONDS = 40.0
ANSWER_SECONDS = 60.0
QUIET_SECONDS = 60.0  # a process idle for this long may be replaced by that of another set
LINE_SECONDS = 20.0
"""A set that was not asked for during this time has left the line."""
NO_ANSWER = gettext_lazy("The answer did not come. Your strokes are kept; try again.")


def painting_folder() -> Path:
    """Return the folder of sockets and locks."""
    folder = instance_folder() / "painting"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def ask(name: str, question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return the answer of the warm process of this name, which is started if necessary.

    Raises
    ------
    SegmentationError
        If it cannot be started, refuses, or does not answer in time.
    """
    folder = painting_folder()
    deadline = time.monotonic() + START_SECONDS
    connection = _connect(folder, name) or _start(folder, name, deadline)
    _line_entry(folder, name).unlink(missing_ok=True)
    with connection:
        connection.settimeout(ANSWER_SECONDS)
        try:
            send_block(connection, question)
            header, body = receive_block(connection)
        except (OSError, EOFError, ValueError) as error:
            raise SegmentationError(NO_ANSWER) from error
    if "refused" in header:
        raise SegmentationError(str(header["refused"]))
    return header, body


def end(name: str) -> None:
    """End the process of this name, if there is one, because its set is removed."""
    connection = _connect(painting_folder(), name)
    if connection is not None:
        with connection, suppress(OSError):
            send_block(connection, {"do": "end"})


def _connect(folder: Path, name: str) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWER_SECONDS)
    handle, address = socket_address(folder, name)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        return None
    finally:
        os.close(handle)
    return connection


def _line_entry(folder: Path, name: str) -> Path:
    return folder / f"{name}.line"


def _place_in_line(folder: Path, name: str) -> int:
    """Return the place of a set in the line for a process, from 1; it stays while it is asked for.

    An entry holds the time at which its set came; the last change of the file is the last question.
    """
    own = _line_entry(folder, name)
    now = time.time()
    with suppress(FileExistsError), own.open("x") as file:
        file.write(repr(now))
    own.touch()
    came: dict[str, float] = {}
    for entry in folder.glob("*.line"):
        with suppress(OSError, ValueError):
            if now - entry.stat().st_mtime < LINE_SECONDS:
                came[entry.stem] = float(entry.read_text() or now)
            else:
                entry.unlink()
    since = came.get(name, now)
    return 1 + sum((time_came, other) < (since, name) for other, time_came in came.items())


def _require_turn(folder: Path, name: str) -> None:
    """Refuse a set before which others wait."""
    has_line = any(entry.stem != name for entry in folder.glob("*.line"))
    if has_line and (place := _place_in_line(folder, name)) > 1:
        raise PaintingBusyError(_busy(place), place)


def _busy(place: int) -> str:
    return ngettext(
        "%(count)s image set is being painted, as many as this server answers at once. You are "
        "number %(place)s in line. Your strokes are kept, and the answer comes by itself.",
        "%(count)s image sets are being painted, as many as this server answers at once. You are "
        "number %(place)s in line. Your strokes are kept, and the answer comes by itself.",
        PLACES,
    ) % {"count": PLACES, "place": place}


def _start(folder: Path, name: str, deadline: float) -> socket.socket:
    _require_turn(folder, name)
    process = _launch(folder, name)
    made_room = False
    while time.monotonic() < deadline:
        connection = _connect(folder, name)
        if connection is not None:
            return connection
        code = process.poll()
        if code == NO_PLACE:
            if made_room or not _end_quietest(folder):
                place = _place_in_line(folder, name)
                raise PaintingBusyError(_busy(place), place)
            made_room = True
            process = _launch(folder, name)
        elif code is not None and not _is_held(folder / f"{name}.lock"):
            raise SegmentationError(NO_ANSWER)
        time.sleep(0.05)
    raise SegmentationError(NO_ANSWER)


def _launch(folder: Path, name: str) -> subprocess.Popen[bytes]:
    """Start the process; it ends with the other programs of this installation."""
    log = folder / "painting.log"
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "webapp.segmentation.painting.process", str(folder), name],
            cwd=BASE_DIR,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def _is_held(path: Path) -> bool:
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _end_quietest(folder: Path) -> bool:
    """End the process idle for the longest time, unless all were used within a minute."""
    found = sorted(folder.glob("*.sock"), key=lambda path: path.stat().st_mtime)
    if not found or time.time() - found[0].stat().st_mtime < QUIET_SECONDS:
        return False
    end(found[0].stem)
    until = time.monotonic() + 5
    while _is_held(folder / f"{found[0].stem}.lock") and time.monotonic() < until:
        time.sleep(0.05)
    return True
