"""The one task: run the job with this id."""

import uuid
from typing import Any

from celery import Task
from celery.signals import worker_init

from tasks.celery import app
from webapp.common.checks import refuse_unsafe_settings
from webapp.jobs.runner import run_job


@app.task(name="tasks.run_job", acks_late=False, bind=True)
def run(self: Task, job_id: str) -> None:
    """Run a job. The message is acknowledged first: the row, not the queue, knows what is left.

    Delivering it twice is harmless, since only one process can claim the row.
    """
    run_job(uuid.UUID(job_id), request_id=getattr(self.request, "request_id", None) or "")


@worker_init.connect
def check_settings(**kwargs: Any) -> None:
    """Do not start with settings that are not safe."""
    refuse_unsafe_settings()
