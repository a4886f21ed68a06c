"""Whether this server can do all that people ask of it: each part is tried, none is believed."""

import shutil
import time
from collections.abc import Callable

import structlog
from django.conf import settings
from django.db import connection

from webapp.files import store

log = structlog.get_logger(__name__)

REMEMBERED_SECONDS = 5.0  # a worker is asked over the broker, which takes up to a second
Check = Callable[[], None]


class NotReadyError(Exception):
    """A part cannot do its work; the message is for the log, not for whoever asks."""


def check_database() -> None:
    """Ask the database something."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()


def check_room() -> None:
    """Refuse when less than ``MIN_FREE_GB`` are free where files lie."""
    free = shutil.disk_usage(settings.INSTANCE_DIR).free
    if free < settings.MIN_FREE_GB * 1e9:
        raise NotReadyError(f"{free / 1e9:.2f} GB free, {settings.MIN_FREE_GB} wanted")


# Applications add theirs; see webapp/jobs/apps.py.
checks: dict[str, Check] = {
    "database": check_database,
    "store": store.check,
    "room on disk": check_room,
}
_last: tuple[float, dict[str, bool]] | None = None


def readiness(*, fresh: bool = False) -> dict[str, bool]:
    """Return for each part whether it works, tried at most every five seconds unless ``fresh``."""
    global _last
    now = time.monotonic()
    if fresh or _last is None or now - _last[0] > REMEMBERED_SECONDS:
        _last = (now, {name: _works(name, check) for name, check in checks.items()})
    return _last[1]


def _works(name: str, check: Check) -> bool:
    try:
        check()
    except Exception as error:  # whatever it is, that part is not ready
        log.warning("not ready", part=name, error=f"{type(error).__name__}: {error}")
        return False
    return True
