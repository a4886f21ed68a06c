"""Report of the counts and areas of a batch's objects, by image and class."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.datasets.calibration import PixelSize
from webapp.segmentation.measuring import MICROMETRES, unit_of
from webapp.segmentation.models import ObjectCorrection, PredictedImage, PredictionBatch
from webapp.segmentation.object_options import options_of
from webapp.segmentation.selectors.corrections import corrected_area


def objects_report(batch: PredictionBatch) -> dict[str, Any]:
    """Return classes, one row per image, and the totals.

    Areas are in micrometres, each by its own image's pixels, if all images state their size.
    """
    segmenter = batch.model
    options = options_of(batch.object_options, segmenter.classes)
    all_classes = segmenter.classes or [
        {"value": 1, "name": segmenter.foreground, "colour": "#17695a"}
    ]
    classes = [one for one in all_classes if one["value"] not in options.no_objects]
    done = PredictedImage.State.DONE
    found = batch.images.filter(state=done).defer(*PredictedImage.HEAVY)
    images = list(found.select_related("file").order_by("name"))
    for image in images:
        image.batch = batch
    sizes = [image.pixel_size for image in images]
    is_measured = unit_of(images) == MICROMETRES
    scales = [size.area if size and is_measured else 1.0 for size in sizes]
    rows: list[dict[str, Any]] = [
        {"image": image, "cells": _cells(image, classes, scale)}
        for image, scale in zip(images, scales, strict=True)
    ]
    measured = [row for row in rows if row["image"].shares]
    totals = [
        {
            "count": sum(row["cells"][place]["count"] for row in measured),
            "area": sum(row["cells"][place]["area"] for row in measured),
            "share": sum(row["cells"][place]["share"] for row in measured) / max(1, len(measured)),
        }
        for place in range(len(classes))
    ]
    return {
        "classes": classes,
        "rows": rows,
        "totals": totals,
        "unit": "µm²" if is_measured else "px²",
        "digits": 1 if is_measured else 0,
        "size_words": sizes_in_words(sizes),
        "n_unmeasured": len(rows) - len(measured),
        "all_classes": all_classes,
        "background": [one["name"] for one in all_classes if one not in classes],
        "options": options,
        "n_corrections": ObjectCorrection.objects.filter(image__batch=batch, undone=False).count(),
        "corrected": corrected_area(batch.image_set),
    }


def size_in_words(size: PixelSize) -> str:
    """Return "0.5 µm", or "0.5 × 2 µm" for pixels that are not square."""
    sides = [f"{size.x:.4g}"] if size.is_square else [f"{size.x:.4g}", f"{size.y:.4g}"]
    return f"{' × '.join(sides)} µm"


def sizes_in_words(sizes: Sequence[PixelSize | None]) -> str:
    """Return a sentence on the pixel sizes of images and the unit of their areas."""
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        count = len(sizes) - len(known)
        return ngettext(
            "Areas are in pixels: %(count)s image of %(total)s states no size of a pixel. "
            "Enter it under Display and scale of the set.",
            "Areas are in pixels: %(count)s images of %(total)s state no size of a pixel. "
            "Enter it under Display and scale of the set.",
            count,
        ) % {"count": f"{count:,}", "total": len(sizes)}
    if not known:
        return ""
    words = sorted({size_in_words(size) for size in known})
    if len(words) == 1:
        return _("A pixel is %(size)s.") % {"size": words[0]}
    least, most = min(known, key=lambda one: one.area), max(known, key=lambda one: one.area)
    return _("Pixels are %(least)s to %(most)s: every area is by its own image’s.") % {
        "least": size_in_words(least),
        "most": size_in_words(most),
    }


def _cells(
    image: PredictedImage, classes: list[dict[str, Any]], scale: float
) -> list[dict[str, Any]]:
    found = []
    for one in classes:
        kept = image.shares.get(str(one["value"]), {})
        found.append(
            {
                "count": kept.get("count", 0),
                "area": kept.get("area", 0.0) * scale,
                "median": kept.get("median", 0.0) * scale,
                "share": kept.get("share", 0.0),
            }
        )
    return found
