"""Small writes of a page that is read: the page never waits or fails because of one."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import structlog
from django.db import OperationalError, connection, transaction

log = structlog.get_logger(__name__)

PATIENCE_MS = 200  # milliseconds to wait for a lock of another process


def leave_note(write: Callable[[], object]) -> None:
    """Write something if the database accepts it at once, else nothing.

    Use it for data that a page can do without, such as the time of a visit. A full disk,
    a lock of another process, or a file that is not writable leaves a line in the log.
    """
    try:
        with little_patience(), transaction.atomic():
            write()
    except OperationalError as error:
        log.info("a note was left out", error=str(error))


def little_patience() -> AbstractContextManager[None]:
    """Make SQLite wait only briefly for a lock within the block."""
    waiting = getattr(connection, "waiting_at_most", None)  # of our wrapper of SQLite alone
    return nullcontext() if waiting is None else waiting(PATIENCE_MS)
