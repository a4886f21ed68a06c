"""Checks of placements, and the shapes of an organisation's rosters."""

import uuid
from typing import Any

from django.db import models
from django.utils import timezone

from webapp.common.models import OrganisationOwned
from webapp.housing.exports import Layout, is_column


class PlacementCheck(models.Model):
    """Check of a placement's numbers, computed once for one version of it.

    ``figures`` holds the output of :mod:`webapp.reports.figures`: doubt, veto, parity, drift.
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
        """Return True if the placement changed since the check."""
        return self.version != self.placement.version


class RosterShape(OrganisationOwned):
    """A roster that an organisation uses repeatedly: columns in order, with headings.

    ``columns`` is [[key of the column, heading], ...]; the keys are those that
    :func:`webapp.housing.exports.is_column` knows, and ``dates`` is a key of
    :data:`webapp.housing.exports.DATES`. With ``is_exact`` the office's own values and the headings
    stay as they are in CSV, even where they look like formulas.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=80)
    columns: Any = models.JSONField()
    dates = models.CharField(max_length=8, default="iso")
    is_exact = models.BooleanField(default=False)
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

    @property
    def layout(self) -> Layout:
        """The columns with their headings, without those of a later version."""
        columns = tuple((key, heading) for key, heading in self.columns if is_column(key))
        return Layout(self.name, columns, self.dates)
