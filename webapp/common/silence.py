"""Servers that do not answer: after the first caller waited, others do not wait."""

import threading
import time

RETRY_SECONDS = 5.0


class Silence:
    """State of one server that may be silent, as known to this process.

    While the server is silent, one caller every five seconds tries it; all others continue without
    it at once. Otherwise every caller of a server that accepts connections and never answers would
    wait for a time limit, and together they would block all threads.
    """

    def __init__(self) -> None:
        self._ask_again_at: float | None = None  # None: the last call was answered
        self._lock = threading.Lock()

    def may_ask(self) -> bool:
        """Return True if the caller should try the server, and then report the result."""
        with self._lock:
            if self._ask_again_at is None:
                return True
            now = time.monotonic()
            if now < self._ask_again_at:
                return False
            self._ask_again_at = now + RETRY_SECONDS  # the others wait for this one's result
            return True

    def answered(self) -> None:
        """Record that the server answered."""
        self._ask_again_at = None

    def was_silent(self) -> None:
        """Record that the server did not answer, or refused."""
        with self._lock:
            self._ask_again_at = time.monotonic() + RETRY_SECONDS


broker = Silence()
