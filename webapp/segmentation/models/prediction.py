"""Predictions: masks and probabilities that a model gives to the images of a set."""

import uuid
from pathlib import Path
from typing import Self

from django.db import models
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.datasets.calibration import PixelSize
from engine.datasets.picture_view import PictureView
from webapp.common.models import OrganisationOwned, Removable
from webapp.files.storage import array_path
from webapp.segmentation.models.image_set import ImageFile, ImageSet
from webapp.segmentation.models.segmenter import Segmenter


class PredictionBatch(Removable, OrganisationOwned):
    """One prediction of one set by one model."""

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)

    class Readout(models.TextChoices):
        MARGINAL = "marginal", gettext_lazy("The likelier side of each pixel")
        MAP = "map", gettext_lazy("The best single labelling of the whole image (MAP)")

    name = models.CharField(max_length=120)
    readout = models.CharField(max_length=8, choices=Readout, default=Readout.MARGINAL)
    segmenter = models.ForeignKey(
        Segmenter,
        null=True,  # once removed with this batch, while rows and files are still being deleted
        on_delete=models.CASCADE,
        related_name="batches",
    )
    image_set = models.ForeignKey(ImageSet, on_delete=models.CASCADE, related_name="batches")
    job = models.OneToOneField(
        "jobs.Job", null=True, on_delete=models.SET_NULL, related_name="prediction_batch"
    )
    n_unlisted = models.PositiveIntegerField(
        default=0, help_text="images of the set that have no row in the batch yet"
    )

    object_options = models.JSONField(
        default=dict, help_text="what counts as an object; empty in earlier predictions"
    )

    # Set by count_images().
    n_listed: int
    n_done: int
    n_refused: int
    n_known: int
    mean_iou: float | None
    learned_iou: float | None
    mean_error: float | None
    mean_log_loss: float | None

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name

    @property
    def model(self) -> Segmenter:
        """Model that predicts; every batch has one until it is removed."""
        if self.segmenter is None:
            raise Segmenter.DoesNotExist(_("The model of this prediction was removed."))
        return self.segmenter

    def get_absolute_url(self) -> str:
        return reverse("segmentation:prediction", args=[self.pk])

    @property
    def n_images(self) -> int:
        """Number of all images of a batch from a list, which has counted those with rows."""
        return self.n_listed + self.n_unlisted


class PredictedImageQuerySet(models.QuerySet["PredictedImage"]):
    """Query set of the images of predictions."""

    def waiting(self) -> Self:
        """Return the images that are still to be predicted."""
        return self.filter(state=PredictedImage.State.WAITING)

    def done(self) -> Self:
        """Return the images that were predicted."""
        return self.filter(state=PredictedImage.State.DONE)


class PredictedImage(models.Model):
    """Prediction of one image, and its accuracy if a mask is known.

    The digests are those of the predicted and the compared file, even if the set changes later.
    Figures are None without a known mask (for classes: without labels painted on the image
    when it was predicted; its IoU is the mean over the classes that occur). Errors and shares are
    fractions of pixels, log loss is in nats and entropy in bits per pixel.
    """

    HEAVY = ("reliability", "confusion")

    class State(models.TextChoices):
        WAITING = "waiting", gettext_lazy("Waiting")
        DONE = "done", gettext_lazy("Predicted")
        REFUSED = "refused", gettext_lazy("Not predicted")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    batch = models.ForeignKey(PredictionBatch, on_delete=models.CASCADE, related_name="images")
    file = models.ForeignKey(
        ImageFile, null=True, on_delete=models.SET_NULL, related_name="predictions"
    )
    name = models.CharField(max_length=200)
    image_digest = models.CharField(max_length=64, db_index=True)
    mask_digest = models.CharField(max_length=64, blank=True, db_index=True)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    sentence = models.CharField(max_length=300, blank=True)
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()
    learned_from = models.BooleanField(default=False)
    stated_size = models.JSONField(
        null=True,
        default=None,
        help_text="width and height of a pixel by the file, micrometres; null in earlier rows",
    )
    seconds = models.FloatField(null=True)
    mean_entropy = models.FloatField(null=True)
    foreground_share = models.FloatField(null=True)
    error = models.FloatField(null=True, help_text="share of wrong pixels of the mask read out")
    error_map = models.FloatField(null=True)
    error_mpm = models.FloatField(null=True)
    iou = models.FloatField(null=True)
    log_loss = models.FloatField(null=True)
    extra_share = models.FloatField(null=True)
    missed_share = models.FloatField(null=True)
    reliability = models.JSONField(default=dict)
    confusion = models.JSONField(
        default=list, help_text="of classes: known pixels by true class, then by the one given"
    )
    shares = models.JSONField(default=dict, help_text="by class: share of pixels, objects, areas")
    objects_key = models.CharField(
        max_length=32,
        blank=True,
        default="",
        help_text="changes whenever the objects are measured again or corrected",
    )

    objects = PredictedImageQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["batch", "name"], name="one_prediction_per_name")
        ]
        indexes = [models.Index(fields=["batch", "state"])]  # counted while predicting

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("segmentation:predicted-image", args=[self.batch_id, self.pk])

    @property
    def accuracy(self) -> float | None:
        """Share of pixels on which mask and known mask agree."""
        return None if self.error is None else 1.0 - self.error

    @property
    def pixel_size(self) -> PixelSize | None:
        """Width and height of a pixel, from the file or the setting of its set."""
        stated = self.stated_size
        if stated is None and self.file is not None:
            stated = self.file.facts.get("pixel_size")
        return self.batch.image_set.size_of_pixels(stated)

    @property
    def view(self) -> PictureView | None:
        """View of its set for the image if it is deep, else None."""
        return self.batch.image_set.picture_view

    @property
    def preview_kind(self) -> str:
        """Kind of thumbnail to show: with the prediction once there is one."""
        return "preview.jpg" if self.state == self.State.DONE else "thumbnail.jpg"

    @property
    def marginals_path(self) -> Path:
        """Path of the float32 probabilities, shape (height, width), as ``.npy``."""
        return array_path(self.batch.organisation_id, "marginals", self.pk, ".npy")

    @property
    def mask_path(self) -> Path:
        """Path of the mask as a two-valued PNG of the image's own size."""
        return array_path(self.batch.organisation_id, "masks", self.pk, ".png")

    @property
    def preview_path(self) -> Path:
        """Path of a small JPEG of the image under its probabilities with the mask's outline."""
        return array_path(self.batch.organisation_id, "previews", self.pk, ".jpg")

    @property
    def objects_path(self) -> Path:
        """Path of the objects of every class, one array per column; lengths in pixels.

        Every content has a name of its own, as hosts keep copies of the files of a bucket.
        """
        suffix = f"-{self.objects_key}.npz" if self.objects_key else ".npz"
        return array_path(self.batch.organisation_id, "objects", self.pk, suffix)

    @property
    def layers_path(self) -> Path:
        """Path of probabilities, mask and known mask in one file for the viewer."""
        return array_path(self.batch.organisation_id, "layers", self.pk, ".png")
