"""A placement: one cohort in the rooms of one building list, under one set of rules."""

import uuid
from pathlib import Path
from typing import Self
from uuid import UUID

from django.db import models
from django.db.models import Count
from django.utils import timezone

from webapp.common.formats import is_telling
from webapp.common.models import OrganisationOwned
from webapp.files.storage import array_path


class Placement(OrganisationOwned):
    """A placement: a cohort's rooms under decision. The scenarios of a cohort are its placements.

    ``version`` counts the acts: each entry of the history carries the count that it led to, so that
    a decision can name what it saw. ``current`` is the computed or restored version in force
    (:class:`webapp.housing.models.PlacementVersion`), ``revision`` how many computed ones were put
    into force, ``best_at`` the time of its certificate, and ``changes`` how many acts have moved
    somebody since. ``rules`` are those of the rooms in force. ``clashes`` lists the contradictions
    that made the last computation impossible. ``term`` says from when to when the beds are given,
    if staff chose a term. A cohort may have a published placement for each term, and no student a
    bed in two of them on the same day (:mod:`webapp.housing.services.publication`).

    ``is_pairs`` marks a placement in pairs without a building list: each pair is a room of two in a
    private list (:class:`webapp.housing.models.PlacedPair`). ``arrays`` names the file of their
    marginals. ``n_people`` and ``n_placed`` (students present, and those with a bed), and of pairs
    ``n_pairs`` and ``n_open`` (undecided ones), are stored for lists.
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
    term = models.ForeignKey(
        "housing.Term", null=True, blank=True, on_delete=models.RESTRICT, related_name="placements"
    )
    rules = models.JSONField(default=dict)
    job = models.ForeignKey(
        "jobs.Job", null=True, on_delete=models.SET_NULL, related_name="placements"
    )
    revision = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=1)
    current = models.ForeignKey(
        "housing.PlacementVersion", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    best_at = models.DateTimeField(null=True)
    changes = models.PositiveIntegerField(default=0)
    figures = models.JSONField(default=dict)
    clashes = models.JSONField(default=list)
    published_at = models.DateTimeField(null=True)
    published_by = models.CharField(max_length=150, blank=True)
    updated_at = models.DateTimeField(default=timezone.now)
    is_pairs = models.BooleanField(default=False, db_default=False)
    arrays = models.UUIDField(null=True)
    n_pairs = models.PositiveIntegerField(default=0, db_default=0)
    n_open = models.PositiveIntegerField(default=0, db_default=0)
    n_people = models.PositiveIntegerField(default=0, db_default=0)
    n_placed = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        ordering = ["-updated_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["cohort", "term"],
                condition=models.Q(published_at__isnull=False),
                name="published_once_per_cohort_and_term",
            ),
            models.UniqueConstraint(
                fields=["cohort"],
                condition=models.Q(published_at__isnull=False, term__isnull=True),
                name="published_once_per_cohort_without_term",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_computed(self) -> bool:
        """Return True if there are rooms to decide about."""
        return self.revision > 0

    @property
    def is_near_best(self) -> bool:
        """Return True if the certificate proves a bound on the distance from the best placement."""
        return is_telling(self.figures.get("relative_gap"))

    @property
    def is_published(self) -> bool:
        """Return True if this is the placement that students get."""
        return self.published_at is not None

    @property
    def is_running(self) -> bool:
        """Return True if its rooms are being computed now."""
        return self.job is not None and self.job.is_active

    @property
    def n_decided(self) -> int:
        """Number of pairs that are decided."""
        return self.n_pairs - self.n_open

    @property
    def same(self) -> list[str]:
        """The columns in which roommates agree."""
        return list(self.rules.get("same", ()))

    @property
    def singles(self) -> list[int]:
        """The numbers of students who stay without a roommate, in a placement of pairs."""
        return list(self.rules.get("singles", ()))

    def count_people(self) -> None:
        """Count the students present and those with a bed; the caller saves both numbers."""
        counts = self.places.present().aggregate(people=Count("pk"), placed=Count("room"))
        self.n_people, self.n_placed = counts["people"], counts["placed"]

    def files_of(self, arrays: UUID) -> tuple[Path, Path]:
        """Return the paths of a computation's small arrays (npz) and of its marginals (npy).

        The marginals of pairs are (n, n) float32, read by memory mapping.
        """
        return (
            array_path(self.organisation_id, "proposals", arrays),
            array_path(self.organisation_id, "proposals", arrays, ".npy"),
        )

    @property
    def same_term(self) -> models.Q:
        """Filter of the placements that this one replaces when it is published."""
        term = models.Q(term=self.term_id) if self.term_id else models.Q(term__isnull=True)
        return models.Q(cohort=self.cohort_id) & term

    @property
    def replaced(self) -> "Placement | None":
        """The published placement of the cohort for the same term, other than this one."""
        found = Placement.objects.filter(self.same_term, published_at__isnull=False)
        return found.exclude(pk=self.pk).first()


# The words of the query and of its index must agree, or the database does not use the index.
HAS_OWN_DAYS = models.Q(arrives_on__isnull=False) | models.Q(leaves_on__isnull=False)


class PlaceQuerySet(models.QuerySet["Place"]):
    """Query set of places, read by letters, reports, students and the API as well."""

    def with_bed(self) -> Self:
        """Return the places of students who have a bed."""
        return self.filter(room__isnull=False)

    def present(self) -> Self:
        """Return the places of students who did not withdraw."""
        return self.filter(has_left=False)

    def dated(self) -> Self:
        """Return the places of students who have dates of their own, other than the term's."""
        return self.filter(HAS_OWN_DAYS)

    def without_bed(self) -> Self:
        """Return the places of students who wait for a bed."""
        return self.present().filter(room__isnull=True)


class Place(models.Model):
    """The place of one student in a placement: a bed of a room, or none yet.

    ``arrives_on`` and ``leaves_on`` are the first and the last day of the bed, for a student whose
    days differ from those of the term; None is the day of the term. Students whose days do not
    overlap may have the same bed, one after the other.

    The database enforces one bed per student, and one student per bed among those who arrive on the
    same day; :class:`webapp.housing.services.seats.Seating` refuses beds on the same days.
    ``has_left`` marks a student who withdrew after the students were placed. ``doubt`` is the
    uncertainty (0 to 1) by the pair model: about equally likely roommates over possible roommates;
    None alone. ``turn`` orders students who wait for a bed, smallest first; it is 0 for students
    whom staff did not move by hand, whom the rule of the waiting list orders. ``added_at`` is when
    the student joined the placement.
    """

    placement = models.ForeignKey(Placement, on_delete=models.CASCADE, related_name="places")
    student = models.ForeignKey("cohorts.Student", on_delete=models.CASCADE, related_name="places")
    number = models.PositiveIntegerField()
    room = models.ForeignKey(
        "housing.Room", null=True, on_delete=models.RESTRICT, related_name="places"
    )
    bed = models.PositiveSmallIntegerField(null=True)
    arrives_on = models.DateField(null=True, blank=True)
    leaves_on = models.DateField(null=True, blank=True)
    is_locked = models.BooleanField(default=False)
    has_left = models.BooleanField(default=False)
    score = models.FloatField(null=True)
    doubt = models.FloatField(null=True)
    turn = models.IntegerField(default=0)
    added_at = models.DateTimeField(default=timezone.now)

    objects = PlaceQuerySet.as_manager()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["placement", "student"], name="placed_once"),
            models.UniqueConstraint(
                fields=["placement", "room", "bed"],
                condition=models.Q(arrives_on__isnull=True),
                name="bed_taken_once",
            ),
            models.UniqueConstraint(
                fields=["placement", "room", "bed", "arrives_on"],
                name="bed_taken_once_from_a_day",
            ),
            models.CheckConstraint(
                condition=models.Q(arrives_on__isnull=True)
                | models.Q(leaves_on__isnull=True)
                | models.Q(arrives_on__lte=models.F("leaves_on")),
                name="a_student_arrives_before_leaving",
            ),
            models.CheckConstraint(
                condition=models.Q(room__isnull=True, bed__isnull=True)
                | models.Q(room__isnull=False, bed__isnull=False, has_left=False),
                name="a_bed_has_a_room",
            ),
        ]
        indexes = [
            # Lists count people and beds of every placement from this index alone.
            models.Index(fields=["placement", "has_left", "room"], name="people_and_beds"),
            # Pages of a placement ask for the few students who left or have days of their own.
            models.Index(
                fields=["placement"], condition=models.Q(has_left=True), name="people_who_left"
            ),
            models.Index(fields=["placement"], condition=HAS_OWN_DAYS, name="people_with_own_days"),
        ]

    def __str__(self) -> str:
        return f"{self.label} in {self.room or 'no room'}"

    @property
    def label(self) -> str:
        """The student's id on screen."""
        return f"S-{self.number}"


class AcceptedRoom(models.Model):
    """A room that staff accepted, with the people who lived there then.

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
