"""What was checked about a placement, and the rosters that an organisation takes out of it."""

import uuid
from typing import Any

from django.db import models
from django.utils import timezone

from webapp.common.models import OrganisationOwned


class PlacementCheck(models.Model):
    """What a placement's numbers are worth, worked out once for one version of it.

    ``figures`` holds what :mod:`webapp.reports.figures` writes: doubt, veto, parity, drift.
    """

    placement = models.OneToOneField(
        "housing.Placement", on_delete=models.CASCADE, related_name="check_of"
    )
    job = models.ForeignKey("jobs.Job", null=True, on_delete=models.SET_NULL, related_name="+")
    version = models.PositiveIntegerField(default=0)
    figures: Any = models.JSONField(default=dict)
    checked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"Check of {self.placement}"

    @property
    def is_stale(self) -> bool:
        """Whether the placement changed since."""
        return self.version != self.placement.version


class RosterShape(OrganisationOwned):
    """A roster that an organisation takes again and again: columns in order, with headings.

    ``columns`` is [[name of the column, heading], ...]; the names are those of
    :data:`webapp.housing.exports.COLUMNS`.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=80)
    columns: Any = models.JSONField()
    is_exact = models.BooleanField(default=True)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="roster_name_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name
