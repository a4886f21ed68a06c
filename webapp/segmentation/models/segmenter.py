"""Models that segment images."""

import uuid
from pathlib import Path

from django.db import models
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from webapp.common.models import OrganisationOwned
from webapp.files.storage import array_path
from webapp.segmentation.models.image_set import ImageSet


class Segmenter(OrganisationOwned):
    """Settings and outcome of learning one segmentation model.

    ``learned_digests`` and ``held_out_digests`` name the images actually used, so that a prediction
    can state whether an image was used for training. ``outcome`` is empty until learning has ended.
    ``classes`` are those of its image set, or background, object and edge of a model that learns
    edges; empty for a model of foreground and background.
    """

    HEAVY = ("learned_digests", "held_out_digests")

    class Solver(models.TextChoices):
        AUTO = "auto", _("Smoothed trees: whatever makes the fewest errors")
        NETWORK = "network", _("Network, then smoothed trees: most accurate, slow without a card")
        CERTIFIED = "certified", _("Smoothed trees, weights with a certificate")
        THETA = "theta", _("Linear: weights first")
        BLOCK = "block-coordinate", _("Linear: one image at a time")
        BATCH = "frank-wolfe", _("Linear: all images at each step")
        PAINTED = "painted", _("From strokes painted here")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    foreground = models.CharField(max_length=40, default="object")
    image_sets = models.ManyToManyField(ImageSet, related_name="segmenters")
    job = models.OneToOneField(
        "jobs.Job", null=True, on_delete=models.SET_NULL, related_name="segmenter"
    )
    restraint = models.FloatField(default=1.0, help_text="multiple of the usual lambda")
    rho = models.FloatField(default=0.5)
    solver = models.CharField(max_length=20, choices=Solver, default=Solver.AUTO)
    max_side = models.PositiveIntegerField(default=200, help_text="pixels")
    max_seconds = models.PositiveIntegerField(default=300, help_text="seconds")
    relative_gap = models.FloatField(default=1e-3)
    holdout_percent = models.PositiveIntegerField(default=20)
    learned_digests = models.JSONField(default=list)
    held_out_digests = models.JSONField(default=list)
    outcome = models.JSONField(default=dict)
    classes = models.JSONField(default=list, blank=True)
    imported_from = models.CharField(max_length=200, blank=True)

    last_error: float | None  # on held-out images; lists set it

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("segmentation:segmenter", args=[self.pk])

    @property
    def path(self) -> Path:
        """Path of the learned weights."""
        return array_path(self.organisation_id, "segmenters", self.pk)

    @property
    def grows_trees(self) -> bool:
        """Return True if boosted trees classify the pixels, False for linear weights."""
        return self.solver in {self.Solver.AUTO, self.Solver.NETWORK, self.Solver.CERTIFIED}

    @property
    def learns_edges(self) -> bool:
        """Return True if it learns objects and their edges, from masks."""
        return bool(self.classes) and self.solver != self.Solver.PAINTED and not self.imported_from

    @property
    def is_ready(self) -> bool:
        """Return True if the model can predict."""
        return bool(self.outcome)

    @property
    def held_out_error(self) -> float | None:
        """Share of wrong pixels on held-out images, at full size or at the size of the models."""
        checked = self.outcome.get("checked", {}).get("error", {}).get("mean")
        if checked is not None:
            return float(checked)
        points = list(self.held_out.all())
        return float(points[-1].error) if points else None

    def preview_path(self, number: int) -> Path:
        """Return the path of the current marginals of held-out image ``number`` (0 or 1), a PNG."""
        suffix = f"-preview-{int(number)}.png"
        return array_path(self.organisation_id, "segmenters", self.pk, suffix)


class HeldOutPoint(models.Model):
    """The error on the held-out images at one time during learning."""

    segmenter = models.ForeignKey(Segmenter, on_delete=models.CASCADE, related_name="held_out")
    iteration = models.PositiveIntegerField()
    seconds = models.FloatField()
    error = models.FloatField(help_text="share of wrong pixels, most likely label of each pixel")

    last_error: float | None  # on held-out images; lists set it

    class Meta:
        ordering = ["iteration"]
        constraints = [
            models.UniqueConstraint(
                fields=["segmenter", "iteration"], name="one_held_out_point_per_iteration"
            )
        ]

    def __str__(self) -> str:
        return f"{self.segmenter_id} at {self.iteration}"
