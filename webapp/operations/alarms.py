"""What is wrong now, in words: what happened, what it did to people and what to do."""

import shutil
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, DateTimeField, Min
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from webapp.common import formats, readiness
from webapp.common.models import Installation
from webapp.jobs.models import ACTIVE_STATES, Job, JobState, Worker
from webapp.jobs.registry import Queue, kinds_of
from webapp.jobs.workers import SILENT_SECONDS, workers

LONG_WAIT = timedelta(minutes=10)
OLD_BACKUP = timedelta(days=2)
LITTLE_ROOM = 5e9  # bytes


@dataclass(frozen=True, slots=True)
class Alarm:
    """What happened, what it did to people and what to do; with a button where there is one.

    ``key`` stays while the same thing is wrong; ``is_local`` says that this host alone knows.
    """

    key: str
    title: str
    detail: str
    tone: str = "warning"  # or danger
    icon: str = "triangle-alert"
    url: str = ""
    action: str = ""
    is_post: bool = False
    is_local: bool = False


@dataclass(slots=True)
class Host:
    """One machine and its workers."""

    name: str
    workers: list[Worker] = field(default_factory=list)

    @property
    def silent(self) -> float:
        """Seconds since any of its workers was heard."""
        return min(worker.silent for worker in self.workers)

    @property
    def answers(self) -> bool:
        """Whether all of its workers answer."""
        return all(worker.silent < SILENT_SECONDS for worker in self.workers)

    @property
    def memory_percent(self) -> int | None:
        """How much of its memory is taken, as the worker heard last said; None: unknown."""
        last = min(self.workers, key=lambda worker: worker.silent)
        if not last.memory_total:
            return None
        return round(100 * last.memory_used / last.memory_total)

    @property
    def memory_words(self) -> str:
        """Free and all memory."""
        last = min(self.workers, key=lambda worker: worker.silent)
        free = (last.memory_total - last.memory_used) / 1e9
        return f"{free:,.1f} of {last.memory_total / 1e9:,.1f} GB free"

    @property
    def processes(self) -> int:
        """How many jobs it runs at once."""
        return sum(worker.processes for worker in self.workers)


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """How one queue stands, for all organisations together."""

    queue: Queue
    running: int
    waiting: int
    longest: timedelta | None
    processes: int  # of workers that answer: how many jobs they run at once


@dataclass(frozen=True, slots=True)
class State:
    """What was looked at, for the page and for the alarms."""

    works: dict[str, bool]
    hosts: list[Host]
    queues: list[QueueLoad]
    room: tuple[float, float]
    backed_up_at: Any


def look() -> State:
    """Look at everything that belongs to no organisation."""
    found = hosts()
    row = Installation.objects.filter(pk=1).first()
    return State(
        works=readiness.readiness(),
        hosts=found,
        queues=[_load(queue, found) for queue in Queue],
        room=_room(),
        backed_up_at=row.backed_up_at if row else None,
    )


def installation_alarms(state: State | None = None) -> list[Alarm]:
    """Return what is wrong with the installation, worst first; of no single organisation."""
    state = state or look()
    return [
        *_part_alarms(state.works),
        *_host_alarms(state.hosts),
        *_queue_alarms(state.queues),
        *_room_alarms(state.room),
        *_backup_alarms(state.backed_up_at),
    ]


def hosts() -> list[Host]:
    """Return the machines whose workers were heard, silent ones first."""
    found: dict[str, Host] = {}
    for worker in workers():
        machine = worker.name.partition("-")[2]  # hosts of one name are told apart
        found.setdefault(machine, Host(worker.host)).workers.append(worker)
    return sorted(found.values(), key=lambda host: (host.answers, host.name))


def of_queue(queue: Queue) -> Any:
    """Return the jobs of a queue that wait or run.

    Pieces count where they run: a job that was dealt out is run by nobody itself.
    """
    jobs = Job.objects.filter(kind__in=kinds_of(queue), state__in=ACTIVE_STATES).order_by()
    return jobs.filter(n_pieces=0).exclude(state=JobState.QUEUED, parent__isnull=False)


def _load(queue: Queue, found: list[Host]) -> QueueLoad:
    jobs = of_queue(queue)
    counts: dict[str, int] = dict(jobs.values_list("state").annotate(Count("pk")))
    first = (
        jobs.filter(state=JobState.QUEUED)
        .annotate(now=Now(output_field=DateTimeField()))
        .aggregate(Min("created_at"), Min("now"))
    )
    since = first["created_at__min"]
    return QueueLoad(
        queue=queue,
        running=counts.get(JobState.RUNNING, 0),
        waiting=counts.get(JobState.QUEUED, 0),
        longest=max(first["now__min"] - since, timedelta()) if since else None,
        processes=sum(
            worker.processes
            for host in found
            for worker in host.workers
            if worker.queue == queue and worker.silent < SILENT_SECONDS
        ),
    )


def _room() -> tuple[float, float]:
    """Return free and all bytes where files, or copies of them, lie on this host."""
    usage = shutil.disk_usage(settings.INSTANCE_DIR)
    return usage.free, usage.total


_AWAY = {
    "database": "Pages answer that it is away, and nothing is changed. Start it, or its network.",
    "store": "Uploads are refused and jobs wait; both go on when it is back. Nothing is lost.",
    "room on disk": "Remove what is not needed, or give the server a larger disk.",
    "broker": "Jobs are taken in and wait; they start when it is back. Nothing is lost.",
    "worker": "Jobs are taken in and wait. Start a worker; see its log if it says it runs.",
}


def _part_alarms(works: dict[str, bool]) -> list[Alarm]:
    return [
        Alarm(
            f"part {name}",
            f"{name.capitalize()}: not ready",
            _AWAY.get(name, "See the log."),
            "danger",
            is_local=True,
        )
        for name, is_fine in works.items()
        if not is_fine
    ]


def _host_alarms(hosts: list[Host]) -> list[Alarm]:
    """Name workers that were heard before and are not now."""
    return [
        Alarm(
            key=f"silent {worker.name}"[:120],
            title=f"{worker.host} has not answered for {formats.duration(worker.silent)}",
            detail=(
                f"Its worker for {worker.queue} jobs is gone. What it ran goes on from the last "
                "checkpoint at the next free worker. Nothing was lost."
            ),
            tone="danger",
            url=reverse("operations:forget", args=[worker.pk]),
            action="Take it out of use",
            is_post=True,
        )
        for host in hosts
        for worker in host.workers
        if worker.silent >= SILENT_SECONDS
    ]


def _queue_alarms(queues: list[QueueLoad]) -> list[Alarm]:
    found = []
    for row in queues:
        queue = row.queue
        if row.waiting and not row.processes:
            found.append(
                Alarm(
                    f"nobody {queue}",
                    f"Nobody takes {queue} jobs",
                    f"{formats.counted(row.waiting, 'job')} waiting, none lost. Start a "
                    f"{'learner' if queue is Queue.LONG else 'worker'}.",
                    "danger",
                )
            )
        elif row.longest and row.longest > LONG_WAIT:
            found.append(
                Alarm(
                    f"wait {queue}",
                    f"A {queue} job has waited {formats.duration(row.longest)}",
                    "All workers of its queue are busy. Start more of them, or wait.",
                    icon="clock",
                )
            )
    return found


def _room_alarms(room: tuple[float, float]) -> list[Alarm]:
    if room[0] >= LITTLE_ROOM:
        return []
    return [
        Alarm(
            "room",
            f"{room[0] / 1e9:.1f} GB are free on this web server",
            f"Below {settings.MIN_FREE_GB:g} GB it is not ready. Remove what is not needed.",
            is_local=True,
        )
    ]


def _backup_alarms(backup: Any) -> list[Alarm]:
    if backup and timezone.now() - backup < OLD_BACKUP:
        return []
    age = f"The last backup is {formats.duration(timezone.now() - backup)} old" if backup else ""
    return [
        Alarm(
            "backup",
            age or "There is no backup yet",
            "People go on working while one is made.",
            icon="download",
            url=reverse("operations:back-up"),
            action="Back up now",
            is_post=True,
        )
    ]
