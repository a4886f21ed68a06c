"""A thread of the worker that looks after abandoned jobs, uploads and files."""

import threading
import time

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

from webapp.cohorts.services.drafts import drafts_expire
from webapp.common.left_files import remove_left_files
from webapp.common.storage import remove_unfinished
from webapp.jobs.services import jobs_sweep

log = structlog.get_logger(__name__)

_TIDY_SECONDS = 24 * 3600  # between two walks over all files
_RETRY_SECONDS = 3600  # after a walk that failed


class Sweeper:
    """Runs the sweep at once and then every ``JOB_SWEEP_SECONDS``; once a day it tidies up."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="job sweep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end."""
        self._stopped.set()

    def _run(self) -> None:
        tidy_at = time.monotonic()
        while not self._stopped.is_set():
            try:
                counts = jobs_sweep()
                if any(counts.values()):
                    log.info("swept", **counts)
                if time.monotonic() >= tidy_at:
                    tidy_at = time.monotonic() + _RETRY_SECONDS
                    log.info(
                        "tidied",
                        expired_uploads=drafts_expire(),
                        unfinished_files=remove_unfinished(),
                        left_files=remove_left_files(),
                    )
                    tidy_at = time.monotonic() + _TIDY_SECONDS
            except (DatabaseError, OSError) as error:
                log.warning("sweep failed, it will be tried again", error=str(error))
            except Exception:  # a fault of ours must not end all later sweeps
                log.exception("sweep failed, it will be tried again")
            finally:
                # No connection is held between two looks: pool children are forked meanwhile.
                connection.close()
            self._stopped.wait(settings.JOB_SWEEP_SECONDS)
