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

from engine.learning.segmentation.network.training import device_name
from tasks.celery import app
from webapp.checks import refuse_unsafe_settings
from webapp.files import store
from webapp.jobs.liveness import say_stopping
from webapp.jobs.priority import give_way, give_way_again
from webapp.jobs.registry import Queue
from webapp.jobs.runner import run_next
from webapp.supervisor.linux import die_with_parent

_LOOK_SECONDS = 2.0
_CARD_LOOK_SECONDS = 60.0  # seconds between two looks for a card; each look imports JAX

log = structlog.get_logger(__name__)


@app.task(name="tasks.run_job", acks_late=False, bind=True)
def run(task: Any, job_id: str) -> None:
    """Run a job. The message is acknowledged first: the row, not the queue, records open work.

    Delivering a message twice is harmless, since only one process can claim a row.
    """
    run_next(uuid.UUID(job_id), queue=queue_of(task.request.hostname or ""))


def queue_of(worker: str) -> Queue | None:
    """Return the queue of a worker by its name, "QUEUE-MACHINE@HOST"; None for another name."""
    word = worker.partition("-")[0]
    return next((queue for queue in Queue if queue == word), None)


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
def check_settings(sender: Any = None, **kwargs: Any) -> None:
    """Refuse to start with unsafe settings; wait until the file store and the card are visible."""
    refuse_unsafe_settings()
    give_way(int(os.environ.get("WORKER_NICE", "0")))
    wait_for_store()
    if queue_of(getattr(sender, "hostname", "")) is Queue.CARD:
        wait_for_card()


def wait_for_card() -> None:
    """Log that JAX offers no card here, and wait for one; the learners take the jobs meanwhile.

    A driver may be loaded after the worker has started.
    """
    was_said = False
    while reason := _in_a_child(_look_at_card):
        if not was_said:
            log.error("no job is taken: there is no graphics card for JAX", reason=reason)
        was_said = True
        time.sleep(_CARD_LOOK_SECONDS)


def _look_at_card() -> str:
    """Return the reason why no card can be used; '' if one can. JAX takes hundreds of megabytes."""
    try:
        device = device_name()
    except Exception as error:  # without JAX, or any error of a driver
        return f"{type(error).__name__}: {error}"
    return "JAX offers the processor only." if device == "cpu" else ""


@worker_process_init.connect
def end_with_worker(**kwargs: Any) -> None:
    """End this process of the worker when the worker is killed, and let its jobs give way."""
    die_with_parent(current_process()._parent_pid)
    give_way_again()


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
