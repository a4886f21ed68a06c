"""Looking after abandoned jobs, uploads and files, in a process of its own."""

import math
import threading
import time
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

from webapp.cohorts.services.drafts import drafts_expire
from webapp.common.left_files import remove_left_files
from webapp.common.storage import remove_unfinished
from webapp.jobs.services import jobs_sweep
from webapp.surveys.services.invitations import mails_send

log = structlog.get_logger(__name__)

_TIDY_SECONDS = 24 * 3600  # between two walks over all files
_RETRY_SECONDS = 3600  # after a walk that failed


class Sweeper:
    """Runs the sweep at once and then every ``JOB_SWEEP_SECONDS``; once a day it tidies up."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._tidy_at = -math.inf

    def stop(self, *_: Any) -> None:
        """Ask the loop to end; serves as a signal handler too."""
        self._stopped.set()

    def run(self) -> None:
        """Sweep until asked to stop. A sweep that fails is tried again at the next turn."""
        while not self._stopped.is_set():
            try:
                self._sweep()
            except (DatabaseError, OSError) as error:
                log.warning("sweep failed, it will be tried again", error=str(error))
                connection.close()
            except Exception:  # a fault of ours must not end all later sweeps
                log.exception("sweep failed, it will be tried again")
                connection.close()
            self._stopped.wait(settings.JOB_SWEEP_SECONDS)

    def _sweep(self) -> None:
        """Look once after the jobs and, when it is time, after uploads and files."""
        counts = jobs_sweep()
        if any(counts.values()):
            log.info("swept", **counts)
        mails_send()
        now = time.monotonic()
        if now < self._tidy_at:
            return
        self._tidy_at = now + _RETRY_SECONDS
        log.info(
            "tidied",
            expired_uploads=drafts_expire(),
            unfinished_files=remove_unfinished(),
            left_files=remove_left_files(),
        )
        self._tidy_at = now + _TIDY_SECONDS
