"""Workers that run but take no job: they are ended here, and their supervisor starts new ones."""

import time
from datetime import timedelta

import structlog
from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from webapp.jobs import queues, registry
from webapp.jobs.claims import may_claim
from webapp.jobs.liveness import end_process, is_alive
from webapp.jobs.models import Job, JobState, Worker

log = structlog.get_logger(__name__)

_LATELY = timedelta(seconds=30)  # a worker that ran a job within this time is not idle
_LONGEST_PAUSE = 60.0  # seconds between two looks; after more, this process was stopped itself


class StuckWorkers:
    """Watch over the workers of this machine.

    A worker that is stopped, or has lost track of its processes after some of them were killed,
    looks alive while all jobs wait. It is ended if it runs no job for ``JOB_STUCK_SECONDS``
    although one of its queue could run and its message was sent. No job is interrupted by that.
    """

    def __init__(self) -> None:
        self._idle_since: dict[str, float] = {}  # by the name of a worker's process
        self._looked_at = time.monotonic()

    def look(self) -> int:
        """Look once; return the number of workers that were ended."""
        now = time.monotonic()
        if now - self._looked_at > _LONGEST_PAUSE:
            self._idle_since.clear()
        self._looked_at = now
        idle = {name for queue in registry.Queue for name in _idle_beside_work(queue)}
        self._idle_since = {name: self._idle_since.get(name, now) for name in idle}
        n_ended = 0
        for name, since in self._idle_since.items():
            if now - since >= settings.JOB_STUCK_SECONDS and end_process(name):
                log.error("ended a worker that took no job", process=name, seconds=now - since)
                n_ended += 1
        return n_ended


def _idle_beside_work(queue: registry.Queue) -> list[str]:
    """Return the processes of this machine's workers that run nothing although a job waits."""
    kinds = queues.kinds_now(queue)
    waiting = Job.objects.filter(kind__in=kinds, state=JobState.QUEUED)
    if not waiting.filter(dispatched_at__isnull=False).exists():
        return []
    workers = Worker.objects.filter(name__startswith=f"{queue}-").exclude(process="")
    at_work = Q(state=JobState.RUNNING) | Q(heartbeat_at__gt=Now() - _LATELY)
    busy = set(Job.objects.filter(at_work).values_list("worker_parent", flat=True))
    names = [name for name in workers.values_list("process", flat=True) if name not in busy]
    idle = [name for name in names if is_alive(name)]
    return idle if idle and may_claim(kinds=kinds, queue=queue) else []
