"""Queue whose workers run a kind of job now.

Jobs of the queue "card" wait for a worker with a graphics card while one answers. Otherwise the
workers of another queue run them. Nothing about that is stored: the dispatch of a message, the
claim of a job and the sweep each look at the workers that answered lately.
"""

from datetime import timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from webapp.jobs import registry
from webapp.jobs.models import Job, JobState, Worker
from webapp.jobs.registry import Queue

SILENT_SECONDS = 60.0  # seconds without an answer after which a worker counts as gone
FALLBACKS = {Queue.CARD: Queue.LONG}
"""Queue whose workers run the jobs of another while that one has no worker."""


def has_worker(queue: Queue) -> bool:
    """Return True if a worker of the queue answered lately, by the clock of the database."""
    lately = Now() - timedelta(seconds=SILENT_SECONDS)
    return Worker.objects.filter(name__startswith=f"{queue}-", seen_at__gt=lately).exists()


def is_used(queue: Queue) -> bool:
    """Return True if jobs wait for the workers of the queue, False while others run them."""
    return queue not in FALLBACKS or has_worker(queue)


def queue_now(kind: str) -> Queue:
    """Return the queue whose workers run the jobs of a kind now."""
    queue = registry.queue_of(kind)
    return queue if is_used(queue) else FALLBACKS[queue]


def kinds_now(queue: Queue) -> list[str]:
    """Return the kinds of job that wait for the workers of a queue now."""
    kinds = registry.kinds_of(queue) if is_used(queue) else []
    for other, fallback in FALLBACKS.items():
        if fallback == queue and not is_used(other):
            kinds += registry.kinds_of(other)
    return kinds


def kinds_taken(queue: Queue, kind: str) -> list[str]:
    """Return the kinds of job that a worker of a queue takes when told of a job of one kind.

    They are those that wait for the queue, with the kinds of a worker that has not answered the
    sweep yet. Jobs of a kind from an earlier version fail in whichever queue they are.
    """
    own = {*kinds_now(queue), *registry.kinds_of(queue)}
    return sorted(own if registry.is_known(kind) else own | {kind})


def jobs_now(queue: Queue) -> QuerySet[Job]:
    """Return the jobs of all states that wait for the workers of a queue, or run there.

    A running job belongs to the queue of the worker that runs it. If that worker is not known, it
    belongs to the queue in which it would wait.
    """
    workers = Worker.objects.exclude(process="")
    own = workers.filter(name__startswith=f"{queue}-").values("process")
    others = workers.exclude(name__startswith=f"{queue}-").values("process")
    is_running = Q(state=JobState.RUNNING)
    in_line = Q(kind__in=kinds_now(queue)) & ~(is_running & Q(worker_parent__in=others))
    return Job.objects.filter(in_line | is_running & Q(worker_parent__in=own))
