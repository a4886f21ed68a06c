"""Writes of thousands of rows in small transactions, so that others can write in between."""

import time
from collections.abc import Callable

from django.db import transaction

PIECE = 500  # rows; SQLite's lock is held for 50 to 85 ms to create as many
PAUSE = 0.05  # seconds between two pieces, in which others get the lock


def in_pieces(write: Callable[[], bool]) -> None:
    """Call ``write`` again and again, each time in its own transaction, until it returns False.

    SQLite has one lock for all that is written, and nobody can decide while it is held. Use it for
    rows that do no harm if the last pieces are never written.
    """
    while True:
        with transaction.atomic():
            is_unfinished = write()
        if not is_unfinished:
            return
        time.sleep(PAUSE)
