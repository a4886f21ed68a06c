"""Pairs of a placement without a building list, with their figures, and their locks."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from webapp.housing.models.placement import Placement


class PairState(models.TextChoices):
    """Decision of staff about a pair."""

    OPEN = "open", _("To decide")
    ACCEPTED = "accepted", _("Accepted")
    LOCKED = "locked", _("Locked")
    SWAPPED = "swapped", _("Swapped")
    REJECTED = "rejected", _("Rejected")
    NEVER = "never", _("Never pair")


# States of pairs that stay when pairs are computed again, and of pairs that share no room.
HELD_STATES = (PairState.ACCEPTED, PairState.LOCKED, PairState.SWAPPED)
APART = (PairState.REJECTED, PairState.NEVER)


class PlacedPair(models.Model):
    """The figures of one pair, so that 5,000 pairs page quickly; rewritten with every act.

    Where students live is in their places alone: a pair shares ``room`` unless its state is
    rejected or never. ``version`` grows with every change: a decision names the version on its page
    and is refused if somebody else changed the pair. ``weak`` lists question numbers as "|3|7|".
    """

    placement = models.ForeignKey(Placement, on_delete=models.CASCADE, related_name="pairs")
    room = models.ForeignKey("housing.Room", on_delete=models.CASCADE, related_name="+")
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
            models.UniqueConstraint(fields=["placement", "first"], name="placed_first_once"),
            models.UniqueConstraint(fields=["placement", "second"], name="placed_second_once"),
            models.UniqueConstraint(fields=["placement", "room"], name="one_pair_a_room"),
        ]
        indexes = [
            # Pages count pairs by state, and sum their scores, from this index alone.
            models.Index(fields=["placement", "state", "score"], name="pairs_by_state"),
            models.Index(fields=["placement", "doubt_share"]),
            models.Index(fields=["placement", "first_number"], name="placed_by_first_number"),
            models.Index(fields=["placement", "second_number"], name="placed_by_second_number"),
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

    @property
    def shares_a_room(self) -> bool:
        """Return True if the two live together: neither rejected nor never to be paired."""
        return self.state not in APART


class PairLock(models.Model):
    """Two students who must be paired although the placement does not pair them yet."""

    placement = models.ForeignKey(Placement, on_delete=models.CASCADE, related_name="locks")
    first = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    second = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="+")
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["first__number"]
        constraints = [
            models.UniqueConstraint(fields=["placement", "first", "second"], name="pair_lock_once")
        ]

    def __str__(self) -> str:
        return f"{self.first} + {self.second}"
