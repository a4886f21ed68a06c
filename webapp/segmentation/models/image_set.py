"""A set of images with the masks that belong to them."""

import uuid

from django.conf import settings
from django.db import models
from django.urls import reverse

from engine.datasets.picture_view import PictureView, view_from_json
from webapp.common.models import OrganisationOwned, Removable
from webapp.files.contents import FileStore


class ImageSet(Removable, OrganisationOwned):
    """Images of one kind of thing; ``foreground`` is that thing's name, such as "leaf".

    ``classes`` names what is painted, [{"value": 1, "name": "Nucleus", "colour": "#3b82f6"}]; it is
    empty in sets whose masks tell one thing from all else. ``view`` says how deep pictures of the
    set are shown (`engine.PictureView`) and by which percentiles it was chosen. ``pixel_size`` is
    what a person set or the first file said, in micrometres.
    """

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    foreground = models.CharField(max_length=40, default="object")
    classes = models.JSONField(default=list, blank=True)
    view = models.JSONField(default=dict, blank=True)
    pixel_size = models.FloatField(null=True, blank=True, help_text="micrometres")

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("segmentation:image-set", args=[self.pk])

    @property
    def picture_view(self) -> PictureView | None:
        """How deep pictures of the set are shown; None: each by the range of its own values."""
        return view_from_json(self.view) if self.view else None


class ImageFile(models.Model):
    """One uploaded or painted file of a set: an image, its mask, or probabilities of its pixels.

    The bytes lie in the organisation's file store under ``digest``. ``fixed`` means that a person
    chose the partner, ``role_fixed`` the role; pairing by name then leaves them alone.
    ``mask_like`` means that its pixels can be read as a mask. ``facts`` tells of deep pictures
    pages, channels, bits and pixel size, and of probabilities their planes; it is {"bits": 8} for
    all others and empty for files that came before it was kept. ``version_of`` is the image whose
    mask a file was before a correction.
    """

    class Role(models.TextChoices):
        IMAGE = "image", "Image"
        MASK = "mask", "Mask"
        MAP = "map", "Probability map"

    class Origin(models.TextChoices):
        UPLOADED = "uploaded", "Uploaded"
        CORRECTED = "corrected", "Corrected here"

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

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["image_set", "name"], name="one_file_per_name_and_set")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def paired_mask(self) -> "ImageFile | None":
        """The mask of this image, or None."""
        return getattr(self, "mask", None)

    @property
    def depth_words(self) -> str:
        """Return "16 bit, 2 channels, 5 pages", or nothing for what any viewer shows."""
        bits = self.facts.get("bits", 8)
        if not self.facts.get("kind"):
            return ""
        words = [f"{bits} bit" if bits else self.facts["kind"]]
        for count, noun in ((self.facts["channels"], "channel"), (self.facts["pages"], "page")):
            words += [f"{count} {noun}s"] if count > 1 else []
        return ", ".join(words)

    @property
    def view(self) -> PictureView | None:
        """How the set shows this file; None for what any viewer shows, and for masks."""
        is_deep_image = self.facts.get("kind") and self.role == self.Role.IMAGE
        return self.image_set.picture_view if is_deep_image else None

    @property
    def store(self) -> FileStore:
        """Where the bytes of this file lie."""
        return FileStore(self.image_set.organisation_id)
