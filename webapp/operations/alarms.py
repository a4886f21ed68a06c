"""Current faults of the installation: what happened, how it affects people and what to do."""

import shutil
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, DateTimeField, Min
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.common import formats
from webapp.common.models import Installation
from webapp.jobs.models import ACTIVE_STATES, Job, JobState, Worker
from webapp.jobs.queues import SILENT_SECONDS, is_used, jobs_now
from webapp.jobs.registry import Queue
from webapp.jobs.workers import workers
from webapp.monitoring import readiness
from webapp.monitoring.readiness import Readiness
from webapp.translation.lazy import gettext_lazy

LONG_WAIT = timedelta(minutes=10)
OLD_BACKUP = timedelta(days=2)
LITTLE_ROOM = 5e9  # bytes


@dataclass(frozen=True, slots=True)
class Alarm:
    """A current fault: what happened, how it affects people, what to do, and perhaps a button.

    ``key`` identifies a fault while it lasts; ``is_local`` is True if only this host can see it.
    """

    key: str
    title: str
    detail: str
    tone: str = "warning"  # or "danger"
    icon: str = "triangle-alert"
    url: str = ""
    action: str = ""
    is_post: bool = False
    is_local: bool = False


@dataclass(slots=True)
class Host:
    """A machine with its workers."""

    name: str
    workers: list[Worker] = field(default_factory=list)

    @property
    def silent(self) -> float:
        """Seconds since the last report of any of the machine's workers."""
        return min(worker.silent for worker in self.workers)

    @property
    def answers(self) -> bool:
        """Return True if all workers of the machine answer."""
        return all(worker.silent < SILENT_SECONDS for worker in self.workers)

    @property
    def memory_percent(self) -> int | None:
        """Share of the machine's memory in use at its last report, in per cent; None if unknown."""
        last = min(self.workers, key=lambda worker: worker.silent)
        if not last.memory_total:
            return None
        return round(100 * last.memory_used / last.memory_total)

    @property
    def memory_words(self) -> str:
        """Free and total memory, in words."""
        last = min(self.workers, key=lambda worker: worker.silent)
        free = (last.memory_total - last.memory_used) / 1e9
        return _("%(free)s of %(memory_total)s GB free") % {
            "free": f"{free:,.1f}",
            "memory_total": f"{last.memory_total / 1e9:,.1f}",
        }

    @property
    def processes(self) -> int:
        """Number of jobs that the machine runs at once."""
        return sum(worker.processes for worker in self.workers)


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """Load of one queue, over all organisations."""

    queue: Queue
    running: int
    waiting: int
    longest: timedelta | None
    processes: int  # number of jobs that the answering workers run at once


@dataclass(frozen=True, slots=True)
class State:
    """State of the installation, for the operations page and the alarms."""

    parts: dict[str, Readiness]
    hosts: list[Host]
    queues: list[QueueLoad]
    room: tuple[float, float]
    backed_up_at: Any


def look() -> State:
    """Return the state of everything that belongs to no organisation."""
    found = hosts()
    row = Installation.objects.filter(pk=1).first()
    return State(
        parts=readiness.readiness(),
        hosts=found,
        queues=[_load(queue, found) for queue in Queue if is_used(queue)],
        room=_room(),
        backed_up_at=row.backed_up_at if row else None,
    )


def installation_alarms(state: State | None = None) -> list[Alarm]:
    """Return the faults of the installation, worst first; never those of one organisation."""
    state = state or look()
    return [
        *_part_alarms(state.parts),
        *_host_alarms(state.hosts),
        *_queue_alarms(state.queues),
        *_busy_alarms(),
        *_room_alarms(state.room),
        *_backup_alarms(state.backed_up_at),
    ]


def hosts() -> list[Host]:
    """Return the machines whose workers have reported, silent machines first."""
    found: dict[str, Host] = {}
    for worker in workers():
        machine = worker.name.partition("-")[2]  # distinguishes hosts of one name
        found.setdefault(machine, Host(worker.host)).workers.append(worker)
    return sorted(found.values(), key=lambda host: (host.answers, host.name))


def of_queue(queue: Queue) -> Any:
    """Return the waiting and running jobs of a queue.

    A job divided into pieces counts as its pieces, since no worker runs the job itself.
    """
    jobs = jobs_now(queue).filter(state__in=ACTIVE_STATES).order_by()
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
    """Return the free and total bytes of the disk that holds this host's files or their copies."""
    usage = shutil.disk_usage(settings.INSTANCE_DIR)
    return usage.free, usage.total


_AWAY = {
    "database": gettext_lazy(
        "Pages answer that it is away, and nothing is changed. Start it, or its network."
    ),
    "store": gettext_lazy(
        "Uploads are refused and jobs wait; both go on when it is back. Nothing is lost."
    ),
    "room on disk": gettext_lazy("Remove what is not needed, or give the server a larger disk."),
    "broker": gettext_lazy(
        "Jobs are taken in and wait; they start when it is back. Nothing is lost."
    ),
    "worker": gettext_lazy(
        "Jobs are taken in and wait. Start a worker; see its log if it says it runs."
    ),
}


_SLOW = gettext_lazy(
    "Pages are shown; what people change has to wait, or is refused with a sentence. "
    "Another program may hold the database: a copy, a shell, a long import."
)


# The parts of `/readyz` and their states; `/readyz` answers programs, in English.
_PARTS = {
    "database": gettext_lazy("Database"),
    "broker": gettext_lazy("Broker"),
    "store": gettext_lazy("Store"),
    "room on disk": gettext_lazy("Room on disk"),
    "worker": gettext_lazy("Worker"),
}
_STATES = {
    Readiness.SLOW: gettext_lazy("slow"),
    Readiness.NOT_READY: gettext_lazy("not ready"),
}


def _part_alarms(parts: dict[str, Readiness]) -> list[Alarm]:
    return [
        Alarm(
            f"part {name}",
            _("%(part)s: %(state)s") % {"part": _PARTS.get(name, name), "state": _STATES[found]},
            _SLOW if found == Readiness.SLOW else _AWAY.get(name, _("See the log.")),
            "warning" if found == Readiness.SLOW else "danger",
            is_local=True,
        )
        for name, found in parts.items()
        if found != Readiness.OK
    ]


def _host_alarms(hosts: list[Host]) -> list[Alarm]:
    """Return an alarm for workers that have reported before and are silent now."""
    return [
        Alarm(
            key=f"silent {worker.name}"[:120],
            title=_("%(host)s has not answered for %(silent)s")
            % {"host": worker.host, "silent": formats.duration(worker.silent)},
            detail=(
                _(
                    "Its worker for %(queue)s jobs is gone. Its jobs continue from the last "
                    "checkpoint on the next free worker. Nothing was lost."
                )
                % {"queue": worker.queue}
            ),
            tone="danger",
            url=reverse("operations:forget", args=[worker.pk]),
            action=_("Take it out of use"),
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
                    _("Nobody takes %(queue)s jobs") % {"queue": queue},
                    ngettext(
                        "%(count)s job waiting, none lost. Start a %(process)s.",
                        "%(count)s jobs waiting, none lost. Start a %(process)s.",
                        row.waiting,
                    )
                    % {
                        "count": f"{row.waiting:,}",
                        "process": _("worker") if queue is Queue.SHORT else _("learner"),
                    },
                    "danger",
                )
            )
        elif row.longest and row.longest > LONG_WAIT:
            found.append(
                Alarm(
                    f"wait {queue}",
                    _("A %(queue)s job has waited %(longest)s")
                    % {"queue": queue, "longest": formats.duration(row.longest)},
                    _("All workers of its queue are busy. Start more of them, or wait."),
                    icon="clock",
                )
            )
    return found


def _busy_alarms() -> list[Alarm]:
    """Return an alarm for each machine on which other programs compete with jobs for the cores."""
    jobs = Job.objects.filter(state=JobState.RUNNING, n_competitors__gt=0)
    hosts: dict[str, int] = {}
    for worker, count in jobs.values_list("worker", "n_competitors"):
        host = worker.partition("/")[0]
        hosts[host] = max(hosts.get(host, 0), count)
    return [
        Alarm(
            f"busy {host}"[:120],
            _("%(host)s is busy: jobs wait for processor time") % {"host": host},
            ngettext(
                "%(count)s other process may use its cores. Jobs take longer; nothing is lost. "
                "End what need not run there, or lower LEARN_NICE.",
                "%(count)s other processes may use its cores. Jobs take longer; nothing is lost. "
                "End what need not run there, or lower LEARN_NICE.",
                count,
            )
            % {"count": f"{count:,}"},
            icon="clock",
        )
        for host, count in sorted(hosts.items())
    ]


def _room_alarms(room: tuple[float, float]) -> list[Alarm]:
    if room[0] >= LITTLE_ROOM:
        return []
    return [
        Alarm(
            "room",
            _("%(room)s GB are free on this web server") % {"room": f"{room[0] / 1e9:.1f}"},
            _("Below %(min_free_gb)s GB it is not ready. Remove what is not needed.")
            % {"min_free_gb": f"{settings.MIN_FREE_GB:g}"},
            is_local=True,
        )
    ]


def _backup_alarms(backup: Any) -> list[Alarm]:
    if backup and timezone.now() - backup < OLD_BACKUP:
        return []
    age = (
        _("The last backup is %(now)s old") % {"now": formats.duration(timezone.now() - backup)}
        if backup
        else ""
    )
    return [
        Alarm(
            "backup",
            age or _("There is no backup yet"),
            _("People go on working while one is made."),
            icon="download",
            url=reverse("operations:back-up"),
            action=_("Back up now"),
            is_post=True,
        )
    ]
