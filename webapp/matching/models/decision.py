"""Decisions: their names, the log that undo reads, and the rules that they make."""

from django.conf import settings
from django.db import models


class Decision(models.TextChoices):
    """A decision about a pair, or about a rule."""

    ACCEPT = "accept", "Accept"
    REJECT = "reject", "Reject"
    LOCK = "lock", "Lock"
    NEVER = "never", "Never pair"
    REOPEN = "reopen", "Decide again"
    SWAP = "swap", "Swap"
    UNLOCK = "unlock", "Release the lock"
    RULE = "rule", "Change a rule"


class DecisionEvent(models.Model):
    """One decision with the rows before and after it, so that undo is exact."""

    proposal = models.ForeignKey(
        "matching.Proposal", on_delete=models.CASCADE, related_name="events"
    )
    revision = models.PositiveIntegerField()
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    decision = models.CharField(max_length=10, choices=Decision.choices)
    sentence = models.CharField(max_length=300)
    before = models.JSONField()
    after = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    undone_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.sentence


class ForbiddenPair(models.Model):
    """Two students who may not be paired: in this proposal, or never (``proposal`` None)."""

    cohort = models.ForeignKey("cohorts.Cohort", on_delete=models.CASCADE, related_name="forbidden")
    proposal = models.ForeignKey(
        "matching.Proposal", null=True, on_delete=models.CASCADE, related_name="forbidden"
    )
    first = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    second = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["first__number"]
        constraints = [
            models.UniqueConstraint(
                fields=["proposal", "first", "second"], name="rejected_once_a_proposal"
            ),
            models.UniqueConstraint(
                fields=["first", "second"],
                condition=models.Q(proposal__isnull=True),
                name="never_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.first} + {self.second}"


class LockRule(models.Model):
    """Two students who must be paired although the proposal does not pair them yet."""

    proposal = models.ForeignKey(
        "matching.Proposal", on_delete=models.CASCADE, related_name="locks"
    )
    first = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    second = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["first__number"]
        constraints = [
            models.UniqueConstraint(fields=["proposal", "first", "second"], name="lock_rule_once")
        ]

    def __str__(self) -> str:
        return f"{self.first} + {self.second}"
