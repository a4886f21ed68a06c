"""What the operations page shows. Of other organisations it shows sums, never names."""

import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, DateTimeField, Min
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import Organisation, User
from webapp.common import formats, readiness
from webapp.common.models import Installation
from webapp.common.version import code_version
from webapp.jobs.models import ACTIVE_STATES, Job, JobState, Worker
from webapp.jobs.registry import Queue, kinds_of
from webapp.jobs.workers import SILENT_SECONDS, workers

LONG_WAIT = timedelta(minutes=10)
OLD_BACKUP = timedelta(days=2)
LITTLE_ROOM = 5e9  # bytes
DAY = timedelta(days=1)
QUEUE_WORDS = {
    Queue.SHORT: "Short: proposals, placements, checks",
    Queue.LONG: "Long: learning, predicting",
}


@dataclass(frozen=True, slots=True)
class Alarm:
    """What happened, what it did to people and what to do; with a button where there is one."""

    title: str
    detail: str
    tone: str = "warning"  # or danger
    icon: str = "triangle-alert"
    url: str = ""
    action: str = ""
    is_post: bool = False


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
    def processes(self) -> int:
        """How many jobs it runs at once."""
        return sum(worker.processes for worker in self.workers)


@dataclass(frozen=True, slots=True)
class QueueRow:
    """How one queue stands, for all organisations together and for one's own."""

    words: str
    running: int
    waiting: int
    own_running: int
    own_waiting: int
    longest: timedelta | None


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that everything rests on."""

    name: str
    icon: str
    is_fine: bool
    detail: str
    percent: int | None = None  # of its room


def overview(user: User) -> dict[str, Any]:
    """Return the context of the page."""
    hosts, queues, room = _hosts(), _queues(user), _room()
    works = readiness.readiness()
    row = Installation.objects.filter(pk=1).first()
    backed_up_at = row.backed_up_at if row else None
    alarms = [
        *_part_alarms(works),
        *_host_alarms(hosts),
        *_queue_alarms(queues, hosts),
        *_room_alarms(room),
        *_backup_alarms(backed_up_at),
        *_failure_alarms(user),
    ]
    n_workers = sum(len(host.workers) for host in hosts)
    running = sum(queue.running for queue in queues)
    return {
        "alarms": alarms,
        "hosts": hosts,
        "queues": queues,
        "parts": _parts(works, room, backed_up_at),
        "states": _states(user),
        "limits": _limits(user),
        "facts": (
            f"{formats.counted(len(hosts), 'host')}, {formats.counted(n_workers, 'worker')}, "
            f"{formats.counted(running, 'job')} running. Version {code_version()}."
        ),
    }


def _hosts() -> list[Host]:
    found: dict[str, Host] = {}
    for worker in workers():
        machine = worker.name.partition("-")[2]  # hosts of one name are told apart
        found.setdefault(machine, Host(worker.host)).workers.append(worker)
    return sorted(found.values(), key=lambda host: (host.answers, host.name))


def _queues(user: User) -> list[QueueRow]:
    rows = []
    for queue in Queue:
        jobs = Job.objects.filter(kind__in=kinds_of(queue), state__in=ACTIVE_STATES).order_by()
        # Pieces count where they run: a job that was dealt out is run by nobody itself.
        jobs = jobs.filter(n_pieces=0).exclude(state=JobState.QUEUED, parent__isnull=False)
        counts: dict[str, int] = dict(jobs.values_list("state").annotate(Count("pk")))
        own = jobs.filter(organisation=user.organisation_id)
        own_counts: dict[str, int] = dict(own.values_list("state").annotate(Count("pk")))
        first = (
            jobs.filter(state=JobState.QUEUED)
            .annotate(now=Now(output_field=DateTimeField()))
            .aggregate(Min("created_at"), Min("now"))
        )
        since = first["created_at__min"]
        rows.append(
            QueueRow(
                words=QUEUE_WORDS[queue],
                running=counts.get(JobState.RUNNING, 0),
                waiting=counts.get(JobState.QUEUED, 0),
                own_running=own_counts.get(JobState.RUNNING, 0),
                own_waiting=own_counts.get(JobState.QUEUED, 0),
                longest=max(first["now__min"] - since, timedelta()) if since else None,
            )
        )
    return rows


def _states(user: User) -> list[tuple[str, int, str]]:
    """Return the own jobs of the last day by state, with the way to each list."""
    jobs = Job.objects.filter(organisation=user.organisation_id, parent=None).order_by()
    active = jobs.filter(state__in=ACTIVE_STATES)
    ended = jobs.filter(finished_at__gt=timezone.now() - DAY)
    counts: dict[str, int] = defaultdict(int)
    for found in (active, ended):
        counts |= dict(found.values_list("state").annotate(Count("pk")))
    return [
        (state.label, counts[state.value], f"{reverse('jobs:list')}?state={state.value}")
        for state in JobState
    ]


def _room() -> tuple[float, float]:
    """Return free and all bytes where files, or copies of them, lie on this host."""
    usage = shutil.disk_usage(settings.INSTANCE_DIR)
    return usage.free, usage.total


def _parts(works: dict[str, bool], room: tuple[float, float], backup: Any) -> list[Part]:
    free, total = room
    home = "An object store" if settings.STORE_URL else "A folder"
    backed_up = "None was made yet."
    if backup:
        backed_up = f"The last one is of {formats.when(backup, timezone.localtime())}."
    stored = sum(Organisation.objects.values_list("stored_bytes", flat=True))
    return [
        Part("Database", "table-2", works.get("database", True), _database_words()),
        Part("Broker", "arrow-left-right", works.get("broker", True), "Redis or Valkey."),
        Part(
            "Store",
            "layers",
            works.get("store", True),
            f"{home}. {stored / 1e9:.3g} GB in files.",
        ),
        Part(
            "Disk of this web server",
            "house",
            free >= LITTLE_ROOM,
            f"{free / 1e9:,.0f} of {total / 1e9:,.0f} GB free.",
            round(100 * (1 - free / total)),
        ),
        Part(
            "Backups",
            "download",
            bool(backup) and timezone.now() - backup < OLD_BACKUP,
            backed_up,
        ),
    ]


def _database_words() -> str:
    if connection.vendor == "sqlite":
        return "SQLite, for one host."
    version = getattr(connection, "pg_version", 0)
    return f"PostgreSQL {version // 10000}."


def _limits(user: User) -> list[tuple[str, str, str]]:
    """Return what an organisation may use at most: words, value, and the variable that sets it."""
    stored = user.organisation.stored_bytes / 1e9
    return [
        (
            "Files of an organisation",
            f"{settings.ORGANISATION_QUOTA_GB:g} GB, yours take {stored:.3g} GB",
            "ORGANISATION_QUOTA_GB",
        ),
        (
            "Jobs waiting",
            f"{settings.ORGANISATION_MAX_WAITING_JOBS:,}",
            "ORGANISATION_MAX_WAITING_JOBS",
        ),
        (
            "Jobs running at once, of each queue",
            f"{settings.ORGANISATION_MAX_RUNNING_JOBS:,}",
            "ORGANISATION_MAX_RUNNING_JOBS",
        ),
        ("Calls of a token in a minute", f"{settings.API_CALLS_A_MINUTE:,}", "API_CALLS_A_MINUTE"),
        ("Free room that a server must have", f"{settings.MIN_FREE_GB:g} GB", "MIN_FREE_GB"),
    ]


_AWAY = {
    "database": "Pages answer that it is away, and nothing is changed. Start it, or its network.",
    "store": "Uploads are refused and jobs wait; both go on when it is back. Nothing is lost.",
    "room on disk": "Remove what is not needed, or give the server a larger disk.",
    "broker": "Jobs are taken in and wait; they start when it is back. Nothing is lost.",
    "worker": "Jobs are taken in and wait. Start a worker; see its log if it says it runs.",
}


def _part_alarms(works: dict[str, bool]) -> list[Alarm]:
    return [
        Alarm(f"{name.capitalize()}: not ready", _AWAY.get(name, "See the log."), "danger")
        for name, is_fine in works.items()
        if not is_fine
    ]


def _host_alarms(hosts: list[Host]) -> list[Alarm]:
    """Name workers that were heard before and are not now."""
    return [
        Alarm(
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


def _queue_alarms(queues: list[QueueRow], hosts: list[Host]) -> list[Alarm]:
    found = []
    for queue, row in zip(Queue, queues, strict=True):
        heard = [w for h in hosts for w in h.workers if w.silent < SILENT_SECONDS]
        if row.waiting and not any(worker.queue == queue for worker in heard):
            found.append(
                Alarm(
                    f"Nobody takes {queue} jobs",
                    f"{formats.counted(row.waiting, 'job')} waiting, none lost. Start a "
                    f"{'learner' if queue is Queue.LONG else 'worker'}.",
                    "danger",
                )
            )
        elif row.longest and row.longest > LONG_WAIT:
            found.append(
                Alarm(
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
            f"{room[0] / 1e9:.1f} GB are free on this web server",
            f"Below {settings.MIN_FREE_GB:g} GB it is not ready. Remove what is not needed.",
        )
    ]


def _backup_alarms(backup: Any) -> list[Alarm]:
    if backup and timezone.now() - backup < OLD_BACKUP:
        return []
    age = f"The last backup is {formats.duration(timezone.now() - backup)} old" if backup else ""
    return [
        Alarm(
            age or "There is no backup yet",
            "Run: python manage.py backup FILE. People go on working meanwhile.",
            icon="download",
        )
    ]


def _failure_alarms(user: User) -> list[Alarm]:
    failed = Job.objects.filter(
        organisation=user.organisation_id,
        parent=None,
        state=JobState.FAILED,
        finished_at__gt=timezone.now() - DAY,
    ).count()
    if not failed:
        return []
    return [
        Alarm(
            f"{formats.counted(failed, 'job')} failed within a day",
            "Each says why, and what was kept.",
            icon="circle-x",
            url=f"{reverse('jobs:list')}?state=failed",
            action="Look at them",
        )
    ]
