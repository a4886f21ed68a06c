"""The only Celery task: run the job with the given id."""

import os
import signal
import time
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from billiard import current_process
from celery.signals import worker_init, worker_process_init, worker_ready

from tasks.celery import app
from tasks.priority import give_way
from webapp.checks import refuse_unsafe_settings
from webapp.files import store
from webapp.jobs.liveness import say_stopping
from webapp.jobs.runner import run_next
from webapp.supervisor.linux import die_with_parent

_LOOK_SECONDS = 2.0

log = structlog.get_logger(__name__)


@app.task(name="tasks.run_job", acks_late=False)
def run(job_id: str) -> None:
    """Run a job. The message is acknowledged first: the row, not the queue, records open work.

    Delivering a message twice is harmless, since only one process can claim a row.
    """
    run_next(uuid.UUID(job_id))


@worker_ready.connect
def show_when_stopping(**kwargs: Any) -> None:
    """Mark the worker as stopping when it receives a stop signal, before it ends its jobs.

    The jobs then know that the worker ended them. Celery sends ``worker_shutting_down`` only after
    it has ended them.
    """
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
        usual = signal.getsignal(number)

        def handle(*arguments: Any, usual: Any = usual) -> None:
            say_stopping()
            if callable(usual):
                usual(*arguments)

        signal.signal(number, handle)


@worker_init.connect
def check_settings(**kwargs: Any) -> None:
    """Refuse to start with unsafe settings, and wait until the file store is visible."""
    refuse_unsafe_settings()
    give_way(int(os.environ.get("WORKER_NICE", "0")))
    wait_for_store()


@worker_process_init.connect
def end_with_worker(**kwargs: Any) -> None:
    """End this process of the worker when the worker is killed, whatever its job does."""
    die_with_parent(current_process()._parent_pid)


def wait_for_store() -> None:
    """Log that the file store cannot be seen, and wait for it; the worker takes no job before."""
    was_said = False
    while error := _in_a_child(_look_at_store):
        if not was_said:
            log.error("no job is taken: the store cannot be seen", error=error)
        was_said = True
        time.sleep(_LOOK_SECONDS)
    store.store().read_mark()  # processes forked from here on know that the folder was mounted


def _look_at_store() -> str:
    """Return the reason why the store cannot be used; '' if it can."""
    try:
        store.check()
    except Exception as error:  # any error means that no job could run
        return f"{type(error).__name__}: {error}"
    return ""


def _in_a_child(look: Callable[[], str]) -> str:
    """Return the result of a function that runs in a short-lived child process.

    The worker forks, and a process that forks must never have an open database connection.
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
