"""What every owned object has: an organisation that alone may see it."""

from typing import Any

from django.conf import settings
from django.db import models


class OrganisationOwned(models.Model):
    """An object of one organisation; nobody of another one may learn that it exists.

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


class Living(models.Manager[Any]):
    """Leaves out what somebody removed and a job still takes away."""

    def get_queryset(self) -> models.QuerySet[Any]:
        """Return what is there for people."""
        return super().get_queryset().filter(removed_at=None)


class Removable(models.Model):
    """An object with thousands of rows and files: gone for everybody at once, taken away by a job.

    Only `everything` finds it in between.
    """

    removed_at = models.DateTimeField(null=True, editable=False)

    objects = Living()
    everything = models.Manager()  # noqa: DJ012 - a manager too; the first is what people see

    class Meta:
        abstract = True


class Installation(models.Model):
    """What there is once: which store belongs to this database, and when it was backed up last."""

    store_mark = models.CharField(max_length=32)
    backed_up_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.store_mark
