"""History of a placement: every act with the data to undo it, and every version of its rooms."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _


class ActKind(models.TextChoices):
    """Kind of act in the history of a placement."""

    MOVED = "moved", _("Moved")
    LOCKED = "locked", _("Locked or released")
    WITHDREW = "withdrew", _("Withdrew")
    RETURNED = "returned", _("Came back")
    REVIEWED = "reviewed", _("Rooms reviewed")
    TURNED = "turned", _("Waiting list reordered")
    LATE = "late", _("Late changes confirmed")
    VERSION = "version", _("Version taken into force")
    CLOSED = "closed", _("Rooms closed")
    UNDONE = "undone", _("Undone")
    DISCARDED = "discarded", _("Version discarded")
    ARRIVED = "arrived", _("Students added")
    PUBLISHED = "published", _("Published")
    UNPUBLISHED = "unpublished", _("Publication withdrawn")
    PARTED = "parted", _("Pairs kept apart")
    RULES = "rules", _("Rules of pairs changed")
    OFFERED = "offered", _("Offered bed accepted")
    DATES = "dates", _("Dates of a bed changed")


# Acts that change nothing to put back, or that only a separate act can reverse.
NOT_UNDOABLE = (ActKind.DISCARDED, ActKind.PUBLISHED, ActKind.UNPUBLISHED)


class PlacementEvent(models.Model):
    """One act with its changes: enough to undo it exactly, and to report who changed what.

    ``version`` is the placement's count of acts after this one. ``before`` and ``after`` are
    [[student number, room key or None, bed, locked, left], ...] of the students concerned; read
    backwards they are the history of each bed. ``rooms`` is [[room key, before, after], ...] of
    rooms that were accepted or held back, each side [state, accepted members or None]. ``details``
    holds the other values that undo puts back: "turns" on the waiting list, the "dates" of beds
    as [[student number, days before, days after], ...], and the "state" of the
    placement (version in force, rules, figures), each as [before, after]. "arrival" is the key of
    the late arrivals that the act added or removed. ``undoes`` is the act that this one reversed.
    """

    HEAVY = ("before", "after", "details")

    placement = models.ForeignKey(
        "housing.Placement", on_delete=models.CASCADE, related_name="events"
    )
    version = models.PositiveIntegerField(default=0)
    kind = models.CharField(max_length=12, choices=ActKind.choices, default=ActKind.MOVED)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    sentence = models.CharField(max_length=300)
    before = models.JSONField()
    after = models.JSONField()
    rooms = models.JSONField(default=list)
    details = models.JSONField(default=dict)
    undoes = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="undone_by"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    undone_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["placement", "version"])]

    def __str__(self) -> str:
        return self.sentence

    @property
    def can_be_undone(self) -> bool:
        """Return True if the act changed something that undo can put back."""
        return self.undone_at is None and self.kind not in NOT_UNDOABLE


class VersionOrigin(models.TextChoices):
    """Origin of a version: computed, or stored before it was replaced."""

    RUN = "run", _("Computed")
    SAVED = "saved", _("Saved before another version was taken into force")


class PlacementVersion(models.Model):
    """Everybody's rooms as one computation found them, or as they were before being replaced.

    A version changes nothing before somebody puts it into force; it is kept so that it can be
    restored. ``rows`` is [[student key, room key or None, bed, locked, left, uncertainty], ...];
    ``outcome`` holds the figures of :func:`webapp.housing.selectors.outcomes.outcome` and "moved",
    how many people lived elsewhere when it was stored. ``figures``, ``best_at`` and ``changes`` are
    those of the placement with these rooms. ``pairs`` are the rows of a placement of pairs, and
    ``arrays`` names the file of their marginals.
    """

    HEAVY = ("rows", "rules", "figures", "pairs")

    placement = models.ForeignKey(
        "housing.Placement", on_delete=models.CASCADE, related_name="versions"
    )
    number = models.PositiveIntegerField()
    origin = models.CharField(max_length=8, choices=VersionOrigin.choices)
    job = models.ForeignKey("jobs.Job", null=True, on_delete=models.SET_NULL, related_name="+")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    rules = models.JSONField(default=dict)
    rows = models.JSONField(default=list)
    figures = models.JSONField(default=dict)
    outcome = models.JSONField(default=dict)
    best_at = models.DateTimeField(null=True)
    changes = models.PositiveIntegerField(default=0)
    arrays = models.UUIDField(null=True)
    pairs = models.JSONField(default=list)
    used_at = models.DateTimeField(null=True)
    discarded_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["placement", "number"], name="version_number_once_per_placement"
            )
        ]

    def __str__(self) -> str:
        return f"Version {self.number}"

    @property
    def title(self) -> str:
        """The version by its number, in the language of the page."""
        return gettext("Version %(number)s") % {"number": self.number}

    @property
    def is_waiting(self) -> bool:
        """Return True if the version was computed and nobody has decided about it yet."""
        return (
            self.origin == VersionOrigin.RUN and self.used_at is None and self.discarded_at is None
        )
