"""Reading jobs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet, Sum
from django.urls import reverse

from webapp.accounts.models import User
from webapp.common.listing import light
from webapp.common.selectors import owned_by
from webapp.jobs.models import ACTIVE_STATES, Job, JobState
from webapp.jobs.registry import Subject, subject_of


@dataclass(frozen=True, slots=True)
class SubjectLink:
    """The way from a job to what it works on: "model" and the address of its page."""

    noun: str
    url: str


def jobs_of(user: User) -> QuerySet[Job]:
    """Return the jobs of the user's organisation, newest first."""
    return owned_by(Job, user).filter(parent=None).select_related("created_by", "cancelled_by")


def running_label(user: User) -> str:
    """Return what the rail says beside Jobs: '1 running', '2 waiting' or ''."""
    active = owned_by(Job, user).filter(parent=None, state__in=ACTIVE_STATES)
    states = list(active.values_list("state", flat=True))
    running = states.count(JobState.RUNNING)
    if running:
        return f"{running} running"
    return f"{len(states)} waiting" if states else ""


def reserved_bytes(organisation_id: int, since: datetime) -> int:
    """Return what jobs may still write, or wrote since a time, in bytes."""
    jobs = Job.objects.filter(organisation_id=organisation_id, stores_bytes__gt=0)
    ahead = jobs.filter(Q(state__in=ACTIVE_STATES) | Q(finished_at__gte=since))
    return ahead.aggregate(total=Sum("stores_bytes"))["total"] or 0


def recent_jobs(user: User) -> dict[str, Any]:
    """Return the latest jobs for the side of the home page."""
    jobs = list(light(jobs_of(user))[:6])
    return {"jobs": jobs, "is_side": True, "any_active": any(job.is_active for job in jobs)}


def needed_checkpoints(organisation_id: int) -> Iterator[str]:
    """Names of the files that jobs go on from, without their suffix."""
    active = Job.objects.filter(organisation_id=organisation_id, state__in=ACTIVE_STATES)
    return map(str, active.values_list("pk", flat=True))


def subject_links(jobs: Iterable[Job]) -> dict[UUID, SubjectLink]:
    """Return where to look at what each job works on; a job whose subject is gone has no entry.

    One query for each kind of subject, not for each job.
    """
    by_subject: dict[Subject, list[Job]] = defaultdict(list)
    for job in jobs:
        subject = subject_of(job.kind)
        if subject is not None and subject.parameter in job.parameters:
            by_subject[subject].append(job)
    links = {}
    for subject, group in by_subject.items():
        keys = {job.pk: (job.parameters[subject.parameter], job.organisation_id) for job in group}
        rows = subject.model.objects.filter(pk__in={key for key, _ in keys.values()})
        there = {(str(pk), wall) for pk, wall in rows.values_list("pk", "organisation_id")}
        for pk, key in keys.items():
            if key in there:
                links[pk] = SubjectLink(subject.noun, reverse(subject.url_name, args=[key[0]]))
    return links
