"""Signal receivers that end jobs and delete files with their rows, also when a purge cascades."""

from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.signals import cohort_purging
from webapp.files import store
from webapp.jobs.models import ACTIVE_STATES, Job
from webapp.jobs.services import job_cancel
from webapp.matching.models import LearnedModel


@receiver(cohort_purging)
def cancel_jobs_of_cohort(cohort: Cohort, user: User, **kwargs: Any) -> None:
    """Cancel the jobs that check or simulate pairs of a cohort that is being purged."""
    reading = Job.objects.filter(
        organisation=cohort.organisation_id,
        state__in=ACTIVE_STATES,
        kind__in=("roommates.check", "roommates.simulate"),
        parameters__cohort=str(cohort.pk),
    )
    for job in reading:
        reason = _("The cohort “%(cohort)s” was removed.") % {"cohort": cohort.name}
        job_cancel(user=user, job=job, reason=reason)


@receiver(post_delete, sender=LearnedModel)
def remove_weights(instance: LearnedModel, **kwargs: Any) -> None:
    """Delete the weights of a model once its deletion is committed."""
    path = instance.path
    transaction.on_commit(lambda: store.remove(path))
