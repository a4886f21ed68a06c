"""Claim of a process on a job: only the holder may change the row."""

import uuid
from collections import Counter, deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.jobs.liveness import memory_kills, parent_process, this_process
from webapp.jobs.models import Job, JobState, Worker

ACTIVE_LATELY = timedelta(days=1)
"""An organisation that queued a job within this time counts among those that share a queue."""
SEEN_LATELY = timedelta(minutes=2)
"""A worker that answered within this time counts."""
MAX_LINE = 2_000
"""Waiting jobs that are looked at to find a place in line."""


class ClaimLostError(Exception):
    """Error of a job that another process took over; this process must not touch it again."""


def job_claim(*, job_id: uuid.UUID) -> Job | None:
    """Claim a queued job for this process; None if this process may not run it (any more)."""
    claim = uuid.uuid4()
    claimed = Job.objects.filter(pk=job_id, state=JobState.QUEUED).update(
        state=JobState.RUNNING,
        claim=claim,
        worker=this_process(),
        worker_parent=parent_process(),
        memory_kills=memory_kills(),
        attempt=models.F("attempt") + 1,
        heartbeat_at=Now(),  # the database's time: the clocks of several hosts differ
        started_at=Coalesce("started_at", Now()),
        attempt_started_at=Now(),
        sentence=_("Starting"),
        progress=None,
        seconds_left=None,
        n_competitors=0,
    )
    return (
        Job.objects.select_related("organisation", "created_by").get(pk=job_id, claim=claim)
        if claimed
        else None
    )


def job_claim_next(*, kinds: list[str], queue: str = "") -> Job | None:
    """Claim the next job of these kinds; None if no waiting job may run.

    Organisations share the workers: the one with the fewest running jobs of these kinds comes
    first. Within an organisation, a job comes before the pieces of one that others run already.
    Of equals, the one that waits longest comes first. No organisation runs more than
    ``ORGANISATION_MAX_RUNNING_JOBS`` of a queue at once, and none all of its processes while others
    have jobs; pieces count like jobs.
    """
    jobs = Job.objects.filter(kind__in=kinds)
    most = most_running(queue, jobs) if queue else settings.ORGANISATION_MAX_RUNNING_JOBS
    while True:
        turn = _next_turn(jobs, most)
        if turn is None:
            return None
        organisation, parent = turn
        waiting = jobs.filter(state=JobState.QUEUED, organisation=organisation, parent=parent)
        key = waiting.order_by("created_at", "pk").values_list("pk", flat=True).first()
        job = job_claim(job_id=key) if key else None
        if job is not None:
            return job  # otherwise another process was quicker: look again


def may_claim(*, kinds: list[str], queue: str) -> bool:
    """Return True if a free process of the queue's workers could claim a job of these kinds now."""
    jobs = Job.objects.filter(kind__in=kinds)
    return _next_turn(jobs, most_running(queue, jobs)) is not None


Turn = tuple[int, uuid.UUID | None]
"""Organisation whose turn it is, and the parent of its piece, or None for a whole job."""


class _Line:
    """Running jobs by organisation and parent, and the order in which waiting ones follow."""

    def __init__(self, jobs: models.QuerySet[Job], most_running: int) -> None:
        self.most_running = most_running
        self.running: Counter[int] = Counter()
        self.of_family: Counter[uuid.UUID] = Counter()
        # A job that was split into pieces is not run by any process.
        now = jobs.filter(state=JobState.RUNNING, n_pieces=0).order_by()
        families = now.values_list("organisation", "parent").annotate(models.Count("pk"))
        for organisation, parent, count in families:
            self.running[organisation] += count
            if parent is not None:
                self.of_family[parent] = count

    def rank(self, turn: Turn, since: datetime) -> tuple[int, int, datetime]:
        """Return the order of a turn among others: the smallest comes first."""
        organisation, parent = turn
        return self.running[organisation], self.of_family[parent] if parent else 0, since

    def next_turn(self, queued: Iterable[tuple[int, uuid.UUID | None, datetime]]) -> Turn | None:
        """Return whose turn it is among families and the times since which they wait."""
        turns = [
            (*self.rank((organisation, parent), since), organisation, parent)
            for organisation, parent, since in queued
            if self.running[organisation] < self.most_running
        ]
        if not turns:
            return None
        *_, organisation, parent = min(turns, key=lambda turn: turn[:4])
        return organisation, parent


def _next_turn(jobs: models.QuerySet[Job], most_running: int) -> Turn | None:
    """Return the next organisation, and the parent of the next piece or None for a whole job."""
    queued = jobs.filter(state=JobState.QUEUED).order_by().values_list("organisation", "parent")
    return _Line(jobs, most_running).next_turn(queued.annotate(models.Min("created_at")))


def most_running(queue: str, jobs: models.QuerySet[Job]) -> int:
    """Return how many jobs of a queue one organisation may run at once.

    Where several organisations had jobs of the queue lately, one process stays free of each, so
    that nobody waits for the long jobs of another organisation.
    """
    most: int = settings.ORGANISATION_MAX_RUNNING_JOBS
    processes = n_processes(queue)
    lately = timezone.now() - ACTIVE_LATELY
    if processes > 1 and most >= processes:
        users = jobs.filter(created_at__gte=lately).order_by().values("organisation").distinct()
        if users[:2].count() > 1:
            return processes - 1
    return most


def n_processes(queue: str) -> int:
    """Return the number of processes of a queue's workers that answered lately."""
    lately = timezone.now() - SEEN_LATELY
    workers = Worker.objects.filter(name__startswith=f"{queue}-", seen_at__gte=lately)
    return sum(workers.values_list("processes", flat=True))


def place_in_line(job: Job, *, kinds: list[str]) -> int | None:
    """Return the place of a waiting job in the line of its queue, from 1; None if it is not there.

    The place is that among the jobs that are waiting now, as `job_claim_next` would take them.
    """
    jobs = Job.objects.filter(kind__in=kinds)
    waiting = jobs.filter(state=JobState.QUEUED).order_by("created_at", "pk")
    rows = list(waiting.values_list("pk", "organisation", "parent", "created_at")[:MAX_LINE])
    families: dict[Turn, deque[tuple[uuid.UUID, datetime]]] = {}
    for pk, organisation, parent, created_at in rows:
        families.setdefault((organisation, parent), deque()).append((pk, created_at))
    line = _Line(jobs, MAX_LINE)
    for place in range(1, len(rows) + 1):
        heads = ((*family, own[0][1]) for family, own in families.items())
        turn = line.next_turn(heads)
        if turn is None:
            return None
        pk, _ = families[turn].popleft()
        if pk == job.pk:
            return place
        if not families[turn]:
            del families[turn]
        line.running[turn[0]] += 1
        if turn[1] is not None:
            line.of_family[turn[1]] += 1
    return None


def change_if_claimed(job: Job, **fields: Any) -> bool:
    """Change fields of a running job while its claim holds; return True if it held."""
    rows = Job.objects.filter(pk=job.pk, state=JobState.RUNNING, claim=job.claim)
    return bool(rows.update(**fields))


def job_update(*, job: Job, **fields: Any) -> None:
    """Change fields of a running job that this process has claimed.

    Raises
    ------
    ClaimLostError
        If the job is no longer this process's.
    """
    if not change_if_claimed(job, **fields):
        raise ClaimLostError(str(job.pk))
