"""Image sets with their images, masks and probability maps."""

import uuid
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.datasets.calibration import PixelSize
from engine.datasets.picture_view import PictureView, view_from_json
from webapp.common.formats import counted
from webapp.common.models import OrganisationOwned, Removable
from webapp.files.contents import FileStore


class ImageSet(Removable, OrganisationOwned):
    """Images of one kind of object; ``foreground`` names that object, such as "leaf".

    ``classes`` are the painted classes, [{"value": 1, "name": "Nucleus", "colour": "#3b82f6"}]; it
    is empty in sets whose masks mark one kind of object. ``view`` holds the display of deep
    images (`engine.PictureView`) and the percentiles that it was chosen by. ``pixel_size`` is in
    micrometres and set by a person, for the images whose files state none, or for all.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    foreground = models.CharField(max_length=40, default="object")
    classes = models.JSONField(default=list, blank=True)
    view = models.JSONField(default=dict, blank=True)
    pixel_size = models.FloatField(null=True, blank=True, help_text="micrometres")
    pixel_size_for_all = models.BooleanField(
        default=False, help_text="also of pictures whose files state another one"
    )

    n_masked: int  # images with a mask; count_files() sets it

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("segmentation:image-set", args=[self.pk])

    @property
    def picture_view(self) -> PictureView | None:
        """View for deep images of the set; None: each by the range of its own values."""
        return view_from_json(self.view) if self.view else None

    def size_of_pixels(self, stated: Any) -> PixelSize | None:
        """Return the size of an image's pixels, given ``stated``, x and y from its file.

        Older files state one number for both; ``stated`` is empty if the file states nothing.
        """
        if stated and not (self.pixel_size and self.pixel_size_for_all):
            x, y = stated if isinstance(stated, list) else (stated, stated)
            return PixelSize(float(x), float(y))
        return PixelSize(self.pixel_size, self.pixel_size) if self.pixel_size else None


class ImageFileQuerySet(models.QuerySet["ImageFile"]):
    """Query set of the files of sets."""

    def images(self) -> Self:
        """Return the images, without masks and probabilities."""
        return self.filter(role=ImageFile.Role.IMAGE)


class ImageFile(models.Model):
    """One uploaded or painted file of a set: an image, its mask, or probabilities of its pixels.

    The bytes lie in the organisation's file store under ``digest``. ``fixed`` means that a person
    chose the partner, ``role_fixed`` the role; pairing by name then leaves them unchanged.
    ``mask_like`` means that its pixels can be read as a mask. ``facts`` holds for deep images the
    pages, channels and bits, for all images the stated size of a pixel, for masks the numbers of
    pixels and objects, for label maps the number of classes, and for probabilities their planes; it
    is empty for files from before facts were stored. ``version_of`` is the image whose mask this
    file was before a correction.
    """

    class Role(models.TextChoices):
        IMAGE = "image", gettext_lazy("Image")
        MASK = "mask", gettext_lazy("Mask")
        MAP = "map", gettext_lazy("Probability map")

    class Origin(models.TextChoices):
        UPLOADED = "uploaded", gettext_lazy("Uploaded")
        CORRECTED = "corrected", gettext_lazy("Corrected here")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    image_set = models.ForeignKey(ImageSet, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=200)
    digest = models.CharField(max_length=64, db_index=True)
    media_type = models.CharField(max_length=40)
    size = models.PositiveBigIntegerField(help_text="bytes")
    width = models.PositiveIntegerField(help_text="pixels, upright")
    height = models.PositiveIntegerField(help_text="pixels, upright")
    mask_like = models.BooleanField(default=False)
    role = models.CharField(max_length=8, choices=Role, default=Role.IMAGE)
    role_fixed = models.BooleanField(default=False)
    origin = models.CharField(max_length=12, choices=Origin, default=Origin.UPLOADED)
    mask_of = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="mask"
    )
    version_of = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="versions"
    )
    facts = models.JSONField(default=dict, blank=True)
    fixed = models.BooleanField(default=False)
    problem = models.CharField(max_length=300, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ImageFileQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["image_set", "name"], name="one_file_per_name_and_set")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def paired_mask(self) -> "ImageFile | None":
        """Mask of this image, or None."""
        return getattr(self, "mask", None)

    @property
    def pixel_size(self) -> PixelSize | None:
        """Width and height of a pixel, from the file or the setting of its set."""
        return self.image_set.size_of_pixels(self.facts.get("pixel_size"))

    @property
    def understood(self) -> str:
        """Contents of a mask in words, "75 pixels, 3 objects"; "" for other files."""
        found = self.facts.get("mask")
        if not found:
            return ""
        pixels, objects = found["pixels"], found["objects"]
        return f"{counted(pixels, 'pixel')}, {counted(objects, 'object')}"

    @property
    def depth_words(self) -> str:
        """Depth in words, "16 bit, 2 channels, 5 pages"; "" for an image that any viewer shows."""
        bits = self.facts.get("bits", 8)
        if not self.facts.get("kind"):
            return ""
        words = [_("%(bits)s bit") % {"bits": bits} if bits else self.facts["kind"]]
        for count, noun in ((self.facts["channels"], "channel"), (self.facts["pages"], "page")):
            words += [f"{count} {noun}s"] if count > 1 else []
        return ", ".join(words)

    @property
    def view(self) -> PictureView | None:
        """View of the set for this file; None for masks and images that any viewer shows."""
        is_deep_image = self.facts.get("kind") and self.role == self.Role.IMAGE
        return self.image_set.picture_view if is_deep_image else None

    @property
    def store(self) -> FileStore:
        """File store that holds the bytes of this file."""
        return FileStore(self.image_set.organisation_id)
