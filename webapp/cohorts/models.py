"""Cohorts, their students and the pairs of past years.

Answers are kept as level numbers per student inside the database, so that an import is one
transaction: either every student is there or none.
"""

import uuid
from typing import Any

from django.db import models
from django.utils import timezone

from webapp.common.encryption import SealedJSONField
from webapp.common.models import OrganisationOwned

FIRST_NUMBER = 1001


class PairsOrigin(models.TextChoices):
    """Where the pairs of a cohort come from; simulated ones are labelled wherever they appear."""

    NONE = "none", "No pairs"
    IMPORTED = "imported", "Chosen by the students"
    SIMULATED = "simulated", "Simulated for practice"


class Cohort(OrganisationOwned):
    """The students of one year with their answers.

    ``questions`` is [{"name", "kind", "levels"}], with the "wording" where it says more than the
    name; a student's answers are positions in ``levels`` or -1 for a blank. ``constraints`` names
    the columns that a "same" rule can use. Questions and answers never change once they are
    imported; latecomers are only ever added, with numbers behind all others, and a file of needs
    replaces their column. ``revision`` counts both, so that what is read of the students may be
    kept by the key and the revision.
    """

    HEAVY = ("questions",)

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    filename = models.CharField(max_length=200, blank=True)
    questions = models.JSONField()
    constraints = models.JSONField(default=list)
    n_students = models.PositiveIntegerField()
    revision = models.PositiveIntegerField(default=0)
    # Students who shared a room, two and two: a past pair counts one, a room of three three.
    n_pairs = models.PositiveIntegerField(default=0)
    n_rooms = models.PositiveIntegerField(default=0)
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


class Recipe(OrganisationOwned):
    """How a form was read the last time, so that next year's file of it is read the same way.

    ``form`` tells forms apart: a digest of what their columns are called. ``content`` is what
    :func:`webapp.cohorts.tables.recipes.recipe_of` writes: columns and choices, no answers of
    anybody.
    """

    form = models.CharField(max_length=64)
    cohort_name = models.CharField(max_length=120)
    content = models.JSONField()
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-updated_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "form"], name="recipe_once_per_form_and_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.cohort_name


class Draft(OrganisationOwned):
    """An upload that is being checked. Nothing of it is a cohort until it is imported.

    A draft with a ``cohort`` holds past pairs of it, one without holds a new cohort. ``choices`` is
    what :class:`webapp.cohorts.tables.choices.Choices` writes as JSON, or what
    :class:`webapp.cohorts.tables.pair_choices.PairChoices` writes for pairs; the rows lie in a
    private file. Both go when the draft is imported or discarded, or after ``KEPT_DAYS``.
    ``recipe`` is how a file of this form was read before, where there was one. ``undo`` holds the
    last changes of ``choices`` as :mod:`webapp.cohorts.tables.steps_back` writes them. ``file_key``
    is what the private file is encrypted with, itself sealed: a new key of the installation is put
    around it without a second content of the file, and who removes the row makes every copy of the
    file worthless. Files of before have none.
    """

    KEPT_DAYS = 14
    HEAVY = ("choices", "undo")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cohort = models.ForeignKey(
        "cohorts.Cohort", null=True, on_delete=models.CASCADE, related_name="drafts"
    )
    filename = models.CharField(max_length=200)
    n_rows = models.PositiveIntegerField()
    n_columns = models.PositiveIntegerField()
    read_as = models.CharField(max_length=60)
    choices: Any = SealedJSONField()
    undo: Any = SealedJSONField(default=list)
    file_key: Any = SealedJSONField(null=True)
    recipe = models.ForeignKey(Recipe, null=True, on_delete=models.SET_NULL, related_name="drafts")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.filename


class PastRoom(models.Model):
    """A room in which students of one cohort lived together, of any size.

    A cohort whose rooms are known was given as a roster; rooms of two are its past pairs as well.
    """

    cohort = models.ForeignKey(Cohort, on_delete=models.CASCADE, related_name="past_rooms")
    name = models.CharField(max_length=200)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["cohort", "name"], name="past_room_name_once")
        ]

    def __str__(self) -> str:
        return self.name


class Student(models.Model):
    """One student. ``number`` is what the screen shows (S-1001); ``original_id`` only an export.

    ``email`` and ``name`` are kept only where staff chose a column for them: to match people of
    other files. They are never shown beside answers.
    """

    HEAVY = ("answers", "attributes")

    cohort = models.ForeignKey(Cohort, on_delete=models.CASCADE, related_name="students")
    number = models.PositiveIntegerField()
    original_id = models.CharField(max_length=1000)
    email = models.CharField(max_length=254, blank=True)
    name = models.CharField(max_length=200, blank=True)
    answers = SealedJSONField()
    attributes = models.JSONField(default=dict)
    past_room = models.ForeignKey(
        PastRoom, null=True, on_delete=models.SET_NULL, related_name="residents"
    )

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
