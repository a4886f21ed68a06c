"""Meanings of needs whose words differ from those of the rooms."""

from django.db import models
from django.utils import timezone

from webapp.common.models import OrganisationOwned

MAX_NEED = 200


class NeedMeaning(OrganisationOwned):
    """Rooms that meet a need, as staff said: those that offer one of ``offers``.

    ``need`` is the need as the first student wrote it, ``key`` the same without case. An empty
    ``offers`` says that no room meets the need by another name.
    """

    need = models.CharField(max_length=MAX_NEED)
    key = models.CharField(max_length=MAX_NEED)
    offers = models.JSONField(default=list)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["key"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "key"], name="need_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.need
