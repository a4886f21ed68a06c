"""Readiness of this server: each part is tried, none is assumed to work."""

import shutil
import threading
import time
from collections.abc import Callable
from enum import StrEnum

import structlog
from django.conf import settings
from django.db import OperationalError, connection, transaction

from webapp.database.passing_notes import little_patience

log = structlog.get_logger(__name__)

REMEMBERED_SECONDS = 5.0  # seconds; asking a worker over the broker takes up to one
PATIENCE_SECONDS = 3.0  # seconds for a part that may not answer at all
SLOW_SECONDS = 1.0
Check = Callable[[], None]


class Readiness(StrEnum):
    """State of a part, as in `/readyz`."""

    OK = "ok"
    SLOW = "slow"  # pages can be read; changes have to wait
    NOT_READY = "not ready"


class NotReadyError(Exception):
    """Error of a part that cannot do its work; the message is only for the log."""


class SlowError(Exception):
    """Error of a part that works slowly; the message is only for the log."""


def check_database() -> None:
    """Check that the database answers, and that it would accept a change now.

    Raises
    ------
    SlowError
        If it answers late, or another process holds SQLite's only write lock.
    """
    started = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    if connection.vendor == "sqlite":
        try:
            with little_patience(), transaction.atomic():
                pass  # the lock is taken when a transaction begins
        except OperationalError as error:
            raise SlowError(str(error)) from error
    seconds = time.monotonic() - started
    if seconds > SLOW_SECONDS:
        raise SlowError(f"it took {seconds:.1f} s to answer")


def check_room() -> None:
    """Raise an error when less than ``MIN_FREE_GB`` are free for files."""
    free = shutil.disk_usage(settings.INSTANCE_DIR).free
    if free < settings.MIN_FREE_GB * 1e9:
        raise NotReadyError(f"{free / 1e9:.2f} GB free, {settings.MIN_FREE_GB} wanted")


# Applications add their checks; see webapp/files/apps.py and webapp/jobs/apps.py.
checks: dict[str, Check] = {
    "database": check_database,
    "room on disk": check_room,
}
# Parts behind a network, by name, are checked in threads of their own: one that never answers
# must not block the caller. Their checks use no database.
distant: set[str] = set()
_asked: dict[str, "_Asked"] = {}
_last: tuple[float, dict[str, Readiness]] | None = None


def readiness(*, fresh: bool = False) -> dict[str, Readiness]:
    """Return the state of each part, tried at most every five seconds unless ``fresh``."""
    global _last
    now = time.monotonic()
    if fresh or _last is None or now - _last[0] > REMEMBERED_SECONDS:
        for name in distant & checks.keys():
            _ask(name)
        found = {
            name: _outcome(name, check) for name, check in checks.items() if name not in distant
        }
        deadline = time.monotonic() + PATIENCE_SECONDS
        for name in checks.keys() & distant:
            found[name] = _asked[name].outcome(deadline)
        _last = (time.monotonic(), {name: found[name] for name in checks})
    return _last[1]


class _Asked:
    """Check that runs in a thread of its own."""

    def __init__(self, name: str, check: Check) -> None:
        self._name = name
        self._found = Readiness.NOT_READY
        self._thread = threading.Thread(target=self._run, args=(check,), daemon=True)
        self._thread.start()

    @property
    def is_asked(self) -> bool:
        """Return True if the part has not answered yet."""
        return self._thread.is_alive()

    def outcome(self, deadline: float) -> Readiness:
        """Return the result of the check; a part without an answer by the deadline is not ready."""
        self._thread.join(max(deadline - time.monotonic(), 0.0))
        if self.is_asked:
            log.warning("not ready", part=self._name, error="no answer")
            return Readiness.NOT_READY
        return self._found

    def _run(self, check: Check) -> None:
        self._found = _outcome(self._name, check)


def _ask(name: str) -> None:
    """Start a check, unless the last one still waits: threads must not pile up."""
    if name not in _asked or not _asked[name].is_asked:
        _asked[name] = _Asked(name, checks[name])


def _outcome(name: str, check: Check) -> Readiness:
    try:
        check()
    except SlowError as error:
        log.warning("slow", part=name, error=str(error))
        return Readiness.SLOW
    except Exception as error:  # whatever the error, that part is not ready
        log.warning("not ready", part=name, error=f"{type(error).__name__}: {error}")
        return Readiness.NOT_READY
    return Readiness.OK
