"""Queries on corrections of objects: what can be undone, and the usual size that they show."""

import numpy as np

from engine.metrics.object_separation import typical_area_of
from webapp.accounts.models import User
from webapp.segmentation.models import ImageSet, ObjectCorrection, PredictedImage

MAKES_OBJECTS = ("merge", "split", "border")
"""Kinds of corrections after which objects have the size that a person saw."""


def undoable(user: User, row: PredictedImage) -> ObjectCorrection | None:
    """Return the user's own last correction of an image that counts."""
    own = row.corrections.filter(created_by=user, undone=False, source="")
    return own.order_by("-number").first()


def redoable(user: User, row: PredictedImage) -> ObjectCorrection | None:
    """Return the user's own correction that was undone last and that no later one follows."""
    last = undoable(user, row)
    own = row.corrections.filter(created_by=user, undone=True, source="")
    return own.filter(number__gt=last.number if last else 0).order_by("number").first()


def corrected_area(image_set: ImageSet) -> tuple[float, int] | None:
    """Return the usual pixels of objects corrected in a set, and their number; None if few."""
    corrections = ObjectCorrection.objects.filter(
        image__batch__image_set=image_set,
        image__batch__removed_at=None,
        kind__in=MAKES_OBJECTS,
        undone=False,
        problem="",
        source="",
    )
    contents = corrections.values_list("content", flat=True)
    areas = [area for content in contents for area in content.get("areas", [])]
    typical = typical_area_of(np.array(areas, dtype=np.float64))
    return None if typical is None else (typical, len(areas))
