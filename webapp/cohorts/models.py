"""Cohorts, their students and the pairs of past years.

Answers are kept as level numbers per student inside the database, so that an import is one
transaction: either every student is there or none.
"""

import uuid

from django.db import models
from django.utils import timezone

from webapp.common.models import OrganisationOwned

FIRST_NUMBER = 1001


class PairsOrigin(models.TextChoices):
    """Where the pairs of a cohort come from; simulated ones are labelled wherever they appear."""

    NONE = "none", "No pairs"
    IMPORTED = "imported", "Chosen by the students"
    SIMULATED = "simulated", "Simulated for practice"


class Cohort(OrganisationOwned):
    """The students of one year with their answers.

    ``questions`` is [{"name", "kind", "levels"}]; a student's answers are positions in ``levels``
    or -1 for a blank. ``constraints`` names the columns that a "same" rule can use. Students and
    questions never change once they are imported: what is read of them may be kept by the key.
    """

    HEAVY = ("questions",)

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    filename = models.CharField(max_length=200, blank=True)
    questions = models.JSONField()
    constraints = models.JSONField(default=list)
    n_students = models.PositiveIntegerField()
    n_pairs = models.PositiveIntegerField(default=0)
    ids_made = models.BooleanField(default=False)
    pairs_origin = models.CharField(
        max_length=10, choices=PairsOrigin.choices, default=PairsOrigin.NONE
    )
    pairs_note = models.CharField(max_length=300, blank=True)
    half_of = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="halves"
    )
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-updated_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="cohort_name_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_pairs(self) -> bool:
        """Whether the cohort can be learned from."""
        return self.n_pairs > 0

    @property
    def is_simulated(self) -> bool:
        """Whether its pairs were simulated and say nothing about real choices."""
        return self.pairs_origin == PairsOrigin.SIMULATED


class Draft(OrganisationOwned):
    """An upload that is being checked. Nothing of it is a cohort until it is imported.

    A draft with a ``cohort`` holds past pairs of it, one without holds a new cohort. ``choices`` is
    what :class:`webapp.cohorts.tables.choices.Choices` writes as JSON, or {"columns": [i, j]} for
    pairs; the rows lie in a private file, normalised once when the upload was read. Both go when
    the draft is imported or discarded, or after ``KEPT_DAYS``.
    """

    KEPT_DAYS = 14
    HEAVY = ("choices",)

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cohort = models.ForeignKey(
        "cohorts.Cohort", null=True, on_delete=models.CASCADE, related_name="drafts"
    )
    filename = models.CharField(max_length=200)
    n_rows = models.PositiveIntegerField()
    n_columns = models.PositiveIntegerField()
    read_as = models.CharField(max_length=60)
    choices = models.JSONField()
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.filename


class Student(models.Model):
    """One student. ``number`` is what the screen shows (S-1001); ``original_id`` only an export."""

    HEAVY = ("answers", "attributes")

    cohort = models.ForeignKey(Cohort, on_delete=models.CASCADE, related_name="students")
    number = models.PositiveIntegerField()
    original_id = models.CharField(max_length=1000)
    answers = models.JSONField()
    attributes = models.JSONField(default=dict)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["cohort", "number"], name="student_number_once"),
            models.UniqueConstraint(fields=["cohort", "original_id"], name="student_id_once"),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """The pseudonymous id shown on screen."""
        return f"S-{self.number}"


class PastPair(models.Model):
    """Two students of one cohort who shared a room; each student is in at most one such pair."""

    cohort = models.ForeignKey(Cohort, on_delete=models.CASCADE, related_name="past_pairs")
    first = models.OneToOneField(Student, on_delete=models.CASCADE, related_name="pair_as_first")
    second = models.OneToOneField(Student, on_delete=models.CASCADE, related_name="pair_as_second")

    class Meta:
        ordering = ["first__number"]

    def __str__(self) -> str:
        return f"{self.first} + {self.second}"
