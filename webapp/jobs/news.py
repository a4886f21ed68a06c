"""What the bell of the top bar tells a person about the jobs that this person started."""

from dataclasses import dataclass

from django.db.models import Count, F, Q, Subquery
from django.utils import timezone

from webapp.accounts.models import User
from webapp.common.selectors import owned_by
from webapp.jobs.models import ACTIVE_STATES, Job, JobListVisit


@dataclass(frozen=True, slots=True)
class JobNews:
    """How many jobs ended since the person last looked, and how many have not ended."""

    n_ended: int
    n_active: int


def news_of(user: User) -> JobNews:
    """Return the news since the person last opened the list of jobs of the present organisation.

    Somebody who never opened it hears of everything that ended.
    """
    seen = owned_by(JobListVisit, user).filter(user=user).values("seen_at")
    started = owned_by(Job, user).filter(created_by=user, parent=None).annotate(seen=Subquery(seen))
    is_new = Q(finished_at__isnull=False) & (Q(seen=None) | Q(finished_at__gt=F("seen")))
    return JobNews(
        **started.aggregate(
            n_ended=Count("pk", filter=is_new),
            n_active=Count("pk", filter=Q(state__in=ACTIVE_STATES)),
        )
    )


def remember_seen(user: User) -> None:
    """Note that the person looks at the list of jobs now; call it before the list is read."""
    if user.organisation_id is None:
        return
    JobListVisit.objects.update_or_create(
        user=user, organisation_id=user.organisation_id, defaults={"seen_at": timezone.now()}
    )
