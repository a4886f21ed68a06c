"""Cohorts, their students and the pairs of past years.

Answers are stored as level numbers per student in the database, so that an import is one
transaction: all students or none.
"""

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from webapp.common import formats
from webapp.common.models import OrganisationOwned
from webapp.encryption.fields import SealedJSONField, SealedKeyField, SealedTextField

MAX_ID = 1000  # letters of a student's own id
MAX_NAME = 200
MAX_PRONOUNS = 60


class PairsOrigin(models.TextChoices):
    """Origin of the pairs of a cohort; simulated pairs are labelled wherever they appear."""

    NONE = "none", _("No pairs")
    IMPORTED = "imported", _("Chosen by the students")
    SIMULATED = "simulated", _("Simulated for practice")


class Cohort(OrganisationOwned):
    """The students of one year with their answers.

    ``questions`` is [{"name", "kind", "levels"}], with the "wording" if it says more than the name;
    a student's answers are positions in ``levels`` or -1 for a blank. ``constraints`` names the
    columns that rules can use; ``needs`` those of them that name needs for a room, which placements
    count and in which roommates may differ. Questions and answers never change once they are
    imported. Late arrivals are only added, with numbers after all others, and a file of needs
    replaces its column. ``revision`` counts both, so that students can be cached by key and
    revision.
    """

    HEAVY = ("questions",)

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    filename = models.CharField(max_length=200, blank=True)
    questions = models.JSONField()
    constraints = models.JSONField(default=list)
    needs = models.JSONField(default=list)
    n_students = models.PositiveIntegerField()
    revision = models.PositiveIntegerField(default=0)
    # Pairs of students who shared a room: a past pair counts as one, a room of three as three.
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

    progress: Any  # of its placements; lists set it

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
        """Return True if the cohort has known roommates to learn from."""
        return self.n_pairs > 0

    @property
    def same_columns(self) -> list[str]:
        """The columns that a "same" rule can use: all but needs."""
        return [name for name in self.constraints if name not in self.needs]

    @property
    def is_simulated(self) -> bool:
        """Return True if the pairs were simulated and say nothing about real choices."""
        return self.pairs_origin == PairsOrigin.SIMULATED


class Recipe(OrganisationOwned):
    """Recipe for reading a form, so that next year's file of the form is read the same way.

    ``form`` identifies the form: a digest of its column names. ``content`` is the output of
    :func:`engine.tabular.recipes.recipe_of`: columns and choices, no answers.
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


_draft_pages: dict[str, str] = {}


def register_draft_page(purpose: str, view: str) -> None:
    """Register the page of drafts for objects of another application, by the name of its view.

    The address takes the key of the object and the key of the draft.
    """
    _draft_pages[purpose] = view


class Draft(OrganisationOwned):
    """An upload that is being checked, and is not a cohort until it is imported.

    A draft with a ``cohort`` holds its past pairs or, with a ``purpose``, another file about its
    students (:mod:`webapp.cohorts.student_files`). A draft with the key of an object of another
    application in ``about`` is a file for that object; the application registers the page of its
    ``purpose``. A draft with neither holds a new cohort. ``choices`` is the JSON of
    :class:`engine.tabular.choices.Choices`, or of
    :class:`engine.tabular.pair_choices.PairChoices` for pairs; the rows are in a private file. Both
    are deleted when the draft is imported or discarded, or after ``KEPT_DAYS``. ``recipe`` is an
    earlier reading of this form, if there is one. ``undo`` holds the last changes of ``choices`` as
    :mod:`engine.tabular.undo` writes them. ``file_key`` is the private file's encryption key,
    itself encrypted: a new key of the installation only encrypts this key again, and without the
    row no copy of the file can be read. Older files have none.
    """

    KEPT_DAYS = 14
    HEAVY = ("choices", "undo")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cohort = models.ForeignKey(
        "cohorts.Cohort", null=True, on_delete=models.CASCADE, related_name="drafts"
    )
    about = models.UUIDField(null=True, db_index=True)
    purpose = models.CharField(max_length=20, blank=True, default="")
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

    @property
    def own_cohort(self) -> "Cohort":
        """Cohort of a draft of pairs or of another file about its students."""
        if self.cohort is None:
            raise Cohort.DoesNotExist("This draft holds a new cohort.")
        return self.cohort

    def get_absolute_url(self) -> str:
        """Return the page on which the upload is checked."""
        if self.about is not None:
            return reverse(_draft_pages[self.purpose], args=[self.about, self.pk])
        if self.cohort_id is None:
            return reverse("cohorts:draft", args=[self.pk])
        page = "cohorts:student-file" if self.purpose else "cohorts:pairs-draft"
        return reverse(page, args=[self.cohort_id, self.pk])


class PastRoom(models.Model):
    """A room in which students of one cohort lived together, of any size.

    A cohort with known rooms was imported as a roster; rooms of two are also its past pairs.
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
    """One student. ``number`` is shown on screen (S-1001) and unique within the organisation.

    ``original_id`` is the number or e-mail that a file identifies the student by. It, the names,
    the pronouns and the e-mail are encrypted where a key is set, and shown as
    :mod:`webapp.cohorts.naming` says. Halves of a cohort hold the same students, with their
    numbers.
    """

    HEAVY = ("answers", "attributes")

    cohort = models.ForeignKey(Cohort, on_delete=models.CASCADE, related_name="students")
    number = models.PositiveIntegerField()
    original_id = SealedKeyField(max_length=MAX_ID)
    email = SealedTextField(max_length=254, blank=True)
    name = SealedTextField(max_length=MAX_NAME, blank=True)
    preferred = SealedTextField(max_length=MAX_NAME, blank=True)
    pronouns = SealedTextField(max_length=MAX_PRONOUNS, blank=True)
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


class LateArrivals(models.Model):
    """Students whom one act added to a cohort after its import, so that the act can be undone.

    Their numbers follow each other and are never given again. ``digests`` maps each number to the
    digest of the student's rules and needs then. ``brought`` lists the keys of other objects that
    came with them: "requests" and "participants".
    """

    HEAVY = ("digests", "brought")

    cohort = models.ForeignKey(Cohort, on_delete=models.CASCADE, related_name="late_arrivals")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    source = models.CharField(max_length=200)
    first_number = models.PositiveIntegerField()
    last_number = models.PositiveIntegerField()
    digests = models.JSONField(default=dict)
    brought = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    undone_at = models.DateTimeField(null=True)
    undone_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.labels

    @property
    def n_students(self) -> int:
        """Number of students who were added."""
        return self.last_number - self.first_number + 1

    @property
    def labels(self) -> str:
        """The students' ids on screen, such as "S-1033 to S-1035"."""
        first, last = f"S-{self.first_number}", f"S-{self.last_number}"
        return first if first == last else formats.span(first, last)

    @property
    def students(self) -> models.QuerySet[Student]:
        """The students, while they are in the cohort."""
        span = (self.first_number, self.last_number)
        return self.cohort.students.filter(number__range=span)


class PastPair(models.Model):
    """Two students of one cohort who shared a room; each student is in at most one such pair."""

    cohort = models.ForeignKey(Cohort, on_delete=models.CASCADE, related_name="past_pairs")
    first = models.OneToOneField(Student, on_delete=models.CASCADE, related_name="pair_as_first")
    second = models.OneToOneField(Student, on_delete=models.CASCADE, related_name="pair_as_second")

    class Meta:
        ordering = ["first__number"]

    def __str__(self) -> str:
        return f"{self.first} + {self.second}"
