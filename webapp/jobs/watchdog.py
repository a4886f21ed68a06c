"""Watchdog thread of a running job: it writes the heartbeat, and enforces a cancellation."""

import math
import os
import signal
import threading
import time

import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models.functions import Now

from webapp.jobs.endings import job_finish_cancelled
from webapp.jobs.models import Job, JobState
from webapp.jobs.processor import ProcessorWatch

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.4  # seconds between two reads of the row
GRACE_SECONDS = 1.0  # seconds for a cancelled job to stop, or an ended one to clear up, by itself


class Watchdog:
    """Context manager around the run of a claimed job.

    Compiled code cannot be interrupted, so a job that does not stop within a second of being
    cancelled is marked as cancelled and its process ends at once; the worker's parent process
    replaces it. A process whose claim went to another one ends likewise.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._done = threading.Event()
        self._ending = threading.Lock()
        self._last_beat = -math.inf
        self._processor = ProcessorWatch()
        self._first_seen: dict[str, float] = {}
        self._thread = threading.Thread(target=self._watch, name="job watchdog", daemon=True)

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # While the lock is held, the thread is either not ending the process or has ended it.
        with self._ending:
            self._done.set()
        self._thread.join(timeout=5)

    def _watch(self) -> None:
        try:
            while not self._done.wait(LOOK_SECONDS):
                try:
                    self._look()
                except Job.DoesNotExist:
                    self._end_process("row removed")
                except DatabaseError as error:  # locked or away for a moment: look again
                    log.warning("watchdog cannot read the job", error=str(error))
                    connection.close()
        finally:
            connection.close()

    def _look(self) -> None:
        rows = Job.objects.values("state", "claim", "cancel_requested_at", "n_pieces")
        row = rows.get(pk=self._job.pk)
        if row["n_pieces"]:
            return  # only this process can have split the job: pieces have their own watchdogs
        if row["claim"] != self._job.claim:
            self._end_process("claim lost")
        elif row["state"] == JobState.SUCCEEDED:
            return  # only this process can have written this: it is clearing up
        elif row["state"] != JobState.RUNNING:  # ended by this process, or by the sweep
            if self._has_lasted("over"):
                self._end_process("ended")
        elif row["cancel_requested_at"] is not None and self._has_lasted("asked"):
            self._end_process("cancelled")
        if time.monotonic() - self._last_beat >= settings.JOB_HEARTBEAT_SECONDS:
            self._last_beat = time.monotonic()
            self._beat()

    def _has_lasted(self, what: str) -> bool:
        """Return True if the grace period since this was first seen is over."""
        first = self._first_seen.setdefault(what, time.monotonic())
        return time.monotonic() - first >= GRACE_SECONDS

    def _beat(self) -> None:
        Job.objects.filter(pk=self._job.pk, claim=self._job.claim, state=JobState.RUNNING).update(
            heartbeat_at=Now(), n_competitors=self._processor.competitors(time.monotonic())
        )

    def _end_process(self, reason: str) -> None:
        with self._ending:
            if self._done.is_set():
                return
            if reason == "cancelled" and not job_finish_cancelled(job=self._job):
                return  # it ended by itself at this very moment
            log.warning("ending the process of a job", job=str(self._job.pk), reason=reason)
            os.kill(os.getpid(), signal.SIGKILL)
