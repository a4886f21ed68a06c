"""Changes of many rooms of a building list at once; each change can be undone."""

from django.db import models

from webapp.common.models import OrganisationOwned
from webapp.housing.models.building import BuildingList


class RoomsChange(OrganisationOwned):
    """One change of many rooms. ``before`` and ``after`` hold [room, {field: value}] of each."""

    buildings = models.ForeignKey(BuildingList, on_delete=models.CASCADE, related_name="changes")
    sentence = models.CharField(max_length=300)
    before = models.JSONField()
    after = models.JSONField()
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return self.sentence
