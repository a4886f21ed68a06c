"""Notes of staff about students, and what a search needs to know of a cohort."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.encryption.fields import SealedTextField

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


class SearchIndex(models.Model):
    """Keyed digests of how the words, numbers and e-mails of a cohort begin.

    A search of the whole organisation reads the names of a cohort only if the index holds all that
    it looks for. ``digests`` are sorted 4-byte numbers; ``revision`` is that of the cohort, and
    ``key`` names the key under which the digests were made. An index that is not current is made
    again by the next search.
    """

    cohort = models.OneToOneField(
        "cohorts.Cohort", primary_key=True, on_delete=models.CASCADE, related_name="search_index"
    )
    revision = models.PositiveIntegerField()
    key = models.CharField(max_length=16)
    digests = models.BinaryField()

    def __str__(self) -> str:
        return f"search index of {self.cohort_id}"
