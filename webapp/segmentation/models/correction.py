"""Corrections of the objects of a predicted image by hand."""

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from engine.metrics import ObjectEdit
from webapp.segmentation.models.prediction import PredictedImage


class ObjectCorrection(models.Model):
    """One correction of objects of one image, in the image's own pixels.

    ``content`` has the objects that it acts on as they were, what it draws or sets, and the areas
    of the objects that it made. ``problem`` says why it could not be applied to the objects of a
    later measurement; ``source`` names the prediction that it was made on, if it is another one.
    """

    class Kind(models.TextChoices):
        DELETE = "delete", gettext_lazy("Deleted")
        MERGE = "merge", gettext_lazy("Joined")
        SPLIT = "split", gettext_lazy("Split")
        BORDER = "border", gettext_lazy("Drew a border")
        NUMBER = "number", gettext_lazy("Numbered")
        NUMBER_ALL = "number all", gettext_lazy("Numbered all")
        CLASS = "class", gettext_lazy("Set the class")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    image = models.ForeignKey(PredictedImage, on_delete=models.CASCADE, related_name="corrections")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=Kind)
    content = models.JSONField()
    undone = models.BooleanField(default=False)
    problem = models.CharField(max_length=200, blank=True)
    source = models.CharField(max_length=120, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["image", "number"], name="one_correction_per_number")
        ]

    def __str__(self) -> str:
        return f"correction {self.number} of {self.image_id}"

    @property
    def edit(self) -> ObjectEdit:
        """The correction as the engine applies it."""
        return ObjectEdit.from_json(self.kind, self.content)

    @property
    def sentence(self) -> str:
        """Description of the act, such as "Joined 2 objects"."""
        count = len(self.content["shapes"])
        objects = _("1 object") if count == 1 else _("%(count)s objects") % {"count": count}
        if self.kind == self.Kind.BORDER:
            return _("Drew the border of 1 object") if count else _("Drew a new object")
        if self.kind == self.Kind.NUMBER:
            return _("Gave 1 object the number %(number)s") % {"number": self.content["number"]}
        if self.kind == self.Kind.NUMBER_ALL:
            order = _("by size") if self.content["order"] == "size" else _("from top to bottom")
            return _("Numbered all objects %(order)s") % {"order": order}
        if self.kind == self.Kind.CLASS:
            return _("Set the class of %(objects)s") % {"objects": objects}
        return f"{self.Kind(self.kind).label} {objects}"
