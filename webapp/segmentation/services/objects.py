"""Services for objects: measure the objects of a prediction again by other options."""

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.jobs.models import Job
from webapp.jobs.services import job_enqueue
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.models import ImageFile, ImageSet, PredictionBatch
from webapp.segmentation.object_options import ObjectOptions
from webapp.segmentation.selectors.corrections import corrected_area

BYTES_AN_IMAGE = 200_000
"""Upper bound by which the table and the map of numbers of an image grow."""


MIN_KNOWN_OBJECTS = 5
"""Numbered objects from which their mean area is the typical one."""


def typical_area(image_sets: Sequence[ImageSet]) -> float | None:
    """Return the mean pixels of numbered objects in the masks of sets; None if there are few.

    Masks that number no objects do not count: their touching objects are one.
    """
    files = ImageFile.objects.filter(
        image_set__in=image_sets, role=ImageFile.Role.MASK, facts__mask__numbered=True
    )
    found = [facts["mask"] for facts in files.values_list("facts", flat=True)]
    count = sum(one["objects"] for one in found)
    return sum(one["pixels"] for one in found) / count if count >= MIN_KNOWN_OBJECTS else None


def usual_area(batch: PredictionBatch, otherwise: float | None) -> float | None:
    """Return the usual pixels of an object: of those corrected in the set, else as given."""
    corrected = corrected_area(batch.image_set)
    return corrected[0] if corrected else otherwise


def objects_measure(*, user: User, batch: PredictionBatch, options: ObjectOptions) -> Job:
    """Store what counts as an object, and queue measuring every image of the prediction.

    Raises
    ------
    SegmentationError, QuotaError
        If images are still being predicted, none is predicted, no class has objects, or there is
        no space.
    """
    values = {one["value"] for one in batch.model.classes} or {1}
    if values <= set(options.no_objects):
        raise SegmentationError(_("At least one class must count as objects."))
    with transaction.atomic():
        batch = PredictionBatch.objects.select_for_update().get(pk=batch.pk)
        if batch.job is not None and batch.job.is_active:
            raise SegmentationError(_("Wait until the images are predicted."))
        count = batch.images.done().count()
        if not count:
            raise SegmentationError(_("No image of this prediction is predicted yet."))
        batch.object_options = options.as_json()
        batch.save(update_fields=["object_options"])
        audit(user, "measured", batch, images=count, options=options.as_json())
        return job_enqueue(
            user=user,
            kind="segmentation.objects",
            parameters={"batch": str(batch.pk)},
            title=batch.name,
            stores=count * BYTES_AN_IMAGE,
        )
