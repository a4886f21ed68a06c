"""Sweeper that handles abandoned jobs, uploads and files, in a process of its own."""

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

from webapp.cohorts.services.drafts import drafts_expire
from webapp.common.backup import backups_tidy
from webapp.demonstration.services import results_advance
from webapp.files.orphaned_files import remove_orphaned_files
from webapp.files.store import StoreAwayError, tidy
from webapp.identity.services import people_expire
from webapp.jobs.services import jobs_sweep
from webapp.jobs.workers import workers_note
from webapp.letters.services.letters import letters_send
from webapp.letters.services.questions import questions_send
from webapp.operations.alerts import alert_mails_send, alerts_note
from webapp.segmentation.services.removals import removals_finish
from webapp.surveys.bounce_mailbox import mailbox_read
from webapp.surveys.services.invitations import mails_send
from webapp.webhooks.services import deliveries_expire, deliveries_send

log = structlog.get_logger(__name__)

_TIDY_SECONDS = 24 * 3600  # seconds between two walks over all files
_RETRY_SECONDS = 3600  # seconds after a failed walk
_LAST_WORDS_SECONDS = 15  # seconds for messages still being sent at the end


class Sweeper:
    """Loop that sweeps every ``JOB_SWEEP_SECONDS``, first at once, and tidies files once a day."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._tidy_at = -math.inf

    def stop(self, *_: Any) -> None:
        """Ask the loop to end; serves as a signal handler too."""
        self._stopped.set()

    def run(self) -> None:
        """Sweep and send until asked to stop. A failed step is tried again at the next turn.

        Sending continues without a pause while messages are due, for there may be thousands. It has
        a thread of its own: a mail server or program that does not answer must not delay the check
        for dead workers.
        """
        sending = threading.Thread(target=self._repeat, args=(self._send,), daemon=True)
        sending.start()
        self._repeat(self._sweep)
        sending.join(_LAST_WORDS_SECONDS)

    def _repeat(self, turn: Callable[[], bool]) -> None:
        while not self._stopped.is_set():
            has_more = False
            try:
                has_more = turn()
            except (DatabaseError, StoreAwayError, OSError) as error:
                log.warning("sweep failed, it will be tried again", error=str(error))
                connection.close()
            except Exception:  # an error here must not end all later sweeps
                log.exception("sweep failed, it will be tried again")
                connection.close()
            self._stopped.wait(0 if has_more else settings.JOB_SWEEP_SECONDS)

    def _send(self) -> bool:
        """Send due messages and read replies; return True if there may be more to send."""
        turns = (mails_send, letters_send, questions_send, deliveries_send, alert_mails_send)
        sent = [send() for send in turns]  # run all of them, whatever the first one returns
        mailbox_read()
        return any(sent)

    def _sweep(self) -> bool:
        """Check the jobs once, tidy when due, and start what the demonstration needs next."""
        counts = jobs_sweep()
        if any(counts.values()):
            log.info("swept", **counts)
        workers_note()
        alerts_note()
        self._tidy_when_due()
        results_advance()
        return False

    def _tidy_when_due(self) -> None:
        """Walk over uploads and files once a day, and an hour after a walk that failed."""
        now = time.monotonic()
        if now < self._tidy_at:
            return
        self._tidy_at = now + _RETRY_SECONDS
        log.info(
            "tidied",
            expired_uploads=drafts_expire(),
            old_deliveries=deliveries_expire(),
            unfinished_files=tidy(),
            unfinished_backups=backups_tidy(),
            removed_late=removals_finish(),
            left_files=remove_orphaned_files(),
            expired_people=people_expire(),
        )
        self._tidy_at = now + _TIDY_SECONDS
