"""SQLite with few threads waiting for its one write lock, so that the others can read."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

FIRST_MS = 2_000  # wait of every change: most transactions hold the lock for less
KNOWN_MS = 100  # the same, once others have waited for longer than that
REST_MS = 18_000  # further wait of the few threads that may


class Gate:
    """Limit of the threads of a process that may wait for long."""

    def __init__(self, n_threads: int) -> None:
        self._free = self._n_threads = n_threads
        self._lock = threading.Lock()

    @property
    def first_ms(self) -> int:
        """Return the milliseconds that the next change waits before it enters the gate."""
        return FIRST_MS if self._free == self._n_threads else KNOWN_MS

    @contextmanager
    def entered(self, error: OperationalError) -> Iterator[None]:
        """Wait within the block; raise the error if too many threads wait already."""
        with self._lock:
            if not self._free:
                raise error
            self._free -= 1
        try:
            yield
        finally:
            with self._lock:
                self._free += 1


_gate: Gate | None = None


def limit_waiting(n_threads: int) -> None:
    """Let at most ``n_threads`` threads of this process wait for the lock for long.

    For a web server: a process that holds the lock for minutes (a copy, a forgotten shell) would
    otherwise block one thread after the other, and in the end all pages.
    """
    global _gate
    _gate = Gate(n_threads)


class DatabaseWrapper(base.DatabaseWrapper):
    """Connection whose transactions wait in two steps."""

    _is_hurried = False

    def get_new_connection(self, conn_params: Any) -> Any:
        """Open a connection; with a limit on threads, single statements wait for the first step."""
        if Path(conn_params["database"]).is_absolute():  # not a database in memory
            Path(conn_params["database"]).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = super().get_new_connection(conn_params)
        if _gate is not None:
            connection.execute(f"PRAGMA busy_timeout = {FIRST_MS}")
        return connection

    @contextmanager
    def waiting_at_most(self, milliseconds: int) -> Iterator[None]:
        """Limit the wait for the lock within the block."""
        with self.cursor() as cursor:
            (usual,) = cursor.execute("PRAGMA busy_timeout").fetchone()
            cursor.execute(f"PRAGMA busy_timeout = {milliseconds}")
        before, self._is_hurried = self._is_hurried, True
        try:
            yield
        finally:
            self._is_hurried = before
            if self.connection is not None:
                with self.cursor() as cursor:
                    cursor.execute(f"PRAGMA busy_timeout = {usual}")

    def _start_transaction_under_autocommit(self) -> None:
        """Take the lock: at once, or after a wait if the gate has a place."""
        begin = super()._start_transaction_under_autocommit  # type: ignore[misc]  # not in stubs
        if _gate is None or self._is_hurried:
            begin()
            return
        try:
            with self.waiting_at_most(_gate.first_ms):
                begin()
        except OperationalError as error:
            if "locked" not in str(error):
                raise
            with _gate.entered(error), self.waiting_at_most(REST_MS):
                begin()
