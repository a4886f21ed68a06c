"""How long tests wait: for what comes, as long as a busy machine needs; in limits, what it adds."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 240.0  # what does not come at all is found late, what comes late is no failure


def wait_for(
    what: Callable[[], T],
    *,
    seconds: float = PATIENCE_SECONDS,
    logs: Callable[[], str] = lambda: "waited in vain",
) -> T:
    """Return the first true answer; without one, fail with the logs."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError(logs())


def busyness() -> float:
    """How many processes wait for each core, at least 1: limits are meant for idle machines."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
