"""Roommate requests, and preferences for halls and kinds of room."""

from django.db import models

from webapp.encryption.fields import SealedTextField


class RoommateRequest(models.Model):
    """One student's wish to live with another, as it was written.

    ``written`` is the text of the student or the file, kept only until it is matched; ``target`` is
    the student that it means. It is encrypted where a key is
    set. A request is never shown to students.
    """

    cohort = models.ForeignKey("cohorts.Cohort", on_delete=models.CASCADE, related_name="requests")
    student = models.ForeignKey(
        "cohorts.Student", on_delete=models.CASCADE, related_name="requests_made"
    )
    target = models.ForeignKey(
        "cohorts.Student", null=True, on_delete=models.CASCADE, related_name="requests_received"
    )
    written = SealedTextField(max_length=120, blank=True)
    source = models.CharField(max_length=120)
    is_ignored = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["student__number", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["cohort", "student", "target"],
                condition=models.Q(target__isnull=False),
                name="asked_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.student} asked for {self.target or self.written}"


class Preference(models.Model):
    """A hall or kind of room that a student would like, with its rank (1 is the first choice)."""

    cohort = models.ForeignKey(
        "cohorts.Cohort", on_delete=models.CASCADE, related_name="preferences"
    )
    student = models.ForeignKey(
        "cohorts.Student", on_delete=models.CASCADE, related_name="preferences"
    )
    rank = models.PositiveSmallIntegerField()
    wanted = models.CharField(max_length=80)

    class Meta:
        ordering = ["student__number", "rank"]
        constraints = [
            models.UniqueConstraint(fields=["student", "rank"], name="preference_rank_once")
        ]

    def __str__(self) -> str:
        return f"{self.student}: {self.rank}. {self.wanted}"
