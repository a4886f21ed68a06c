"""News of the top bar's bell for a person about their own jobs."""

from dataclasses import dataclass

from django.db.models import Count, F, Q, Subquery
from django.utils import timezone

from webapp.accounts.models import User
from webapp.common.selectors import owned_by
from webapp.database.passing_notes import leave_note
from webapp.jobs.models import ACTIVE_STATES, JobListVisit
from webapp.jobs.selectors import visible_jobs


@dataclass(frozen=True, slots=True)
class JobNotification:
    """Number of jobs that ended since the person's last visit, and of jobs that have not ended."""

    n_ended: int
    n_active: int


def notifications_of(user: User) -> JobNotification:
    """Return the news since the person last opened the present organisation's list of jobs.

    A person who never opened it gets all ended jobs counted.
    """
    seen = owned_by(JobListVisit, user).filter(user=user).values("seen_at")
    own = visible_jobs(user).filter(created_by=user, parent=None)
    started = own.annotate(seen=Subquery(seen))
    is_new = Q(finished_at__isnull=False) & (Q(seen=None) | Q(finished_at__gt=F("seen")))
    return JobNotification(
        **started.aggregate(
            n_ended=Count("pk", filter=is_new),
            n_active=Count("pk", filter=Q(state__in=ACTIVE_STATES)),
        )
    )


def remember_seen(user: User) -> None:
    """Record that the person now sees the list of jobs; call it before the list is read."""
    if user.organisation_id is None:
        return
    place = user.organisation_id
    leave_note(
        lambda: JobListVisit.objects.update_or_create(
            user=user, organisation_id=place, defaults={"seen_at": timezone.now()}
        )
    )
