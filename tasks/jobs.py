"""The one task: run the job with this id."""

import os
import time
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from celery.signals import worker_init

from tasks.celery import app
from tasks.priority import give_way
from webapp.common.checks import refuse_unsafe_settings
from webapp.files import store
from webapp.jobs.runner import run_next

_LOOK_SECONDS = 2.0

log = structlog.get_logger(__name__)


@app.task(name="tasks.run_job", acks_late=False)
def run(job_id: str) -> None:
    """Run a job. The message is acknowledged first: the row, not the queue, knows what is left.

    Delivering it twice is harmless, since only one process can claim a row.
    """
    run_next(uuid.UUID(job_id))


@worker_init.connect
def check_settings(**kwargs: Any) -> None:
    """Do not start with settings that are not safe, nor before the store of files is seen."""
    refuse_unsafe_settings()
    give_way(int(os.environ.get("WORKER_NICE", "0")))
    wait_for_store()


def wait_for_store() -> None:
    """Say it while the store cannot be seen; the worker takes no job before."""
    was_said = False
    while error := _in_a_child(_look_at_store):
        if not was_said:
            log.error("no job is taken: the store cannot be seen", error=error)
        was_said = True
        time.sleep(_LOOK_SECONDS)
    store.store().read_mark()  # what is forked from here on knows that the folder was mounted


def _look_at_store() -> str:
    """Return why the store cannot be used; '' when it can."""
    try:
        store.check()
    except Exception as error:  # whatever it is, no job could be done
        return f"{type(error).__name__}: {error}"
    return ""


def _in_a_child(look: Callable[[], str]) -> str:
    """Return what a function says in a process that ends after it.

    The worker forks, and no connection to the database may ever be open in a process that does.
    """
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        said = "the check failed"
        try:
            said = look()
        finally:
            os.write(write, said.encode()[:4000])
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        said = answer.read().decode(errors="replace")
    os.waitpid(process, 0)
    return said
