"""Jobs end with what they work on, however it went."""

from typing import Any

from django.dispatch import receiver

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.signals import cohort_purging, students_added
from webapp.housing.services.waiting import latecomers_wait
from webapp.jobs.models import ACTIVE_STATES, Job
from webapp.jobs.services import job_cancel


@receiver(cohort_purging)
def cancel_placing_of_cohort(cohort: Cohort, user: User, **kwargs: Any) -> None:
    """Cancel what places a cohort that is being purged."""
    active = Job.objects.filter(organisation=cohort.organisation_id, state__in=ACTIVE_STATES)
    for job in active.filter(placements__cohort=cohort).distinct():
        job_cancel(user=user, job=job)


@receiver(students_added)
def wait_for_beds(cohort: Cohort, **kwargs: Any) -> None:
    """Put who came later on the waiting list of every placement of the cohort."""
    latecomers_wait(cohort=cohort)
