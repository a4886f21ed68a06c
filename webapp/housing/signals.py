"""Housing's reactions to purged cohorts and added students."""

from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, LateArrivals
from webapp.cohorts.signals import (
    cohort_purging,
    late_undo_starting,
    students_added,
    students_leaving,
)
from webapp.files import store
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList, Placement
from webapp.housing.services.late_undo import latecomers_leave
from webapp.housing.services.locking import placements_lock
from webapp.housing.services.publication import published_people
from webapp.housing.services.waiting import latecomers_wait
from webapp.jobs.models import ACTIVE_STATES, Job
from webapp.jobs.services import job_cancel
from webapp.matching.models import Proposal


@receiver(cohort_purging)
def keep_published_beds(cohort: Cohort, **kwargs: Any) -> None:
    """Refuse to purge a cohort with a published placement."""
    published = cohort.placements.filter(published_at__isnull=False).first()
    if published is not None:
        people = published_people(published)
        raise HousingError(
            ngettext(
                "%(count)s student has a published bed in %(placement)s. Withdraw the publication "
                "first. Nothing was purged.",
                "%(count)s students have a published bed in %(placement)s. Withdraw the "
                "publication first. Nothing was purged.",
                people,
            )
            % {"count": f"{people:,}", "placement": published.name}
        )


@receiver(cohort_purging)
def cancel_placing_of_cohort(cohort: Cohort, user: User, **kwargs: Any) -> None:
    """Cancel the placement jobs of a cohort that is being purged."""
    active = Job.objects.filter(organisation=cohort.organisation_id, state__in=ACTIVE_STATES)
    for job in active.filter(placements__cohort=cohort).distinct():
        reason = _("The cohort “%(cohort)s” was removed.") % {"cohort": cohort.name}
        job_cancel(user=user, job=job, reason=reason)


@receiver(pre_delete, sender=Placement)
def remove_files_of_pairs(instance: Placement, **kwargs: Any) -> None:
    """Delete the marginals of all versions of a placement once its deletion is committed."""
    names = {*instance.versions.values_list("arrays", flat=True), instance.arrays}
    for name in names - {None}:
        for path in instance.files_of(UUID(str(name))):
            transaction.on_commit(partial(store.remove, path))


@receiver(post_delete, sender=Placement)
def remove_what_pairs_used(instance: Placement, **kwargs: Any) -> None:
    """Delete the rooms of pairs, and the proposal that they were copied from."""
    if instance.is_pairs:
        BuildingList.everything.filter(pk=instance.buildings_id, is_private=True).delete()
        Proposal.objects.filter(pk=instance.pk).delete()


@receiver(students_added)
def wait_for_beds(
    cohort: Cohort, arrivals: LateArrivals, user: User | None = None, **kwargs: Any
) -> None:
    """Put late arrivals on the waiting list of every placement of the cohort."""
    latecomers_wait(user=user, cohort=cohort, arrivals=arrivals)


@receiver(late_undo_starting)
def lock_waiting_lists(cohort: Cohort, **kwargs: Any) -> None:
    """Lock the placements of a cohort whose late arrivals are to be removed."""
    placements_lock(cohort)


@receiver(students_leaving)
def leave_waiting_lists(cohort: Cohort, arrivals: LateArrivals, user: User, **kwargs: Any) -> None:
    """Remove late arrivals from the waiting list of every placement of the cohort."""
    latecomers_leave(user=user, cohort=cohort, arrivals=arrivals)
