"""Context of a running job: parameters, progress, stop, checkpoint, random numbers."""

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from engine import Progress, StoppedError
from engine.core.checkpoint import Checkpoint
from webapp.files import store
from webapp.files.storage import keep_file
from webapp.jobs.checkpoint import StoredCheckpoint
from webapp.jobs.claims import job_update
from webapp.jobs.models import Job, JobTracePoint

WRITE_SECONDS = 0.5  # seconds between two writes of progress to the row
STOP_SECONDS = 0.3  # seconds between two reads of the cancel flag
STORE_LOOKS = 6  # reads of the cancel flag between two attempts to reach the store
MAX_TRACE_POINTS = 500  # about; older points keep their spacing, newer ones are further apart


class JobContext:
    """Argument of the function that runs a job; the function may use its attributes.

    ``on_progress`` and ``should_stop`` may be called from any thread. Database connections belong
    to threads, and one per pool thread would pile up, so only the thread that made the context uses
    the database. Other threads read the last answer, and their reports are written at the next
    call of the job's own thread. While that thread waits for the others, the job's watchdog
    enforces a cancellation.

    Attributes
    ----------
    job : Job
        The row, as it was claimed.
    parameters : dict
        The parameters given to ``job_enqueue``.
    checkpoint : Checkpoint
        Saved state of long work; survives the process, removed when the job is over.
    folder : Path
        The job's own folder, for intermediate files; removed when the job is over.
    rng : numpy.random.Generator
        Seeded with the job's seed: the same job gives the same answer.
    """

    def __init__(self, job: Job, on_write: Callable[[], None] = lambda: None) -> None:
        self.job = job
        self._on_write = on_write  # called at every write of progress
        self.parameters: dict[str, Any] = job.parameters
        self.folder: Path = job.folder
        self.checkpoint: Checkpoint = StoredCheckpoint(job.checkpoint_path)
        self.rng = np.random.default_rng(job.seed)
        self._started = time.monotonic()
        self._last_write = -np.inf
        self._last_stop_check = -np.inf
        self._last_trace = -np.inf
        self._stopping = False
        self._pending: JobTracePoint | None = None
        last = JobTracePoint.objects.filter(job=job).order_by("-iteration").first()
        self._seconds_before = last.seconds if last else 0.0
        self._has_begun = False
        self._kept: list[Path] = []
        self._owner = threading.get_ident()
        self._from_others: deque[tuple[Progress, float]] = deque(maxlen=MAX_TRACE_POINTS)

    @property
    def seconds(self) -> float:
        """Return the seconds of computing so far, over all attempts."""
        return self._seconds_before + time.monotonic() - self._started

    def on_progress(self, progress: Progress) -> None:
        """Record a progress report: write the row and the trace, at most twice a second."""
        if threading.get_ident() != self._owner:
            self._from_others.append((progress, self.seconds))
            return
        self._take_from_others()
        self._take(progress, self.seconds)

    def report(self, sentence: str, fraction: float | None = None) -> None:
        """Report the current work in words, for work without engine progress."""
        self.on_progress(Progress(sentence=sentence, fraction=fraction))

    def should_stop(self) -> bool:
        """Return True if the job was cancelled; cheap enough to call in every loop."""
        if threading.get_ident() != self._owner:
            return self._stopping
        self._take_from_others()
        now = time.monotonic()
        if not self._stopping and now - self._last_stop_check >= STOP_SECONDS:
            self._last_stop_check = now
            self._stopping = Job.objects.filter(
                pk=self.job.pk, cancel_requested_at__isnull=False
            ).exists()
        return self._stopping

    def make_folder(self) -> Path:
        """Return ``folder``, which exists from then on."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.folder

    def raise_if_stopped(self) -> None:
        """Raise StoppedError if the job was cancelled; call it between two stages of work."""
        if self.should_stop():
            raise StoppedError(_("The job was cancelled."))

    def keep_file(self, written: Path, path: Path) -> None:
        """Store a file of the job's folder; it is discarded unless the job succeeds.

        Call it before returning the function that writes the rows: a store takes its time.
        """
        self._kept.append(path)
        keep_file(written, path)

    def discard_kept(self) -> None:
        """Remove the stored files of a failed job, since no row will ever name them."""
        for path in self._kept:
            store.remove(path)

    def wait_for_store(self) -> None:
        """Report that the store is away, and wait; raise StoppedError if the job is cancelled."""
        self.report(_("The store of files does not answer; it goes on when that is back"))
        for _look in range(STORE_LOOKS):
            self.raise_if_stopped()
            time.sleep(STOP_SECONDS)

    def begin_again(self) -> None:
        """Reset to the start of an attempt, before the job's function is called again."""
        self.rng = np.random.default_rng(self.job.seed)
        self._has_begun = False
        self._pending = None

    def flush(self) -> None:
        """Write the reports of other threads and the last point, which were held back."""
        self._take_from_others()
        if self._pending is not None:
            self._write_trace(self._pending)

    def _take_from_others(self) -> None:
        while self._from_others:
            self._take(*self._from_others.popleft())

    def _take(self, progress: Progress, seconds: float) -> None:
        if progress.iteration > 0 and (progress.objective is not None or progress.gap is not None):
            if not self._has_begun:
                self._begin(progress)
            self._add_trace_point(progress, seconds)
        if time.monotonic() - self._last_write < WRITE_SECONDS:
            return
        self._last_write = time.monotonic()
        job_update(
            job=self.job,
            sentence=progress.sentence[:300],
            progress=None if progress.fraction is None else min(max(progress.fraction, 0.0), 1.0),
            seconds_left=progress.seconds_left,
            heartbeat_at=Now(),
        )
        self._on_write()

    def _begin(self, progress: Progress) -> None:
        """On a second attempt, drop trace points after the checkpoint and report the resume point.

        Reports in words only, such as "Reading the images", do not give the resume point.
        """
        self._has_begun = True
        if self.job.attempt > 1:
            JobTracePoint.objects.filter(job=self.job, iteration__gte=progress.iteration).delete()
            job_update(job=self.job, resumed_from=progress.iteration)

    def _add_trace_point(self, progress: Progress, seconds: float) -> None:
        point = JobTracePoint(
            job=self.job,
            iteration=progress.iteration,
            seconds=seconds,
            objective=_finite(progress.objective),
            lower_bound=_finite(progress.lower_bound),
            gap=_finite(progress.gap),
            relative_gap=_finite(progress.relative_gap),
        )
        if seconds - self._last_trace < max(0.1, seconds / MAX_TRACE_POINTS):
            self._pending = point
            return
        self._last_trace = seconds
        self._write_trace(point)

    def _write_trace(self, point: JobTracePoint) -> None:
        self._pending = None
        JobTracePoint.objects.bulk_create(
            [point],
            update_conflicts=True,
            unique_fields=["job", "iteration"],
            update_fields=["seconds", "objective", "lower_bound", "gap", "relative_gap"],
        )


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
