"""A placement: one cohort in the rooms of one building list, under one set of rules."""

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.common.formats import is_telling
from webapp.common.models import OrganisationOwned


class Placement(OrganisationOwned):
    """A cohort's rooms that are being decided; the scenarios of a cohort are its placements.

    ``revision`` counts its computed versions, ``best_at`` dates the certificate and ``changes``
    counts what staff changed since then; ``version`` grows with every change, so that whoever
    comes second is told. ``clashes`` names what made the last computation impossible. At most one
    placement of a cohort is published.
    """

    HEAVY = ("rules", "figures")  # lists leave these in the database

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    cohort = models.ForeignKey(
        "cohorts.Cohort", on_delete=models.CASCADE, related_name="placements"
    )
    buildings = models.ForeignKey(
        "housing.BuildingList", on_delete=models.PROTECT, related_name="placements"
    )
    model = models.ForeignKey(
        "matching.LearnedModel", on_delete=models.PROTECT, related_name="placements"
    )
    rules = models.JSONField(default=dict)
    job = models.ForeignKey(
        "jobs.Job", null=True, on_delete=models.SET_NULL, related_name="placements"
    )
    revision = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=1)
    best_at = models.DateTimeField(null=True)
    changes = models.PositiveIntegerField(default=0)
    figures = models.JSONField(default=dict)
    clashes = models.JSONField(default=list)
    published_at = models.DateTimeField(null=True)
    published_by = models.CharField(max_length=150, blank=True)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-updated_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["cohort"],
                condition=models.Q(published_at__isnull=False),
                name="published_once_per_cohort",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_computed(self) -> bool:
        """Whether there are rooms to decide."""
        return self.revision > 0

    @property
    def is_near_best(self) -> bool:
        """Whether its certificate says how near the best it is."""
        return is_telling(self.figures.get("relative_gap"))

    @property
    def is_published(self) -> bool:
        """Whether it is the one that students get."""
        return self.published_at is not None

    @property
    def is_running(self) -> bool:
        """Whether its rooms are being computed now."""
        return self.job is not None and self.job.is_active


class Place(models.Model):
    """Where one student of a placement lives: a bed of a room, or nowhere yet.

    The database itself keeps everybody in one bed and every bed with one student. ``has_left``
    marks who withdrew after the students were placed. ``doubt`` is how many roommates are as good
    as equally likely over how many there could be (0 to 1), by the pair model; None alone.
    ``turn`` orders those who wait for a bed, smallest first, then by number.
    """

    placement = models.ForeignKey(Placement, on_delete=models.CASCADE, related_name="places")
    student = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="places")
    number = models.PositiveIntegerField()
    room = models.ForeignKey(
        "housing.Room", null=True, on_delete=models.RESTRICT, related_name="places"
    )
    bed = models.PositiveSmallIntegerField(null=True)
    is_locked = models.BooleanField(default=False)
    has_left = models.BooleanField(default=False)
    score = models.FloatField(null=True)
    doubt = models.FloatField(null=True)
    turn = models.IntegerField(default=0)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["placement", "student"], name="placed_once"),
            models.UniqueConstraint(fields=["placement", "room", "bed"], name="bed_taken_once"),
            models.CheckConstraint(
                condition=models.Q(room__isnull=True, bed__isnull=True)
                | models.Q(room__isnull=False, bed__isnull=False, has_left=False),
                name="a_bed_has_a_room",
            ),
        ]
        indexes = [models.Index(fields=["placement", "room"])]

    def __str__(self) -> str:
        return f"{self.label} in {self.room or 'no room'}"

    @property
    def label(self) -> str:
        """The student's id on screen."""
        return f"S-{self.number}"


class AcceptedRoom(models.Model):
    """A room that staff looked at and found good, with the people who lived there then.

    It counts for exactly these people: when one of them moves, the room is undecided again, and
    when the move is undone it is accepted again. ``members`` are numbers in rising order.
    """

    placement = models.ForeignKey(
        Placement, on_delete=models.CASCADE, related_name="accepted_rooms"
    )
    room = models.ForeignKey("housing.Room", on_delete=models.CASCADE, related_name="+")
    members = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["placement", "room"], name="room_accepted_once")
        ]

    def __str__(self) -> str:
        return f"{self.room} accepted"


class PlacementEvent(models.Model):
    """One change by staff with the places before and after it: enough to undo it exactly.

    ``before`` and ``after`` are [[student number, room key or None, bed, locked, left], ...]; read
    backwards they are the history of each bed. ``rooms`` is [[room key, before, after], ...] of
    rooms that were accepted or kept back, each side [state, accepted members or None].
    """

    placement = models.ForeignKey(Placement, on_delete=models.CASCADE, related_name="events")
    revision = models.PositiveIntegerField()
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    sentence = models.CharField(max_length=300)
    before = models.JSONField()
    after = models.JSONField()
    rooms = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    undone_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.sentence
