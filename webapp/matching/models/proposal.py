"""Tables of the proposals of earlier versions. Placements hold copies; nothing writes here.

They are kept for one release, so that a copy can be compared with its origin, and go with the
placement or the cohort that they belong to.
"""

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.common.models import OrganisationOwned


class Proposal(OrganisationOwned):
    """A proposal as an earlier version stored it; the placement of its key is its copy."""

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    cohort = models.ForeignKey("cohorts.Cohort", on_delete=models.CASCADE, related_name="+")
    model = models.ForeignKey("matching.LearnedModel", on_delete=models.CASCADE, related_name="+")
    job = models.ForeignKey("jobs.Job", null=True, on_delete=models.SET_NULL, related_name="+")
    same = models.JSONField(default=list)
    singles = models.JSONField(default=list)
    revision = models.PositiveIntegerField(default=0)
    arrays = models.UUIDField(null=True)
    best_at = models.DateTimeField(null=True)
    changes = models.PositiveIntegerField(default=0)
    n_pairs = models.PositiveIntegerField(default=0, db_default=0)
    n_open = models.PositiveIntegerField(default=0, db_default=0)
    figures = models.JSONField(default=dict)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-updated_at"]

    def __str__(self) -> str:
        return self.name


class ProposedPair(models.Model):
    """A pair of such a proposal."""

    proposal = models.ForeignKey(Proposal, on_delete=models.CASCADE, related_name="+")
    first = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    second = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    first_number = models.PositiveIntegerField()
    second_number = models.PositiveIntegerField()
    score = models.FloatField()
    probability = models.FloatField()
    multiple = models.FloatField()
    doubt = models.FloatField()
    allowed = models.FloatField()
    doubt_share = models.FloatField()
    chips = models.JSONField(default=list)
    weak = models.CharField(max_length=400, blank=True)
    state = models.CharField(max_length=10, default="open")
    version = models.PositiveIntegerField(default=1)
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["first_number"]
        constraints = [
            models.UniqueConstraint(fields=["proposal", "first"], name="pair_first_once"),
            models.UniqueConstraint(fields=["proposal", "second"], name="pair_second_once"),
        ]
        indexes = [
            models.Index(fields=["proposal", "state"]),
            models.Index(fields=["proposal", "doubt_share"]),
            models.Index(fields=["proposal", "first_number"], name="pair_by_first_number"),
            models.Index(fields=["proposal", "second_number"], name="pair_by_second_number"),
        ]

    def __str__(self) -> str:
        return f"S-{self.first_number} + S-{self.second_number}"


class DecisionEvent(models.Model):
    """A decision about pairs of such a proposal."""

    proposal = models.ForeignKey(Proposal, on_delete=models.CASCADE, related_name="+")
    revision = models.PositiveIntegerField()
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    decision = models.CharField(max_length=10)
    sentence = models.CharField(max_length=300)
    before = models.JSONField()
    after = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    undone_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.sentence


class LockRule(models.Model):
    """Two students whom such a proposal had to pair."""

    proposal = models.ForeignKey(Proposal, on_delete=models.CASCADE, related_name="+")
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
