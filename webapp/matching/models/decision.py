"""Decisions that outlast a computation: pairs to keep apart, in one placement or for good."""

from django.db import models


class ForbiddenPair(models.Model):
    """Two students who may not share a room: in this placement, or never (``placement`` None).

    ``proposal`` is the proposal of an earlier version that a row was made for.
    """

    cohort = models.ForeignKey("cohorts.Cohort", on_delete=models.CASCADE, related_name="forbidden")
    placement = models.ForeignKey(
        "housing.Placement", null=True, on_delete=models.CASCADE, related_name="forbidden"
    )
    proposal = models.ForeignKey(
        "matching.Proposal", null=True, on_delete=models.CASCADE, related_name="+"
    )
    first = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    second = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["first__number"]
        constraints = [
            models.UniqueConstraint(
                fields=["placement", "first", "second"], name="rejected_once_a_placement"
            ),
            models.UniqueConstraint(
                fields=["first", "second"],
                condition=models.Q(placement__isnull=True),
                name="never_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.first} + {self.second}"
