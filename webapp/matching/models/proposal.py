"""Proposals: one pairing of a cohort under a model and rules, with its pairs."""

import uuid
from pathlib import Path
from uuid import UUID

from django.db import models
from django.utils import timezone

from webapp.common.models import OrganisationOwned
from webapp.files.storage import array_path


class Proposal(OrganisationOwned):
    """One pairing of a cohort for staff to decide.

    ``revision`` counts its computed versions; each has its own file of marginals, so a page
    that was loaded earlier never reads the numbers of another version. ``best_at`` is the time
    of the certificate and ``changes`` counts decisions since then. ``n_pairs`` and ``n_open``
    (undecided pairs) are stored for lists, which would otherwise count 100,000s of rows.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    cohort = models.ForeignKey("cohorts.Cohort", on_delete=models.CASCADE, related_name="proposals")
    model = models.ForeignKey(
        "matching.LearnedModel", on_delete=models.PROTECT, related_name="proposals"
    )
    job = models.ForeignKey(
        "jobs.Job", null=True, on_delete=models.SET_NULL, related_name="proposals"
    )
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

    @property
    def is_computed(self) -> bool:
        """Return True if there are pairs to decide."""
        return self.revision > 0

    @property
    def n_decided(self) -> int:
        """Number of pairs that are decided."""
        return self.n_pairs - self.n_open

    def files_of(self, arrays: UUID) -> tuple[Path, Path]:
        """Return the paths of a computation's small arrays (npz) and of its marginals (npy).

        The marginals are (n, n) float32, read by memory mapping.
        """
        return (
            array_path(self.organisation_id, "proposals", arrays),
            array_path(self.organisation_id, "proposals", arrays, ".npy"),
        )


class PairState(models.TextChoices):
    """Decision of staff about a pair."""

    OPEN = "open", "To decide"
    ACCEPTED = "accepted", "Accepted"
    LOCKED = "locked", "Locked"
    SWAPPED = "swapped", "Swapped"
    REJECTED = "rejected", "Rejected"
    NEVER = "never", "Never pair"


class ProposedPair(models.Model):
    """One pair with everything that its table row shows, so that 1,200 pairs page quickly.

    ``version`` grows with every change: a decision names the version on its page and is refused if
    somebody else changed the pair. ``strong`` and ``weak`` list question numbers as "|3|7|".
    """

    proposal = models.ForeignKey(Proposal, on_delete=models.CASCADE, related_name="pairs")
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
    state = models.CharField(max_length=10, choices=PairState.choices, default=PairState.OPEN)
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
        return self.label

    @property
    def label(self) -> str:
        """Both students as the screen shows them."""
        return f"S-{self.first_number} + S-{self.second_number}"

    @property
    def is_open(self) -> bool:
        """Return True if the pair is undecided."""
        return self.state == PairState.OPEN
