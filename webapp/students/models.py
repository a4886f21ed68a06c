"""Notes of staff about students."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.common.encryption import SealedTextField

MAX_NOTE = 2_000


class StudentNote(models.Model):
    """A note of staff about a student, encrypted where a key is set; only staff read it.

    It is removed with its student. Its author edits it; its author or an administrator deletes it.
    """

    student = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="notes")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    text = SealedTextField(max_length=MAX_NOTE)
    created_at = models.DateTimeField(default=timezone.now)
    edited_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"note {self.pk}"
