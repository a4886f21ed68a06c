"""A disk without room: by which errors it shows, and what people read of it."""

import errno
import sqlite3

from django.db import DatabaseError

FULL_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT}
FULL_DISK = "The server's disk is full."
FULL_DISK_ADVICE = "Nothing was changed. Whoever runs this server has to make room; then try again."
_OF_DATABASES = ("disk is full", "No space left on device")  # SQLite's words, PostgreSQL's


def is_full_disk(error: BaseException) -> bool:
    """Whether an error says that a file or the database could not grow."""
    if isinstance(error, DatabaseError | sqlite3.Error):
        return any(words in str(error) for words in _OF_DATABASES)
    return isinstance(error, OSError) and error.errno in FULL_DISK_ERRORS
