"""Results that the demonstration prepares, and people who closed its tour."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from webapp.common.models import OrganisationOwned
from webapp.jobs.models import Job


class ResultState(models.TextChoices):
    """State of one result; a failed one can be prepared again."""

    WAITING = "waiting", _("Waiting")
    STARTED = "started", _("Being prepared")
    READY = "ready", _("Ready")
    FAILED = "failed", _("Failed")


OPEN_STATES = (ResultState.WAITING, ResultState.STARTED)


class DemonstrationResult(OrganisationOwned):
    """One result that the demonstration prepares; its owner is the person in whose name.

    ``key`` names the step of :mod:`webapp.demonstration.catalogue` that prepares it. ``target`` is
    the key of the model, placement or other object; it is stored in the transaction that creates
    the object, so that an interrupted preparation creates nothing twice.
    """

    key = models.CharField(max_length=20)
    position = models.PositiveSmallIntegerField()
    state = models.CharField(
        max_length=8, choices=ResultState.choices, default=ResultState.WAITING, db_index=True
    )
    target = models.CharField(max_length=36, blank=True)
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="+")
    error = models.CharField(max_length=500, blank=True)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "key"], name="one_demonstration_result_a_key"
            )
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def is_ready(self) -> bool:
        """Return True if the result can be looked at."""
        return self.state == ResultState.READY

    @property
    def has_failed(self) -> bool:
        """Return True if somebody has to start it again."""
        return self.state == ResultState.FAILED


class ClosedTour(models.Model):
    """Record of a person who closed the tour; it stays closed until the person shows it again."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="closed_tour"
    )
    closed_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"tour closed by {self.user_id}"
