"""Sweeper that runs the periodic work of all applications, in a process of its own."""

import math
import threading
import time
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

from webapp.common.periodic import PeriodicWork, periodic_work
from webapp.files.store import StoreAwayError

log = structlog.get_logger(__name__)

_RETRY_SECONDS = 3600.0  # at most, after a failure of work with a period
_LAST_WORDS_SECONDS = 15  # for what is still running at the end


class Sweeper:
    """Threads that run periodic work until they are asked to stop, one for each lane."""

    def __init__(self, works: Sequence[PeriodicWork] | None = None) -> None:
        self._stopped = threading.Event()
        works = periodic_work() if works is None else works
        by_lane = sorted(works, key=lambda work: work.lane)
        self._lanes = [list(lane) for _, lane in groupby(by_lane, key=lambda work: work.lane)]

    def stop(self, *_: Any) -> None:
        """Ask all lanes to end; serves as a signal handler too."""
        self._stopped.set()

    def run(self) -> None:
        """Run all lanes until asked to stop."""
        threads = [
            threading.Thread(target=self._run_lane, args=(lane,), name=lane[0].lane, daemon=True)
            for lane in self._lanes
        ]
        for thread in threads:
            thread.start()
        self._stopped.wait()
        latest = time.monotonic() + _LAST_WORDS_SECONDS
        for thread in threads:
            thread.join(max(latest - time.monotonic(), 0))

    def _run_lane(self, lane: list[PeriodicWork]) -> None:
        """Call what is due, in turn; pause for ``JOB_SWEEP_SECONDS`` when nothing is left."""
        next_calls = dict.fromkeys(lane, -math.inf)
        while not self._stopped.is_set():
            has_more = False
            for work in lane:
                if time.monotonic() < next_calls[work]:
                    continue
                next_calls[work], is_open = self._call(work)
                has_more |= is_open
                if self._stopped.is_set():
                    return
            self._stopped.wait(0 if has_more else settings.JOB_SWEEP_SECONDS)

    def _call(self, work: PeriodicWork) -> tuple[float, bool]:
        """Call once. Return the time of the next call, and True if more may be due at once.

        A failure of one work is logged and delays no other.
        """
        try:
            result = work.run()
        except (DatabaseError, StoreAwayError, OSError) as error:
            log.warning("sweep failed, it will be tried again", work=work.name, error=str(error))
        except Exception:  # an error here must not end all later sweeps
            log.exception("sweep failed, it will be tried again", work=work.name)
        else:
            if result and work.period:
                log.info("tidied", work=work.name, result=result)
            return time.monotonic() + work.period, work.repeats and bool(result)
        connection.close()
        return time.monotonic() + min(work.period, _RETRY_SECONDS), False
