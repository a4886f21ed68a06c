"""Process of the web server that leaves new connections to others while it is answering."""

import time
from concurrent.futures import Future
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

# Seconds. Most answers take less; a process with a longer one takes further connections beside it.
PATIENCE = 0.15
# Seconds. Browsers open connections in advance, without asking for anything.
UNTIL_ASKED = 0.01


class QueueingWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Threads that take the next connection once no answer is younger than ``PATIENCE``.

    Two pages made at once by threads of one process both take twice as long, also while another
    process is idle. Here they wait in the queue of the listening socket, which all processes share,
    and the first comes out as soon as alone. Long answers do not hold up others: uploads, files
    for slow readers, and decisions that wait for the database.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._begun: dict[Any, float] = {}  # by connection

    def enqueue_req(self, conn: Any) -> None:
        """Hand a connection to a thread."""
        self._begun[conn] = time.monotonic()
        self.set_accept_enabled(enabled=False)
        super().enqueue_req(conn)

    def finish_request(self, conn: Any, fs: "Future[Any]") -> None:
        """Note that a thread is done with a connection; called in the main thread."""
        self._begun.pop(conn, None)
        super().finish_request(conn, fs)

    def set_accept_enabled(self, enabled: bool) -> None:
        """Accept new connections or not; the main loop asks for it before it waits."""
        super().set_accept_enabled(enabled and self._seconds_to_wait() <= 0.0)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait for events, or until connections may be accepted again."""
        wait = self._seconds_to_wait()
        super().wait_for_and_dispatch_events(min(timeout, wait) if wait > 0.0 else timeout)

    def _seconds_to_wait(self) -> float:
        ends = (
            begun + (PATIENCE if conn.initialized else UNTIL_ASKED)
            for conn, begun in self._begun.items()
        )
        return max(ends, default=0.0) - time.monotonic()
