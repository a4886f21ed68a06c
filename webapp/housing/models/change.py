"""Late changes that are proposed and not kept yet."""

from django.db import models


class ProposedChange(models.Model):
    """What the next placement would change, at one price of a move; kept all or none.

    ``rows`` is [[student's key, room before or None, room after or None], ...] of everybody who
    would move or get a room; ``version`` is the placement's when it was worked out, and a change
    since makes it stale. ``curve`` is [[price, people who move, score, without a room], ...] as
    far as a job of its own got. ``pinned`` holds the numbers of those who are let stay, ``chosen``
    the rooms (by key) that staff chose for somebody by number. ``outcomes`` is {"before": figures,
    "after": figures} of :func:`webapp.housing.selectors.outcomes.outcome`.
    """

    placement = models.OneToOneField(
        "housing.Placement", on_delete=models.CASCADE, related_name="change"
    )
    job = models.ForeignKey("jobs.Job", null=True, on_delete=models.SET_NULL, related_name="+")
    price = models.FloatField()
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

    def __str__(self) -> str:
        return f"Changes of {self.placement}"

    @property
    def is_stale(self) -> bool:
        """Whether somebody changed the placement since."""
        return self.is_ready and self.version != self.placement.version
