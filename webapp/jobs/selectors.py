"""Queries on jobs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet, Sum
from django.urls import reverse
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.common.listing import light
from webapp.common.selectors import owned_by
from webapp.jobs.models import ACTIVE_STATES, Job, JobState
from webapp.jobs.registry import Subject, subject_of


@dataclass(frozen=True, slots=True)
class SubjectLink:
    """Link from a job to the page of its subject, with its name in lists and on the job's page."""

    label: str
    opens: str
    url: str


def visible_jobs(user: User) -> QuerySet[Job]:
    """Return the jobs that a person may see: jobs of the installation are for operators."""
    jobs = owned_by(Job, user)
    return jobs if user.is_operator else jobs.exclude(kind__startswith=Job.OF_INSTALLATION)


def jobs_of(user: User) -> QuerySet[Job]:
    """Return the jobs that lists show, newest first: whole jobs, no pieces."""
    return visible_jobs(user).filter(parent=None).select_related("created_by", "cancelled_by")


def running_label(user: User) -> str:
    """Return the rail's label beside Jobs: '1 running', '2 waiting' or ''."""
    active = visible_jobs(user).filter(parent=None, state__in=ACTIVE_STATES)
    states = list(active.values_list("state", flat=True))
    running = states.count(JobState.RUNNING)
    if running:
        return _("%(running)s running") % {"running": running}
    return _("%(states)s waiting") % {"states": len(states)} if states else ""


def reserved_bytes(organisation_id: int, since: datetime) -> int:
    """Return the bytes that jobs may still write, or have written since a time."""
    jobs = Job.objects.filter(organisation_id=organisation_id, stores_bytes__gt=0)
    ahead = jobs.filter(Q(state__in=ACTIVE_STATES) | Q(finished_at__gte=since))
    return ahead.aggregate(total=Sum("stores_bytes"))["total"] or 0


def recent_jobs(user: User) -> dict[str, Any]:
    """Return the latest jobs for the side of the home page."""
    jobs = list(light(jobs_of(user))[:6])
    return {"jobs": jobs, "is_side": True, "any_active": any(job.is_active for job in jobs)}


def needed_checkpoints(organisation_id: int) -> Iterator[str]:
    """Yield the names of checkpoint files from which jobs may resume, without suffix."""
    active = Job.objects.filter(organisation_id=organisation_id, state__in=ACTIVE_STATES)
    return map(str, active.values_list("pk", flat=True))


def subject_links(jobs: Iterable[Job]) -> dict[UUID, SubjectLink]:
    """Return a link to the subject of each job; a job whose subject is gone has no entry.

    It takes one query per kind of subject, not per job.
    """
    by_subject: dict[Subject, list[Job]] = defaultdict(list)
    for job in jobs:
        subject = subject_of(job.kind)
        if subject is not None and subject.parameter in job.parameters:
            by_subject[subject].append(job)
    links = {}
    for subject, group in by_subject.items():
        keys = {job.pk: (job.parameters[subject.parameter], job.organisation_id) for job in group}
        rows = subject.model._default_manager.filter(pk__in={key for key, _ in keys.values()})
        there = {(str(pk), wall) for pk, wall in rows.values_list("pk", "organisation_id")}
        for pk, key in keys.items():
            if key in there:
                links[pk] = SubjectLink(
                    subject.label, subject.opens, reverse(subject.url_name, args=[key[0]])
                )
    return links
