"""The audit log: one line an act, with the person and the object. Lines never change."""

from django.conf import settings
from django.db import models

MOST_OF_VERB = 40
"""Largest number of characters of a verb."""


class AuditLine(models.Model):
    """One act. Stored as text, the line outlives the object and the person."""

    organisation = models.ForeignKey(
        "accounts.Organisation", on_delete=models.CASCADE, related_name="audit_lines"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    username = models.CharField(max_length=150)
    verb = models.CharField(max_length=MOST_OF_VERB)
    target_type = models.CharField(max_length=60, blank=True)
    target_id = models.CharField(max_length=64, blank=True)
    target_name = models.CharField(max_length=200, blank=True)
    details = models.JSONField(default=dict)
    # True for lines about hosts, workers or backups: operators only, whatever the organisation.
    is_of_installation = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["organisation", "-created_at"]),
            models.Index(fields=["organisation", "verb"]),
        ]

    def __str__(self) -> str:
        return f"{self.username} {self.verb} {self.target_name}"
