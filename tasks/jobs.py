"""The one task: run the job with this id."""

import uuid
from typing import Any

from celery.signals import worker_init, worker_ready, worker_shutting_down

from tasks.celery import app
from tasks.sweeper import Sweeper
from webapp.common.checks import refuse_unsafe_settings
from webapp.jobs.runner import run_job

_sweeper = Sweeper()


@app.task(name="tasks.run_job", acks_late=False)
def run(job_id: str) -> None:
    """Run a job. The message is acknowledged first: the row, not the queue, knows what is left.

    Delivering it twice is harmless, since only one process can claim the row.
    """
    run_job(uuid.UUID(job_id))


@worker_init.connect
def check_settings(**kwargs: Any) -> None:
    """Do not start with settings that are not safe."""
    refuse_unsafe_settings()


@worker_ready.connect
def start_sweeping(**kwargs: Any) -> None:
    """Requeue, at the start and from then on, what a dead worker or broker left behind."""
    _sweeper.start()


@worker_shutting_down.connect
def stop_sweeping(**kwargs: Any) -> None:
    """Stop the sweep; the next worker goes on with it."""
    _sweeper.stop()
