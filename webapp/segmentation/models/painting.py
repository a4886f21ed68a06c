"""Strokes that people paint on images."""

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from webapp.segmentation.models.image_set import ImageFile


class Stroke(models.Model):
    """One stroke on one image, in the image's own pixels.

    ``value`` is the class painted, 0 for the eraser. ``points`` is a flat list x, y, x, y, ...;
    ``radii`` has one entry per point if a pen pressed. ``right`` is the share of its pixels that
    the previous answer had right; None for the first strokes and the eraser.
    """

    class Tool(models.TextChoices):
        BRUSH = "brush", _("Brush")
        LINE = "line", _("Line")
        POLYGON = "polygon", _("Polygon")
        FILL = "fill", _("Fill")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    file = models.ForeignKey(ImageFile, on_delete=models.CASCADE, related_name="strokes")
    number = models.PositiveIntegerField()
    value = models.PositiveSmallIntegerField()
    tool = models.CharField(max_length=8, choices=Tool, default=Tool.BRUSH)
    radius = models.FloatField(default=6.0, help_text="pixels of the image")
    points = models.JSONField(default=list)
    radii = models.JSONField(default=list, blank=True)
    pixels = models.PositiveIntegerField(default=0)
    right = models.FloatField(null=True)
    undone = models.BooleanField(default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["file", "number"], name="one_stroke_per_number")
        ]

    def __str__(self) -> str:
        return f"stroke {self.number} of {self.file_id}"
