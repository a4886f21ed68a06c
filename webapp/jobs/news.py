"""What the bell of the top bar tells a person about the jobs that this person started."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from webapp.common.selectors import owned_by
from webapp.jobs.models import ACTIVE_STATES, Job

_SEEN_AT = "jobs_seen_at"  # in the session: when its person last opened the list of jobs


@dataclass(frozen=True, slots=True)
class JobNews:
    """How many jobs ended since the person last looked, and how many have not ended."""

    n_ended: int
    n_active: int


def news_of(request: HttpRequest) -> JobNews:
    """Return the news since the list of jobs was last opened, or since sign-in."""
    user = request.user
    seen = parse_datetime(request.session.get(_SEEN_AT, "")) or user.last_login or user.date_joined
    started = owned_by(Job, user).filter(created_by=user)
    return JobNews(
        n_ended=started.filter(finished_at__gt=seen).count(),
        n_active=started.filter(state__in=ACTIVE_STATES).count(),
    )


def remember_seen(request: HttpRequest) -> None:
    """Note that the person looks at the list of jobs now."""
    request.session[_SEEN_AT] = timezone.now().isoformat()
