"""Base models of owned objects, each visible to one organisation only."""

from typing import Any

from django.conf import settings
from django.db import models


class OrganisationOwned(models.Model):
    """Object of one organisation; people of other organisations must not learn that it exists.

    Views fetch such objects only through :func:`webapp.common.selectors.owned_by` and
    :func:`webapp.common.selectors.get_owned_or_404`.
    """

    organisation = models.ForeignKey(
        "accounts.Organisation", on_delete=models.CASCADE, related_name="+"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        abstract = True


class LivingManager(models.Manager[Any]):
    """Manager that hides removed objects, which a job still deletes."""

    def get_queryset(self) -> models.QuerySet[Any]:
        """Return the objects that people see."""
        return super().get_queryset().filter(removed_at=None)


class Removable(models.Model):
    """Object with thousands of rows and files: hidden for everybody at once, then deleted by a job.

    Until then only `everything` finds it.
    """

    removed_at = models.DateTimeField(null=True, editable=False)

    objects = LivingManager()
    everything = models.Manager()  # noqa: DJ012 - a manager too; the first is what people see

    class Meta:
        abstract = True


class Installation(models.Model):
    """Single row of the installation: the store of this database and the last backup's time."""

    store_mark = models.CharField(max_length=32)
    backed_up_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.store_mark
