"""A thread beside a running job: it says that the process lives, and enforces a cancellation."""

import os
import signal
import threading
import time
from types import TracebackType

import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone

from webapp.jobs.models import Job, JobState
from webapp.jobs.services import job_finish_cancelled

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.4  # between two looks at the row
GRACE_SECONDS = 1.0  # for a cancelled job to stop by itself; after that its process ends


class Watchdog:
    """Context manager around the run of a claimed job.

    Compiled code cannot be interrupted, so a job that does not stop within a second of being
    cancelled is marked as cancelled and its process ends at once; the worker's parent process
    replaces it. A process whose claim was given to another ends in the same way.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._done = threading.Event()
        self._ending = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="job watchdog", daemon=True)

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Holding the lock, the thread is either not ending the process or has ended it.
        with self._ending:
            self._done.set()
        self._thread.join(timeout=5)

    def _watch(self) -> None:
        last_beat = 0.0
        asked: float | None = None
        try:
            while not self._done.wait(LOOK_SECONDS):
                try:
                    row = Job.objects.values("state", "claim", "cancel_requested_at").get(
                        pk=self._job.pk
                    )
                    if row["claim"] != self._job.claim or row["state"] != JobState.RUNNING:
                        self._end_process("claim lost")
                        continue
                    if row["cancel_requested_at"] is not None:
                        asked = asked or time.monotonic()
                        if time.monotonic() - asked >= GRACE_SECONDS:
                            self._end_process("cancelled")
                    if time.monotonic() - last_beat >= settings.JOB_HEARTBEAT_SECONDS:
                        last_beat = time.monotonic()
                        self._beat()
                except Job.DoesNotExist:
                    self._end_process("row removed")
                except DatabaseError as error:  # locked or away for a moment: look again
                    log.warning("watchdog cannot read the job", error=str(error))
                    connection.close()
        finally:
            connection.close()

    def _beat(self) -> None:
        Job.objects.filter(pk=self._job.pk, claim=self._job.claim, state=JobState.RUNNING).update(
            heartbeat_at=timezone.now()
        )

    def _end_process(self, reason: str) -> None:
        with self._ending:
            if self._done.is_set():
                return
            if reason == "cancelled" and not job_finish_cancelled(job=self._job):
                return  # it ended by itself in this very moment
            log.warning("ending the process of a job", job=str(self._job.pk), reason=reason)
            os.kill(os.getpid(), signal.SIGKILL)
