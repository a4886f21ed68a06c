"""Queries on predictions: progress, figures with their uncertainty, neighbours of an image."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import Avg, Count, F, OrderBy, Q, QuerySet
from django.shortcuts import get_object_or_404

from engine.metrics import Confusion, class_figures
from webapp.accounts.models import User
from webapp.common.listing import Listing, Tally, light, list_page
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.segmentation.models import PredictedImage, PredictionBatch
from webapp.segmentation.uncertainty import (
    Interval,
    ReliabilityBin,
    difference_interval,
    expected_calibration_error,
    mean_interval,
    means_and_reliability,
)
from webapp.translation.lazy import gettext_lazy as _

KEPT_NUMBERS = 256  # cached batches per process: some kilobytes each
_IMAGES = Tally(
    PredictedImage.objects.all(),
    "batch",
    {
        "n_listed": Count("pk"),
        "n_done": Count("pk", filter=Q(state=PredictedImage.State.DONE)),
        "n_refused": Count("pk", filter=Q(state=PredictedImage.State.REFUSED)),
        "mean_iou": Avg("iou", filter=Q(learned_from=False)),
        "learned_iou": Avg("iou", filter=Q(learned_from=True)),
        "n_known": Count("iou"),
        "mean_error": Avg("error"),
        "mean_log_loss": Avg("log_loss"),
    },
)
ORDERS: dict[str, tuple[str, list[OrderBy | str]]] = {
    "worst": (_("Lowest IoU first"), [F("iou").asc(nulls_last=True), "name"]),
    "best": (_("Highest IoU first"), [F("iou").desc(nulls_last=True), "name"]),
    "entropy": (_("Least sure first"), [F("mean_entropy").desc(nulls_last=True), "name"]),
    "name": (_("By name"), ["name"]),
}


@dataclass(frozen=True, slots=True)
class BatchNumbers:
    """Accuracy of a batch on images with a known mask that its model was not trained on.

    ``classes`` has a row per class of the model, over all pixels of these images; empty for masks.
    """

    accuracy: Interval
    iou: Interval
    log_loss: Interval
    bins: list[ReliabilityBin]
    calibration_error: float
    n_images: int
    includes_learned: bool
    classes: tuple[dict[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two batches on the images that both predicted with the same known mask.

    ``rows`` holds all of these; the means are over the ``n_images`` that neither model was trained
    on, or over all if there are no such images.
    """

    rows: list[dict[str, Any]]
    n_images: int
    includes_learned: bool
    first: dict[str, Interval | None]
    second: dict[str, Interval | None]
    difference: dict[str, Interval | None]


def batches_of(user: User) -> QuerySet[PredictionBatch]:
    """Return the batches of the user's organisation, newest first."""
    batches = light(owned_by(PredictionBatch, user), "segmenter", "image_set", "job")
    return batches.order_by("-created_at", "pk")


def count_images(batches: Iterable[PredictionBatch]) -> None:
    """Set ``n_listed``, ``n_done``, ``n_refused``, ``mean_iou`` and ``learned_iou`` of batches.

    ``mean_iou`` is over images that the model was not trained on, ``learned_iou`` over the others.
    """
    _IMAGES.add_to(batches)


def batch_listing(user: User, parameters: Mapping[str, str]) -> Listing[PredictionBatch]:
    """Return a page of the batches with their counts."""
    return list_page(batches_of(user), parameters, _IMAGES)


def batch_of(user: User, pk: Any) -> PredictionBatch:
    """Return one batch of the user's organisation with its counts, or raise Http404."""
    batch = get_owned_or_404(batches_of(user), user, pk)
    count_images([batch])
    return batch


def predicted_image_of(user: User, batch_pk: Any, pk: Any) -> PredictedImage:
    """Return one image of a batch of the user's organisation, or raise Http404."""
    batch = get_owned_or_404(PredictionBatch, user, batch_pk)
    images = PredictedImage.objects.select_related("batch__segmenter", "batch__job", "file")
    return get_object_or_404(images, batch=batch, pk=pk)


def images_in_order(batch: PredictionBatch, order: str) -> QuerySet[PredictedImage]:
    """Return the images of a batch in one of the orders of ``ORDERS``."""
    by = ORDERS.get(order, ORDERS["worst"])[1]
    return batch.images.defer(*PredictedImage.HEAVY).order_by(*by)


def default_order(batch: PredictionBatch) -> str:
    """Return the default order: worst first if masks are known, else least certain first."""
    return "worst" if batch.images.filter(iou__isnull=False).exists() else "entropy"


def batch_numbers(batch: PredictionBatch) -> BatchNumbers | None:
    """Return the figures of a batch; None if no image has a known mask.

    Images that the model was trained on are left out unless there are no others, as their figures
    are too good. A process caches the figures while the batch's counts and means are unchanged.
    """
    if not hasattr(batch, "mean_iou"):  # not from a list, but reached through another row
        count_images([batch])
    means = (batch.mean_iou, batch.learned_iou, batch.mean_error, batch.mean_log_loss)
    return _numbers(batch.pk, (batch.n_images, batch.n_known, *means))


@lru_cache(maxsize=KEPT_NUMBERS)
def _numbers(batch_pk: UUID, content: tuple[float | None, ...]) -> BatchNumbers | None:
    columns = ("learned_from", "confusion", "reliability", "error", "iou", "log_loss")
    known = PredictedImage.objects.filter(batch=batch_pk, iou__isnull=False)
    rows = list(known.values_list(*columns))  # loading whole images takes twice as long
    fresh = [row for row in rows if not row[0]]
    if not rows:
        return None
    _rest, confusions, reliability, errors, ious, log_losses = zip(*(fresh or rows), strict=True)
    figures = class_figures([Confusion(np.array(each)) for each in confusions if each])
    accuracies = 1.0 - np.array(errors, dtype=np.float64)
    said = (accuracies, ious, log_losses)
    (accuracy, iou, log_loss), bins = means_and_reliability(said, reliability)
    return BatchNumbers(
        accuracy=accuracy,
        iou=iou,
        log_loss=log_loss,
        bins=bins,
        calibration_error=expected_calibration_error(bins) or 0.0,
        n_images=len(reliability),
        includes_learned=not fresh,
        classes=figures.classes if figures else (),
    )


def comparable_batches(batch: PredictionBatch) -> QuerySet[PredictionBatch]:
    """Return other batches that share an image with a known mask with this one."""
    digests = batch.images.filter(iou__isnull=False).values("image_digest")
    shared = PredictedImage.objects.filter(image_digest__in=digests, iou__isnull=False)
    others = PredictionBatch.objects.filter(
        organisation_id=batch.organisation_id, pk__in=shared.values("batch")
    )
    return light(others.exclude(pk=batch.pk), "segmenter")


def compare_batches(first: PredictionBatch, second: PredictionBatch) -> Comparison | None:
    """Return the comparison of two batches; None if they have no images in common.

    Images that either model was trained on count only if there are no others.
    """
    others = {
        (image.image_digest, image.mask_digest): image
        for image in second.images.filter(iou__isnull=False)
    }
    pairs = [
        (image, others[key])
        for image in first.images.filter(iou__isnull=False)
        if (key := (image.image_digest, image.mask_digest)) in others
    ]
    if not pairs:
        return None
    fresh = [pair for pair in pairs if not any(image.learned_from for image in pair)]
    counted = list(zip(*(fresh or pairs), strict=True))
    columns = {
        name: tuple([getattr(image, name) for image in side] for side in counted)
        for name in ("accuracy", "iou", "log_loss")
    }
    rows = [
        {"first": a, "second": b, "difference": a.iou - b.iou}
        for a, b in pairs
        if a.iou is not None and b.iou is not None
    ]
    return Comparison(
        n_images=len(fresh or pairs),
        includes_learned=not fresh,
        rows=sorted(rows, key=lambda row: -abs(row["difference"])),
        first={name: mean_interval(values[0]) for name, values in columns.items()},
        second={name: mean_interval(values[1]) for name, values in columns.items()},
        difference={name: difference_interval(*values) for name, values in columns.items()},
    )
