"""Rows of the images that a prediction still has to predict, created in steps.

A set may have 100,000 images. The request that starts a prediction creates the first rows, which
is all of them for most sets; the job creates the rest before it begins, a few hundred per
transaction together with the remaining count. After a kill or a cancellation, the next job
continues after the last name that has a row.
"""

from django.db import transaction
from django.db.models import BigIntegerField, Count, F, QuerySet, Sum
from django.db.models.functions import Cast

from webapp.segmentation.models import ImageFile, PredictedImage, PredictionBatch
from webapp.segmentation.services.class_predictions import class_bytes_per_pixel

DEAL_IMAGES = 200  # rows per transaction, during which other writers wait
BYTES_PER_PIXEL = 5  # 4 of the marginals; mask and layers are smooth and compress to less than one
BYTES_PER_IMAGE = (
    250_000  # preview, headers, objects, and the layers of images too small to be smooth
)


def images_of(batch: PredictionBatch) -> QuerySet[ImageFile]:
    """Return the images of a batch's set that have no row in it yet, by name."""
    files = ImageFile.objects.filter(image_set=batch.image_set_id, role=ImageFile.Role.IMAGE)
    last = batch.images.order_by("-name").values_list("name", flat=True).first()
    return (files if last is None else files.filter(name__gt=last)).order_by("name")


def rows_make(*, batch: PredictionBatch, learned: set[str]) -> int:
    """Create the next rows of a batch; return the number of images left without a row.

    ``learned`` are the digests of the model's training images: thousands, which the caller reads
    before its transaction. A new image whose name comes later is predicted too.
    """
    with transaction.atomic():
        # If two processes hold the same job, one of them finds the other's rows.
        left = PredictionBatch.objects.select_for_update().get(pk=batch.pk).n_unlisted
        files = list(images_of(batch).select_related("mask")[:DEAL_IMAGES])
        PredictedImage.objects.bulk_create([_waiting(batch, file, learned) for file in files])
        is_last = len(files) < DEAL_IMAGES or not images_of(batch).exists()
        # An image added meanwhile was not counted, a removed one is not found.
        batch.n_unlisted = 0 if is_last else max(left - len(files), 1)
        batch.save(update_fields=["n_unlisted"])
    return batch.n_unlisted


def _waiting(batch: PredictionBatch, file: ImageFile, learned: set[str]) -> PredictedImage:
    return PredictedImage(
        batch=batch,
        file=file,
        name=file.name,
        image_digest=file.digest,
        mask_digest=file.paired_mask.digest if file.paired_mask else "",
        width=file.width,
        height=file.height,
        learned_from=file.digest in learned,
        stated_size=file.facts.get("pixel_size") or [],
    )


def waiting_count(batch: PredictionBatch) -> int:
    """Return the number of images of a batch still to predict, with or without a row."""
    return batch.images.waiting().count() + batch.n_unlisted


def predicted_bytes(width: int, height: int, n_classes: int = 0) -> int:
    """Return the maximum bytes of one predicted image's files, unless it is mere noise."""
    return _bytes(1, width * height, n_classes)


def bytes_to_come(batch: PredictionBatch) -> int:
    """Return the maximum bytes of the files of all images that a batch still has to predict."""
    waiting = batch.images.waiting()
    n_classes = len(batch.model.classes)
    found = [_room(waiting, n_classes)]
    if batch.n_unlisted:
        found.append(_room(images_of(batch), n_classes))
    return sum(found)


def _room(images: QuerySet, n_classes: int) -> int:
    area = Cast("width", BigIntegerField()) * F("height")
    sums = images.order_by().aggregate(n=Count("pk"), pixels=Sum(area, default=0))
    return _bytes(sums["n"], sums["pixels"], n_classes)


def _bytes(n_images: int, n_pixels: int, n_classes: int) -> int:
    a_pixel = class_bytes_per_pixel(n_classes) if n_classes else BYTES_PER_PIXEL
    return a_pixel * n_pixels + BYTES_PER_IMAGE * n_images
