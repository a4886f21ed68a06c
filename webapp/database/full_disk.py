"""Full disk: its errors, its message to people, and the reserved room.

Files leave some room to the database, so that people can still sign in and delete things.
"""

import errno
import os
import shutil
import sqlite3
from pathlib import Path
from typing import cast

from django.db import DatabaseError
from django.utils.translation import gettext_lazy

FULL_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT}
FULL_DISK = cast(str, gettext_lazy("The server's disk is full."))
FULL_DISK_ADVICE = cast(
    str,
    gettext_lazy("Nothing was changed. The operator of this server has to make room."),
)
KEPT_BYTES = 256e6  # that files leave to the database; less on a small disk
KEPT_SHARE = 0.02  # share of a disk
_OF_DATABASES = ("disk is full", "No space left on device")  # messages of SQLite and PostgreSQL


def is_full_disk(error: BaseException) -> bool:
    """Return True if an error means that a file or the database could not grow."""
    if isinstance(error, DatabaseError | sqlite3.Error):
        return any(words in str(error) for words in _OF_DATABASES)
    return isinstance(error, OSError) and error.errno in FULL_DISK_ERRORS


def require_room(folder: Path, size: int = 0) -> None:
    """Refuse to write a file of ``size`` bytes if the database would lose the room it needs.

    Raises
    ------
    OSError
        With ``ENOSPC``, as the disk itself does when it is full.
    """
    usage = shutil.disk_usage(folder)
    if usage.free - size < min(KEPT_BYTES, KEPT_SHARE * usage.total):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
