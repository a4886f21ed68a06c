"""Contents of the operations page. Of other organisations it shows sums, never names.

Operators see the installation; administrators see what concerns their organisation.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import Organisation, User
from webapp.common import formats
from webapp.jobs.models import ACTIVE_STATES, JobState
from webapp.jobs.registry import Queue
from webapp.jobs.selectors import jobs_of
from webapp.monitoring.memory import memory
from webapp.monitoring.readiness import Readiness
from webapp.operations.alarms import (
    LITTLE_ROOM,
    OLD_BACKUP,
    Alarm,
    QueueLoad,
    State,
    installation_alarms,
    look,
    of_queue,
)
from webapp.operations.jobs import backup_running
from webapp.operations.models import AlertReader
from webapp.translation.lazy import gettext_lazy
from webapp.version import code_version

DAY = timedelta(days=1)
LITTLE_MEMORY = 0.9  # share of all memory, in use
QUEUE_WORDS = {
    Queue.SHORT: gettext_lazy("Short: pairs, rooms, checks"),
    Queue.LONG: gettext_lazy("Long: learning, predicting"),
    Queue.CARD: gettext_lazy("Card: learning networks"),
}


@dataclass(frozen=True, slots=True)
class QueueRow:
    """Load of one queue, over all organisations and for the user's own."""

    words: str
    load: QueueLoad
    own_running: int
    own_waiting: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the installation that everything depends on, such as the database."""

    name: str
    icon: str
    is_fine: bool
    detail: str
    percent: int | None = None  # share of its space in use


def overview(user: User) -> dict[str, Any]:
    """Return the template context of an operator's page."""
    state = look()
    n_workers = sum(len(host.workers) for host in state.hosts)
    running = sum(load.running for load in state.queues)
    backup = backup_running()
    return {
        "alarms": [*installation_alarms(state), *_failure_alarms(user)],
        "hosts": state.hosts,
        "queues": [_queue_row(user, load) for load in state.queues],
        "parts": _parts(state),
        "states": _states(user),
        "limits": [*_limits(user), _free_room()],
        "backup": backup if backup and backup.organisation_id == user.organisation_id else None,
        "is_backing_up": backup is not None,
        "backup_folder": settings.BACKUP_FOLDER,
        "backups_kept": settings.BACKUPS_KEPT,
        "alert_reader": AlertReader.objects.filter(user=user).first(),
        "facts": (
            _("%(hosts)s, %(workers)s, %(jobs)s running. Version %(code_version)s.")
            % {
                "hosts": formats.counted(len(state.hosts), "host"),
                "workers": formats.counted(n_workers, "worker"),
                "jobs": formats.counted(running, "job"),
                "code_version": code_version(),
            }
        ),
    }


def of_organisation(user: User) -> dict[str, Any]:
    """Return the template context of an administrator's page: only their organisation's figures."""
    return {
        "alarms": _failure_alarms(user),
        "states": _states(user),
        "limits": _limits(user),
        "has_operator": User.objects.filter(is_operator=True, is_active=True).exists(),
    }


def _queue_row(user: User, load: QueueLoad) -> QueueRow:
    own = of_queue(load.queue).filter(organisation=user.organisation_id)
    counts: dict[str, int] = dict(own.values_list("state").annotate(Count("pk")))
    return QueueRow(
        words=QUEUE_WORDS[load.queue],
        load=load,
        own_running=counts.get(JobState.RUNNING, 0),
        own_waiting=counts.get(JobState.QUEUED, 0),
    )


def _states(user: User) -> list[tuple[str, int, str]]:
    """Return the organisation's jobs of the last day by state, with the URL of each list."""
    jobs = jobs_of(user).order_by()
    active = jobs.filter(state__in=ACTIVE_STATES)
    ended = jobs.filter(finished_at__gt=timezone.now() - DAY)
    counts: dict[str, int] = defaultdict(int)
    for found in (active, ended):
        counts |= dict(found.values_list("state").annotate(Count("pk")))
    return [
        (str(state.label), counts[state.value], f"{reverse('jobs:list')}?state={state.value}")
        for state in JobState
    ]


def _memory_part() -> list[Part]:
    found = memory()
    if found is None:
        return []
    used, total = found
    return [
        Part(
            _("Memory of this web server"),
            "activity",
            used < LITTLE_MEMORY * total,
            _("%(total)s of %(total_2)s GB free.")
            % {
                "total": f"{(total - used) / 1e9:,.1f}",
                "total_2": f"{total / 1e9:,.1f}",
            },
            round(100 * used / total),
        )
    ]


def _is_fine(state: State, part: str) -> bool:
    return state.parts.get(part, Readiness.OK) == Readiness.OK


def _parts(state: State) -> list[Part]:
    backup = state.backed_up_at
    free, total = state.room
    home = _("An object store") if settings.STORE_URL else _("A folder")
    backed_up = _("No backup has been made yet.")
    if backup:
        backed_up = _("The last one is of %(backup)s.") % {
            "backup": formats.when(backup, timezone.localtime())
        }
    stored = sum(Organisation.objects.values_list("stored_bytes", flat=True))
    return [
        Part(_("Database"), "table-2", _is_fine(state, "database"), _database_words()),
        Part(_("Broker"), "arrow-left-right", _is_fine(state, "broker"), _("Redis or Valkey.")),
        Part(
            _("Store"),
            "layers",
            _is_fine(state, "store"),
            _("%(home)s. %(stored)s GB in files.")
            % {"home": home, "stored": f"{stored / 1e9:.3g}"},
        ),
        Part(
            _("Disk of this web server"),
            "house",
            free >= LITTLE_ROOM,
            _("%(free)s of %(total)s GB free.")
            % {"free": f"{free / 1e9:,.0f}", "total": f"{total / 1e9:,.0f}"},
            round(100 * (1 - free / total)),
        ),
        *_memory_part(),
        Part(
            _("Backups"),
            "download",
            bool(backup) and timezone.now() - backup < OLD_BACKUP,
            backed_up,
        ),
    ]


def _database_words() -> str:
    if connection.vendor == "sqlite":
        return _("SQLite, for one host.")
    version = getattr(connection, "pg_version", 0)
    return _("PostgreSQL %(version)s.") % {"version": version // 10000}


def _limits(user: User) -> list[tuple[str, str, str]]:
    """Return an organisation's limits: name, value, and the environment variable that sets it."""
    stored = user.own_organisation.stored_bytes / 1e9
    return [
        (
            _("Files of an organisation"),
            _("%(organisation_quota_gb)s GB, yours take %(stored)s GB")
            % {
                "organisation_quota_gb": f"{settings.ORGANISATION_QUOTA_GB:g}",
                "stored": f"{stored:.3g}",
            },
            "ORGANISATION_QUOTA_GB",
        ),
        (
            _("Jobs waiting"),
            f"{settings.ORGANISATION_MAX_WAITING_JOBS:,}",
            "ORGANISATION_MAX_WAITING_JOBS",
        ),
        (
            _("Jobs running at once, of each queue"),
            f"{settings.ORGANISATION_MAX_RUNNING_JOBS:,}",
            "ORGANISATION_MAX_RUNNING_JOBS",
        ),
        (
            _("Calls of a token in a minute"),
            f"{settings.API_CALLS_A_MINUTE:,}",
            "API_CALLS_A_MINUTE",
        ),
    ]


def _free_room() -> tuple[str, str, str]:
    return _("Free room that a server must have"), f"{settings.MIN_FREE_GB:g} GB", "MIN_FREE_GB"


def _failure_alarms(user: User) -> list[Alarm]:
    recent = jobs_of(user).filter(finished_at__gt=timezone.now() - DAY)
    failed = recent.filter(state=JobState.FAILED).count()
    if not failed:
        return []
    return [
        Alarm(
            "failed",
            ngettext(
                "%(count)s job failed within a day", "%(count)s jobs failed within a day", failed
            )
            % {"count": f"{failed:,}"},
            _("Each says why, and what was kept."),
            icon="circle-x",
            url=f"{reverse('jobs:list')}?state=failed",
            action=_("Look at them"),
        )
    ]
