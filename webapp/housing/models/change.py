"""Drafts of late changes, computed or collected by hand. Nothing moves before one is confirmed."""

from django.conf import settings
from django.db import models


class ProposedChange(models.Model):
    """A draft of a late change: the students who would get another room, applied all or none.

    A computed draft is shared by everybody who works on the placement: the moves of a new
    placement, at one price of a move. A draft by hand belongs to its ``owner`` and collects what
    that person decided about a published placement.

    ``rows`` is [[student's key, room before or None, room after or None], ...] for everybody who
    would move or get a room; ``version`` is the placement's count of acts when it was computed.
    ``curve`` is [[price, people who move, score, without a room], ...] as far as its own job has
    computed. ``pinned`` holds the numbers of students who stay, ``chosen`` the rooms (by key) that
    staff chose for somebody by number. ``outcomes`` is {"before": figures, "after": figures} of
    :func:`webapp.housing.selectors.outcomes.outcome`. Of a draft by hand only ``seats`` is used:
    {student's number: [room key or None, whether the student has withdrawn]}.
    """

    placement = models.ForeignKey(
        "housing.Placement", on_delete=models.CASCADE, related_name="proposed_changes"
    )
    is_by_hand = models.BooleanField(default=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+"
    )
    seats = models.JSONField(default=dict)
    job = models.ForeignKey("jobs.Job", null=True, on_delete=models.SET_NULL, related_name="+")
    price = models.FloatField(default=0.0)
    pinned = models.JSONField(default=list)
    chosen = models.JSONField(default=dict)
    version = models.PositiveIntegerField(default=0)
    is_ready = models.BooleanField(default=False)
    rows = models.JSONField(default=list)
    rooms = models.JSONField(default=dict)
    doubts = models.JSONField(default=dict)
    curve = models.JSONField(default=list)
    curve_job = models.ForeignKey(
        "jobs.Job", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    figures = models.JSONField(default=dict)
    outcomes = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["placement"],
                condition=models.Q(is_by_hand=False),
                name="one_computed_change_per_placement",
            ),
            models.UniqueConstraint(
                fields=["placement", "owner"],
                condition=models.Q(is_by_hand=True),
                name="one_change_by_hand_per_person",
            ),
        ]

    def __str__(self) -> str:
        return f"Changes of {self.placement}"
